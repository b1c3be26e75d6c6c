"""How each server is best played: the fewest calls, with default parameters, that show everything. A play that has to sleep
because its server can't wait says so by sleeping."""

import json
import os
import re

from workflows import FIB


class Outlast:
    name = "Outlast"

    def __init__(self, server, seconds, port):
        self.server, self.seconds, self.port = server, seconds, port

    def run(self, command, **more):
        return self.server.call("run_shell_command", command=command, **more)

    def type(self, text, **more):
        return self.server.call("send_input", handle="1", input=text, **more)

    def ed(self):
        self.run("ed hello.txt")
        self.type("a\nHello, world!\n.\nw\nq")

    def fib(self):
        self.run("python3 -q")
        self.type(f"{FIB}\n\nprint(fib(10))\nexit()")

    def gdb(self):
        self.run("gdb -q ./sum")
        self.type("break sum\nrun\nprint n\nfinish\nkill\ny\nquit")

    def dev_server(self):
        self.run(f"python3 -m http.server {self.port} --bind 127.0.0.1")
        self.run("sh test.sh")
        self.server.call("kill", handle="1")

    def installer(self):
        self.run("sh install.sh")
        self.type("y")
        self.type("9000")
        self.type("n")

    def build(self):
        self.run(f"python3 build.py {self.seconds}", ai_callback_delay=600)

    def menu(self):
        self.run("sh menu.sh")
        self.server.call("send_input", handle="1", special_keys=["Down", "Enter"])


class DesktopCommander:
    name = "Desktop Commander"

    def __init__(self, server, seconds, port):
        self.server, self.seconds, self.port = server, seconds, port

    def start(self, command, timeout=5000):
        text = self.server.call("start_process", command=command, timeout_ms=timeout)
        found = re.search(r"PID (-?\d+)", text)
        return int(found.group(1)) if found else 0

    def type(self, pid, text, **more):
        return self.server.call("interact_with_process", pid=pid, input=text, **more)

    def ed(self):
        # Its lines are separate calls: several at once are typed, and their answer is never shown.
        pid = self.start("ed hello.txt", 2000)
        self.type(pid, "a\nHello, world!\n.")
        self.type(pid, "w")
        self.type(pid, "q")

    def fib(self):
        pid = self.start("python3 -i")
        self.type(pid, "fib = lambda n: n if n <= 1 else fib(n-1) + fib(n-2)")
        self.type(pid, "print(fib(10))")
        self.type(pid, "exit()")

    def gdb(self):
        pid = self.start("gdb -q ./sum")
        self.type(pid, "break sum")
        self.type(pid, "run")
        self.type(pid, "print n")
        self.type(pid, "finish")
        self.server.call("force_terminate", pid=pid)

    def dev_server(self):
        pid = self.start(f"python3 -m http.server {self.port} --bind 127.0.0.1", 10_000)
        self.start("sh test.sh")
        self.server.call("force_terminate", pid=pid)

    def installer(self):
        pid = self.start("sh install.sh", 3000)
        self.type(pid, "y")
        self.type(pid, "9000")
        self.type(pid, "n")
        self.server.call("read_process_output", pid=pid)

    def build(self):
        pid = self.start(f"python3 build.py {self.seconds}", int(self.seconds * 1000) + 10_000)
        self.server.call("read_process_output", pid=pid, offset=-20)

    def menu(self):
        pid = self.start("sh menu.sh", 3000)
        self.type(pid, "\x1b[B\r")


class PtyMcp:
    name = "pty-mcp"

    def __init__(self, server, seconds, port):
        self.server, self.seconds, self.port = server, seconds, port

    def spawn(self, command):
        return self.server.call("pty_spawn", command=command, owner="me").strip().strip('"')

    def prompt(self, session, data, *patterns):
        return self.server.call("pty_prompt", owner="me", session_id=session, data=data, patterns=list(patterns))

    def until(self, session, pattern):
        return self.server.call("pty_read_until", owner="me", session_id=session, pattern=pattern)

    def ed(self):
        session = self.spawn("ed hello.txt")
        self.prompt(session, "a\nHello, world!\n.\nw\nq\n", "14")

    def fib(self):
        session = self.spawn("python3 -q")
        self.prompt(session, f"{FIB}\n\nprint(fib(10))\n", "\n55")
        self.server.call("pty_close", owner="me", session_id=session)

    def gdb(self):
        session = self.spawn("gdb -q ./sum")
        self.prompt(session, "break sum\nrun\nprint n\nfinish\nkill\ny\nquit\n", "killed]")

    def dev_server(self):
        session = self.spawn(f"python3 -u -m http.server {self.port} --bind 127.0.0.1")
        self.until(session, "Serving")
        tests = self.spawn("sh test.sh")
        self.until(tests, "passed")
        self.server.call("pty_close", owner="me", session_id=session)

    def installer(self):
        session = self.spawn("sh install.sh")
        self.until(session, "[y/N]")
        self.prompt(session, "y\n", "[8080]")
        self.prompt(session, "9000\n", "[y/N]")
        self.prompt(session, "n\n", "installed")
        self.server.call("pty_wait", owner="me", session_id=session)

    def build(self):
        session = self.spawn(f"bash -c 'python3 build.py {self.seconds}; echo code $?'")
        for _ in range(3):
            text = self.server.call("pty_read_until", owner="me", session_id=session, pattern="code 1",
                                    timeout_ms=int(self.seconds * 1000) + 10_000)
            if "code 1" in text:
                break

    def menu(self):
        session = self.spawn("sh menu.sh")
        self.until(session, "Cancel")
        self.prompt(session, "\x1b[B\r", "picked")


class TerminalMcp:
    name = "terminal-mcp"

    def __init__(self, server, seconds, port):
        self.server, self.seconds, self.port = server, seconds, port

    def create(self, command):
        text = self.server.call("session_create", command=command)
        return json.loads(text)["session_id"]

    def interact(self, session, text, **more):
        return self.server.call("session_interact", session_id=session, input=text, **more)

    def until(self, session, pattern, **more):
        return self.server.call("session_wait_for", session_id=session, pattern=pattern, **more)

    def look(self, session):
        # Waiting for a pattern misses what came before the call.
        return self.server.call("session_read", session_id=session)

    def ed(self):
        session = self.create("ed hello.txt")
        self.interact(session, "a\nHello, world!\n.\nw", wait_for="14")
        self.interact(session, "q")

    def fib(self):
        session = self.create("python3 -q")
        self.interact(session, f"{FIB}\n\nprint(fib(10))\nexit()", wait_for=r"\n55")

    def gdb(self):
        session = self.create("gdb -q ./sum")
        self.interact(session, "break sum\nrun\nprint n\nfinish\nkill\ny\nquit", wait_for="killed]")

    def dev_server(self):
        session = self.create(f"python3 -u -m http.server {self.port} --bind 127.0.0.1")
        self.look(session)
        self.server.call("session_exec", exec="sh test.sh")
        self.server.call("session_close", session_id=session)

    def installer(self):
        session = self.create("bash -c 'sh install.sh; echo code $?'")
        self.look(session)
        self.interact(session, "y", wait_for="8080")
        self.interact(session, "9000", wait_for="y/N")
        self.interact(session, "n", wait_for="code")

    def build(self):
        session = self.create(f"bash -c 'python3 build.py {self.seconds}; echo code $?'")
        self.until(session, r"code \d", timeout=self.seconds + 10)

    def menu(self):
        session = self.create("sh menu.sh")
        self.look(session)
        self.server.call("session_interact", session_id=session, key="down")
        self.server.call("session_interact", session_id=session, key="enter", wait_for="picked")


class Terminalcp:
    name = "terminalcp"
    # Its calls go to a process that it starts by itself if need be.
    daemon = "--server"
    daemon_socket = ".terminalcp/server.sock"

    def __init__(self, server, seconds, port):
        self.server, self.seconds, self.port = server, seconds, port

    def do(self, action, **more):
        return self.server.call("terminalcp", args={"action": action, **more})

    def start(self, command):
        return self.do("start", command=command, cwd=self.server.work).strip()

    def type(self, process, data):
        self.do("stdin", id=process, data=data)

    def look(self, process, seconds=0.5):
        self.server.sleep(seconds)
        return self.do("stream", id=process, since_last=True)

    def ed(self):
        process = self.start("ed hello.txt")
        self.type(process, "a\rHello, world!\r.\rw\rq\r")
        self.look(process)

    def fib(self):
        process = self.start("python3 -q")
        self.server.sleep(0.5)
        self.type(process, f"{FIB}\r\rprint(fib(10))\rexit()\r")
        self.look(process)

    def gdb(self):
        process = self.start("gdb -q ./sum")
        self.server.sleep(1)
        self.type(process, "break sum\rrun\rprint n\rfinish\rkill\ry\rquit\r")
        self.look(process, 3)

    def dev_server(self):
        process = self.start(f"python3 -m http.server {self.port} --bind 127.0.0.1")
        self.server.sleep(1)
        tests = self.start("sh test.sh")
        self.look(tests, 1)
        self.do("stop", id=process)

    def installer(self):
        process = self.start("bash -c 'sh install.sh; echo code $?'")
        self.look(process)
        for answer in ["y\r", "9000\r", "n\r"]:
            self.type(process, answer)
            self.look(process)

    def build(self):
        process = self.start(f"bash -c 'python3 build.py {self.seconds}; echo code $?'")
        self.look(process, self.seconds + 2)

    def menu(self):
        process = self.start("sh menu.sh")
        self.server.sleep(1)
        self.do("stdout", id=process)
        self.type(process, "\x1b[B\r")
        self.look(process)


class Wcgw:
    name = "wcgw"
    # Its shells run in GNU screen, which outlives it.
    tidy = "for one in $(ls \"$SCREENDIR\"); do screen -S \"$one\" -X quit; done"

    def __init__(self, server, seconds, port):
        self.server, self.seconds, self.port = server, seconds, port
        text = server.before("Initialize", type="first_call", any_workspace_path=server.work, initial_files_to_read=[],
                             task_id_to_resume="", mode_name="wcgw", thread_id="")
        self.thread = re.search(r"thread_id=(\S+)", text).group(1)

    def bash(self, kind, **more):
        return self.server.call("BashCommand", type=kind, **more, thread_id=self.thread)

    def run(self, command, **more):
        return self.bash("command", command=command, **more)

    def type(self, text):
        return self.bash("send_text", send_text=text)

    def ed(self):
        self.run("ed hello.txt")
        self.type("a\nHello, world!\n.\nw\nq")

    def fib(self):
        self.run("python3 -q")
        self.type(f"{FIB}\n\nprint(fib(10))\nexit()")

    def gdb(self):
        self.run("gdb -q ./sum")
        self.type("break sum\nrun\nprint n\nfinish\nkill\ny\nquit")

    def dev_server(self):
        text = self.run(f"python3 -m http.server {self.port} --bind 127.0.0.1", is_background=True)
        self.run("sh test.sh")
        self.bash("send_specials", send_specials=["Ctrl-c"], bg_command_id=re.search(r"bg_command_id = (\S+)", text).group(1))

    def installer(self):
        # It tells no exit codes.
        self.run("sh install.sh; echo code $?")
        for answer in ["y", "9000", "n"]:
            self.type(answer)

    def build(self):
        text = self.run(f"python3 build.py {self.seconds}; echo code $?", wait_for_seconds=self.seconds + 10)
        while "still running" in text:
            text = self.bash("status_check", status_check=True, wait_for_seconds=self.seconds + 10)

    def menu(self):
        self.run("sh menu.sh")
        self.bash("send_specials", send_specials=["Key-down", "Enter"])


class LibtmuxMcp:
    name = "libtmux-mcp"
    tidy = "tmux -L \"$LIBTMUX_SOCKET\" kill-server"

    def __init__(self, server, seconds, port):
        self.server, self.seconds, self.port = server, seconds, port
        self.pane = self.shell()

    def shell(self):
        return json.loads(self.server.before("create_session"))["active_pane_id"]

    def keys(self, text, **more):
        return self.server.call("send_keys", pane_id=self.pane, keys=text, **more)

    def until(self, pattern, **more):
        return self.server.call("wait_for_text", pane_id=self.pane, patterns=[pattern], **more)

    def see(self, pattern):
        # It does not show what was there before it was asked to wait.
        if not re.search(pattern, self.until(pattern)):
            self.look()

    def run(self, command, **more):
        return self.server.call("run_command", pane_id=self.pane, command=command, **more)

    def look(self):
        return self.server.call("capture_pane", pane_id=self.pane)

    def ed(self):
        self.keys("ed hello.txt")
        self.keys("a\nHello, world!\n.\nw\nq")
        self.see("14")

    def fib(self):
        self.keys("python3 -q")
        self.keys(f"{FIB}\n\nprint(fib(10))\nexit()")
        self.see("55")

    def gdb(self):
        self.keys("gdb -q ./sum")
        self.keys("break sum\nrun\nprint n\nfinish\nkill\ny\nquit")
        self.see("killed]")

    def dev_server(self):
        self.keys(f"python3 -m http.server {self.port} --bind 127.0.0.1")
        self.until("Serving")
        first, self.pane = self.pane, self.shell()
        self.run("sh test.sh")
        self.pane = first
        self.keys("C-c", enter=False)

    def installer(self):
        self.keys("sh install.sh; echo code $?")
        self.see("Install into")
        for answer, pattern in [("y", "port"), ("9000", "boot"), ("n", "code 4")]:
            self.keys(answer)
            self.see(pattern)

    def build(self):
        # It waits for half a minute at most, and shows what is on the screen.
        self.keys(f"python3 build.py {self.seconds}; echo code $?")
        text = self.until("code 101", timeout=self.seconds + 10)
        while "code 101" not in text:
            text = self.until("code 101", timeout=self.seconds + 10)

    def menu(self):
        self.keys("sh menu.sh")
        self.until("Cancel")
        self.look()
        self.server.call("send_keys_batch", operations=[
            {"pane_id": self.pane, "keys": keys, "enter": False} for keys in ("Down", "Enter")])
        self.see("picked g")


def peers(tools):
    """The command line and the environment of each peer, from the folder that its packages are in."""
    node = os.path.join(tools, "node_modules")

    def python(name, program):
        return [os.path.join(tools, "venvs", name, "bin", program)]

    return [
        (DesktopCommander, ["node", f"{node}/@wonderwhy-er/desktop-commander/dist/index.js", "--no-onboarding"],
         {"DESKTOP_COMMANDER_DISABLE_TELEMETRY": "1", "DC_FLAG_URL": "http://127.0.0.1:9/"}),
        (PtyMcp, python("pty-mcp", "pty-mcp"), {}),
        (TerminalMcp, python("terminal-mcp", "terminal-mcp"), {}),
        (Wcgw, python("wcgw", "wcgw_mcp"), {"SCREENDIR": "{root}/screens"}),
        (LibtmuxMcp, python("libtmux-mcp", "libtmux-mcp"), {"LIBTMUX_SOCKET": "economy", "TMUX_TMPDIR": "{root}"}),
        (Terminalcp, ["node", f"{node}/@mariozechner/terminalcp/dist/index.js", "--mcp"], {}),
    ]
