"""An MCP server under measurement: its calls are made as a model would make them, and everything that it reads is kept."""

import json
import os
import re
import select
import subprocess
import time


class Missed(Exception):
    """A play did not show what it must."""


class Server:
    """One server process, in a home and a folder of its own."""

    def __init__(self, argv, root, env=None):
        self.work = os.path.join(root, "work")
        home = os.path.join(root, "home")
        os.makedirs(self.work, exist_ok=True)
        os.makedirs(home, exist_ok=True)
        keep = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.env = {**keep, "HOME": home, "TERM": "xterm-256color", "SHELL": "/bin/bash", "DEBUGINFOD_URLS": "",
                    "PYTHON_HISTORY": "/dev/null", **(env or {})}
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env=self.env, cwd=self.work)
        self.count = 0
        self.buffer = b""
        self.calls = []
        self.slept = 0.0
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                "clientInfo": {"name": "economy", "version": "1"}})
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())
        self.process.stdin.flush()

    def line(self, until):
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, until - time.monotonic()))
            piece = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            if not piece:
                raise Missed("the server does not answer")
            self.buffer += piece
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line

    def ask(self, method, params, patience=240):
        self.count += 1
        self.send({"id": self.count, "method": method, "params": params})
        until = time.monotonic() + patience
        while True:
            try:
                answer = json.loads(self.line(until))
            except ValueError:
                continue
            if answer.get("id") == self.count and "method" not in answer:
                if "error" in answer:
                    raise Missed(str(answer["error"]))
                return answer["result"]

    def before(self, tool, /, **arguments):
        """A call that a conversation needs once, before its first workflow: it is not counted."""
        return self.text(self.ask("tools/call", {"name": tool, "arguments": arguments}))

    @staticmethod
    def text(result):
        return "".join(part.get("text", "") for part in result["content"])

    def call(self, tool, /, **arguments):
        """Makes a call; returns the text that a model reads."""
        began = time.monotonic()
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        text = self.text(result)
        self.calls.append({"call": json.dumps({"name": tool, "arguments": arguments}), "answer": text,
                           "seconds": time.monotonic() - began})
        return text

    def sleep(self, seconds):
        """Sleeps by guess, because the server can't wait."""
        self.slept += seconds
        time.sleep(seconds)

    def seen(self, *patterns):
        """Every one of these must be in what was read so far."""
        read = "\n".join(call["answer"] for call in self.calls)
        # Some put text into JSON.
        read = read.replace("\\u001b", "\x1b").replace("\\r", "\r").replace("\\n", "\n").replace('\\"', '"')
        read = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", read)
        for pattern in patterns:
            if not re.search(pattern, read):
                raise Missed(f"{pattern!r} was never seen; the last answer: {self.calls[-1]['answer'][-400:]!r}")

    def close(self):
        try:
            self.process.stdin.close()
            self.process.wait(5)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
