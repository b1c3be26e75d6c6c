"""The asyncio client: :class:`Outlast` and :class:`Job`."""

from __future__ import annotations

import asyncio
import base64
import os
from types import TracebackType
from typing import Any, AsyncIterator, Dict, Generator, Iterable, List, Mapping, Optional, Sequence, Tuple, Type, Union

from ._connection import MAX_STREAMS, Connection, Subscription, find_program
from ._errors import OutlastError
from ._types import (
    AwaitingInput,
    Condition,
    Event,
    Exit,
    JobInfo,
    Receipt,
    Screen,
    Sent,
    Step,
    Text,
    Waited,
    decode_parts,
    size_json,
)

Json = Any

#: How much text one answer holds unless told: head and tail.
MAX_TEXT = 1 << 20
_BYTES_PER_ANSWER = 256 << 10


class Outlast:
    """The jobs of this machine, or of a host that it knows (``outlast hosts``). It runs ``outlast relay``, which ends with it; jobs go on.

    ``home`` is another folder of jobs than the user's, ``agent=True`` hides secrets in all that is read and obeys the policy for agents.
    """

    def __init__(
        self,
        host: Optional[str] = None,
        *,
        home: Union[str, "os.PathLike[str]", None] = None,
        program: Optional[str] = None,
        agent: bool = False,
        session: str = "",
    ) -> None:
        self.host = host
        self.session = session or os.environ.get("OUTLAST_SESSION", "")
        self._program = program
        self._home = os.fspath(home) if home is not None else None
        self._agent = agent
        self._connections: List[Connection] = []
        self._opening: Optional[asyncio.Lock] = None

    async def __aenter__(self) -> "Outlast":
        await self._connection()
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the relay that was started. Jobs go on."""
        connections, self._connections = self._connections, []
        for connection in connections:
            await connection.close()

    def _free(self) -> Optional[Connection]:
        free = (one for one in self._connections if not one.is_lost and one.open_streams < MAX_STREAMS)
        return next(free, None)

    async def _connection(self) -> Connection:
        free = self._free()
        if free is not None:
            return free
        # Those that ask at the same time share what one of them opens.
        self._opening = self._opening or asyncio.Lock()
        async with self._opening:
            free = self._free()
            if free is None:
                free = await self._open()
            return free

    async def _open(self) -> Connection:
        command = [self._program or find_program()]
        if self._home is not None:
            command += ["--home", self._home]
        command.append("relay")
        if self.host is not None:
            command.append("--hosts")
        connection = Connection(command, dict(os.environ))
        await connection.open()
        self._connections.append(connection)
        return connection

    async def request(self, request: Json) -> Json:
        """Sends any request of docs/formats/requests.md, and returns the answer as it is."""
        body: Dict[str, Json] = {"ask": request}
        if self._agent:
            body["masked"] = True
        if self.host is not None:
            body["host"] = self.host
        connection = await self._connection()
        return await connection.ask(body)

    async def subscribe(self, to: Json) -> Subscription:
        """Is told of something, until it is over."""
        body: Dict[str, Json] = {"to": to}
        if self._agent:
            body["masked"] = True
        if self.host is not None:
            body["host"] = self.host
        connection = await self._connection()
        return connection.subscribe(body)

    def run(
        self,
        command: Union[str, Sequence[str]],
        *,
        name: Optional[str] = None,
        cwd: Union[str, "os.PathLike[str]", None] = None,
        env: Optional[Mapping[str, Optional[str]]] = None,
        size: Tuple[int, int] = (120, 40),
        pipes: bool = False,
        description: Optional[str] = None,
        kill_after: Optional[float] = None,
        until: Iterable[Condition] = (),
        deadline: Optional[float] = None,
        **more: Json,
    ) -> "Starting":
        """Starts a job: ``job = await o.run("make")``, or ``async with o.run("make") as job`` to have it ended with the block.

        A string is a line for the shell, a list a program and its arguments. With ``until`` it comes back when one of the conditions
        holds, or the job has ended; ``job.waited`` says which. ``env`` is what differs from the host's own environment.
        """
        run: Json = {"shell": command} if isinstance(command, str) else {"program": [os.fspath(word) for word in command]}
        spec: Dict[str, Json] = {
            "run": run,
            "streams": "pipes" if pipes else {"terminal": size_json(size)},
            "session": self.session,
            "for_agent": self._agent,
            **more,
        }
        # A relay was started here, and the job is where the caller is, as a child would be.
        here = os.getcwd() if self.host is None else None
        optional = {
            "name": name,
            "cwd": os.fspath(cwd) if cwd is not None else here,
            "env": dict(env) if env is not None else None,
            "description": description,
            "timeout_ms": round(kill_after * 1000) if kill_after is not None else None,
        }
        spec.update({key: value for key, value in optional.items() if value is not None})
        return Starting(self, spec, list(until), deadline)

    def shell(self, name: str = "main") -> "Shell":
        """A shell that remembers: folder, variables and functions stay from one command to the next. It is made by its first command."""
        return Shell(self, name)

    async def find(self, job: Union[int, str]) -> "Job":
        """The job of a number or a name."""
        answer = await self.request({"request": "find", "job": str(job)})
        return Job(self, answer["found"])

    async def jobs(self, *, running: bool = False, session: Optional[str] = None) -> List[JobInfo]:
        """All jobs, oldest first."""
        request = {"request": "list", "running": running, "session": session}
        answer = await self.request(request)
        return [JobInfo.of(listed["job"]) for listed in answer["jobs"]]

    async def wait_any(
        self,
        jobs: Sequence["Job"],
        *conditions: Condition,
        deadline: Optional[float] = None,
        starts: Optional[Sequence[int]] = None,
    ) -> Tuple["Job", Waited]:
        """Waits until the first of some jobs has met a condition (its end, unless told), and says which and how."""
        until = [condition.as_json() for condition in conditions or (Exit(),)]
        waits = [
            {"job": job.handle, "wait": {"until": until, "from": starts[n] if starts else None}}
            for n, job in enumerate(jobs)
        ]
        timeout = round(deadline * 1000) if deadline is not None else None
        answer = await self.request({"request": "wait", "waits": waits, "timeout_ms": timeout})
        said = answer["waited"]
        return jobs[said["which"]], Waited.of(said["waited"])

    async def events(self, session: Optional[str] = None) -> AsyncIterator[Event]:
        """What happens to the jobs of a session, from what it was not told yet on. Each event counts as told when the next is asked for."""
        session = session or self.session
        changed = await self.subscribe({"subscribe": "session", "session": session})
        try:
            while True:
                answer = await self.request({"request": "events", "session": session})
                for raw in answer["events"]:
                    yield Event(raw.get("event", ""), str(raw.get("job", "")), raw)
                    if "id" in raw or "seq" in raw:
                        number = raw.get("id", raw.get("seq"))
                        await self.request({"request": "ack", "session": session, "up_to": number})
                if not answer["events"]:
                    await changed.__anext__()
        except StopAsyncIteration:
            return
        finally:
            changed.close()

    async def prune(self, dry_run: bool = False) -> Json:
        """Removes finished jobs that are past the host's limits."""
        return (await self.request({"request": "prune", "dry_run": dry_run}))["pruned"]


class Starting:
    """A job that is being started: to be awaited, or entered."""

    def __init__(self, outlast: Outlast, spec: Json, until: List[Condition], deadline: Optional[float]) -> None:
        self._outlast = outlast
        self._spec = spec
        self._until = until
        self._deadline = deadline
        self._job: Optional[Job] = None

    def __await__(self) -> Generator[Any, None, "Job"]:
        return self._start().__await__()

    async def _start(self) -> "Job":
        answer = await self._outlast.request({"request": "start", **self._spec})
        job = Job(self._outlast, answer["started"])
        if self._until:
            job.waited = await job.wait(*self._until, start=0, deadline=self._deadline)
        return job

    async def __aenter__(self) -> "Job":
        self._job = await self._start()
        return self._job

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if self._job is not None:
            await self._job.kill()


class Shell:
    """A shell with a name, which goes on when this program ends."""

    def __init__(self, outlast: Outlast, name: str) -> None:
        self._outlast = outlast
        self.name = name
        self._job: Optional[Job] = None

    async def run(
        self,
        command: str,
        *conditions: Condition,
        cwd: Union[str, "os.PathLike[str]", None] = None,
        env: Optional[Mapping[str, Optional[str]]] = None,
        deadline: Optional[float] = None,
        kill_after: Optional[float] = None,
        if_idle: bool = False,
    ) -> Step:
        """Runs a command in it, and comes back when it has ended, a condition holds, or the deadline is up.

        ``cwd`` and ``env`` are for this command alone. A command waits for those before it; with ``if_idle`` it is refused instead.
        """
        order: Dict[str, Json] = {"command": command, "if_idle": if_idle, "session": self._outlast.session}
        if cwd is not None:
            order["folder"] = os.fspath(cwd)
        if env is not None:
            order["env"] = dict(env)
        if kill_after is not None:
            order["timeout_ms"] = round(kill_after * 1000)
        try:
            job = await self.job()
            begun = await job._ask("step", **order)
        except OutlastError as error:
            if error.kind != "not_running":
                raise
            # It ended meanwhile: the next command makes it anew.
            job = await self._start()
            begun = await job._ask("step", **order)
        until = [condition.as_json() for condition in (*conditions, Exit())]
        wait = {"until": until, "from": begun["from"], "step": begun["step"]}
        timeout = round(deadline * 1000) if deadline is not None else None
        request = {"request": "wait", "waits": [{"job": job.handle, "wait": wait}], "timeout_ms": timeout}
        waited = (await self._outlast.request(request))["waited"]["waited"]
        step = waited.get("step") or begun
        output = await job.output(step["from"], step.get("to"))
        return Step.of(step, str(output), Waited.of(waited))

    async def job(self) -> "Job":
        """The job that it is, made if there is none."""
        request = {"request": "find_shell", "scope": self._outlast.session, "name": self.name}
        found = (await self._outlast.request(request))["found_shell"]
        return Job(self._outlast, found) if found is not None else await self._start()

    async def _start(self) -> "Job":
        shell = {"name": self.name, "scope": self._outlast.session, "kind": "bash"}
        return await self._outlast.run(["bash"], shell=shell, shown_as=f"shell {self.name}", notify=["exit"])

    async def kill(self, grace: float = 5.0) -> None:
        """Ends it and all that runs in it."""
        await (await self.job()).kill(grace)


class Job:
    """One command and everything that it started."""

    def __init__(self, outlast: Outlast, handle: Union[int, str]) -> None:
        self._outlast = outlast
        #: Its number; ``"gpu1/17"`` on another host.
        self.handle = handle
        #: How the wait of ``run(until=...)`` ended.
        self.waited: Optional[Waited] = None

    def __repr__(self) -> str:
        return f"Job({self.handle!r})"

    async def _ask(self, ask: str, **fields: Json) -> Json:
        answer = await self._outlast.request({"request": "job", "job": self.handle, "ask": {"ask": ask, **fields}})
        return next(iter(answer.values()))

    async def wait(
        self, *conditions: Condition, deadline: Optional[float] = None, start: Optional[int] = None
    ) -> Waited:
        """Waits until one of the conditions holds, the job's end unless told; an end always ends it.

        ``start`` is an offset in the output: patterns look from there on. Unless told, from the end now; 0 is everything.
        After ``deadline`` seconds it comes back with ``timed_out``.
        """
        _, waited = await self._outlast.wait_any(
            [self], *conditions, deadline=deadline, starts=None if start is None else [start]
        )
        return waited

    async def send(
        self,
        text: Union[str, bytes] = "",
        *,
        enter: bool = False,
        keys: Sequence[str] = (),
        eof: bool = False,
        paste: Optional[bool] = None,
        timeout: Optional[float] = None,
    ) -> Sent:
        """Types a text as it is, then perhaps Enter, keys (``"Ctrl-C"``, ``"Down"``) and the end of the input."""
        send: Dict[str, Json] = {"newline": enter, "keys": list(keys), "eof": eof, "session": self._outlast.session}
        if isinstance(text, bytes):
            send["bytes"] = base64.b64encode(text).decode()
        else:
            send["text"] = text
        if paste is not None:
            send["paste"] = paste
        timeout_ms = round(timeout * 1000) if timeout is not None else None
        return Sent.of(await self._ask("send", send=send, timeout_ms=timeout_ms))

    async def send_line(self, text: str = "") -> Sent:
        """Types a line and Enter."""
        return await self.send(text, enter=True)

    async def ask(self, text: str, *conditions: Condition, deadline: Optional[float] = 60) -> str:
        """Types a line, waits until the program asks again (or for the conditions), and returns what it printed, the typed line with it."""
        sent = await self.send_line(text)
        waited = await self.wait(*(conditions or (AwaitingInput(),)), start=sent.offset, deadline=deadline)
        if waited.timed_out:
            raise OutlastError(f"job {self.handle} has not answered in {deadline} s", "deadline")
        return str(await self.output(sent.offset))

    async def output(self, start: int = 0, end: Optional[int] = None, *, max: int = MAX_TEXT) -> Text:
        """A range of the output as a person would have read it: head and tail within ``max`` bytes."""
        return Text.of(await self._ask("read_text", **{"from": start, "to": end, "max": max}))

    async def read_bytes(self, start: int = 0, end: Optional[int] = None, *, stderr: bool = False) -> bytes:
        """A range of the output as the bytes that were written."""
        pieces: List[bytes] = []
        stream = "stderr" if stderr else "output"
        while True:
            fields = {"stream": stream, "from": start, "to": end, "max": _BYTES_PER_ANSWER}
            said = await self._ask("read_bytes", **fields)
            pieces.append(decode_parts(said["parts"]))
            if said["next"] >= said["end"] or not said["parts"]:
                return b"".join(pieces)
            start, end = said["next"], said["end"]

    async def follow(self, start: int = 0) -> AsyncIterator[bytes]:
        """The output as it comes, from an offset on, until the job is over."""
        news = await self._outlast.subscribe({"subscribe": "job", "job": self.handle})
        at = start
        try:
            while True:
                fields = {"from": at, "max": _BYTES_PER_ANSWER}
                said = await self._ask("read_bytes", **fields)
                data = decode_parts(said["parts"])
                at = said["next"]
                if data:
                    yield data
                if said["next"] >= said["end"]:
                    try:
                        while "grown" not in (told := await news.__anext__()) or told["grown"]["offset"] <= at:
                            pass
                    except StopAsyncIteration:
                        rest = await self.read_bytes(at)
                        if rest:
                            yield rest
                        return
        finally:
            news.close()

    async def events(self) -> AsyncIterator[Event]:
        """What happens to this job from now on, until it is over."""
        news = await self._outlast.subscribe({"subscribe": "job", "job": self.handle})
        try:
            async for told in news:
                if isinstance(told, dict) and "event" in told:
                    raw = told["event"]
                    yield Event(raw.get("event", ""), str(self.handle), raw)
        finally:
            news.close()

    async def screen(self, *, scrollback: int = 0) -> Screen:
        """What its terminal shows."""
        return Screen.of(await self._ask("screen", scrollback=scrollback))

    async def info(self) -> JobInfo:
        """Its record."""
        return JobInfo.of(await self._ask("info", shown=True))

    async def status(self) -> Json:
        """How it is right now: activity, ports, processes; none when it has ended."""
        return await self._ask("status")

    async def receipt(self) -> Optional[Receipt]:
        """How it ended; none while it runs."""
        said = await self._ask("receipt")
        return Receipt.of(said) if said else None

    async def result(self, deadline: Optional[float] = None) -> Receipt:
        """Waits for its end, and says how it ended."""
        waited = await self.wait(Exit(), deadline=deadline)
        receipt = await self.receipt() if not waited.timed_out else None
        if receipt is None:
            raise OutlastError(f"job {self.handle} has not ended", "deadline")
        return receipt

    async def end(self) -> int:
        """Where its output ends now."""
        return int(await self._ask("end"))

    async def resize(self, cols: int, rows: int) -> None:
        """Gives its terminal a new size."""
        await self._ask_done("resize", size=size_json((cols, rows)))

    async def kill(self, grace: float = 5.0) -> Json:
        """Ends it and all that it started; SIGKILL for what is left after ``grace`` seconds."""
        return await self._ask("kill", grace_ms=round(grace * 1000), session=self._outlast.session)

    async def signal(self, signal: str) -> Json:
        """Sends one signal, such as ``"INT"``, to the whole job."""
        return await self._ask("signal", signal=signal, session=self._outlast.session)

    async def remove(self) -> None:
        """Removes it with its output, once it has ended."""
        await self._outlast.request({"request": "remove", "job": self.handle})

    async def _ask_done(self, ask: str, **fields: Json) -> None:
        await self._outlast.request({"request": "job", "job": self.handle, "ask": {"ask": ask, **fields}})
