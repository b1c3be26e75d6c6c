"""A pipe to a relay: many requests at once, each on a stream of its own."""

from __future__ import annotations

import asyncio
import getpass
import json
import os
import shutil
import socket
import subprocess
import sys
from typing import Any, AsyncIterator, Dict, List, Optional, Union

from ._errors import ConnectionLost, OutlastError
from ._frames import Decoder, FrameError, encode

Json = Any

#: A relay takes this many streams at once; one more, and another relay is started.
MAX_STREAMS = 1000


def find_program() -> str:
    """The program: ``$OUTLAST_PROGRAM``, that of this Python's own environment, or the one on the ``PATH``."""
    named = os.environ.get("OUTLAST_PROGRAM")
    if named:
        return named
    beside = os.path.join(os.path.dirname(sys.executable), "outlast")
    if os.access(beside, os.X_OK):
        return beside
    found = shutil.which("outlast")
    if found is None:
        raise OutlastError("the program outlast was not found", "usage", "pip install outlast, or set OUTLAST_PROGRAM")
    return found


def _caller() -> Json:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""
    return {"user": user, "machine": socket.gethostname()}


class Subscription:
    """What a subscriber is told, as an async iterator. It is over with the job, or with :meth:`close`."""

    def __init__(self, connection: "Connection", stream: int) -> None:
        self._connection = connection
        self._stream = stream
        self._news: "asyncio.Queue[Union[Json, OutlastError, None]]" = asyncio.Queue()

    def _put(self, news: Union[Json, OutlastError, None]) -> None:
        self._news.put_nowait(news)

    def __aiter__(self) -> AsyncIterator[Json]:
        return self

    async def __anext__(self) -> Json:
        news = await self._news.get()
        if isinstance(news, OutlastError):
            raise news
        if news is None or news == "over":
            self.close()
            raise StopAsyncIteration
        return news

    def close(self) -> None:
        self._connection._close_stream(self._stream)


class Connection:
    """One relay."""

    def __init__(self, command: List[str], env: Dict[str, str]) -> None:
        self._command = command
        self._env = env
        self._process: Optional[asyncio.subprocess.Process] = None
        self._reader: "Optional[asyncio.Task[None]]" = None
        self._answers: "Dict[int, asyncio.Future[Json]]" = {}
        self._subscriptions: Dict[int, Subscription] = {}
        self._last_stream = 0
        self._lost: Optional[OutlastError] = None
        self._hello: "Optional[asyncio.Future[Json]]" = None

    @property
    def open_streams(self) -> int:
        return len(self._answers) + len(self._subscriptions)

    @property
    def is_lost(self) -> bool:
        return self._lost is not None

    async def open(self) -> Json:
        """Starts the relay; returns its greeting."""
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self._env,
                # Ctrl-C in a terminal is for the program that uses it, which then ends it.
                start_new_session=True,
            )
        except OSError as error:
            raise OutlastError(f"cannot run {self._command[0]}: {error}", "system") from error
        self._hello = asyncio.get_running_loop().create_future()
        self._reader = asyncio.ensure_future(self._read())
        hello = {"frames": 1, "oldest": 1, "program": "outlast-python", "caller": _caller()}
        self._send(0, "hello", hello)
        return await self._hello

    def _send(self, stream: int, kind: str, body: Json) -> None:
        if self._lost is not None:
            raise self._lost
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(encode(stream, kind, json.dumps(body, separators=(",", ":")).encode()))

    async def _read(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        decoder = Decoder()
        why = "the relay has ended"
        try:
            while True:
                data = await self._process.stdout.read(1 << 18)
                if not data:
                    said = decoder.before_marker()
                    why = f"no relay answered, but: {said}" if said else why
                    break
                for message in decoder.push(data):
                    self._take(message.stream, message.kind, message.body)
        except FrameError as error:
            why = str(error)
        self._lose(ConnectionLost(why))

    def _lose(self, error: OutlastError) -> None:
        self._lost = self._lost or error
        waiting = [*self._answers.values(), *([self._hello] if self._hello else [])]
        for future in waiting:
            if not future.done():
                future.set_exception(error)
        for subscription in self._subscriptions.values():
            subscription._put(error)
        self._answers.clear()

    def _take(self, stream: int, kind: str, body: bytes) -> None:
        if kind == "hello":
            if self._hello is not None and not self._hello.done():
                self._hello.set_result(json.loads(body))
        elif kind == "answer":
            future = self._answers.pop(stream, None)
            if future is not None and not future.done():
                future.set_result(json.loads(body))
        elif kind == "failure":
            error = OutlastError.of(json.loads(body))
            if stream == 0:
                self._lose(error)
                return
            future = self._answers.pop(stream, None)
            if future is not None and not future.done():
                future.set_exception(error)
            subscription = self._subscriptions.pop(stream, None)
            if subscription is not None:
                subscription._put(error)
        elif kind == "news":
            subscription = self._subscriptions.get(stream)
            if subscription is not None:
                subscription._put(json.loads(body))

    def _next_stream(self) -> int:
        self._last_stream += 1
        return self._last_stream

    async def ask(self, body: Json) -> Json:
        """Sends a request and waits for its answer. To cancel the task gives it up."""
        stream = self._next_stream()
        future: "asyncio.Future[Json]" = asyncio.get_running_loop().create_future()
        self._send(stream, "request", body)
        self._answers[stream] = future
        try:
            return await future
        finally:
            if self._answers.pop(stream, None) is not None and self._lost is None:
                self._send(stream, "cancel", {})

    def subscribe(self, body: Json) -> Subscription:
        stream = self._next_stream()
        subscription = Subscription(self, stream)
        self._send(stream, "subscribe", body)
        self._subscriptions[stream] = subscription
        return subscription

    def _close_stream(self, stream: int) -> None:
        if self._subscriptions.pop(stream, None) is not None and self._lost is None:
            self._send(stream, "cancel", {})

    async def close(self) -> None:
        """Ends the relay. Jobs go on."""
        process, self._process = self._process, None
        if process is None:
            return
        self._lost = self._lost or ConnectionLost("this Outlast() was closed")
        if process.stdin is not None:
            process.stdin.close()
        if self._reader is not None:
            await asyncio.wait([self._reader], timeout=5)
        try:
            await asyncio.wait_for(process.wait(), 5)
        except asyncio.TimeoutError:
            process.kill()
            await process.wait()
