"""A client of Codex's exec-server (`codex exec-server`), as patient as its own: it comes back to its session for 25 s after a cut.

Plain sockets, one JSON message in each frame of a WebSocket. Used by machines.py.
"""
import base64
import json
import os
import socket
import struct
import time

PORT = 4747
GIVES_UP_AFTER = 25


class Refused(Exception):
    """The server answered, and said no."""


class Connection:
    def __init__(self, host, timeout=3):
        self.socket = socket.create_connection((host, PORT), timeout)
        self.socket.settimeout(timeout)
        self.unread = b""
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET / HTTP/1.1\r\nHost: {host}:{PORT}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        while b"\r\n\r\n" not in self.unread:
            self.read_more()
        head, self.unread = self.unread.split(b"\r\n\r\n", 1)
        if b" 101 " not in head:
            raise ConnectionError(head)

    def read_more(self):
        more = self.socket.recv(65536)
        if not more:
            raise ConnectionError("closed")
        self.unread += more

    def need(self, count):
        while len(self.unread) < count:
            self.read_more()

    def send(self, value):
        body, mask = json.dumps(value).encode(), os.urandom(4)
        size = bytes([0x80 | len(body)]) if len(body) < 126 else bytes([0x80 | 126]) + struct.pack(">H", len(body))
        self.socket.sendall(b"\x81" + size + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(body)))

    def next(self):
        while True:
            self.need(2)
            kind, size, at = self.unread[0] & 15, self.unread[1] & 127, 2
            if size == 126:
                self.need(4)
                size, at = struct.unpack(">H", self.unread[2:4])[0], 4
            elif size == 127:
                self.need(10)
                size, at = struct.unpack(">Q", self.unread[2:10])[0], 10
            self.need(at + size)
            body, self.unread = self.unread[at:at + size], self.unread[at + size:]
            if kind == 8:
                raise ConnectionError("closed")
            if kind in (1, 2):
                return json.loads(body)


class Client:
    """One command on one host, from its start to its end, over as many connections as it takes."""

    def __init__(self, host):
        self.host, self.session, self.connection, self.number = host, None, None, 0

    def connect(self):
        self.connection = Connection(self.host)
        params = {"clientName": "outlast-compare"}
        if self.session:
            params["resumeSessionId"] = self.session
        self.session = self.call("initialize", params).get("sessionId")
        self.connection.send({"method": "initialized", "params": {}})

    def call(self, method, params):
        self.number += 1
        number = self.number
        self.connection.send({"id": number, "method": method, "params": params})
        while True:
            message = self.connection.next()
            if message.get("id") != number:
                continue
            if "error" in message:
                raise Refused(message["error"].get("message"))
            return message["result"]

    def ask(self, method, params):
        """Asks until there is an answer, over new connections of the same session, for as long as Codex's own client would."""
        lost_at = None
        while True:
            try:
                if self.connection is None:
                    self.connect()
                return self.call(method, params)
            except (OSError, ValueError):
                self.connection = None
                lost_at = lost_at or time.monotonic()
                if time.monotonic() - lost_at > GIVES_UP_AFTER:
                    raise
                time.sleep(0.2)

    def run(self, name, line):
        """What the command printed, and its exit code."""
        start = {"processId": name, "argv": ["sh", "-c", line], "cwd": "file:///tmp", "env": {"PATH": "/usr/bin:/bin"},
                 "tty": False, "pipeStdin": False, "arg0": None}
        try:
            self.ask("process/start", start)
        except Refused as refused:
            # The answer to the first try was lost with its connection: the process is there.
            if "exists" not in str(refused) and "already" not in str(refused):
                raise
        chunks, after = {}, None
        while True:
            read = self.ask("process/read", {"processId": name, "afterSeq": after, "maxBytes": 65536, "waitMs": 1000})
            for chunk in read["chunks"]:
                chunks[chunk["seq"]] = base64.b64decode(chunk["chunk"])
                after = chunk["seq"]
            if read["exited"] and read.get("closed", True):
                return b"".join(chunks[seq] for seq in sorted(chunks)).decode(), read["exitCode"]
