"""Frames: how messages of many streams share one pipe. Bytes in, messages out; no I/O. See docs/formats/relay.md."""

from __future__ import annotations

import struct
from typing import Dict, Iterator, List, NamedTuple, Tuple

MARKER = b"\0outlast-relay\n"
MAX_BODY = 64 << 10
MAX_MESSAGE = 64 << 20
MAX_BEFORE_MARKER = 64 << 10
MORE = 1

KINDS = ("hello", "request", "subscribe", "answer", "failure", "news", "began", "credit", "cancel", "ping", "pong", "also")
NUMBERS = {name: number for number, name in enumerate(KINDS)}

_HEADER = struct.Struct(">IIBB")


class FrameError(ValueError):
    """Bytes that are not frames: nothing that follows can be understood."""


class Message(NamedTuple):
    """A whole message."""

    stream: int
    kind: str
    body: bytes


def encode(stream: int, kind: str, body: bytes) -> bytes:
    """A message as frames, one after the other."""
    number = NUMBERS[kind]
    if len(body) <= MAX_BODY:
        return _HEADER.pack(len(body), stream, number, 0) + body
    parts: List[bytes] = []
    for at in range(0, len(body), MAX_BODY):
        piece = body[at : at + MAX_BODY]
        more = MORE if at + MAX_BODY < len(body) else 0
        parts += (_HEADER.pack(len(piece), stream, number, more), piece)
    return b"".join(parts)


class Decoder:
    """Finds the messages in a stream of bytes. What comes before the marker was printed by somebody else."""

    def __init__(self, awaits_marker: bool = True) -> None:
        self._buffer = bytearray()
        self._awaits_marker = awaits_marker
        self._parts: Dict[Tuple[int, int], bytearray] = {}

    def before_marker(self) -> str:
        """The last line of what was printed where a marker should have been; empty once it was there."""
        if not self._awaits_marker:
            return ""
        lines = [line for line in self._buffer.decode("utf-8", "replace").splitlines() if line.strip()]
        return "".join(c for c in lines[-1] if c.isprintable())[:200] if lines else ""

    def push(self, data: bytes) -> Iterator[Message]:
        """Takes bytes in, and gives out the messages that are whole."""
        buffer = self._buffer
        buffer += data
        if self._awaits_marker:
            at = buffer.find(MARKER)
            if at < 0:
                if len(buffer) > MAX_BEFORE_MARKER:
                    raise FrameError(f"no relay answered, but: {self.before_marker()}")
                return
            self._awaits_marker = False
            del buffer[: at + len(MARKER)]
        at = 0
        try:
            while len(buffer) - at >= _HEADER.size:
                length, stream, number, flags = _HEADER.unpack_from(buffer, at)
                if length > MAX_BODY:
                    raise FrameError(f"a frame of {length} bytes is too long")
                begin = at + _HEADER.size
                if len(buffer) < begin + length:
                    return
                body = bytes(buffer[begin : begin + length])
                at = begin + length
                message = self._assemble(stream, number, flags, body)
                if message is not None:
                    yield message
        finally:
            del buffer[:at]

    def _assemble(self, stream: int, number: int, flags: int, body: bytes) -> "Message | None":
        # What a newer side may have invented is skipped.
        if number >= len(KINDS):
            return None
        key = (stream, number)
        if not flags & MORE and key not in self._parts:
            return Message(stream, KINDS[number], body)
        parts = self._parts.setdefault(key, bytearray())
        parts += body
        if len(parts) > MAX_MESSAGE:
            raise FrameError(f"a message of {len(parts)} bytes is too long")
        if flags & MORE:
            return None
        return Message(stream, KINDS[number], bytes(self._parts.pop(key)))
