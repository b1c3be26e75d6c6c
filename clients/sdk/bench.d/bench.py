"""Measures the Python client, pexpect and SWE-ReX at the same work. See `clients/sdk/bench`."""

import argparse
import asyncio
import logging
import resource
import sys
import time
from dataclasses import dataclass
from typing import Callable, List, Optional, Tuple

import pexpect
import pexpect.replwrap
from outlast import AwaitingInput, Exit, Outlast
from swerex.runtime.abstract import BashAction, Command, CreateBashSessionRequest
from swerex.runtime.local import LocalRuntime

logging.disable(logging.CRITICAL)

MAX_CPU_MS = 1.0
PROMPT = ">>> "


@dataclass
class Row:
    """What one of them took for one piece of work."""

    work: str
    who: str
    seconds: float
    calls: int
    early: int
    lost: int
    cpu_ms: float
    note: str = ""


class Tally:
    """Counts answers that are not what they must be, and the time since it was made."""

    def __init__(self) -> None:
        self.early = self.lost = self.calls = 0
        self.began = time.monotonic()
        self.cpu = self.own_cpu()

    @staticmethod
    def own_cpu() -> float:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime

    def see(self, got: str, wanted: str) -> None:
        """An answer without the end of what must be in it came too early; one with the end but not all of it has lost something."""
        self.calls += 1
        lines = [line.rstrip("\r") for line in got.strip().split("\n")]
        needed = wanted.split("\n")
        if needed[-1] not in lines:
            self.early += 1
        elif [line for line in needed if line not in lines]:
            self.lost += 1

    def row(self, work: str, who: str, note: str = "") -> Row:
        seconds, cpu = time.monotonic() - self.began, self.own_cpu() - self.cpu
        return Row(work, who, seconds, self.calls, self.early, self.lost, cpu * 1000 / max(self.calls, 1), note)


def command(n: int) -> Tuple[str, str]:
    """A command, and what it prints. Every tenth prints much, every twentieth takes a moment in between."""
    end = f"end-{n}"
    if n % 20 == 0:
        return f"echo first-{n}; sleep 0.05; echo {end}", f"first-{n}\n{end}"
    if n % 10 == 0:
        return f"seq {n} {n + 500}; echo {end}", "\n".join(map(str, range(n, n + 501))) + f"\n{end}"
    return f"echo {end}", end


def exchange(n: int) -> Tuple[str, str]:
    """A line for a Python prompt, and what it prints. Every tenth prints what looks like the prompt before it is done."""
    if n % 10 == 0:
        said = f"import time; print('{PROMPT}', flush=True); time.sleep(0.05); print({n} * {n})"
        return said, str(n * n)
    return f"print({n} * {n})", str(n * n)


def work_of_job(n: int) -> Tuple[str, str]:
    return f"sleep 0.5; seq 1 100; echo done-{n}", "\n".join(map(str, range(1, 101))) + f"\ndone-{n}"


# Ours.


async def our_commands(count: int) -> Row:
    async with Outlast() as outlast:
        shell = outlast.shell("bench")
        await shell.run("true", deadline=60)
        tally = Tally()
        for n in range(1, count + 1):
            line, wanted = command(n)
            tally.see((await shell.run(line, deadline=60)).output, wanted)
        row = tally.row("commands in one session", "outlast")
        await shell.kill()
        return row


async def our_exchanges(count: int) -> Row:
    async with Outlast() as outlast:
        async with outlast.run("python3 -q", size=(120, 40)) as job:
            await job.wait(AwaitingInput(), start=0, deadline=60)
            tally = Tally()
            for n in range(1, count + 1):
                line, wanted = exchange(n)
                tally.see(await job.ask(line), wanted)
            return tally.row("REPL exchanges", "outlast")


async def our_jobs(count: int, work: str) -> Row:
    async with Outlast() as outlast:
        tally = Tally()
        calls = 0

        async def one(n: int) -> None:
            nonlocal calls
            line, wanted = work_of_job(n)
            job = await outlast.run(line)
            await job.wait(Exit(), start=0, deadline=600)
            tally.see(str(await job.output()), wanted)
            calls += 3

        await asyncio.gather(*(one(n) for n in range(count)))
        row = tally.row(work, "outlast")
        # Each job is three calls: start, wait, read.
        row.cpu_ms = row.cpu_ms * tally.calls / max(calls, 1)
        return row


# pexpect.


def pexpect_commands(count: int) -> Row:
    bash = pexpect.replwrap.bash()
    tally = Tally()
    for n in range(1, count + 1):
        line, wanted = command(n)
        tally.see(bash.run_command(line, timeout=60), wanted)
    row = tally.row("commands in one session", "pexpect")
    bash.child.close(force=True)
    return row


def pexpect_exchanges(count: int) -> Row:
    repl = pexpect.replwrap.REPLWrapper("python3 -q", PROMPT, None)
    tally = Tally()
    for n in range(1, count + 1):
        line, wanted = exchange(n)
        tally.see(repl.run_command(line, timeout=60), wanted)
    row = tally.row("REPL exchanges", "pexpect", "by the text of the prompt")
    repl.child.close(force=True)
    return row


def pexpect_jobs(count: int) -> Row:
    tally = Tally()
    children = []
    for n in range(count):
        line, wanted = work_of_job(n)
        children.append((pexpect.spawn("bash", ["-c", line], encoding="utf-8", timeout=600), wanted))
    for child, wanted in children:
        child.expect(pexpect.EOF)
        tally.see(child.before, wanted)
        child.close()
    return tally.row("jobs at once", "pexpect")


# SWE-ReX.


async def swerex_commands(count: int) -> Row:
    runtime = LocalRuntime()
    await runtime.create_session(CreateBashSessionRequest(startup_timeout=60))
    tally = Tally()
    for n in range(1, count + 1):
        line, wanted = command(n)
        tally.see((await runtime.run_in_session(BashAction(command=line, timeout=60))).output, wanted)
    row = tally.row("commands in one session", "SWE-ReX")
    await runtime.close()
    return row


async def swerex_exchanges(count: int) -> Row:
    runtime = LocalRuntime()
    await runtime.create_session(CreateBashSessionRequest(startup_timeout=60))
    await runtime.run_in_session(BashAction(command="python3 -q", is_interactive_command=True, expect=[PROMPT], timeout=60))
    tally = Tally()
    for n in range(1, count + 1):
        line, wanted = exchange(n)
        action = BashAction(command=line, is_interactive_command=True, expect=[PROMPT], timeout=60)
        tally.see((await runtime.run_in_session(action)).output, wanted)
    row = tally.row("REPL exchanges", "SWE-ReX", "by the text of the prompt")
    await runtime.run_in_session(BashAction(command="exit()", is_interactive_quit=True, timeout=60))
    await runtime.close()
    return row


async def swerex_jobs(count: int) -> Row:
    runtime = LocalRuntime()
    tally = Tally()

    async def one(n: int) -> None:
        line, wanted = work_of_job(n)
        tally.see((await runtime.execute(Command(command=line, shell=True, timeout=600))).stdout, wanted)

    await asyncio.gather(*(one(n) for n in range(count)))
    row = tally.row("jobs at once", "SWE-ReX", "one after the other: `execute` holds the loop")
    await runtime.close()
    return row


def measured(run: Callable[[], Row], work: str, who: str) -> Row:
    try:
        row = run()
    except Exception as error:  # noqa: BLE001 - a peer that fails is a result
        row = Row(work, who, 0.0, 0, 0, 0, 0.0, f"failed: {type(error).__name__}: {str(error).splitlines()[:1]}")
    print(shown(row), flush=True)
    return row


def shown(row: Row) -> str:
    each = row.seconds * 1000 / max(row.calls, 1)
    return (
        f"| {row.work} | {row.who} | {row.calls} | {row.seconds:.2f} s | {each:.2f} ms | {row.early} | {row.lost} "
        f"| {row.cpu_ms:.2f} ms | {row.note} |"
    )


HEAD = "| work | with | answers | time | each | early | lost | CPU of the client a call | |\n|---|---|---|---|---|---|---|---|---|"


def failures(rows: List[Row]) -> List[str]:
    found = []
    for row in rows:
        if row.who != "outlast":
            continue
        if row.early or row.lost or not row.calls:
            found.append(f"{row.work}: {row.early} early, {row.lost} lost of {row.calls} {row.note}")
        if row.cpu_ms >= MAX_CPU_MS:
            found.append(f"{row.work}: {row.cpu_ms:.2f} ms of CPU a call")
    return found


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true", help="a twentieth of everything")
    parser.add_argument("--page", help="writes the table into this file, between its marks")
    chosen = parser.parse_args(arguments)
    part = 20 if chosen.small else 1
    commands, exchanges, jobs, many = 1000 // part, 500 // part, 200 // part, 2000 // part
    print(HEAD, flush=True)
    in_session, repl, at_once = "commands in one session", "REPL exchanges", "jobs at once"
    rows = [
        measured(lambda: asyncio.run(our_commands(commands)), in_session, "outlast"),
        measured(lambda: pexpect_commands(commands), in_session, "pexpect"),
        measured(lambda: asyncio.run(swerex_commands(commands)), in_session, "SWE-ReX"),
        measured(lambda: asyncio.run(our_exchanges(exchanges)), repl, "outlast"),
        measured(lambda: pexpect_exchanges(exchanges), repl, "pexpect"),
        measured(lambda: asyncio.run(swerex_exchanges(exchanges)), repl, "SWE-ReX"),
        measured(lambda: asyncio.run(our_jobs(jobs, at_once)), at_once, "outlast"),
        measured(lambda: pexpect_jobs(jobs), at_once, "pexpect"),
        measured(lambda: asyncio.run(swerex_jobs(jobs)), at_once, "SWE-ReX"),
        measured(lambda: asyncio.run(our_jobs(many, "many jobs at once")), "many jobs at once", "outlast"),
    ]
    if chosen.page:
        write(chosen.page, rows)
    found = failures(rows)
    for failure in found:
        print(f"FAIL {failure}")
    ours = sum(row.who == "outlast" for row in rows)
    print(f"{ours - len(found)} passed, {len(found)} failed")
    return 1 if found else 0


def write(path: str, rows: List[Row]) -> None:
    begin, end = "<!-- figures -->\n", "<!-- end of figures -->"
    with open(path, encoding="utf-8") as page:
        text = page.read()
    before, rest = text.split(begin, 1)
    after = rest.split(end, 1)[1]
    table = HEAD + "\n" + "\n".join(map(shown, rows)) + "\n"
    with open(path, "w", encoding="utf-8") as page:
        page.write(before + begin + table + end + after)


if __name__ == "__main__":
    sys.exit(main())
