"""``spawn``, ``expect``, ``sendline`` as in pexpect, with a job of Outlast behind them: the program goes on if this one dies, and
``outlast jobs`` shows it.

    from outlast.pexpect import spawn

    child = spawn("python3 -q")
    child.expect(">>> ")
    child.sendline("6 * 7")
    child.expect("42")
    child.close()

It is pexpect's own class above a job instead of a terminal of this process, so it needs pexpect: ``pip install outlast pexpect``.
"""

from __future__ import annotations

import asyncio
import functools
import os
import signal as signals
import threading
import time
from typing import Any, List, Optional, Tuple

from pexpect import EOF, TIMEOUT, ExceptionPexpect
from pexpect.spawnbase import SpawnBase
from pexpect.utils import split_command_line, which

from . import sync
from ._errors import OutlastError
from ._types import AwaitingInput, Exit, Output

__all__ = ["EOF", "TIMEOUT", "ExceptionPexpect", "close_all", "spawn"]

_shared: Optional[sync.Outlast] = None
_lock = threading.Lock()


def _outlast() -> sync.Outlast:
    """One relay for all that this process spawns."""
    global _shared
    with _lock:
        if _shared is None or _shared_pid != os.getpid():
            _open()
        assert _shared is not None
        return _shared


_shared_pid = 0


def _open() -> None:
    global _shared, _shared_pid
    _shared, _shared_pid = sync.Outlast(), os.getpid()
    _shared.__enter__()


def close_all() -> None:
    """Ends the relay that all spawned programs share. They go on."""
    global _shared
    with _lock:
        shared, _shared = _shared, None
    if shared is not None:
        shared.close()


class spawn(SpawnBase):  # noqa: N801 - the name that users of pexpect know
    """A program in a job."""

    use_native_pty_fork = False

    def __init__(
        self,
        command: Any,
        args: Optional[List[str]] = None,
        timeout: Optional[float] = 30,
        maxread: int = 2000,
        searchwindowsize: Optional[int] = None,
        logfile: Any = None,
        cwd: Optional[str] = None,
        env: Any = None,
        ignore_sighup: bool = False,
        echo: bool = True,
        preexec_fn: Any = None,
        encoding: Optional[str] = None,
        codec_errors: str = "strict",
        dimensions: Optional[Tuple[int, int]] = None,
        use_poll: bool = False,
        outlast: Optional[sync.Outlast] = None,
    ) -> None:
        super().__init__(
            timeout=timeout,
            maxread=maxread,
            searchwindowsize=searchwindowsize,
            logfile=logfile,
            encoding=encoding,
            codec_errors=codec_errors,
        )
        if preexec_fn is not None:
            raise ExceptionPexpect("preexec_fn: the program is started by a keeper, not by this process")
        if isinstance(command, int):
            raise ExceptionPexpect(
                "The command is a number: maybe you want to use fdpexpect.fdspawn, for a file descriptor"
            )
        if args is not None and not isinstance(args, list):
            raise TypeError("The argument, args, must be a list.")
        self.cwd, self.env, self.echo, self.ignore_sighup, self.use_poll = cwd, env, echo, ignore_sighup, use_poll
        self.child_fd = -1
        self._at = 0
        self._job: Any = None
        if command is None:
            # As in pexpect: for those who start it later.
            self.command = self.args = None
            self.name = "<outlast.pexpect.spawn without a program>"
            return
        words = [command, *args] if args else split_command_line(command)
        found = which(words[0], env=env)
        if found is None:
            raise ExceptionPexpect(f"The command was not found or was not executable: {words[0]}.")
        self.command, self.args = found, [found, *words[1:]]
        self.name = "<" + " ".join(self.args) + ">"
        self.delayafterclose = self.delayafterterminate = 0.1
        rows, cols = dimensions or (24, 80)
        differs: Any = None
        if env is not None:
            differs = {key: None for key in os.environ if key not in env}
            differs.update({key: value for key, value in env.items() if os.environ.get(key) != value})
        differs = {"TERM": os.environ.get("TERM", "dumb"), **(differs or {})}
        before = ("" if echo else "stty -echo; ") + ("trap '' HUP; " if ignore_sighup else "")
        run = ["/bin/sh", "-c", before + 'exec "$@"', "sh", *self.args] if before else self.args
        self._job = (outlast or _outlast()).run(run, cwd=cwd, env=differs, size=(cols, rows))
        self._size = (rows, cols)
        process = self._job.info().raw.get("process") or {}
        self.pid = process.get("pid")
        self.closed = False
        self.terminated = False

    @property
    def job(self) -> sync.Job:
        """The job: its handle, screen and all that pexpect does not know."""
        return self._job

    def read_nonblocking(self, size: int = 1, timeout: Any = -1) -> Any:
        """What was printed, at most ``size`` bytes, as soon as there is something."""
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        if timeout == -1:
            timeout = self.timeout
        data = self._take(size)
        if not data:
            waited = self._job.wait(Output(), Exit(), start=self._at, deadline=timeout)
            data = self._take(size)
            if not data:
                if waited.timed_out:
                    raise TIMEOUT("Timeout exceeded.")
                self.flag_eof = True
                self._see_end()
                raise EOF("End Of File (EOF). The job has ended.")
        text = self._decoder.decode(data, final=False)
        self._log(text, "read")
        return text

    def _take(self, size: int) -> bytes:
        data = self._job.read_bytes(self._at, self._at + size)
        self._at += len(data)
        return data

    def _see_end(self) -> bool:
        if self.terminated:
            return True
        receipt = self._job.receipt()
        if receipt is None:
            return False
        self.terminated = True
        self.exitstatus = receipt.code
        self.signalstatus = getattr(signals, receipt.signal).value if receipt.signal else None
        self.status = (receipt.code or 0) << 8 if receipt.code is not None else self.signalstatus
        return True

    def send(self, s: Any) -> int:
        """Types; returns the number of bytes."""
        if self.delaybeforesend is not None:
            time.sleep(self.delaybeforesend)
        s = self._coerce_send_string(s)
        self._log(s, "send")
        data = self._encoder.encode(s, final=False)
        if self.closed:
            raise OSError("the child is closed")
        try:
            self._job.send(bytes(data))
        except OutlastError as error:
            raise OSError(error.message) from error
        return len(data)

    def write(self, s: Any) -> None:
        self.send(s)

    def writelines(self, sequence: Any) -> None:
        for s in sequence:
            self.write(s)

    def sendline(self, s: Any = "") -> int:
        s = self._coerce_send_string(s)
        return self.send(s + self.linesep)

    def sendcontrol(self, char: str) -> int:
        char = char.lower()
        code = ord(char)
        table = {"@": 0, "`": 0, "[": 27, "{": 27, "\\": 28, "|": 28, "]": 29, "}": 29, "^": 30, "~": 30, "_": 31, "?": 127}
        if "a" <= char <= "z":
            code -= ord("a") - 1
        elif char in table:
            code = table[char]
        else:
            return 0
        self._log(bytes([code]) if self.encoding is None else chr(code), "send")
        self._job.send(bytes([code]))
        return 1

    def sendeof(self) -> None:
        self.sendcontrol("d")

    def sendintr(self) -> None:
        self.sendcontrol("c")

    def expect_list(
        self, pattern_list: Any, timeout: Any = -1, searchwindowsize: Any = -1, async_: bool = False, **more: Any
    ) -> Any:
        looks = functools.partial(super().expect_list, pattern_list, timeout, searchwindowsize)
        return self._awaitable(looks) if async_ or more.pop("async", False) else looks()

    def expect_exact(
        self, pattern_list: Any, timeout: Any = -1, searchwindowsize: Any = -1, async_: bool = False, **more: Any
    ) -> Any:
        looks = functools.partial(super().expect_exact, pattern_list, timeout, searchwindowsize)
        return self._awaitable(looks) if async_ or more.pop("async", False) else looks()

    @staticmethod
    async def _awaitable(looks: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(None, looks)

    def eof(self) -> bool:
        return bool(self.flag_eof)

    def isalive(self) -> bool:
        return not self._see_end()

    def wait(self) -> Optional[int]:
        """Until the program has ended; its exit code."""
        self._job.wait(Exit())
        self._see_end()
        return self.exitstatus

    def kill(self, sig: int) -> None:
        if self.isalive():
            self._job.signal(signals.Signals(sig).name)
            self._job.wait(Exit(), deadline=0.2)

    def terminate(self, force: bool = False) -> bool:
        if not self.isalive():
            return True
        self._job.signal("HUP")
        if not self._job.wait(Exit(), deadline=1).timed_out or force:
            self._job.kill(grace=0.5)
        return self._see_end()

    def close(self, force: bool = True) -> None:
        """Ends the program. To leave it running, just do not call this."""
        if self.closed:
            return
        self.flush()
        if self._job is not None and self.isalive():
            self._job.kill(grace=0.5)
            self._see_end()
        self.closed = True

    def __del__(self) -> None:
        # A job outlasts the program that started it.
        pass

    def fileno(self) -> int:
        return self.child_fd

    def isatty(self) -> bool:
        return True

    def getwinsize(self) -> Tuple[int, int]:
        return self._size

    def setwinsize(self, rows: int, cols: int) -> None:
        self._job.resize(cols, rows)
        self._size = (rows, cols)

    def waitnoecho(self, timeout: Any = -1) -> bool:
        """Until the program asks for a password: it waits for input and nothing that is typed would be shown."""
        if timeout == -1:
            timeout = self.timeout
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return False
            waited = self._job.wait(AwaitingInput(), start=self._at, deadline=left)
            if waited.timed_out or waited.ended:
                return False
            if (waited.awaiting_input or {}).get("kind") == "password":
                return True
            time.sleep(0.05)

    def __str__(self) -> str:
        job = f" job {self._job.handle}" if self._job is not None else ""
        return f"<outlast.pexpect.spawn {self.name}{job}>"
