set -e __outlast_first
set -e __outlast
function __outlast_r; return $argv[1]; end
function __outlast_state
  builtin printf 'S\0'
  for n in (set -xn)
    test $n = __outlast_first; or echo set -gx $n (builtin string escape -- $$n)
  end
  builtin printf '\0'
  for n in (builtin functions -an)
    builtin contains -- $n $__outlast_known; or builtin string match -q '__outlast*' -- $n; or test -e (builtin functions --details $n); or builtin functions --no-details $n
  end
  builtin printf '\0\0\0umask %s\n\0' (umask)
end
function __outlast_next
  set -l k
  set -l token
  set -l restore
  if set -q __outlast_step[1]
    read -z token
    read -z restore
    test -n "$restore"; and eval $restore
    # No command substitution in here: it comes after every step, and each costs a pipe and a thread.
    begin
      builtin printf J
      builtin jobs -p
      builtin printf '\0'
      builtin printf '%s\0' E$__outlast_step "$token" "$__outlast_s" "$PWD"
    end >&@LINE@
    set -e __outlast_step
  end
  while read -z k
    switch $k
    case r
      set -l setup
      set -g __outlast_k r
      read -gz __outlast_step
      read -z setup
      read -gz __outlast_c
      test -n "$setup"; and eval $setup
      set -g __outlast_sits
      return 0
    case p
      set -g __outlast_k p
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
    builtin string match -qr '\S' -- $line; or return 0
    set -g __outlast_c $line
    set -g __outlast_sits 2
  end
end
function __outlast_one --no-scope-shadowing
  __outlast_next 2>/dev/null </proc/self/fd/@FEED@
  or exit 97
  if test -n "$__outlast_sits"
    __outlast_sit @FEED@<&- @LINE@<&-
    test $__outlast_sits = 2; and builtin printf 'B%s\0' (builtin string sub -l 8000 -- $__outlast_c | builtin string collect) >&@LINE@
  end
  if set -q __outlast_s[3]; and builtin string match -q '*pipestatus*' -- $__outlast_c
    set -g __outlast_c "__outlast_r "(builtin string join ' | __outlast_r ' $__outlast_s[2..])"; $__outlast_c"
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
    set -g __outlast_k -
    __outlast_one
    set -g __outlast_q $status
    # A command has put something else in our place: without it there is no way on.
    test "$__outlast_k" = -; and exit 97
    set -q __outlast_s[1]; or set -g __outlast_s $__outlast_q
    set -g __outlast_p $__outlast_s[1]
  end
end
if builtin functions -q fish_prompt
  builtin functions -c fish_prompt __outlast_prompt
else
  function __outlast_prompt; builtin printf '%s> ' (prompt_pwd); end
end
function fish_prompt; end
function fish_title; end
function fish_right_prompt; end
function fish_mode_prompt; end
set -g fish_greeting
set -g __outlast_s 0
set -g __outlast_p 0
set -g __outlast_sits
set -g __outlast_known (builtin functions -an)
__outlast_state 2>/dev/null >&@LINE@
# @STATE@
status job-control full
