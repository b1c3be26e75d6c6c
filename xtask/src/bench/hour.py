"""The standard hour of an agent, by one tool: 200 commands, 20 servers, 3 interpreters, and silences.

    hour.py TOOL SILENCE [PROGRAM]

TOOL is outlast (PROGRAM is its binary), tmux, or bare: the caller forks by itself. SILENCE is how many seconds the model
thinks, all together. Prints one line of JSON: processor time, wakings (voluntary context switches) and memory of all
processes but this one. What the commands themselves need is in all three: the tool's own cost is the difference to bare.
"""

import ctypes
import json
import os
import pty
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time

COMMANDS = ["true", "echo hi", "ls -l /usr/bin", "seq 2000", "grep -c a /etc/services", "sh -c 'exit 3'",
            "for i in 1 2 3; do echo step $i; done", "head -c 20000 /dev/zero | tr '\\0' x | fold -w 99"]
HOW_MANY = 200
SERVERS = 20
SERVER = "echo starting; echo ready on {port}; while sleep 7; do echo tick; done"
REPLS = {"python": ("python3 -i -q", "{n}+1000", "{m}"), "bash": ("bash --norc -i", "echo $(({n}+1000))", "{m}"),
         "cat": ("cat", "line {m}", "line {m}")}
# How often a caller looks where a tool does not tell: a model is far slower.
LOOK = 0.1
PR_SET_CHILD_SUBREAPER = 36


def own_environment(home):
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("OUTLAST", "TMUX"))}
    return {**keep, "HOME": home, "OUTLAST_HOME": os.path.join(home, "jobs"), "LC_ALL": "C.UTF-8", "PS1": "$ "}


class Outlast:
    """One MCP server over standard input and output."""

    def __init__(self, home, program):
        env = own_environment(home)
        os.mkdir(env["OUTLAST_HOME"], 0o700)
        self.process = subprocess.Popen([program, "mcp"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.id = 0
        self.handles = []
        client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "hour", "version": "1"}}
        self.request("initialize", client)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method, params):
        self.id += 1
        self.write({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})
        while True:
            message = json.loads(self.process.stdout.readline())
            if message.get("id") == self.id:
                return message["result"]

    def call(self, tool, **arguments):
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(f"{tool}: {result['content']}")
        return result["structuredContent"]

    def run(self, command):
        answer = self.call("run_shell_command", command=command, again=True)
        return answer["output"], answer["exit_code"]

    def serve(self, command, ready):
        answer = self.call("run_shell_command", command=command, ai_callback_pattern=ready, again=True)
        assert answer["reason"] == "pattern", answer
        self.handles.append(answer["handle"])

    def interpreter(self, command):
        handle = self.call("run_shell_command", command="exec " + command, wait_for_output_seconds=2)["handle"]
        self.handles.append(handle)
        return handle

    def ask(self, handle, line, expected):
        answer = self.call("send_input", handle=handle, input=line)
        assert expected in answer["output"], answer

    def end(self):
        for handle in self.handles:
            self.call("kill", handle=handle)
        self.process.stdin.close()

    own = "outlast"


class Tmux:
    """A server of its own; the caller types, and waits on a channel or looks."""

    def __init__(self, home, _program):
        self.env = own_environment(home)
        self.socket = os.path.join(home, "socket")
        self.names = 0
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "main", "-x", "120", "-y", "40", "bash --norc -i")

    def tmux(self, *words):
        done = subprocess.run(["tmux", "-S", self.socket, *words], env=self.env, check=True, capture_output=True)
        return done.stdout.decode()

    def shown(self, pane):
        return self.tmux("capture-pane", "-p", "-S", "-", "-t", pane)

    def until(self, pane, pattern):
        while True:
            shown = self.shown(pane)
            if re.search(pattern, shown):
                return shown
            time.sleep(LOOK)

    def run(self, command):
        self.tmux("send-keys", "-t", "main:0", "clear; " + command + "; echo code=$?; tmux -S " + self.socket +
                  " wait-for -S done", "Enter")
        self.tmux("wait-for", "done")
        shown = self.until("main:0", r"code=\d+\n")
        return shown, int(re.findall(r"code=(\d+)\n", shown)[-1])

    def window(self, command):
        self.names += 1
        self.tmux("new-window", "-d", "-t", f"main:{self.names}", command)
        return f"main:{self.names}"

    def serve(self, command, ready):
        self.until(self.window(command), ready)

    def interpreter(self, command):
        return self.window(command)

    def ask(self, pane, line, expected):
        before = self.shown(pane).count(expected)
        self.tmux("send-keys", "-t", pane, "-l", line)
        self.tmux("send-keys", "-t", pane, "Enter")
        while self.shown(pane).count(expected) <= before:
            time.sleep(LOOK)

    def end(self):
        self.tmux("kill-server")

    own = "tmux"


class Bare:
    """The floor: the caller forks and reads."""

    def __init__(self, home, _program):
        self.env = own_environment(home)
        self.jobs = []

    def start(self, command):
        pid, master = pty.fork()
        if pid == 0:
            os.execvpe("bash", ["bash", "-c", command], self.env)
        return pid, master

    def read(self, master, pattern=None):
        text = b""
        while pattern is None or not re.search(pattern, text):
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            text += piece
        return text.decode(errors="replace")

    def run(self, command):
        pid, master = self.start(command)
        text = self.read(master)
        os.close(master)
        return text, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def serve(self, command, ready):
        job = self.start(command)
        self.jobs.append(job)
        self.read(job[1], ready.encode())

    def interpreter(self, command):
        self.jobs.append(self.start("exec " + command))
        return self.jobs[-1][1]

    def ask(self, master, line, expected):
        os.write(master, line.encode() + b"\n")
        self.read(master, expected.encode())

    def end(self):
        for pid, master in self.jobs:
            os.kill(pid, signal.SIGHUP)
            os.close(master)

    own = None


def descendants():
    parents = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                parents[int(entry)] = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            pass
    ours, news = set(), {os.getpid()}
    while news:
        news = {pid for pid, parent in parents.items() if parent in news} - ours
        ours |= news
    return ours


def memory(own):
    """Private memory of the tool's own processes, in KiB, and how many there are."""
    total = count = 0
    for pid in descendants():
        try:
            if own is None or own not in os.path.basename(os.readlink(f"/proc/{pid}/exe")):
                continue
            with open(f"/proc/{pid}/smaps_rollup") as file:
                total += sum(int(size) for size in re.findall(r"^Private_\w+:\s+(\d+) kB", file.read(), re.M))
            count += 1
        except OSError:
            pass
    return total, count


def reap(patience):
    """Until nothing is left that was started here, so that all of it is counted."""
    until = time.monotonic() + patience
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                if time.monotonic() > until:
                    for pid in descendants():
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.02)
        except ChildProcessError:
            return
        except ProcessLookupError:
            pass


def main():
    tool, silence = sys.argv[1], float(sys.argv[2])
    # Keepers leave their parents: they become ours, and so their costs do.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(prefix="outlast-hour-") as home:
        began = time.monotonic()
        program = sys.argv[3] if len(sys.argv) > 3 else None
        runner = {"outlast": Outlast, "tmux": Tmux, "bare": Bare}[tool](home, program)
        pause = silence / HOW_MANY
        repls = {}
        for n in range(HOW_MANY):
            command = COMMANDS[n % len(COMMANDS)]
            output, code = runner.run(command)
            assert code == (3 if "exit 3" in command else 0), (command, code, output[-300:])
            if n < SERVERS:
                runner.serve(SERVER.format(port=8000 + n), f"ready on {8000 + n}")
            if n == SERVERS:
                repls = {name: runner.interpreter(repl[0]) for name, repl in REPLS.items()}
            if repls and n % 2:
                name = list(REPLS)[n // 2 % len(REPLS)]
                runner.ask(repls[name], REPLS[name][1].format(n=n, m=n + 1000), REPLS[name][2].format(m=n + 1000))
            time.sleep(pause)
        kib, processes = memory(runner.own)
        runner.end()
        reap(10)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(json.dumps({"tool": tool, "cpu": used.ru_utime + used.ru_stime, "wakings": used.ru_nvcsw,
                          "kib": kib, "processes": processes, "seconds": time.monotonic() - began}))


if __name__ == "__main__":
    main()
