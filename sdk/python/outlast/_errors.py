"""What can go wrong."""

from __future__ import annotations

from typing import Any, Optional


class OutlastError(Exception):
    """Something could not be done. ``kind`` is a word for programs, ``hint`` says what to do next."""

    def __init__(self, message: str, kind: str = "system", hint: Optional[str] = None) -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.message = message
        self.kind = kind
        self.hint = hint

    @classmethod
    def of(cls, failure: Any) -> "OutlastError":
        """From what a relay says."""
        hint = failure.get("hint")
        if isinstance(hint, dict):
            hint = hint.get("text")
        return cls(failure.get("message", "it failed"), failure.get("kind", "system"), hint)


class ConnectionLost(OutlastError):
    """The relay has ended, or was never one. Jobs go on."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "connection", "jobs go on; open a new Outlast()")
