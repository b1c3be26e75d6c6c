"""A sandbox provider for Inspect with jobs of Outlast behind it: ``sandbox="outlast"``, or ``sandbox=("outlast", "gpu1")`` for a host that it knows.

Each sample has a folder of its own; its commands are jobs, which ``outlast jobs`` shows and which are ended with all that they started when their time is
up. It is as good a wall as the job has: none here, the container's if the host is one. It needs Inspect: ``pip install outlast inspect-ai``.
"""

from __future__ import annotations

import posixpath
from typing import Any, Dict, List, Literal, Optional, Tuple, Union, overload

from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentLimits,
    SandboxUserUnsupportedError,
    sandboxenv,
)

from ._client import Outlast
from ._command import TimedOut, TooMuch, call
from ._errors import OutlastError

__all__ = ["OutlastSandboxEnvironment"]

_TIMEOUT = 180.0
_MISSING, _FOLDER, _DENIED, _LARGE = 101, 102, 103, 104
_CHECK = f'if [ -d "$1" ]; then exit {_FOLDER}; fi'
_READ = f"""{_CHECK}
[ -e "$1" ] || exit {_MISSING}
[ -r "$1" ] || exit {_DENIED}
[ "$(wc -c < "$1")" -le "$2" ] || exit {_LARGE}
exec cat < "$1"
"""
_WRITE = f"""{_CHECK}
mkdir -p -- "$(dirname -- "$1")" && {{ [ ! -e "$1" ] || [ -w "$1" ]; }} && cat > "$1" || exit {_DENIED}
"""


@sandboxenv(name="outlast")
class OutlastSandboxEnvironment(SandboxEnvironment):
    """A folder on this machine, or on a host."""

    def __init__(self, outlast: Outlast, folder: str) -> None:
        super().__init__()
        self._outlast = outlast
        self._folder = folder

    @classmethod
    async def sample_init(
        cls, task_name: str, config: Any, metadata: Dict[str, str]
    ) -> Dict[str, SandboxEnvironment]:
        outlast = Outlast(config if isinstance(config, str) else None)
        _, said, _ = await call(outlast, ["mktemp", "-d"], timeout=_TIMEOUT)
        return {"default": cls(outlast, said.decode().strip())}

    @classmethod
    async def sample_cleanup(
        cls, task_name: str, config: Any, environments: Dict[str, SandboxEnvironment], interrupted: bool
    ) -> None:
        for environment in environments.values():
            ours = environment.as_type(OutlastSandboxEnvironment)
            await call(ours._outlast, ["rm", "-rf", "--", ours._folder], timeout=_TIMEOUT)
            await ours._outlast.close()

    def _path(self, name: str) -> str:
        return posixpath.join(self._folder, name)

    async def _is_own_user(self, user: str) -> bool:
        _, own, _ = await call(self._outlast, ["id", "-u"], timeout=_TIMEOUT)
        _, asked, _ = await call(self._outlast, ["id", "-u", "--", user], timeout=_TIMEOUT)
        return own == asked

    async def exec(
        self,
        cmd: List[str],
        input: Union[str, bytes, None] = None,
        cwd: Optional[str] = None,
        env: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        timeout: Optional[int] = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        if user is not None and not await self._is_own_user(user):
            raise SandboxUserUnsupportedError(f"jobs run as the user who started them, not as {user!r}")
        data = input.encode() if isinstance(input, str) else input
        try:
            code, said, errors = await call(
                self._outlast,
                cmd,
                data,
                timeout=timeout,
                most=SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE,
                cwd=self._path(cwd or ""),
                env=env,
            )
        except TimedOut:
            raise TimeoutError(f"{cmd[0]!r} did not end within {timeout} seconds and was killed") from None
        except TooMuch as error:
            limit = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR
            raise OutputLimitExceededError(limit, error.start.decode(errors="replace")) from None
        except OutlastError as error:
            if error.kind != "cannot_start":
                raise
            there, _, _ = await call(self._outlast, ["test", "-e", self._path(posixpath.join(cwd or "", cmd[0]))])
            if there == 0:
                raise PermissionError(error.message) from None
            return ExecResult(False, 127, "", error.message)
        return ExecResult(code == 0, code, said.decode(errors="replace"), errors.decode(errors="replace"))

    async def _script(self, script: str, file: str, *more: str, data: Optional[bytes] = None) -> Tuple[int, bytes]:
        try:
            code, said, errors = await call(
                self._outlast, ["sh", "-c", script, "sh", self._path(file), *more], data, timeout=_TIMEOUT
            )
        except TimedOut:
            raise TimeoutError(f"{file!r} was not read or written within {_TIMEOUT:.0f} seconds") from None
        trouble = {
            _MISSING: FileNotFoundError(2, "No such file or directory", file),
            _FOLDER: IsADirectoryError(21, "Is a directory", file),
            _DENIED: PermissionError(13, "Permission denied", file),
        }.get(code)
        if trouble is not None:
            raise trouble
        if code not in (0, _LARGE):
            raise OSError(errors.decode(errors="replace").strip())
        return code, said

    async def write_file(self, file: str, contents: Union[str, bytes]) -> None:
        await self._script(_WRITE, file, data=contents.encode() if isinstance(contents, str) else contents)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> Union[str, bytes]:
        code, said = await self._script(_READ, file, str(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE))
        if code == _LARGE:
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None)
        return said.decode() if text else said
