"""Writes docs/guide/workflows.md by doing what it describes: clients/workflows.py PROGRAM > docs/guide/workflows.md

Each workflow is one conversation with `outlast mcp` over stdio. An unexpected answer ends the program, so that the page
never shows what did not happen.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.realpath(sys.argv[1])


class Server:
    def __init__(self, root):
        self.root = root
        work = os.path.join(root, "work")
        os.mkdir(work)
        self.work = work
        keep = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        env = {**keep, "HOME": root, "OUTLAST_HOME": os.path.join(root, "home"), "OUTLAST_SESSION": "docs",
               "DEBUGINFOD_URLS": "", "PYTHON_HISTORY": "/dev/null"}
        self.process = subprocess.Popen([PROGRAM, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=work)
        self.count = 0
        self.calls = []
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                "clientInfo": {"name": "docs", "version": "1"}})
        self.tell("notifications/initialized")

    def send(self, message):
        self.process.stdin.write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())
        self.process.stdin.flush()

    def tell(self, method):
        self.send({"method": method})

    def ask(self, method, params):
        self.count += 1
        self.send({"id": self.count, "method": method, "params": params})
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit("the server has gone")
            answer = json.loads(line)
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise SystemExit(answer)
                return answer["result"]

    def call(self, tool, expect, **arguments):
        """Makes a call; `expect` must be found in the text of its answer."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        text = result["content"][0]["text"]
        if result.get("isError") or not re.search(expect, text):
            raise SystemExit(f"{tool}({arguments}) did not answer with {expect!r}:\n{text}")
        self.calls.append((tool, arguments, text))
        return result["structuredContent"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        env = {**os.environ, "OUTLAST_HOME": os.path.join(self.root, "home")}
        jobs = json.loads(subprocess.check_output([PROGRAM, "--json", "jobs", "--all", "--running"], env=env))["jobs"]
        for job in jobs:
            subprocess.run([PROGRAM, "kill", str(job["handle"])], env=env, stdout=subprocess.DEVNULL, check=True)


def ed(server):
    server.call("run_shell_command", "awaiting input", command="ed -p 'ED> ' hello.txt")
    server.call("send_input", "exit 0", handle="1", input="a\nHello, world!\n.\nw\nq")
    with open(os.path.join(server.work, "hello.txt")) as file:
        assert file.read() == "Hello, world!\n"


def fib(server):
    server.call("run_shell_command", "awaiting input", command="python3 -q")
    server.call("send_input", r"\b55\b(?s:.*)", handle="1",
                input="def fib(n): return n if n <= 1 else fib(n-1) + fib(n-2)\n\nprint(fib(10))\nexit()")


def gdb(server):
    with open(os.path.join(server.work, "sum.c"), "w") as file:
        file.write("#include <stdio.h>\n\nint sum(int n) {\n  int total = 0;\n  for (int i = 1; i <= n; i++)\n"
                   "    total += i;\n  return total;\n}\n\nint main(void) {\n  printf(\"%d\\n\", sum(4));\n}\n")
    server.call("run_shell_command", "Breakpoint 1, sum", pattern_timeout=30, ai_callback_pattern="Breakpoint 1, .*",
                command="cc -g -O0 -o sum sum.c && gdb -q -ex 'break sum' -ex run ./sum")
    server.call("send_input", "= 4", handle="1", input="print n")
    server.call("send_input", "= 10", handle="1", input="finish")
    server.call("kill", "job 1", handle="1")


def dev(server):
    with open(os.path.join(server.work, "index.html"), "w") as file:
        file.write("<h1>It works</h1>\n")
    facts = server.call("run_shell_command", "port", command="python3 -u -m http.server 0 --bind 127.0.0.1", name="web")
    server.call("run_shell_command", "It works", command=f"curl -s http://127.0.0.1:{facts['port']}/ && echo tests passed")
    server.call("kill", "job 1", handle="web")


def installer(server):
    with open(os.path.join(server.work, "install.sh"), "w") as file:
        file.write('printf "Install into ./app? [y/N] "\nread -r yes\n[ "$yes" = y ] || exit 1\nmkdir app\n'
                   'printf "Add to PATH? [Y/n] "\nread -r path\necho "installed, PATH: ${path:-y}"\n')
    server.call("run_shell_command", r"y/N", command="sh install.sh")
    server.call("send_input", r"Y/n", handle="1", input="y")
    server.call("send_input", "installed, PATH: n", handle="1", input="n")
    assert os.path.isdir(os.path.join(server.work, "app"))


# How many calls the workflow takes with the tools as they were first drafted, where that draft shows it.
WORKFLOWS = [
    ("Edit a file with ed", ed, 6, "one call for each line, with a pattern for the prompt"),
    ("fib in a Python REPL", fib, 4, "a pattern for the prompt, and one call for each line"),
    ("A breakpoint in gdb", gdb, None, ""),
    ("A dev server with tests beside it", dev, 3,
     "start, a fixed wait of 5 s, `jobs` to see whether it runs, `kill`; no tests. Here the start returns when the port "
     "is open, so that `jobs` is not needed, and the third call is the tests"),
    ("An installer that asks y/n", installer, None, ""),
]


def remove(root):
    # A keeper writes its last lines a moment after its job has ended.
    for _ in range(50):
        shutil.rmtree(root, ignore_errors=True)
        if not os.path.exists(root):
            return
        time.sleep(0.1)
    raise SystemExit(f"{root} can't be removed")


def shown(root, text):
    text = text.replace(root, "/project")
    return re.sub(r"\[\d+(\.\d+)? m?s\]", "[… ms]", text)


def main():
    out = []
    rows = []
    for title, workflow, draft, remark in WORKFLOWS:
        root = tempfile.mkdtemp(prefix="outlast-docs-")
        server = Server(root)
        try:
            workflow(server)
            calls = server.calls
        finally:
            server.close()
            remove(root)
        size = sum(len(text.encode()) for _, _, text in calls)
        rows.append(f"| {title} | {len(calls)} | {size:,} | {draft if draft else 'not shown'} |")
        out.append(f"\n## {title}\n\n{len(calls)} calls, {size:,} bytes returned.{f' In the draft {draft} calls: {remark}.' if draft else ''}\n")
        for tool, arguments, text in calls:
            listed = ", ".join(f"{name}={json.dumps(value)}" for name, value in arguments.items())
            body = shown(server.work, text).rstrip().replace(root, "/home")
            out.append(f"\n**`{tool}({listed})`**\n\n" + "\n".join("    " + line if line else "" for line in body.split("\n")) + "\n")
    print("# Workflows\n")
    print("Conversations as they happened: this page is written by `clients/workflows.py`, which makes the calls and stops "
          "when an answer is\nnot the expected one. Bytes are those of the text that a model reads. The last column is the "
          "number of calls in the first draft\nof these tools, where it shows the workflow; it states no bytes. Where it needs more, most of the difference is that it sends line by\n"
          "line, which these tools allow but do not need.\n")
    print("| workflow | calls | bytes returned | calls in the draft |\n|---|---|---|---|")
    print("\n".join(rows))
    print("".join(out), end="")


main()
