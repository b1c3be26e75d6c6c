"""One command to its end, with nothing left behind in the list of jobs: what the adapters for other frameworks are made of."""

from __future__ import annotations

import signal
from typing import Any, List, Optional, Tuple, Union

from ._client import Job, Outlast
from ._errors import OutlastError
from ._types import Exit, Receipt

_PIECE = 48 << 10
_INPUT_SECONDS = 30.0


class TimedOut(Exception):
    """It did not end in time, and was killed with all that it started."""


class TooMuch(Exception):
    """It printed more than was asked for; ``start`` is what fits."""

    def __init__(self, start: bytes) -> None:
        super().__init__("too much output")
        self.start = start


def _code(receipt: Receipt) -> int:
    """As shells count: 128 and the number of the signal that ended it."""
    if receipt.code is not None:
        return receipt.code
    number = getattr(signal, f"SIG{(receipt.signal or '').removeprefix('SIG')}", None)
    return 128 + int(number) if number is not None else -1


async def _feed(job: Job, data: bytes) -> None:
    try:
        for at in range(0, len(data), _PIECE):
            await job.send(data[at : at + _PIECE], timeout=_INPUT_SECONDS)
        await job.send(eof=True)
    except OutlastError:
        # One that has ended, or closed its input, did not want more.
        if await job.receipt() is None:
            raise


async def call(
    outlast: Outlast,
    command: Union[str, List[str]],
    data: Optional[bytes] = None,
    timeout: Optional[float] = None,
    most: Optional[int] = None,
    **options: Any,
) -> Tuple[int, bytes, bytes]:
    """Code, output and errors. ``data`` is its input, ``most`` the most bytes of output or errors."""
    job = await outlast.run(command, pipes=True, **options)
    try:
        await _feed(job, data or b"")
        waited = await job.wait(Exit(), deadline=timeout)
        receipt = await job.receipt()
        if waited.timed_out or receipt is None:
            raise TimedOut()
        if most is not None and await job.end() > most:
            raise TooMuch(await job.read_bytes(0, most))
        output, errors = await job.read_bytes(), await job.read_bytes(stderr=True)
        if most is not None and len(errors) > most:
            raise TooMuch(errors[:most])
        return _code(receipt), output, errors
    finally:
        await job.kill(grace=0.2)
        await job.remove()
