#!/usr/bin/env python3
"""Many short commands on one machine: GNU parallel, pueue, and `outlast submit` with a node on the same machine.

Usage: beside.py OUTLAST NATS_SERVER [COMMANDS [ROUNDS]]. On loopback only. `pueue` and `pueued` come from $PATH, or from the folder that $PUEUE names; what is not there is
left out. Prints a part of docs/fleet.md; `cargo xtask fleet beside` runs it.

All run `true` with four at a time. Rounds are interleaved, and the least of each is shown. What each promises differs: GNU parallel keeps nothing, pueue keeps a list and
logs on this machine, an order survives the death of every part of the fleet.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

PROGRAM, NATS = (os.path.abspath(word) for word in sys.argv[1:3])
COMMANDS = int(sys.argv[3]) if len(sys.argv) > 3 else 300
ROUNDS = int(sys.argv[4]) if len(sys.argv) > 4 else 3
ROOT = tempfile.mkdtemp(prefix="outlast-beside-")
SLOTS = 4
ENV = {"PATH": f"{os.environ.get('PUEUE', '')}:{os.environ['PATH']}", "HOME": f"{ROOT}/user", "XDG_CONFIG_HOME": f"{ROOT}/config", "XDG_DATA_HOME": f"{ROOT}/data",
       "XDG_RUNTIME_DIR": f"{ROOT}/run", "OUTLAST_HOME": f"{ROOT}/jobs", "USER": "beside"}


def call(*words, **options):
    return subprocess.run(words, env=ENV, check=True, capture_output=True, text=True, **options)


def parallel():
    call("parallel", "--will-cite", f"-j{SLOTS}", "true", ":::", *[str(n) for n in range(COMMANDS)])


def pueue():
    # One call for each command: it takes no list.
    for _ in range(COMMANDS):
        call("pueue", "add", "--", "true")
    call("pueue", "wait", "--quiet")
    call("pueue", "clean")


def submit():
    path = f"{ROOT}/batch.jsonl"
    with open(path, "w") as file:
        for number in range(COMMANDS):
            file.write(json.dumps({"command": ["true"], "id": f"beside-{time.time_ns()}-{number}"}) + "\n")
    call(PROGRAM, "submit", "--on", "here", "--wait", "--file", path)


def begin():
    """A broker, a node and a pueue daemon; what is to be ended."""
    for folder in ("user", "config/outlast", "data", "run"):
        os.makedirs(f"{ROOT}/{folder}", mode=0o700)
    quiet = {"env": ENV, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([NATS, "-a", "127.0.0.1", "-p", "-1", "-js", "-sd", f"{ROOT}/store", "--ports_file_dir", ROOT], **quiet)
    ports = []
    while not ports:
        time.sleep(0.1)
        ports = glob.glob(f"{ROOT}/nats-server_*.ports")
    time.sleep(0.2)
    with open(ports[0]) as file:
        url = json.load(file)["nats"][0]
    with open(f"{ROOT}/config/outlast/fleet.toml", "w") as file:
        file.write(f'nats = ["{url}"]\n[host]\nname = "here"\nlabels = ["here"]\n')
    running = [server, subprocess.Popen([PROGRAM, "node", "--slots", str(SLOTS)], **quiet)]
    if shutil.which("pueued", path=ENV["PATH"]):
        running.append(subprocess.Popen(["pueued"], **quiet))
        time.sleep(2)
        call("pueue", "parallel", str(SLOTS))
    return running


def version(*words):
    return subprocess.run(words, env=ENV, capture_output=True, text=True).stdout.splitlines()[0].strip()


def main():
    running = begin()
    try:
        submit()
        kinds = {"outlast submit": (submit, version(PROGRAM, "--version"))}
        if shutil.which("parallel"):
            kinds["GNU parallel"] = (parallel, version("parallel", "--version"))
        if len(running) == 3:
            kinds["pueue"] = (pueue, version("pueue", "--version"))
        times = {name: [] for name in kinds}
        for _ in range(ROUNDS):
            for name, (work, _) in kinds.items():
                at = time.time()
                work()
                times[name].append(time.time() - at)
        print(f"| {COMMANDS} × `true`, {SLOTS} at a time, on one machine | version | the least of {ROUNDS} rounds | a command |\n|---|---|---|---|")
        for name, (_, said) in kinds.items():
            least = min(times[name])
            print(f"| {name} | {said} | {least:.2f} s | {least / COMMANDS * 1000:.1f} ms |")
        print(f"\n{'Release' if '/release/' in PROGRAM else 'Debug'} build, {os.cpu_count()} processors.")
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait()
        subprocess.run([PROGRAM, "kill", "--all"], env=ENV, capture_output=True)
        shutil.rmtree(ROOT, ignore_errors=True)


main()
