#!/usr/bin/env python3
"""A fleet that is mistreated: three real nats-servers in a cluster and five nodes, each in a network namespace.

Usage, as root: faults.py OUTLAST NATS_SERVER [ORDERS SECONDS]. Prints a part of docs/fleet.md; `cargo xtask fleet faults` runs it. OUTLAST must be a debug build: only
that can be told to die at a chosen step.

Nodes, brokers, leaders, a reader of events and the client that submits are killed, frozen and cut off at random; half of the nodes that start anew die at a chosen
step between claim, acknowledgement and start. Every order appends its own name to a file outside of every home: that file says what ran, and how often. A named
reader follows all events meanwhile.
"""
import collections
import json
import os
import random
import subprocess
import sys
import threading
import time

from cluster import PROGRAM, ROOT, Place, down, environment, leader_of, machine, outlast, say, status, up

ORDERS, SECONDS = (int(word) for word in (sys.argv[3:5] if len(sys.argv) >= 5 else (10000, 600)))
JUDGE = f"{ROOT}/judge"
POINTS = ["claimed", "filed", "acknowledged", "started"]
SEED = random.randrange(1 << 32)


class Host(Place):
    def start(self, stops_at=None):
        env = environment(self.name)
        if stops_at:
            env["OUTLAST_NODE_STOPS_AT"] = stops_at
        self.spawn([PROGRAM, "node", "--label", "chaos", "--slots", "4"], env, f"{ROOT}/{self.name}.log")


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
    servers = up()
    hosts = [Host(f"h{n}", 30 + n) for n in range(5)]
    deadline = time.time() + 60
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
    return failed


def main():
    failed = True
    try:
        failed = chaos()
        print(machine())
    finally:
        down(keep=failed)
    sys.exit(1 if failed else 0)


main()
