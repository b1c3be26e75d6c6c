"""Conditions and results, as typed values."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any, List, Optional, Sequence, Tuple, Union

# Every name that both faces of the client give out.
__all__ = [
    "AwaitingInput",
    "Condition",
    "Event",
    "Exit",
    "Gone",
    "Http",
    "JobInfo",
    "Lines",
    "Match",
    "Output",
    "Pattern",
    "Port",
    "Quiet",
    "Receipt",
    "Screen",
    "Sent",
    "Stable",
    "Step",
    "Text",
    "Waited",
]

Json = Any


@dataclass(frozen=True)
class Exit:
    """The job has ended."""

    def as_json(self) -> Json:
        return "exit"


@dataclass(frozen=True)
class Pattern:
    """A regular expression matches what was printed from the start of the wait on."""

    regex: str

    def as_json(self) -> Json:
        return {"pattern": self.regex}


@dataclass(frozen=True)
class AwaitingInput:
    """The foreground program waits for input: known from the kernel, not from the text."""

    def as_json(self) -> Json:
        return "awaiting_input"


@dataclass(frozen=True)
class Quiet:
    """Nothing was printed for this many seconds."""

    seconds: float

    def as_json(self) -> Json:
        return {"quiet": {"ms": round(self.seconds * 1000)}}


@dataclass(frozen=True)
class Stable:
    """The screen has not changed for some checks in a row."""

    checks: int = 3
    interval: float = 1.0

    def as_json(self) -> Json:
        return {"stable": {"checks": self.checks, "interval_ms": round(self.interval * 1000)}}


@dataclass(frozen=True)
class Port:
    """The job, or a child of it, listens on this TCP port; none for any."""

    number: Optional[int] = None

    def as_json(self) -> Json:
        return {"port": self.number}


@dataclass(frozen=True)
class Http:
    """A path on a port of the job answers; any status of 2xx unless told."""

    path: str = "/"
    port: Optional[int] = None
    status: Optional[int] = None

    def as_json(self) -> Json:
        return {"http": {"path": self.path, "port": self.port, "status": self.status}}


@dataclass(frozen=True)
class Output:
    """Anything was printed."""

    def as_json(self) -> Json:
        return "output"


@dataclass(frozen=True)
class Gone:
    """A regular expression matches nothing on the screen."""

    regex: str

    def as_json(self) -> Json:
        return {"gone": self.regex}


@dataclass(frozen=True)
class Lines:
    """Lines were printed: they come in batches."""

    def as_json(self) -> Json:
        return "lines"


Condition = Union[Exit, Pattern, AwaitingInput, Quiet, Stable, Port, Http, Output, Gone, Lines]


@dataclass(frozen=True)
class Match:
    """What a pattern matched."""

    pattern: int
    text: str
    groups: Tuple[Optional[str], ...]


@dataclass(frozen=True)
class Waited:
    """How a wait ended."""

    reason: str
    offset: int
    elapsed: float
    already: bool = False
    match: Optional[Match] = None
    port: Optional[int] = None
    awaiting_input: Optional[Json] = None
    full_screen: Optional[bool] = None

    @property
    def timed_out(self) -> bool:
        """Nothing of what was waited for has come in time."""
        return self.reason == "deadline"

    @property
    def ended(self) -> bool:
        """The job has ended."""
        return self.reason == "exit"

    @classmethod
    def of(cls, said: Json) -> "Waited":
        found = said.get("match")
        match = Match(found["pattern"], found["text"], tuple(found.get("captures", ()))) if found else None
        return cls(
            said["reason"],
            said["offset"],
            said.get("elapsed_ms", 0) / 1000,
            said.get("already", False),
            match,
            said.get("port"),
            said.get("awaiting_input"),
            said.get("full_screen"),
        )


@dataclass(frozen=True)
class Receipt:
    """How a job ended: by an exit code or a signal, and by whom."""

    code: Optional[int]
    signal: Optional[str]
    ended_by: str
    ended_at: float
    error: Optional[str] = None
    raw: Json = field(default=None, repr=False, compare=False)

    @property
    def ok(self) -> bool:
        return self.code == 0

    @classmethod
    def of(cls, said: Json) -> "Receipt":
        error = said.get("error") or {}
        return cls(
            said.get("code"),
            said.get("signal"),
            said.get("ended_by", {}).get("who", ""),
            said.get("ended_at", 0) / 1000,
            error.get("message"),
            said,
        )


@dataclass(frozen=True)
class Text:
    """A bounded piece of what a job printed, as a person would have read it."""

    head: str
    tail: str
    start: int
    offset: int
    omitted: Optional[Tuple[int, int]]
    lost_bytes: int

    def __str__(self) -> str:
        if self.omitted is None:
            return self.head
        return f"{self.head}\n[... {self.omitted[1] - self.omitted[0]} bytes left out ...]\n{self.tail}"

    @classmethod
    def of(cls, said: Json) -> "Text":
        omitted = said.get("omitted")
        return cls(
            said.get("head", ""),
            said.get("tail", ""),
            said.get("from", 0),
            said.get("offset", 0),
            (omitted[0], omitted[1]) if omitted else None,
            said.get("lost_bytes", 0),
        )


@dataclass(frozen=True)
class Screen:
    """What a terminal shows."""

    rows: List[str]
    cursor: Tuple[int, int]
    size: Tuple[int, int]
    title: str
    alternate: bool
    scrollback: List[str]
    offset: int

    def __str__(self) -> str:
        return "\n".join(self.rows)

    @classmethod
    def of(cls, said: Json) -> "Screen":
        cursor, size = said["cursor"], said["size"]
        return cls(
            said["rows"],
            (cursor.get("row", 0), cursor.get("col", 0)),
            (size["cols"], size["rows"]),
            said.get("title", ""),
            said.get("alternate", False),
            said.get("scrollback", []),
            said["offset"],
        )


@dataclass(frozen=True)
class Sent:
    """What became of something typed. What the job prints from ``offset`` on is the answer."""

    offset: int
    taken: int
    queued: int

    @classmethod
    def of(cls, said: Json) -> "Sent":
        return cls(said["offset"], said.get("taken", 0), said.get("queued", 0))


@dataclass(frozen=True)
class JobInfo:
    """A job's record. ``raw`` has all of it."""

    handle: str
    command: str
    name: Optional[str]
    cwd: str
    session: str
    state: str
    receipt: Optional[Receipt]
    raw: Json = field(default=None, repr=False, compare=False)

    @property
    def running(self) -> bool:
        return self.state in ("queued", "starting", "running")

    @classmethod
    def of(cls, said: Json) -> "JobInfo":
        # In a list the state is a part of its own.
        state = said.get("state", said)
        return cls(
            str(said["handle"]),
            said.get("command", ""),
            said.get("name"),
            said.get("cwd", ""),
            said.get("session", ""),
            state.get("status", ""),
            Receipt.of(state) if "ended_by" in state else None,
            said,
        )


@dataclass(frozen=True)
class Event:
    """Something that happened to a job. ``raw`` has all that is known of it."""

    kind: str
    job: str
    raw: Json = field(repr=False, compare=False)


@dataclass(frozen=True)
class Step:
    """A command in a shell, and what became of it."""

    number: int
    state: str
    code: Optional[int]
    output: str
    folder: Optional[str]
    elapsed: Optional[float]
    waited: Waited
    raw: Json = field(default=None, repr=False, compare=False)

    @property
    def ok(self) -> bool:
        return self.code == 0

    @classmethod
    def of(cls, said: Json, output: str, waited: Waited) -> "Step":
        took = said.get("took_ms")
        elapsed = took / 1000 if took is not None else None
        code, folder = said.get("exit_code"), said.get("folder")
        return cls(said["step"], said["state"], code, output, folder, elapsed, waited, said)


def size_json(size: Sequence[int]) -> Json:
    cols, rows = size
    return {"cols": cols, "rows": rows}


def decode_parts(parts: Sequence[Json]) -> bytes:
    """The bytes of an answer; what is not in the log any more is left out."""
    return b"".join(base64.b64decode(part["bytes"]) for part in parts if "bytes" in part)
