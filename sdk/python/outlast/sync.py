"""The same without asyncio: calls that block.

    from outlast.sync import Outlast, Pattern

    with Outlast() as outlast:
        with outlast.run("python3 -q") as job:          # ended when the block is left
            job.wait(Pattern(">>> "), start=0)
            print(job.ask("6 * 7"))

A thread of its own runs the client of :mod:`outlast`; any thread may call.
"""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Any, Awaitable, Iterable, Iterator, List, Optional, Sequence, Tuple, Type, TypeVar, Union

from . import _client, _types
from ._errors import ConnectionLost, OutlastError
from ._types import *

Json = Any
T = TypeVar("T")

__all__ = ["ConnectionLost", "Job", "Outlast", "OutlastError", "Shell"]
__all__ += _types.__all__


class _Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="outlast", daemon=True)
        self._thread.start()

    def run(self, what: Awaitable[T]) -> T:
        async def call() -> T:
            return await what

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Outlast:
    """See :class:`outlast.Outlast`."""

    def __init__(self, host: Optional[str] = None, **options: Json) -> None:
        self._loop = _Loop()
        self._client = _client.Outlast(host, **options)

    def __enter__(self) -> "Outlast":
        self._loop.run(self._client.__aenter__())
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the relay that was started. Jobs go on."""
        self._loop.run(self._client.close())
        self._loop.close()

    def run(
        self, command: Union[str, Sequence[str]], *, until: Iterable[Condition] = (), **options: Json
    ) -> "Job":
        """Starts a job; ``with outlast.run("make") as job`` ends it with the block."""
        return Job(self._loop, self._loop.run(self._client.run(command, until=until, **options)))

    def shell(self, name: str = "main") -> "Shell":
        return Shell(self._loop, self._client.shell(name))

    def find(self, job: Union[int, str]) -> "Job":
        return Job(self._loop, self._loop.run(self._client.find(job)))

    def jobs(self, *, running: bool = False, session: Optional[str] = None) -> List[JobInfo]:
        return self._loop.run(self._client.jobs(running=running, session=session))

    def wait_any(
        self, jobs: Sequence["Job"], *conditions: Condition, deadline: Optional[float] = None
    ) -> Tuple["Job", Waited]:
        inner = [job._job for job in jobs]
        first, waited = self._loop.run(self._client.wait_any(inner, *conditions, deadline=deadline))
        return jobs[inner.index(first)], waited

    def events(self, session: Optional[str] = None) -> Iterator[Event]:
        return self._iterate(self._client.events(session))

    def request(self, request: Json) -> Json:
        return self._loop.run(self._client.request(request))

    def _iterate(self, iterator: Any) -> Iterator[Any]:
        try:
            while True:
                try:
                    yield self._loop.run(iterator.__anext__())
                except StopAsyncIteration:
                    return
        finally:
            self._loop.run(iterator.aclose())


class Shell:
    """See :class:`outlast.Shell`."""

    def __init__(self, loop: _Loop, shell: _client.Shell) -> None:
        self._loop = loop
        self._shell = shell
        self.name = shell.name

    def run(self, command: str, *conditions: Condition, **options: Json) -> Step:
        return self._loop.run(self._shell.run(command, *conditions, **options))

    def job(self) -> "Job":
        return Job(self._loop, self._loop.run(self._shell.job()))

    def kill(self, grace: float = 5.0) -> None:
        self._loop.run(self._shell.kill(grace))


class Job:
    """See :class:`outlast.Job`."""

    def __init__(self, loop: _Loop, job: _client.Job) -> None:
        self._loop = loop
        self._job = job
        self.handle = job.handle
        self.waited = job.waited

    def __repr__(self) -> str:
        return f"Job({self.handle!r})"

    def __enter__(self) -> "Job":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.kill()

    def wait(
        self, *conditions: Condition, deadline: Optional[float] = None, start: Optional[int] = None
    ) -> Waited:
        return self._loop.run(self._job.wait(*conditions, deadline=deadline, start=start))

    def send(self, text: Union[str, bytes] = "", **options: Json) -> Sent:
        return self._loop.run(self._job.send(text, **options))

    def send_line(self, text: str = "") -> Sent:
        return self._loop.run(self._job.send_line(text))

    def ask(self, text: str, *conditions: Condition, deadline: Optional[float] = 60) -> str:
        return self._loop.run(self._job.ask(text, *conditions, deadline=deadline))

    def output(self, start: int = 0, end: Optional[int] = None, **options: Json) -> Text:
        return self._loop.run(self._job.output(start, end, **options))

    def read_bytes(self, start: int = 0, end: Optional[int] = None, *, stderr: bool = False) -> bytes:
        return self._loop.run(self._job.read_bytes(start, end, stderr=stderr))

    def screen(self, *, scrollback: int = 0) -> Screen:
        return self._loop.run(self._job.screen(scrollback=scrollback))

    def info(self) -> JobInfo:
        return self._loop.run(self._job.info())

    def status(self) -> Json:
        return self._loop.run(self._job.status())

    def receipt(self) -> Optional[Receipt]:
        return self._loop.run(self._job.receipt())

    def result(self, deadline: Optional[float] = None) -> Receipt:
        return self._loop.run(self._job.result(deadline))

    def end(self) -> int:
        return self._loop.run(self._job.end())

    def resize(self, cols: int, rows: int) -> None:
        self._loop.run(self._job.resize(cols, rows))

    def kill(self, grace: float = 5.0) -> Json:
        return self._loop.run(self._job.kill(grace))

    def signal(self, signal: str) -> Json:
        return self._loop.run(self._job.signal(signal))

    def remove(self) -> None:
        self._loop.run(self._job.remove())
