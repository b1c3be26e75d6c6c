#!/usr/bin/env python3
"""A fleet that is mistreated, and a large one: three real nats-servers in a cluster, in network namespaces.

Usage, as root: fleet.py OUTLAST NATS_SERVER FLEET_HOSTS [ORDERS SECONDS SIMULATED]. Prints the measured part of docs/fleet.md.

Nodes, brokers and a reader of events are killed, frozen and cut off at random; half of the nodes that start anew die at a chosen step between claim,
acknowledgement and start. Every order appends its own name to a file outside of every home: that file says what ran, and how often. A named reader follows all
events meanwhile. Then FLEET_HOSTS (the real node, jobs in memory) plays many hosts, and the same questions are asked of a fleet that grows.
"""
import collections
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

PROGRAM, NATS, SIMULATOR = (os.path.abspath(word) for word in sys.argv[1:4])
ORDERS, SECONDS, SIMULATED = (int(word) for word in (sys.argv[4:7] if len(sys.argv) >= 7 else (10000, 600, 1000)))
ROOT = tempfile.mkdtemp(prefix="outlast-fleet-")
PREFIX = f"of{os.getpid() % 10000}"
JUDGE = f"{ROOT}/judge"
POINTS = ["claimed", "filed", "acknowledged", "started"]
SEED = random.randrange(1 << 32)
DICE = random.Random(SEED)


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def run(*words, check=True, **options):
    return subprocess.run(words, check=check, capture_output=True, text=True, **options)


class Place:
    """A network namespace on the bridge."""

    def __init__(self, name, last):
        self.name, self.space, self.near = name, f"{PREFIX}{name}", f"{PREFIX}{name}n"
        self.address = f"10.232.0.{last}"
        self.process, self.lock = None, threading.Lock()
        run("ip", "netns", "add", self.space)
        run("ip", "link", "add", self.near, "type", "veth", "peer", "name", "eth0", "netns", self.space)
        run("ip", "link", "set", self.near, "master", f"{PREFIX}b", "up")
        inside = ("ip", "-n", self.space)
        run(*inside, "addr", "add", f"{self.address}/24", "dev", "eth0")
        run(*inside, "link", "set", "eth0", "up")
        run(*inside, "link", "set", "lo", "up")

    def spawn(self, words, env, log):
        with self.lock:
            self.process = subprocess.Popen(["ip", "netns", "exec", self.space, *words], env=env, stdin=subprocess.DEVNULL,
                                            stdout=open(log, "ab"), stderr=subprocess.STDOUT, start_new_session=True)

    def signal(self, number):
        with self.lock:
            if self.process and self.process.poll() is None:
                os.kill(self.process.pid, number)

    def kill(self):
        self.signal(signal.SIGKILL)
        if self.process:
            self.process.wait()

    def cut(self, seconds):
        run("ip", "link", "set", self.near, "down", check=False)
        time.sleep(seconds)
        run("ip", "link", "set", self.near, "up", check=False)

    def freeze(self, seconds):
        self.signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.signal(signal.SIGCONT)


class Server(Place):
    def start(self):
        routes = ",".join(f"nats://10.232.0.{10 + n}:6222" for n in range(3))
        words = [NATS, "-a", self.address, "-p", "4222", "-js", "-sd", f"{ROOT}/{self.name}", "-n", self.name,
                 "--cluster_name", "fleet", "--cluster", f"nats://{self.address}:6222", "--routes", routes, "-m", "8222"]
        self.spawn(words, dict(os.environ), f"{ROOT}/{self.name}.log")


def environment(name):
    folder = f"{ROOT}/{name}"
    env = {"PATH": os.environ["PATH"], "HOME": f"{folder}/user", "XDG_CONFIG_HOME": f"{folder}/config",
           "OUTLAST_HOME": f"{folder}/jobs", "OUTLAST_SESSION": "chaos", "USER": "chaos"}
    if not os.path.isdir(folder):
        os.makedirs(f"{folder}/config/outlast")
        os.makedirs(f"{folder}/user")
        with open(f"{folder}/config/outlast/fleet.toml", "w") as file:
            servers = ", ".join(f'"nats://10.232.0.{10 + n}:4222"' for n in range(3))
            file.write(f'nats = [{servers}]\nreplicas = 3\n[host]\nname = "{name}"\n[user]\nname = "{name}"\n')
    return env


class Host(Place):
    def start(self, stops_at=None):
        env = environment(self.name)
        if stops_at:
            env["OUTLAST_NODE_STOPS_AT"] = stops_at
        self.spawn([PROGRAM, "node", "--label", "chaos", "--slots", "4"], env, f"{ROOT}/{self.name}.log")


def outlast(*words, who="client", check=False, timeout=120):
    return subprocess.run([PROGRAM, *words], env=environment(who), capture_output=True, text=True, check=check, timeout=timeout)


def status():
    """What `fleet status` says; nothing while the brokers agree on who leads."""
    try:
        return json.loads(outlast("--json", "fleet", "status").stdout)
    except (ValueError, subprocess.TimeoutExpired):
        return {}


def leader_of(stream):
    """The number of the server that leads a stream, by what the servers themselves say."""
    for n in range(3):
        try:
            with urllib.request.urlopen(f"http://10.232.0.{10 + n}:8222/jsz?streams=1", timeout=1) as answer:
                for account in json.load(answer).get("account_details", []):
                    for one in account.get("stream_detail", []):
                        leader = one.get("cluster", {}).get("leader", "")
                        if one["name"] == stream and leader:
                            return int(leader[1:])
        except (OSError, ValueError):
            continue
    return None


class Reader:
    """A reader with a name, which is killed now and then and goes on."""

    def __init__(self):
        self.lines, self.kills, self.over = [], 0, False
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.process = None
        self.thread.start()

    def follow(self):
        while not self.over:
            self.process = subprocess.Popen([PROGRAM, "--json", "events", "--fleet", "--follow", "--reader", "bot"], env=environment("client"),
                                            stdout=subprocess.PIPE, stderr=open(f"{ROOT}/reader.log", "ab"), text=True)
            for line in self.process.stdout:
                try:
                    self.lines.append(json.loads(line))
                except ValueError:
                    pass
            self.process.wait()
            time.sleep(0.2)

    def kill(self):
        if self.process:
            self.process.kill()
            self.kills += 1

    def end(self):
        self.over = True
        if self.process:
            self.process.kill()
        self.thread.join(5)


def mistreat(servers, hosts, reader, until):
    done = collections.Counter()

    def brokers():
        # One at a time: with two of three gone there is no majority, and nothing to be tested.
        dice = random.Random(SEED + 1)
        while time.time() < until:
            kind, whom = dice.choice(["kill", "freeze", "cut"]), "broker"
            server = dice.choice(servers)
            if dice.random() < 0.5:
                stream = dice.choice(["OUTLAST_Q_chaos", "KV_outlast_orders", "OUTLAST_EVENTS"])
                leader = leader_of(stream)
                if leader is not None:
                    server, whom = servers[leader], "leader"
            seconds = min(dice.uniform(0.5, 10), max(0.5, until - time.time()))
            if kind == "kill":
                server.kill()
                time.sleep(seconds)
                server.start()
            else:
                getattr(server, kind)(seconds)
            done[f"{whom}: {kind}"] += 1
            time.sleep(dice.uniform(3, 10))

    def one(host, number):
        dice = random.Random(SEED + 10 + number)
        while time.time() < until:
            time.sleep(dice.uniform(1, 8))
            kind = dice.choice(["step", "step", "step", "kill", "freeze", "cut"])
            seconds = min(dice.choice([dice.uniform(0.2, 3), dice.uniform(3, 20)]), max(0.2, until - time.time()))
            if kind == "step":
                point = dice.choice(POINTS)
                host.kill()
                host.start(point)
                limit = time.time() + 20
                while host.process.poll() is None and time.time() < limit:
                    time.sleep(0.05)
                done[f"node: dies when {point}"] += host.process.poll() is not None
                host.kill()
                host.start()
            elif kind == "kill":
                host.kill()
                time.sleep(dice.uniform(0, 2))
                host.start()
                done["node: kill"] += 1
            else:
                getattr(host, kind)(seconds)
                done[f"node: {kind}"] += 1

    def readers():
        dice = random.Random(SEED + 2)
        while time.time() < until:
            time.sleep(dice.uniform(2, 10))
            reader.kill()
        done["reader: kill"] = reader.kills

    threads = [threading.Thread(target=brokers), threading.Thread(target=readers)]
    threads += [threading.Thread(target=one, args=(host, number)) for number, host in enumerate(hosts)]
    for thread in threads:
        thread.start()
    return threads, done


def submitted(path, limit):
    try:
        return outlast("submit", "--on", "chaos", "--file", path, timeout=limit).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def submit_all(until):
    """All orders, in batches over the time; a batch that is not confirmed is given again under the same names."""
    batches = [range(at, min(at + 100, ORDERS)) for at in range(0, ORDERS, 100)]
    began, pause = time.time(), max(0.0, (until - time.time()) * 0.8 / max(1, len(batches)))
    again, dice = 0, random.Random(SEED + 3)
    for count, batch in enumerate(batches):
        path = f"{ROOT}/batch.jsonl"
        with open(path, "w") as file:
            for number in batch:
                file.write(json.dumps({"command": f"echo {number:06} >> {JUDGE}", "id": f"order-{number:06}"}) + "\n")
        # The client is killed now and then, too: what it has not said to be taken is given again.
        while not submitted(path, dice.uniform(0.05, 1) if dice.random() < 0.3 else 120):
            again += 1
            time.sleep(0.5)
        time.sleep(max(0, began + (count + 1) * pause - time.time()))
    return again


def settled(limit):
    """Waits until every order is over; those that are not, and all records."""
    end = time.time() + limit
    records = {}
    while time.time() < end:
        listed = outlast("--json", "order", "list")
        if listed.returncode == 0:
            records = {one["order"]["id"]: one for one in json.loads(listed.stdout)["orders"]}
            over = [one for one in records.values() if one["stage"] in ("ended", "unknown", "cancelled")]
            if len(over) >= ORDERS:
                break
        time.sleep(2)
    return records


def chaos():
    servers = [Server(f"s{n}", 10 + n) for n in range(3)]
    hosts = [Host(f"h{n}", 30 + n) for n in range(5)]
    for server in servers:
        server.start()
    deadline = time.time() + 60
    while outlast("fleet", "status").returncode != 0 and time.time() < deadline:
        time.sleep(1)
    for host in hosts:
        host.start()
    while len([h for h in status().get("hosts", []) if h["reachable"]]) < 5:
        time.sleep(1)
        if time.time() > deadline + 60:
            raise SystemExit("the hosts do not come: " + outlast("fleet", "status").stderr)
    say(f"seed {SEED}: {ORDERS} orders in {SECONDS} s")
    reader = Reader()
    began = time.time()
    threads, done = mistreat(servers, hosts, reader, began + SECONDS)
    again = submit_all(began + SECONDS)
    say("all submitted")
    for thread in threads:
        thread.join()
    say(f"calm: {dict(done)}")
    records = settled(300)
    took = time.time() - began
    counts = collections.Counter(open(JUDGE).read().split()) if os.path.exists(JUDGE) else collections.Counter()
    names = [f"{number:06}" for number in range(ORDERS)]
    lost = [name for name in names if counts[name] == 0]
    twice = [name for name in names if counts[name] > 1]
    stages = collections.Counter(records.get(f"order-{name}", {}).get("stage", "not there") for name in names)
    unexplained = [name for name in lost if records.get(f"order-{name}", {}).get("stage") not in ("unknown", "cancelled")]
    # Every job of an order has one end to tell.
    limit = time.time() + 60
    def ends():
        return [(one["host"], one["event"]["job"], bool(one.get("again"))) for one in reader.lines if one.get("event", {}).get("event") == "exit"]
    wanted = sum(counts.values())
    while len({end[:2] for end in ends()}) < wanted and time.time() < limit:
        time.sleep(1)
    reader.end()
    seen = collections.Counter(end[:2] for end in ends() if not end[2])
    every = {end[:2] for end in ends()}
    doubled = [key for key, count in seen.items() if count > 1]
    gaps = [one for one in reader.lines if "gap" in one]
    marked = sum(end[2] for end in ends())
    for host in hosts:
        host.kill()
    say(f"lost {lost[:5]} twice {twice[:5]} stages {dict(stages)} events {len(every)} of {wanted}, doubled {doubled[:5]}, gaps {gaps[:3]}")
    print("### Mistreated\n")
    print(f"{ORDERS} orders over {SECONDS} s (settled after {took:.0f} s), five nodes and three brokers in network namespaces, seed {SEED}. What was done: "
          + ", ".join(f"{count} × {kind}" for kind, count in sorted(done.items())) + f"; {again} submissions had to be given again.\n")
    print("| | |\n|---|---|")
    print(f"| orders that ran once | {sum(counts[name] == 1 for name in names)} |")
    print(f"| orders that ran twice | {len(twice)} |")
    print(f"| orders that did not run | {len(lost)}, of which nobody can say why: {len(unexplained)} |")
    print(f"| what the broker says of them | {', '.join(f'{count} {stage}' for stage, count in sorted(stages.items()))} |")
    why = collections.Counter(records.get(f"order-{name}", {}).get("why", "?") for name in lost)
    for reason, count in why.most_common():
        print(f"| did not run: {reason} | {count} |")
    print(f"| ends told to a named reader | {len(every)} of {wanted} |")
    print(f"| told twice without being marked so | {len(doubled)} |")
    print(f"| told again and marked so, after the reader was killed | {marked} |")
    print(f"| gaps | {len(gaps)} |\n")
    failed = bool(twice or unexplained or doubled or len(every) < wanted)
    return servers, failed


def batch_of(count, folder):
    path = f"{folder}/orders.jsonl"
    with open(path, "w") as file:
        for number in range(count):
            file.write(json.dumps({"command": "true", "name": f"AT-{time.time_ns() // 1000}", "id": f"scale-{time.time_ns()}-{number}"}) + "\n")
    return path


def scale(servers):
    print("### Large\n")
    urls = ",".join(f"nats://10.232.0.{10 + n}:4222" for n in range(3))
    rows = []
    for count in [n for n in (10, 100, SIMULATED) if n <= SIMULATED]:
        began = time.time()
        hosts = subprocess.Popen([SIMULATOR, urls, str(count), "100", "sim", "4", "3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert hosts.stdout.readline().strip() == "ready"
        def here(found):
            return len([h for h in found["hosts"] if h["reachable"] and h["host"].startswith("sim")])
        limit = time.time() + 300
        found = status()
        while (here(found) < count or sum(found["jobs"].values()) < count * 100) and time.time() < limit:
            time.sleep(1)
            found = status()
        joined = time.time() - began
        lists = []
        for _ in range(5):
            at = time.time()
            outlast("--json", "jobs", "--fleet", check=True)
            lists.append(time.time() - at)
        # Orders, as fast as they go; and the time from order to start when they come one by one.
        total = 2000
        path = batch_of(total, ROOT)
        at = time.time()
        outlast("submit", "--on", "sim", "--file", path, check=True)
        submitted = time.time() - at
        started = 0
        while started < total and time.time() < at + 300:
            time.sleep(0.2)
            hosts.stdin.write("report\n")
            hosts.stdin.flush()
            started += json.loads(hosts.stdout.readline())["started"]
        rate = started / (time.time() - at)
        for _ in range(20):
            outlast("submit", "--on", "sim", "--name", f"AT-{time.time_ns() // 1000}", "true", check=True)
            time.sleep(0.05)
        time.sleep(2)
        hosts.stdin.write("report\n")
        hosts.stdin.flush()
        single = json.loads(hosts.stdout.readline())
        hosts.stdin.write("lose\n")
        hosts.stdin.flush()
        lost, at = hosts.stdout.readline().strip(), time.time()
        while any(h["host"] == lost and h["reachable"] for h in status()["hosts"]) and time.time() < at + 60:
            time.sleep(0.5)
        noticed = time.time() - at
        rows.append((count, found, joined, lists, submitted, rate, single, noticed))
        say(str(rows[-1][0]) + f" hosts: joined {joined:.1f} lists {lists} rate {rate:.0f} single {single} noticed {noticed:.1f}")
        hosts.kill()
        hosts.wait()
        time.sleep(16)
    print("| hosts | jobs | joined after | `jobs --fleet`, median of 5 | orders from submit to start, a second | one order: submit to start, median | a lost host is noticed after |")
    print("|---|---|---|---|---|---|---|")
    for count, found, joined, lists, _, rate, single, noticed in rows:
        print(f"| {count} | {sum(found['jobs'].values())} | {joined:.0f} s | {statistics.median(lists) * 1000:.0f} ms | {rate:.0f} | "
              f"{single['p50_us'] / 1000:.0f} ms | {noticed:.1f} s |")
    print()


def main():
    run("ip", "link", "add", f"{PREFIX}b", "type", "bridge")
    run("ip", "addr", "add", "10.232.0.1/24", "dev", f"{PREFIX}b")
    run("ip", "link", "set", f"{PREFIX}b", "up")
    places, failed = [], False
    try:
        places, failed = chaos()
        if SIMULATED:
            scale(places)
        with open("/proc/loadavg") as load:
            print(f"Measured with the {'release' if '/release/' in PROGRAM else 'debug'} build, nats-server {run(NATS, '--version').stdout.split()[-1]}, "
                  f"on a machine with {os.cpu_count()} processors whose load was {load.read().split()[0]} at the end: brokers, nodes and clients share them, so nothing here is a ceiling of the broker.")
    finally:
        for name in [f"h{n}" for n in range(5)]:
            if os.path.isdir(f"{ROOT}/{name}/jobs"):
                outlast("kill", "--all", who=name)
        for name in [f"{PREFIX}{kind}{n}" for kind in "sh" for n in range(5)]:
            for pid in run("ip", "netns", "pids", name, check=False).stdout.split():
                os.kill(int(pid), signal.SIGKILL)
            run("ip", "netns", "del", name, check=False)
        run("ip", "link", "del", f"{PREFIX}b", check=False)
        if not failed:
            shutil.rmtree(ROOT, ignore_errors=True)
        else:
            say(f"kept: {ROOT}")
    sys.exit(1 if failed else 0)


main()
