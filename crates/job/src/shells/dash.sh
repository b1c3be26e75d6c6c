exec 8<&0 0<&1
unset __outlast_first
__outlast_p=0
__outlast_r() { return $1; }
__outlast_lines() {
  __outlast_t=
  while [ "$1" -gt 0 ]; do
    IFS= read -r __outlast_l <&8 || exit 97
    __outlast_t="$__outlast_t$__outlast_l
"
    set -- $(($1 - 1))
  done
  __outlast_t=${__outlast_t%?}
}
__outlast_aliases() { alias | while IFS= read -r l; do printf 'alias %s\n' "$l"; done; }
__outlast_tell() {
  trap - EXIT
  printf 'F%s\0J' "$PWD"
  jobs -p
  printf '\0D'
  __outlast_o=$1
  unset __outlast_p __outlast_q __outlast_t __outlast_l __outlast_k __outlast_step __outlast_s __outlast_n __outlast_m __outlast_z __outlast_c __outlast_d
  printf '%s\n' "$__outlast_o"
  unset __outlast_o
  trap
  __outlast_aliases
  printf '\\umask %s\n' "$(umask)"
  set
  export -p
  printf '\0'
}
__outlast_state() {
  printf 'S\0'
  export -p; printf '\0\0'
  __outlast_aliases; printf '\0'
  set +o; printf '\0umask '
  umask; printf '\0'
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
trap : INT QUIT
set -m
while IFS=' ' read -r __outlast_k __outlast_step __outlast_s __outlast_n __outlast_m __outlast_z <&8; do
  __outlast_lines $__outlast_s; __outlast_s=$__outlast_t
  __outlast_lines $__outlast_n; __outlast_d=$__outlast_t
  __outlast_lines $__outlast_m; __outlast_c=$__outlast_t
  __outlast_lines $__outlast_z; __outlast_z=$__outlast_t
  if [ "$__outlast_k" = p ]; then
    __outlast_c=
    ( __outlast_load; printf %s "${PS1:-$ }" ) 8<&-
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
      { __outlast_p=$?; __outlast_q=$(set +o); set +exv; } 2>/dev/null
      eval "$__outlast_z"
      set -- "$__outlast_p" "$__outlast_q"
      __outlast_tell "$2" 2>/dev/null >&8
      exit $1
    )
    __outlast_p=$?
    __outlast_lines 1
    printf '%s\0' "E$__outlast_step" "$__outlast_t" "$__outlast_p" "" >&8;;
  s) ( __outlast_load; __outlast_state >&8 ) 2>/dev/null;;
  esac
done
exit 97
