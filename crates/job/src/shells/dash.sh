exec 8<&0 9<&1 0<&2 1>&2
unset __outlast_first
__outlast_p=0
__outlast_r() { return "$1"; }
__outlast_aliases() { command alias | while IFS= read -r l; do command printf 'alias %s\n' "$l"; done; }
# No fork in here: it comes after every step.
__outlast_tell() {
  trap - EXIT
  unset __outlast_p __outlast_t __outlast_l __outlast_k __outlast_step __outlast_s __outlast_z __outlast_c __outlast_d
  command printf '\1'
  command alias
  command printf '\1\\umask '
  command umask
  trap
  set
  export -p
  command printf '\0F%s\0J' "$PWD"
  command jobs -p
  command printf '\0'
}
__outlast_state() {
  command printf 'S\0'
  export -p; command printf '\0\0'
  __outlast_aliases; command printf '\0'
  set +o; command printf '\0umask '
  command umask; command printf '\0'
}
__outlast_load() {
  eval "$__outlast_d" 2>/dev/null 8<&-
  {
    __outlast_l=$-
    set +exvm
    case $__outlast_l in *e*) __outlast_c="set -e;$__outlast_c";; esac
    case $__outlast_l in *v*) __outlast_c="set -v;$__outlast_c";; esac
    case $__outlast_l in *x*) __outlast_c="set -x;$__outlast_c";; esac
  } 2>/dev/null
  __outlast_w=$OLDPWD; \cd -- "$PWD" 2>/dev/null; OLDPWD=$__outlast_w; unset __outlast_w
}
# @RC@
set -m
while :; do
  # What is read is a script that sets what follows. Half of one would be another script, so nothing may interrupt it.
  trap '' INT QUIT
  __outlast_k=
  . /proc/self/fd/9
  trap : INT QUIT
  if [ "$__outlast_k" = p ]; then
    ( __outlast_load; command printf %s "${PS1:-$ }" ) 8<&- 9<&-
    if IFS= read -r __outlast_c && [ -n "$__outlast_c" ]; then
      printf 'B%s\0' "$__outlast_c" >&8
    fi
    __outlast_k=r
  fi
  case $__outlast_k in
  r)
    (
      __outlast_load
      eval "$__outlast_s"
      __outlast_r "$__outlast_p" && :
      eval "$__outlast_c" 8<&-
      { __outlast_p=$?; command printf D >&8; set +o >&8; set +exv; } 2>/dev/null
      eval "$__outlast_z"
      set -- "$__outlast_p"
      __outlast_tell 2>/dev/null >&8
      exit "$1"
    ) 9<&-
    __outlast_p=$?
    IFS= read -r __outlast_t <&8 || exit 97
    printf '%s\0' "E$__outlast_step" "$__outlast_t" "$__outlast_p" "" >&8;;
  s) ( __outlast_load; __outlast_state >&8 ) 2>/dev/null 9<&-;;
  esac
done
