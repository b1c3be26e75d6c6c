#!/usr/bin/env python3
"""What a node costs that has nothing to do: processor time, and bytes over its connection to the broker.

Usage: idle.py OUTLAST NATS_SERVER [SECONDS]. On loopback only. Prints a part of docs/fleet.md; `cargo xtask fleet idle` runs it.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

PROGRAM, NATS = (os.path.abspath(word) for word in sys.argv[1:3])
SECONDS = int(sys.argv[3]) if len(sys.argv) > 3 else 180
ROOT = tempfile.mkdtemp(prefix="outlast-idle-")


def cpu(pid):
    """Seconds that all threads of a process have run."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with open(path) as file:
            total += int(file.read().split()[0])
    return total / 1e9


def wire(pid):
    """Bytes of TCP payload that a process has sent and received."""
    said = subprocess.run(["ss", "-tinpO"], capture_output=True, text=True, check=True).stdout
    sent = received = 0
    for line in said.splitlines():
        if f"pid={pid}," in line:
            sent += int((re.search(r"bytes_sent:(\d+)", line) or [0, 0])[1])
            received += int((re.search(r"bytes_received:(\d+)", line) or [0, 0])[1])
    return sent, received


def main():
    env = {"PATH": os.environ["PATH"], "HOME": f"{ROOT}/user", "XDG_CONFIG_HOME": f"{ROOT}/config", "OUTLAST_HOME": f"{ROOT}/jobs", "USER": "idle"}
    os.makedirs(f"{ROOT}/user")
    os.makedirs(f"{ROOT}/config/outlast")
    server = subprocess.Popen([NATS, "-a", "127.0.0.1", "-p", "-1", "-js", "-sd", f"{ROOT}/store", "--ports_file_dir", ROOT],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    node = None
    try:
        ports = []
        while not ports:
            time.sleep(0.1)
            ports = glob.glob(f"{ROOT}/nats-server_*.ports")
        time.sleep(0.2)
        with open(ports[0]) as file:
            url = json.load(file)["nats"][0]
        with open(f"{ROOT}/config/outlast/fleet.toml", "w") as file:
            file.write(f'nats = ["{url}"]\n[host]\nname = "idle"\nlabels = ["build"]\n')
        for number in range(20):
            subprocess.run([PROGRAM, "run", "-d", "--", "true"], env=env, check=True, capture_output=True)
        subprocess.run([PROGRAM, "run", "-d", "--", "sleep", "86400"], env=env, check=True, capture_output=True)
        node = subprocess.Popen([PROGRAM, "node"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(15)
        before, at = (cpu(node.pid), wire(node.pid)), time.time()
        time.sleep(SECONDS)
        used, took = cpu(node.pid) - before[0], time.time() - at
        sent, received = (after - was for after, was in zip(wire(node.pid), before[1]))
        minutes = took / 60
        print("| a node with one label, twenty jobs that have ended and one that sleeps, for {:.0f} s | |\n|---|---|".format(took))
        print(f"| processor time | {used / took * 100:.3f} % of a core |")
        print(f"| bytes sent, a minute | {sent / minutes / 1000:.1f} KB |")
        print(f"| bytes received, a minute | {received / minutes / 1000:.1f} KB |")
        print(f"\n{'Release' if '/release/' in PROGRAM else 'Debug'} build; processor time by the scheduler's count, bytes by the kernel's count for the connection, without TCP headers.")
    finally:
        if node:
            node.terminate()
            node.wait()
        subprocess.run([PROGRAM, "kill", "--all"], env=env, capture_output=True)
        server.terminate()
        server.wait()
        shutil.rmtree(ROOT, ignore_errors=True)


main()
