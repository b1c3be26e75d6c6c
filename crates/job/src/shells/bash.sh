\builtin unset -v PROMPT_COMMAND __outlast HISTFILE
\builtin set +o history
__outlast_r() { \builtin return "$1"; }
__outlast_x() { { \builtin set -x; \builtin return "$1"; } 2>/dev/null; }
__outlast_state() {
  \builtin printf 'S\0'
  \builtin declare -xp; \builtin printf '\0'
  \builtin declare -f; \builtin printf '\0'
  \builtin alias -p; \builtin printf '\0'
  \builtin shopt -p; \builtin set +o; \builtin printf '\0'
  \builtin umask -p; \builtin printf '\0'
}
__outlast_next() {
  \builtin local IFS=' ' k t n m s LC_ALL=C
  if [[ $__outlast_step ]]; then
    \builtin read -r -N 16 -t 5 -u 31 t
    if (( __outlast_z )); then
      \builtin read -r -N "$__outlast_z" -u 31 s
      \builtin eval "$s"
    fi
    s=${__outlast_s#*/}
    \builtin printf '%s\0' "E$__outlast_step" "$t" "${__outlast_s%%/*} ${s%%/*}" "$PWD" >&31
    __outlast_step= __outlast_z=0
    \builtin jobs
  fi
  while \builtin read -r -d '' -u 31 k __outlast_step s n m __outlast_z; do
    case $k in
    r|q)
      __outlast_c= t=
      (( s )) && \builtin read -r -N "$s" -u 31 s
      (( n )) && \builtin read -r -N "$n" -u 31 t
      (( m )) && \builtin read -r -N "$m" -u 31 __outlast_c
      __outlast_u=${__outlast_s#*/}
      __outlast_u=${__outlast_u#*/}
      __outlast_e=${__outlast_s%%/*}
      if [[ $k == r && $__outlast_f != *[vx]* ]]; then
        __outlast_c+=$'\n__outlast_s=$?/${PIPESTATUS[@]}/$_'
      fi
      if [[ $__outlast_f == *x* ]]; then
        [[ $__outlast_f == *e* ]] && __outlast_e=0
        t="__outlast_x $__outlast_e 2>/dev/null;$t"
      fi
      __outlast_c=$t$__outlast_c
      t=${__outlast_s#*/} t=${t%%/*}
      if [[ $t == *\ * && $__outlast_f != *[ex]* && $__outlast_c == *PIPESTATUS* ]]; then
        __outlast_c="__outlast_r ${t// / | __outlast_r }; $__outlast_c"
      fi
      [[ $s == 0 ]] || \builtin eval "$s"
      \builtin return 0;;
    s) __outlast_step=; __outlast_state >&31;;
    esac
  done
  \builtin exit 97
}
__outlast_s=0/0/ __outlast_f=$- __outlast_step= __outlast_i= __outlast_z=0
__outlast_pump='{ __outlast_i=$?/${PIPESTATUS[@]}/; } 2>/dev/null
while [[ 1 ]]; do
while { __outlast_q=$?/${PIPESTATUS[@]}/; __outlast_f=$-; \builtin set +xv; __outlast_s=${__outlast_s:-${__outlast_i:-$__outlast_q}}; __outlast_i=; \builtin printf D >&31; \builtin trap -p DEBUG >&31; \builtin printf "\0" >&31; \builtin trap - DEBUG; __outlast_next; } >/dev/null 2>&1; do
__outlast_s=
[[ $__outlast_f == *v* ]] && \builtin set -v
__outlast_r "$__outlast_e" "$__outlast_u" && [[ 1 ]]
\builtin eval "$__outlast_c" 31<&-
done
done'
