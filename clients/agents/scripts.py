"""What the scripted model does with each agent, in the words of its profile, and what it must have been told.

    scripts.py list [full]                 the names of the scripts
    scripts.py steps AGENT NAME            the steps, for model.py
    scripts.py judge AGENT NAME RESULTS    exit code 0 and one line if all is well, else what is wrong
"""

import json
import re
import sys

ASKS = 'printf "Proceed? [y/N] "; read -r a; echo "got $a"; sleep 12; echo READY; sleep 300'
INSTALL = ('printf "Install? [y/N] "; read -r a; printf "Which port? [8080] "; read -r b; printf "At boot? [y/N] "; '
           'read -r c; echo "done $a $b $c"; exit 4')
GDB = "cc -g -O0 -x c -o sum - <<< 'int sum(int n) { return n * 10; } int main(void) { return sum(4); }' && gdb -q ./sum"
MENU = "whiptail --menu 'Pick one' 15 40 4 r Red g Green b Blue 2>picked; echo; echo \"picked $(cat picked)\""


def words(agent):
    """How the tools are called there."""
    def run(command, seconds=None):
        if agent == "codex":
            return ["exec_command", {"cmd": command, **({"yield_time_ms": seconds * 1000} if seconds else {})}]
        if agent == "claude":
            return ["Bash", {"command": command, **({"timeout": seconds * 1000} if seconds else {})}]
        return ["run_shell_command", {"command": command, **({"ai_callback_delay": seconds} if seconds else {})}]

    def type_in(text):
        if agent == "codex":
            return ["write_stdin", {"session_id": 1, "chars": text + "\n", "yield_time_ms": 5000}]
        return ["send_input", {"handle": "1", "input": text}]

    def press(keys, text):
        if agent == "codex":
            return ["write_stdin", {"session_id": 1, "chars": text, "yield_time_ms": 5000}]
        return ["send_input", {"handle": "1", "special_keys": keys}]

    kill = ["KillShell", {"shell_id": "1"}] if agent == "claude" else ["kill", {"handle": "1"}]
    return run, type_in, press, kill


def scripts(agent):
    """Each script: its steps, and for each step what its answer must have."""
    run, type_in, press, kill = words(agent)
    long = {
        # Only when it is asked for by name (CLIENTS_SCRIPTS=half-hour, CLIENTS_TIMEOUT=2000): half an hour in one call.
        "half-hour": [(run("for i in $(seq 28); do echo step $i; sleep 60; done; echo 'error: broken'; exit 101", seconds=1790),
                  r"^(?=[\s\S]*error: broken)[\s\S]*(exit|code) 101\b")],
    }
    wait = ["wait_for", {"handles": ["1"], "until": ["pattern"], "pattern": "READY", "timeout": 40}]
    exits = r"(exit|code) {n}\b"
    return long | {
        "talk": [(run(ASKS), r"Proceed\?"), (type_in("y"), "got y"), (wait, "READY"), (["jobs", {}], "Proceed|read -r"),
                 (kill, "SIGTERM")],
        "repl": [(run("python3 -q"), ">>>"), (type_in("def f(n):\n    if n:\n        return 42\n\nprint(f(1))"), r"\b42\b"),
                 (type_in("exit()"), exits.format(n=0))],
        "gdb": [(run(GDB, seconds=170), r"\(gdb\)"), (type_in("break sum\nrun"), r"Breakpoint 1, sum \(n=4\)"),
                (type_in("print n\nfinish"), r"= 4\b[^]*Value returned is \$2 = 40".replace("[^]", r"[\s\S]")), (kill, "SIG|exit")],
        "menu": [(run(MENU), "»r Red"), (press(["Down"], "\x1b[B"), "»g Green"), (press(["Enter"], "\r"), "picked g")],
        "cut": [(run("seq 1 12000"), "bytes left out"), (["left_out", {}], r"(?m)^(1500|2500)$")],
        "installer": [(run(INSTALL), "Install"), (type_in("y"), "port"), (type_in("9000"), "boot"),
                      (type_in("n"), r"done y 9000 n"), ],
        "password": [(run('read -rsp "Password: " p; echo; echo "${#p} letters"'), "outlast secret 1"), (kill, "SIG|exit")],
        "kill": [(run("trap '' TERM; echo up; sleep 300 & wait; sleep 300"), "up|running"), (kill, "SIGKILL|ended")],
        # One call: `install` has set how long one may take.
        "build": [(run("for i in $(seq 24); do echo step $i; sleep 5; done; echo 'error: broken'; exit 101", seconds=170),
                   r"^(?=[\s\S]*error: broken)[\s\S]*(exit|code) 101\b")],
        # The agent and its server start again and go on with the conversation: the job is still theirs, or they are told of it.
        "left": [(run("echo up; read x; sleep 300"), r"(?m)^up$")],
        "restart": [(run("echo up; read x; sleep 300"), r"(?m)^up$"),
                    (["jobs", {}], r"job 1 · (awaiting|quiet|working|running)|earlier conversation here: job 1")],
        # Two conversations in two processes, one after the other: what the first left is not the second's.
        "next": [(["jobs", {}], "(?s)^(?!.*job 1 · awaiting).*(earlier conversation here|of other sessions)"),
                 (kill, "denied")],
    }


def main():
    what, *rest = sys.argv[1:]
    if what == "list":
        names = [name for name in scripts("plain") if name != "half-hour"]
        print("\n".join(names if rest == ["full"] else ["talk"]))
        return 0
    agent, name, *rest = rest
    steps = scripts(agent)[name]
    if what == "steps":
        print(json.dumps([step for step, _ in steps]))
        return 0
    lines = open(rest[0]).read().splitlines()[1:]
    results = {line["result"]: line["text"] for line in map(json.loads, lines) if "result" in line}
    for index, ((tool, _), pattern) in enumerate(steps):
        text = results.get(index)
        if text is None:
            print(f"no result for {tool}, step {index + 1}")
            return 1
        if not re.search(pattern, text) or "error (" in text and pattern != "denied":
            print(f"{tool}, step {index + 1}, answered {text[:300]!r}")
            return 1
    print(f"{len(steps)} calls")
    return 0


sys.exit(main())
