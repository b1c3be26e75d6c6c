__outlast_arm
\builtin unset -v __outlast
