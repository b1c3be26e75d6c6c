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
__outlast_arm() {
  # Also after a step that emptied it: what throws the shell to its top level must come out here again.
  [[ ${PROMPT_COMMAND[1016]-} == "$__outlast_pump" ]] && \builtin return
  \builtin local i
  for i in {1000..1016}; do PROMPT_COMMAND[i]=$__outlast_pump; done
  PROMPT_COMMAND[0]=${PROMPT_COMMAND[0]-}
}
__outlast_began() {
  \builtin local c LC_ALL=C
  c=$(HISTTIMEFORMAT= \builtin history 1)
  [[ $c =~ ^\ *([0-9]+)\*?\ *(.*) ]]
  c=${BASH_REMATCH[2]}
  [[ ${BASH_REMATCH[1]} == "$__outlast_h" ]] && c='(a command that is not in the history)'
  \builtin printf 'B%s\0' "${c:0:8000}" >&31
}
__outlast_prompt() {
  __outlast_person=1
  \builtin set -o history
  __outlast_h=$(HISTTIMEFORMAT= \builtin history 1)
  [[ $__outlast_h =~ ^\ *([0-9]+) ]]
  __outlast_h=${BASH_REMATCH[1]}
  [[ $__outlast_f == *x* ]] && \builtin set -x
  [[ $__outlast_f == *v* ]] && \builtin set -v
  [[ $PS1 == '\s-\v\$ ' ]] && PS1='\w\$ '
  [[ $PS1 == *"$__outlast_ps1" ]] || PS1+=$__outlast_ps1
  PS0=${PS0%"$__outlast_ps0"}$__outlast_ps0
  __outlast_s=
  \builtin return 1
}
__outlast_next() {
  \builtin local IFS=' ' k t n m s LC_ALL=C
  __outlast_arm
  if [[ $__outlast_person ]]; then
    __outlast_person= __outlast_drawn=0
    \builtin set +o history
    PS1=${PS1%"$__outlast_ps1"} PS0=${PS0%"$__outlast_ps0"}
  fi
  if [[ $__outlast_step ]]; then
    \builtin read -r -N 16 -t 5 -u 31 t
    if (( __outlast_z )); then
      \builtin read -r -N "$__outlast_z" -u 31 s
      \builtin eval "$s"
    fi
    s=${__outlast_s#*/}
    \builtin jobs
    # Behind a trap on DEBUG, where there is one. Mostly there is neither, and all is said in one write.
    \builtin jobs -p >&31
    \builtin printf '\0E%s\0%s\0%s\0%s\0' "$__outlast_step" "$t" "${__outlast_s%%/*} ${s%%/*}" "$PWD" >&31
    __outlast_step= __outlast_z=0
  else
    \builtin printf '\0' >&31
  fi
  while \builtin read -r -d '' -u 31 k __outlast_step s n m __outlast_z; do
    case $k in
    r|q)
      __outlast_c= t= __outlast_k=$k
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
    p) __outlast_k=p; __outlast_prompt; \builtin return 1;;
    s) __outlast_step=; __outlast_state >&31;;
    # A command has put something else in the place of a builtin: without it there is no way on.
    *) \exit 97;;
    esac
  done
  \builtin exit 97
}
__outlast_s=0/0/ __outlast_f=$- __outlast_step= __outlast_i= __outlast_b= __outlast_z=0 __outlast_person= __outlast_drawn=0
# A job that is stopped breaks all loops, also ours: what is behind them notes the code. Where no step was taken, there is nobody left who would take one.
# A prompt that is drawn says so, or the next one would not be waited for.
__outlast_ps1='${__outlast_a[__outlast_drawn=1]-}' __outlast_ps0='$(__outlast_began 2>/dev/null)'
__outlast_pump='{ __outlast_i=${__outlast_b:-$?/${PIPESTATUS[@]}/}; __outlast_b=; } 2>/dev/null
while [[ ! $__outlast_person || $__outlast_drawn == 1 ]]; do
while { __outlast_q=$?/${PIPESTATUS[@]}/; __outlast_f=$-; \builtin set +xv; __outlast_s=${__outlast_s:-${__outlast_i:-$__outlast_q}}; __outlast_i=; \builtin trap -p DEBUG >&31; \builtin trap - DEBUG; __outlast_k=; __outlast_next && [[ $__outlast_k ]]; } >/dev/null 2>&1; do
__outlast_s=
[[ $__outlast_f == *v* ]] && \builtin set -v
__outlast_r "$__outlast_e" "$__outlast_u" && [[ 1 ]]
\builtin eval "$__outlast_c" 31<&-
done
[[ $__outlast_k ]] || \exit 97
done
{ __outlast_b=$?/$?/; [[ $__outlast_person ]] && __outlast_b=; } 2>/dev/null'
