\builtin unset __outlast __outlast_first
__outlast_r() { \builtin return $1 }
__outlast_after() {
  \builtin trap - DEBUG
  __outlast_e=0
  [[ -o errexit ]] && __outlast_e=1
  [[ $TRY_BLOCK_INTERRUPT -gt 0 ]] && __outlast_s=130
  __outlast_s=${__outlast_s:-$1}
  TRY_BLOCK_ERROR=0
  TRY_BLOCK_INTERRUPT=0
}
__outlast_read() {
  # Bytes, however many reads they take.
  __outlast_t=
  \builtin local piece
  while (( ${#__outlast_t} < $1 )) && \builtin read -r -k $(( $1 - ${#__outlast_t} )) -u 8 piece; do
    __outlast_t+=$piece
  done
}
__outlast_state() {
  \builtin printf 'S\0'
  \builtin typeset -xp; \builtin printf '\0'
  \builtin typeset -f; \builtin printf '\0'
  \builtin alias -L; \builtin printf '\0'
  \builtin set +o; \builtin printf '\0'
  \builtin printf 'umask '; \builtin umask; \builtin printf '\0'
}
__outlast_next() {
  \builtin emulate -L zsh
  \builtin setopt nomultibyte noxtrace noverbose
  \builtin local k s n m __outlast_t IFS=$' \t\n\0'
  __outlast_s=${__outlast_s//[^0-9]/ }
  if [[ -n $__outlast_step ]]; then
    __outlast_read 16; s=$__outlast_t
    if (( __outlast_z )); then
      __outlast_read $__outlast_z
      \builtin eval "$__outlast_t"
    fi
    \builtin printf 'J%s\0E%s\0%s\0%s\0%s\0' "${${(@)jobstates##*:}%%=*}" "$__outlast_step" "$s" "$__outlast_s" "$PWD" >&8
    __outlast_step= __outlast_z=0
  fi
  while \builtin read -r -d '' -u 8 k __outlast_step s n m __outlast_z; do
    case $k in
    r|q)
      __outlast_read $s; s=$__outlast_t
      __outlast_read $n; n=$__outlast_t
      __outlast_read $m; __outlast_c=$n$__outlast_t
      [[ -n $s ]] && \builtin eval "$s"
      __outlast_p=${__outlast_s%% *}
      if [[ -n $__outlast_x ]]; then
        (( __outlast_e )) && __outlast_p=0
        __outlast_c="{ \\builtin setopt $__outlast_x; __outlast_r $__outlast_p; } 2>/dev/null;$__outlast_c"
      fi
      m=${__outlast_s#* }
      if [[ $m == *\ * && $__outlast_c == *pipestatus* ]]; then
        __outlast_c="__outlast_r ${m// / | __outlast_r }; $__outlast_c"
      elif [[ $__outlast_c == *\$_* || $__outlast_c == *\${_* ]]; then
        (( __outlast_e )) && __outlast_p=0
        __outlast_c="__outlast_r $__outlast_p ${(qq)__outlast_u};$__outlast_c"
      fi
      [[ $k == r && -z $__outlast_x ]] && __outlast_c+=$'\n__outlast_s="$? ${pipestatus[*]}" __outlast_u=$_'
      __outlast_s= __outlast_k=
      \builtin return 0;;
    p)
      __outlast_p=${__outlast_s%% *} __outlast_c=: __outlast_s= __outlast_k=p
      \builtin return 0;;
    s) __outlast_step= __outlast_k=s; \builtin return 0;;
    esac
  done
  \builtin exit 97
}
# A person sits at the terminal: their line is the command, with their own prompt and its hooks.
__outlast_sit() {
  \builtin local line more hook
  for hook in precmd $precmd_functions; do
    (( $+functions[$hook] )) && { __outlast_r $__outlast_p && \builtin :; $hook; }
  done
  \builtin vared -h -p "${PS1:-%~%# }" line || \builtin return 0
  # As long as the shell would read on, it is asked for more.
  while [[ -n $line ]] && ! __outlast_whole "$line"; do
    more=
    \builtin vared -h -p "${PS2:-> }" more || \builtin return 0
    [[ -n $more ]] || \builtin break
    line+=$'\n'$more
  done
  [[ $line == *[![:space:]]* ]] || \builtin return 0
  \builtin print -rs -- "$line"
  __outlast_c=$line __outlast_k=b
  for hook in preexec $preexec_functions; do
    (( $+functions[$hook] )) && $hook "$line" "$line" "$line"
  done
}
__outlast_whole() {
  \builtin local said
  said=$( { functions[__outlast_trial]=$1 } 2>&1 ) && [[ -z $said ]] && \builtin return 0
  [[ $said != *unmatched* && $said != *"parse error near \`\\n'"* && $said != *"parse error near \`"(then|do|else|'{'|'('|'&&'|'||'|'|')"'"* ]]
}
__outlast_s=0 __outlast_step= __outlast_z=0 __outlast_k= __outlast_x= __outlast_e=0 __outlast_u= __outlast_p=0
