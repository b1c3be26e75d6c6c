__outlast_next 2>/dev/null
if [[ $__outlast_k == s ]]; then
__outlast_state 2>/dev/null >&8
return 0
fi
{
if [[ $__outlast_k == p ]]; then
__outlast_sit 7<&- 8<&-
[[ $__outlast_k == b ]] && \builtin printf 'B%s\0' "$__outlast_c" >&8
fi
__outlast_r $__outlast_p && \builtin :
\builtin eval -- "$__outlast_c" 7<&- 8<&-
} always {
{
__outlast_q=$? __outlast_x=
[[ -o xtrace ]] && __outlast_x=xtrace
[[ -o verbose ]] && __outlast_x="$__outlast_x verbose"
\builtin unsetopt xtrace verbose
} 2>/dev/null
__outlast_after $__outlast_q 2>/dev/null
}
