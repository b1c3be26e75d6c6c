"""SWE-ReX's runtime with jobs of Outlast behind it: sessions go on if this process dies, and ``outlast jobs`` shows them.

    from outlast.swerex import OutlastRuntime

    runtime = OutlastRuntime()                 # this machine; OutlastRuntime("gpu1") for a host that it knows

Every command of a session is one file that its bash reads, so that line ends, here-documents and long commands arrive as they are, and its exit
code comes from the shell's own prompt hook. It needs SWE-ReX: ``pip install outlast swe-rex``.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shlex
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from swerex.exceptions import (
    BashIncorrectSyntaxError,
    CommandTimeoutError,
    NonZeroExitCodeError,
    SessionDoesNotExistError,
    SessionExistsError,
)
from swerex.runtime.abstract import (
    AbstractRuntime,
    Action,
    BashAction,
    BashInterruptAction,
    BashObservation,
    CloseBashSessionResponse,
    CloseResponse,
    CloseSessionRequest,
    CloseSessionResponse,
    Command,
    CommandResponse,
    CreateBashSessionResponse,
    CreateSessionRequest,
    CreateSessionResponse,
    IsAliveResponse,
    Observation,
    ReadFileRequest,
    ReadFileResponse,
    UploadRequest,
    UploadResponse,
    WriteFileRequest,
    WriteFileResponse,
)

from ._client import Job, Outlast
from ._command import TimedOut, call
from ._errors import OutlastError
from ._types import Pattern, Waited

__all__ = ["OutlastRuntime"]

_STARTUP = 30.0
_CONTROL = re.compile(r"\x1b[@-_][0-?]*[ -/]*[@-~]")


def _text(data: bytes) -> str:
    return _CONTROL.sub("", data.decode(errors="backslashreplace")).replace("\r\n", "\n")


class _Session:
    """A bash that says after every command how that ended."""

    def __init__(self, runtime: "OutlastRuntime", job: Job, mark: str) -> None:
        self._runtime = runtime
        self.job = job
        self._mark = mark
        self.prompt = Pattern(re.escape(mark) + r"(\d+)\.")

    async def _wait(self, start: int, expect: List[str], timeout: Optional[float]) -> Tuple[str, Waited]:
        """Until the shell asks again, or one of these was printed; and what was printed before that."""
        conditions = [Pattern(one) for one in expect] + [self.prompt]
        waited = await self.job.wait(*conditions, start=start, deadline=timeout)
        if waited.timed_out:
            raise CommandTimeoutError(f"timeout after {timeout} seconds")
        output = _text(await self.job.read_bytes(start, waited.offset))
        if waited.match is not None and waited.match.pattern < len(expect):
            output = output[: output.rfind(waited.match.text)]
        return output.split(self._mark)[0], waited

    async def run(self, action: BashAction) -> BashObservation:
        if action.is_interactive_command or action.is_interactive_quit:
            sent = await self.job.send(action.command.rstrip("\n") + "\n")
            output, waited = await self._timed(action, sent.offset)
            expected = self._expected(action, waited)
            output = output.lstrip().removeprefix(action.command.strip()).strip()
            return BashObservation(output=output, exit_code=0, expect_string=expected)
        await self._runtime.check_syntax(action.command)
        path = await self._runtime.script(action.command)
        line = f". {shlex.quote(path)}\n"
        sent = await self.job.send(line)
        try:
            output, waited = await self._timed(action, sent.offset)
        finally:
            await self._runtime.forget(path)
        code: Optional[int] = None
        if action.check != "ignore" and waited.match is not None and waited.match.groups:
            code = int(waited.match.groups[0] or 0)
        if action.check == "raise" and code != 0:
            message = f"Command {action.command!r} failed with exit code {code}. Here is the output:\n{output!r}"
            raise NonZeroExitCodeError(f"{action.error_msg}: {message}" if action.error_msg else message)
        return BashObservation(output=output, exit_code=code, expect_string=self._expected(action, waited))

    async def _timed(self, action: BashAction, start: int) -> Tuple[str, Waited]:
        try:
            return await self._wait(start, action.expect, action.timeout)
        except CommandTimeoutError as error:
            raise CommandTimeoutError(f"{error} while running command {action.command!r}") from None

    @staticmethod
    def _expected(action: "BashAction | BashInterruptAction", waited: Waited) -> str:
        which = waited.match.pattern if waited.match is not None else len(action.expect)
        return action.expect[which] if which < len(action.expect) else ""

    async def interrupt(self, action: BashInterruptAction) -> BashObservation:
        for keys in [["Ctrl-C"]] * action.n_retry + [["Ctrl-Z"]]:
            sent = await self.job.send(keys=keys)
            try:
                output, waited = await self._wait(sent.offset, action.expect, max(action.timeout, 0.5))
            except CommandTimeoutError:
                continue
            if keys == ["Ctrl-Z"]:
                sent = await self.job.send("kill -9 %1; fg %1\n")
                more, waited = await self._wait(sent.offset, action.expect, _STARTUP)
                output += more
            return BashObservation(output=output.strip(), exit_code=0, expect_string=self._expected(action, waited))
        raise CommandTimeoutError("Failed to interrupt session")


class OutlastRuntime(AbstractRuntime):
    """A runtime on this machine, or on a host that it knows."""

    def __init__(self, host: Optional[str] = None, **options: Any) -> None:
        super().__init__()
        self._outlast = Outlast(host, **options)
        self._sessions: Dict[str, _Session] = {}
        self._folder: Optional[str] = None

    async def is_alive(self, *, timeout: Optional[float] = None) -> IsAliveResponse:
        try:
            await asyncio.wait_for(self._outlast.jobs(running=True), timeout)
        except (OutlastError, asyncio.TimeoutError) as error:
            return IsAliveResponse(is_alive=False, message=str(error))
        return IsAliveResponse(is_alive=True)

    async def _call(
        self, argv: "List[str] | str", data: Optional[bytes] = None, timeout: Optional[float] = None, **options: Any
    ) -> Tuple[int, bytes, bytes]:
        """One command to its end: code, output, errors. It leaves nothing behind in the list of jobs."""
        try:
            return await call(self._outlast, argv, data, timeout, **options)
        except TimedOut:
            raise CommandTimeoutError(f"Timeout ({timeout}s) exceeded while running command") from None

    async def script(self, text: str) -> str:
        """Writes a file that a session can read; where it is."""
        if self._folder is None:
            code, said, _ = await self._call(["mktemp", "-d"])
            self._folder = said.decode().strip()
        path = f"{self._folder}/{secrets.token_hex(8)}"
        await self._write(path, text.encode())
        return path

    async def forget(self, path: str) -> None:
        await self._call(["rm", "-f", path])

    async def check_syntax(self, command: str) -> None:
        code, said, errors = await self._call(["bash", "-n"], command.encode() + b"\n")
        if code != 0:
            info = {"bash_stdout": said.decode(errors="replace"), "bash_stderr": errors.decode(errors="replace")}
            raise BashIncorrectSyntaxError(f"invalid bash command {command!r}: {info['bash_stderr']}", extra_info=info)

    async def create_session(self, request: CreateSessionRequest) -> CreateSessionResponse:
        if request.session in self._sessions:
            raise SessionExistsError(f"session {request.session} already exists")
        mark = f"outlast-{secrets.token_hex(6)}-"
        hook = f"printf '%s%s.' {mark} $?"
        env = {"PS1": "", "PS2": "", "PS0": "", "PROMPT_COMMAND": hook}
        command = ["bash", "-c", "stty -echo; exec bash --norc --noprofile --noediting -i"]
        job = await self._outlast.run(command, env=env, description=f"SWE-ReX session {request.session}")
        session = _Session(self, job, mark)
        self._sessions[request.session] = session
        output, _ = await session._wait(0, [], max(_STARTUP, request.startup_timeout))
        if request.startup_source:
            sources = " ; ".join(f"source {path}" for path in request.startup_source)
            # They may change the prompt.
            sent = await job.send(f"{sources} ; PS1= PS2= PS0= PROMPT_COMMAND={shlex.quote(hook)}\n")
            more, _ = await session._wait(sent.offset, [], max(_STARTUP, request.startup_timeout))
            output += more
        return CreateBashSessionResponse(output=output)

    def _session(self, name: str) -> _Session:
        if name not in self._sessions:
            raise SessionDoesNotExistError(f"session {name!r} does not exist")
        return self._sessions[name]

    async def run_in_session(self, action: Action) -> Observation:
        session = self._session(action.session)
        if isinstance(action, BashInterruptAction):
            return await session.interrupt(action)
        return await session.run(action)

    async def close_session(self, request: CloseSessionRequest) -> CloseSessionResponse:
        session = self._session(request.session)
        del self._sessions[request.session]
        await session.job.kill(grace=0.5)
        return CloseBashSessionResponse()

    async def execute(self, command: Command) -> CommandResponse:
        argv = ["sh", "-c", str(command.command)] if command.shell else list(command.command)
        if command.merge_output_streams:
            argv = ["sh", "-c", 'exec "$@" 2>&1', "sh", *argv]
        code, said, errors = await self._call(argv, timeout=command.timeout, env=command.env, cwd=command.cwd)
        response = CommandResponse(
            stdout=said.decode(errors="backslashreplace"),
            stderr=errors.decode(errors="backslashreplace"),
            exit_code=code,
        )
        if command.check and code != 0:
            message = f"Command {command.command!r} failed with exit code {code}. Stdout:\n{response.stdout!r}\nStderr:\n{response.stderr!r}"
            raise NonZeroExitCodeError(f"{command.error_msg}: {message}" if command.error_msg else message)
        return response

    async def read_file(self, request: ReadFileRequest) -> ReadFileResponse:
        code, said, errors = await self._call(["cat", "--", request.path])
        if code != 0:
            raise FileNotFoundError(errors.decode(errors="replace").strip())
        return ReadFileResponse(content=said.decode(request.encoding or "utf-8", request.errors or "strict"))

    async def _write(self, path: str, data: bytes) -> None:
        script = 'mkdir -p -- "$(dirname -- "$1")" && cat > "$1"'
        code, _, errors = await self._call(["sh", "-c", script, "sh", path], data)
        if code != 0:
            raise OSError(errors.decode(errors="replace").strip())

    async def write_file(self, request: WriteFileRequest) -> WriteFileResponse:
        await self._write(request.path, request.content.encode())
        return WriteFileResponse()

    async def upload(self, request: UploadRequest) -> UploadResponse:
        source = Path(request.source_path)
        files = [one for one in source.rglob("*") if one.is_file()] if source.is_dir() else [source]
        for file in files:
            inside = os.path.relpath(file, source) if source.is_dir() else "."
            target = os.path.normpath(os.path.join(request.target_path, inside))
            await self._write(target, file.read_bytes())
        return UploadResponse()

    async def close(self) -> CloseResponse:
        for session in self._sessions.values():
            await session.job.kill(grace=0.5)
        self._sessions.clear()
        if self._folder is not None:
            await self._call(["rm", "-rf", self._folder])
        await self._outlast.close()
        return CloseResponse()
