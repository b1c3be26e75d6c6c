#!/usr/bin/env python3
"""The table of programs that wait or work, played several times, and once through two versions of the program side by side.

    clients/waiting.py TABLE PROGRAM OLD_PROGRAM > docs/awaiting-input-table.md

TABLE is the test binary `awaiting`, PROGRAM the built one, OLD_PROGRAM that of 0.1.0: `cargo xtask waiting` finds all three. What is said
of a row is what the evidence code says; through a program it is what `wait --input` answers. WAITING_RUNS is how often the table
is played [default: 3], WAITING_ROWS a regular expression for the names of the rows to play [default: all].
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

TABLE, *PROGRAMS = map(os.path.realpath, sys.argv[1:4])
RUNS = int(os.environ.get("WAITING_RUNS", "3"))
CHOSEN = re.compile(os.environ.get("WAITING_ROWS", ""))
# As many as the tests play side by side: most of them sleep.
SIDE_BY_SIDE = 4
FOUND_WITHIN = "12s"
BUSY_FOR = "2s"
AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
LEVELS = ["possible", "likely", "certain"]


def play(row):
    """What the evidence code says of a row: level, kind and milliseconds, or nothing; and its words."""
    launcher = AS_NOBODY if row["who"] == "User" and os.getuid() == 0 else []
    ran = subprocess.run([*launcher, TABLE, "run-row", row["name"], "full"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    line = next((line for line in ran.stdout.splitlines() if line.startswith("OUTCOME\t")), "OUTCOME\tfalse\t-\t0\tno outcome")
    _, _, late, _, note = line.split("\t")
    said = re.search(r"waiting (Possible|Likely|Certain) (\w+)", note)
    claim = said and {"level": said[1].lower(), "kind": said[2].lower(), "ms": int(late) if late.isdigit() else None}
    return claim, note


def through(program, row):
    """The same through a program; the time is that from the last byte of the job to the answer."""
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="outlast-waiting."))
    os.chmod(scratch, 0o711)
    (scratch / "home").mkdir(mode=0o700)
    (scratch / "work").mkdir()
    user = row["who"] == "User" and os.getuid() == 0
    if user:
        for folder in ("home", "work"):
            os.chown(scratch / folder, 65534, 65534)
    env = {key: value for key, value in os.environ.items() if key in ("PATH", "JAVA_HOME", "LD_LIBRARY_PATH")}
    env |= row["env"] | {"OUTLAST_HOME": str(scratch / "home"), "HOME": str(scratch / "work"), "TMUX_TMPDIR": str(scratch / "work")}

    def outlast(*words):
        command = [*(AS_NOBODY if user else []), program, *words]
        return subprocess.run(command, env=env, cwd=scratch / "work", capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)

    def shows(text):
        until = time.time() + 20
        while text not in outlast("screen", "row").stdout:
            if time.time() > until:
                return False
            time.sleep(0.1)
        return True

    try:
        if outlast("run", "-d", "--name", "row", "--size", "100x30", "--", *row["argv"]).returncode:
            return None
        for text, typed in row["sends"]:
            shows(text)
            time.sleep(0.2)
            outlast("send", "row", typed.removesuffix("\n"), *([] if typed.endswith("\n") else ["--no-newline"]), "--no-wait")
        if not shows(row["once"]):
            return None
        answer = outlast("wait", "row", "--input", "--deadline", FOUND_WITHIN if row["waits"] else BUSY_FOR, "--json")
        answered = time.time()
        said = json.loads(answer.stdout)
        if said.get("reason") != "awaiting_input":
            return None
        last = max(log.stat().st_mtime for log in (scratch / "home/jobs").glob("*/output.log"))
        claim = said["awaiting_input"]
        return {"level": claim["level"], "kind": claim["kind"], "ms": max(0, round((answered - last) * 1000))}
    except (ValueError, KeyError, subprocess.TimeoutExpired):
        return None
    finally:
        outlast("kill", "row")
        shutil.rmtree(scratch, ignore_errors=True)


def whole(row):
    """All that is played of a row, one after the other."""
    played = [play(row) for _ in range(RUNS)]
    return [claim for claim, _ in played], played[-1][1], [through(program, row) for program in PROGRAMS]


def figures(name, rows, claims):
    """A line of the summary."""
    pairs = list(zip(rows, claims))
    waits = [(row, claim) for row, claim in pairs if row["waits"]]
    found = [(row, claim) for row, claim in waits if claim and LEVELS.index(claim["level"]) >= LEVELS.index(row["at_least"])]
    busy = [(row, claim) for row, claim in pairs if not row["waits"]]
    called = sum(bool(claim) for _, claim in busy)
    wrong = sum(bool(claim) and claim["level"] == "certain" and (not row["waits"] or row["at_most"] != "certain") for row, claim in pairs)
    kinds = sum(claim["kind"] == row["kind"] for row, claim in found)
    late = sorted(claim["ms"] for _, claim in found if claim["ms"] is not None) or [0]
    share = lambda part, of: f"{part} of {of}" + (f" ({100 * part / of:.1f} %)" if of else "")
    return (f"| {name} | {share(len(found), len(waits))} | {called} of {len(busy)} | {wrong} | {share(kinds, len(found))} "
            f"| {late[len(late) // 2]} | {late[min(len(late) - 1, len(late) * 95 // 100)]} | {late[-1]} |\n")


def cell(text, most=70):
    text = text.replace("|", "\\|").replace("`", "'").replace("\n", " ")
    return text if len(text) <= most else text[:most - 1] + "…"


def main():
    listed = subprocess.run([TABLE, "rows"], capture_output=True, text=True, check=True).stdout
    known = [json.loads(line) for line in listed.splitlines()]
    rows = sorted((row for row in known if not row["absent"] and CHOSEN.search(row["name"])), key=lambda row: (not row["waits"], row["name"]))
    before, began, results = os.getloadavg()[0], time.time(), []
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for row, result in zip(rows, pool.map(whole, rows)):
            results.append(result)
            claims, note, (ours, old) = result
            print(f"{len(results)}/{len(rows)} {row['name']}: {note[:60]} | through the program: {ours} | 0.1.0: {old}", file=sys.stderr, flush=True)
    page = "# The table of programs\n\nMade by `cargo xtask waiting`: "
    page += f"the table is played {RUNS} times, and once through the program (`wait --input`, debug build) and through that of 0.1.0, row by row beside each other. "
    page += f"Load of the machine ({os.cpu_count()} processors) {before:.1f} before, {os.getloadavg()[0]:.1f} after; {(time.time() - began) / 60:.0f} minutes. "
    page += f"{len(known) - len(rows)} of {len(known)} rows were left out for want of their program or by choice. "
    page += "Times are milliseconds from the last byte to the claim; through a program they have the time of the command in them. "
    page += "What the verdicts mean: [awaiting-input.md](internals/awaiting-input.md).\n\n"
    page += "| | found waiting | busy called waiting | certain, and wrong | kind right | median ms | p95 | most |\n|---|---|---|---|---|---|---|---|\n"
    for run in range(RUNS):
        page += figures(f"run {run + 1}", rows, [result[0][run] for result in results])
    page += figures("through the program", rows, [result[2][0] for result in results])
    page += figures("through 0.1.0", rows, [result[2][1] for result in results])
    page += "\n| what it does | command | must be | said | ms | 0.1.0 |\n|---|---|---|---|---|---|\n"
    for row, (claims, note, (_, old)) in zip(rows, results):
        said, late = cell(re.split(r"[(|]", note)[0].strip()), [claim["ms"] for claim in claims if claim and claim["ms"] is not None]
        page += f"| {cell(row['name'])} | `{cell(' '.join(row['argv']))}` | {row['must_be']} | {said} | {sorted(late)[len(late) // 2] if late else ''} "
        page += f"| {old['level'] + ' ' + old['kind'] if old else ''} |\n"
    print(page, end="")
    missed = [row["name"] for row, (claims, _, _) in zip(rows, results) if any(bool(claim) != row["waits"] for claim in claims)]
    print(f"{len(missed)} rows were wrong in a run: {', '.join(missed)}", file=sys.stderr)


main()
