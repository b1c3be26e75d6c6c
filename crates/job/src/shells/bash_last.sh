for __outlast in {1000..1016}; do PROMPT_COMMAND[__outlast]=$__outlast_pump; done
PROMPT_COMMAND[0]=${PROMPT_COMMAND[0]-}
\builtin unset -v __outlast
