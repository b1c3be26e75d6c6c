#!/usr/bin/env python3
"""A fleet that grows: three real nats-servers in a cluster, and hosts that are the real node with jobs in memory; at the largest size, twenty real hosts among them.

Usage, as root: scale.py OUTLAST NATS_SERVER FLEET_HOSTS [HOSTS [RATE [SECONDS]]]. Prints a part of docs/fleet.md; `cargo xtask fleet scale` runs it.
"""
import json
import os
import statistics
import subprocess
import sys
import threading
import time

from cluster import PROGRAM, ROOT, Place, down, environment, machine, outlast, say, status, up

SIMULATOR = os.path.abspath(sys.argv[3])
HOSTS, RATE, SECONDS = (int(word) for word in (sys.argv[4:] + ["1000", "500", "10"][len(sys.argv) - 4:]))
JOBS, REAL = 100, 20
TICKS = os.sysconf("SC_CLK_TCK")


class Simulated:
    def __init__(self, count):
        urls = ",".join(f"nats://10.232.0.{10 + n}:4222" for n in range(3))
        words = [SIMULATOR, urls, str(count), str(JOBS), "sim", "4", "3"]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline().strip() != "ready":
            raise SystemExit("the simulated hosts do not start")

    def ask(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def report(self):
        return json.loads(self.ask("report"))

    def end(self):
        self.process.kill()
        self.process.wait()


def cpu(pid):
    """Seconds of processor time of a process."""
    with open(f"/proc/{pid}/stat") as file:
        words = file.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / TICKS


def memory(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(next(line for line in file if line.startswith("VmRSS")).split()[1]) // 1024


def pid_in(place):
    """`ip netns exec` becomes what it runs."""
    return place.process.pid


def submit(count):
    """Orders whose names say when they were given."""
    path = f"{ROOT}/orders-{threading.get_ident()}.jsonl"
    with open(path, "w") as file:
        for number in range(count):
            file.write(json.dumps({"command": "true", "name": f"AT-{time.time_ns() // 1000}", "id": f"scale-{time.time_ns()}-{number}"}) + "\n")
    return outlast("submit", "--on", "sim", "--file", path).returncode == 0


def sustained(hosts, rate, seconds):
    """Orders at a rate: how many were started in that time, and how long each took from being given."""
    hosts.report()
    parts, given = 5, 0
    began = time.time()
    workers = []
    for tick in range(seconds * parts):
        time.sleep(max(0, began + tick / parts - time.time()))
        worker = threading.Thread(target=submit, args=(rate // parts,))
        worker.start()
        workers.append(worker)
        given += rate // parts
    time.sleep(max(0, began + seconds - time.time()))
    first = hosts.report()
    in_time = first["started"]
    for worker in workers:
        worker.join()
    limit = time.time() + 60
    total, last = in_time, first
    while total < given and time.time() < limit:
        time.sleep(0.2)
        last = hosts.report()
        total += last["started"]
    return {"given": given, "in_time": in_time, "all": total, "p50_ms": first["p50_us"] / 1000, "p99_ms": first["p99_us"] / 1000, "took": time.time() - began}


def ceiling(hosts, servers, total):
    """As many as there are at once: how fast they go, and what works hardest meanwhile."""
    pids = {f"broker {server.name}": pid_in(server) for server in servers} | {"all nodes": hosts.process.pid}
    before = {name: cpu(pid) for name, pid in pids.items()}
    began = time.time()
    if not submit(total):
        raise SystemExit("the orders were not taken")
    given = time.time() - began
    started = 0
    while started < total and time.time() < began + 120:
        time.sleep(0.1)
        started += hosts.report()["started"]
    took = time.time() - began
    used = {name: (cpu(pid) - before[name]) / took for name, pid in pids.items()}
    return {"rate": started / took, "submit_rate": total / given, "used": used}


def grow(count, servers):
    real = REAL if count == HOSTS and HOSTS > REAL else 0
    began = time.time()
    hosts = Simulated(count - real)
    places = []
    for number in range(real):
        place = Place(f"r{number}", 60 + number)
        env = environment(place.name)
        run_here = subprocess.run([PROGRAM, "run", "-d", "--", "sleep", "600"], env=env, capture_output=True)
        assert run_here.returncode == 0, run_here.stderr
        place.spawn([PROGRAM, "node", "--label", "real", "--slots", "2"], env, f"{ROOT}/{place.name}.log")
        places.append(place)

    def here(found):
        return sum(host["reachable"] for host in found.get("hosts", []))
    found, limit = status(), time.time() + 300
    while (here(found) < count or sum(found["jobs"].values()) < (count - real) * JOBS + real) and time.time() < limit:
        time.sleep(0.5)
        found = status()
    row = {"hosts": here(found), "real": real, "jobs": sum(found.get("jobs", {}).values()), "joined": time.time() - began}
    lists = []
    for _ in range(5):
        at = time.time()
        outlast("--json", "jobs", "--fleet", check=True)
        lists.append(time.time() - at)
    row["list_ms"] = statistics.median(lists) * 1000
    pids = [pid_in(server) for server in servers]
    before, at = [cpu(pid) for pid in pids + [hosts.process.pid]], time.time()
    time.sleep(10)
    used = [(cpu(pid) - was) / (time.time() - at) for pid, was in zip(pids + [hosts.process.pid], before)]
    row["idle_broker"], row["idle_host"] = max(used[:3]), used[3] / max(1, count - real)
    row["memory"] = max(memory(pid) for pid in pids)
    row["half"] = sustained(hosts, RATE // 2, SECONDS)
    row["full"] = sustained(hosts, RATE, SECONDS)
    row["ceiling"] = ceiling(hosts, servers, RATE * 10)
    lost, at = hosts.ask("lose"), time.time()
    while any(host["host"] == lost and host["reachable"] for host in status().get("hosts", [])) and time.time() < at + 60:
        time.sleep(0.5)
    row["noticed"] = time.time() - at
    say(json.dumps(row))
    hosts.end()
    for place in places:
        place.kill()
    # Hosts of a smaller size are gone before the next size is counted.
    time.sleep(16)
    return row


def main():
    failed = True
    try:
        servers = up()
        rows = [grow(count, servers) for count in (10, 100, 300, 1000) if count < HOSTS] + [grow(HOSTS, servers)]
        print(f"| hosts (real ones) | jobs | joined after | `jobs --fleet`, cold | one broker at rest | memory of a broker | {RATE // 2} orders a second: started in time, median from submit to start | "
              f"{RATE} orders a second: started in time, median | ceiling, orders a second | a lost host is noticed after |")
        print("|---" * 10 + "|")
        for row in rows:
            def rate(one):
                return f"{one['in_time']} of {one['given']}, {one['p50_ms']:.0f} ms"
            print(f"| {row['hosts']} ({row['real']}) | {row['jobs']} | {row['joined']:.0f} s | {row['list_ms']:.0f} ms | {row['idle_broker'] * 100:.1f} % of a core | {row['memory']} MB | "
                  f"{rate(row['half'])} | {rate(row['full'])} | {row['ceiling']['rate']:.0f} | {row['noticed']:.1f} s |")
        print("\nWhat works at the ceiling, in cores: " + "; ".join(
            f"{row['hosts']} hosts: " + ", ".join(f"{name} {used:.2f}" for name, used in row["ceiling"]["used"].items()) for row in rows) + ".")
        print(f"\n{machine()}")
        failed = False
    finally:
        down(keep=failed)


main()
