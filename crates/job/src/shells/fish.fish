set -e __outlast_first
set -e __outlast
function __outlast_r; return $argv[1]; end
function __outlast_state
  printf 'S\0'
  for n in (set -xn)
    test $n = __outlast_first; or echo set -gx $n (string escape -- $$n)
  end
  printf '\0'
  for n in (functions -an)
    contains -- $n $__outlast_known; or string match -q '__outlast*' -- $n; or test -e (functions --details $n); or functions --no-details $n
  end
  printf '\0\0\0umask %s\n\0' (umask)
end
function __outlast_next
  set -l k
  set -l token
  set -l restore
  if set -q __outlast_step[1]
    read -z token
    read -z restore
    test -n "$restore"; and eval $restore
    printf 'J%s\0' (jobs -p | string join ' ') >&@LINE@
    printf '%s\0' E$__outlast_step "$token" "$__outlast_s" "$PWD" >&@LINE@
    set -e __outlast_step
  end
  while read -z k
    switch $k
    case r
      set -l setup
      read -gz __outlast_step
      read -z setup
      read -gz __outlast_c
      test -n "$setup"; and eval $setup
      set -g __outlast_sits
      return 0
    case p
      read -gz __outlast_step
      set -g __outlast_c true
      set -g __outlast_sits 1
      return 0
    case s
      __outlast_state >&@LINE@
    end
  end
  exit 97
end
function __outlast_sit
  set -l line
  if read --shell --prompt __outlast_prompt line
    string match -qr '\S' -- $line; or return 0
    set -g __outlast_c $line
    set -g __outlast_sits 2
  end
end
function __outlast_one --no-scope-shadowing
  __outlast_next 2>/dev/null </proc/self/fd/@FEED@
  or exit 97
  if test -n "$__outlast_sits"
    __outlast_sit @FEED@<&- @LINE@<&-
    test $__outlast_sits = 2; and printf 'B%s\0' (string sub -l 8000 -- $__outlast_c | string collect) >&@LINE@
  end
  if test (count $__outlast_s) -gt 2; and string match -q '*pipestatus*' -- $__outlast_c
    set -g __outlast_c "__outlast_r "(string join ' | __outlast_r ' $__outlast_s[2..])"; $__outlast_c"
  end
  set -e __outlast_s
  __outlast_r $__outlast_p; and true
  eval $__outlast_c @FEED@<&- @LINE@<&-
  set -l code $status
  set -q __outlast_s[1]; or set -g __outlast_s $code
end
function __outlast --no-scope-shadowing
  set -g __outlast_q $status
  set -q __outlast_s[1]; or set -g __outlast_s $__outlast_q
  test "$__outlast_s[1]" = 0; and set -q __outlast_step[1]; and set -g __outlast_s 130
  set -g __outlast_p $__outlast_s[1]
  while true
    __outlast_one
    set -g __outlast_q $status
    set -q __outlast_s[1]; or set -g __outlast_s $__outlast_q
    set -g __outlast_p $__outlast_s[1]
  end
end
if functions -q fish_prompt
  functions -c fish_prompt __outlast_prompt
else
  function __outlast_prompt; printf '%s> ' (prompt_pwd); end
end
function fish_prompt; end
function fish_title; end
function fish_right_prompt; end
function fish_mode_prompt; end
set -g fish_greeting
set -g __outlast_s 0
set -g __outlast_p 0
set -g __outlast_sits
# @STATE@
set -g __outlast_known (functions -an)
status job-control full
