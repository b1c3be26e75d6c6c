#!/usr/bin/env python3
"""Links that are cut: real sshd in network namespaces, jobs on several hosts, cuts by nft and by links that go down.

Usage, as root: machines.py OUTLAST [HOSTS JOBS CUTS]. Prints docs/machines.md. Every command appends its own name to a file outside of every
home: that file says what was started, and how often. Each job also prints a known number of lines, which are read back over the link and compared.
Beside it, the same cuts for plain `ssh host command`, and for Codex's exec-server if CODEX names the program. LOG_GIB is the length of the long log.
"""
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

import exec_server

PROGRAM = os.path.abspath(sys.argv[1])
HOSTS, JOBS, CUTS = (int(word) for word in (sys.argv[2:5] if len(sys.argv) >= 5 else (5, 500, 200)))
LINES = 20
LOG_GIB = int(os.environ.get("LOG_GIB", "10"))
CODEX = os.environ.get("CODEX")
RELAYS = 100
ROOT = tempfile.mkdtemp(prefix="outlast-net-")
PREFIX = f"ol{os.getpid() % 10000}"
JUDGE = f"{ROOT}/judge"
PLAIN_JUDGE = f"{ROOT}/plain-judge"
CODEX_JUDGE = f"{ROOT}/codex-judge"


def run(*words, check=True, **options):
    return subprocess.run(words, check=check, capture_output=True, text=True, **options)


class Host:
    def __init__(self, number):
        self.number = number
        self.name = f"h{number}"
        self.space = f"{PREFIX}h{number}"
        self.near = f"{PREFIX}n{number}"
        self.address = f"10.231.{number}.2"
        self.folder = f"{ROOT}/{self.name}"
        os.makedirs(f"{self.folder}/home")
        run("ip", "netns", "add", self.space)
        run("ip", "link", "add", self.near, "type", "veth", "peer", "name", "far0", "netns", self.space)
        run("ip", "addr", "add", f"10.231.{number}.1/24", "dev", self.near)
        run("ip", "link", "set", self.near, "up")
        inside = ("ip", "netns", "exec", self.space)
        run(*inside, "ip", "addr", "add", f"{self.address}/24", "dev", "far0")
        run(*inside, "ip", "link", "set", "far0", "up")
        run(*inside, "ip", "link", "set", "lo", "up")
        run(*inside, "nft", "add", "table", "inet", "cuts")
        run(*inside, "nft", "add", "chain", "inet", "cuts", "in", "{ type filter hook input priority 0; }")
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{self.folder}/key")
        with open(f"{self.folder}/shell", "w") as shell:
            shell.write(f"""#!/bin/sh
export HOME={self.folder}/home OUTLAST_HOME={self.folder}/jobs PATH={ROOT}/bin:/usr/bin:/bin
cd "$HOME"
exec sh -c "$SSH_ORIGINAL_COMMAND"
""")
        os.chmod(f"{self.folder}/shell", 0o755)
        with open(f"{self.folder}/sshd", "w") as config:
            config.write(f"""ListenAddress {self.address}:22
HostKey {self.folder}/key
AuthorizedKeysFile {ROOT}/user.pub
StrictModes no
UsePAM no
PidFile none
PasswordAuthentication no
PermitRootLogin yes
ForceCommand {self.folder}/shell
MaxStartups 100
LogLevel ERROR
""")
        self.sshd = self.codex = None
        self.start_sshd()

    def start_sshd(self):
        self.sshd = subprocess.Popen(
            ["ip", "netns", "exec", self.space, "/usr/sbin/sshd", "-D", "-e", "-f", f"{self.folder}/sshd"],
            stderr=subprocess.DEVNULL, start_new_session=True)

    def start_codex(self):
        os.makedirs(f"{self.folder}/codex", exist_ok=True)
        self.codex = subprocess.Popen(
            ["ip", "netns", "exec", self.space, CODEX, "exec-server", "--listen", f"ws://{self.address}:{exec_server.PORT}"],
            env={**os.environ, "HOME": f"{self.folder}/home", "CODEX_HOME": f"{self.folder}/codex"},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def pids(self, word):
        found = []
        for pid in run("ip", "netns", "pids", self.space).stdout.split():
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as line:
                    if word in line.read().split(b"\0"):
                        found.append(int(pid))
            except OSError:
                pass
        return found

    def cut(self, dice):
        """Breaks the connection in one of several ways, and mends it; says how."""
        inside = ("ip", "netns", "exec", self.space)
        kind = dice.choice(["drop", "reject", "down", "sshd", "freeze"])
        if kind in ("drop", "reject"):
            verdict = "drop" if kind == "drop" else "reject with tcp reset"
            run(*inside, "nft", "add", "rule", "inet", "cuts", "in", "meta", "l4proto", "tcp", *verdict.split(), check=False)
            time.sleep(dice.uniform(0.1, 1.5))
            run(*inside, "nft", "flush", "chain", "inet", "cuts", "in", check=False)
        elif kind == "down":
            run("ip", "link", "set", self.near, "down", check=False)
            time.sleep(dice.uniform(0.1, 1.0))
            run("ip", "link", "set", self.near, "up", check=False)
        elif kind == "sshd":
            server = self.codex or self.sshd
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
            for pid in [] if self.codex else self.pids(b"sshd:"):
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            time.sleep(dice.uniform(0, 0.5))
            if self.codex:
                self.start_codex()
            else:
                self.start_sshd()
        else:
            frozen = self.pids(b"exec-server" if self.codex else b"relay")
            for pid in frozen:
                try:
                    os.kill(pid, signal.SIGSTOP)
                except OSError:
                    pass
            time.sleep(dice.uniform(0.1, 1.5))
            for pid in frozen:
                try:
                    os.kill(pid, signal.SIGCONT)
                except OSError:
                    pass
        return kind

    def end(self):
        for server in filter(None, (self.sshd, self.codex)):
            try:
                os.killpg(server.pid, signal.SIGKILL)
            except OSError:
                pass
        for pid in run("ip", "netns", "pids", self.space, check=False).stdout.split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except OSError:
                pass
        run("ip", "netns", "del", self.space, check=False)
        run("ip", "link", "del", self.near, check=False)


def environment():
    env = {"PATH": f"{ROOT}/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": f"{ROOT}/user", "OUTLAST_HOME": f"{ROOT}/near",
           "XDG_CONFIG_HOME": f"{ROOT}/config", "XDG_RUNTIME_DIR": f"{ROOT}/run", "OUTLAST_SESSION": "net"}
    return env


def outlast(*words, timeout=300):
    return subprocess.run([PROGRAM, *words], env=environment(), capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)


def setup():
    for folder in ("bin", "user", "near", "config/outlast", "run"):
        os.makedirs(f"{ROOT}/{folder}", mode=0o700)
    os.symlink(PROGRAM, f"{ROOT}/bin/outlast")
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{ROOT}/user-key")
    shutil.copy(f"{ROOT}/user-key.pub", f"{ROOT}/user.pub")
    os.makedirs("/run/sshd", exist_ok=True)
    hosts = [Host(number) for number in range(1, HOSTS + 1)]
    with open(f"{ROOT}/ssh-config", "w") as config:
        for host in hosts:
            key = " ".join(open(f"{host.folder}/key.pub").read().split()[:2])
            with open(f"{ROOT}/known", "a") as known:
                known.write(f"{host.address} {key}\n")
            config.write(f"Host {host.name}\n  HostName {host.address}\n  IdentityFile {ROOT}/user-key\n  IdentitiesOnly yes\n"
                         f"  UserKnownHostsFile {ROOT}/known\n  User root\n")
    with open(f"{ROOT}/bin/ssh", "w") as ssh:
        ssh.write(f"#!/bin/sh\nexec /usr/bin/ssh -F {ROOT}/ssh-config \"$@\"\n")
    os.chmod(f"{ROOT}/bin/ssh", 0o755)
    for host in hosts:
        for _ in range(50):
            if run(f"{ROOT}/bin/ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=2", host.name, "true", check=False).returncode == 0:
                break
            time.sleep(0.2)
        added = outlast("host", "add", host.name, f"ssh:{host.name}")
        assert added.returncode == 0, added.stderr
    return hosts


def command(name, judge):
    return f"echo {name} >> {judge}; i=0; while [ $i -lt {LINES} ]; do i=$((i+1)); echo {name} line $i; sleep 0.02; done"


def counted(path):
    counts = {}
    if os.path.exists(path):
        for line in open(path):
            counts[line.strip()] = counts.get(line.strip(), 0) + 1
    return counts


def under_cuts(hosts, cuts, work):
    """Does the work while links are cut at random; how many cuts of each kind there were."""
    dice, over, kinds = random.Random(17), threading.Event(), {}

    def cutter():
        made = 0
        while not over.is_set() and made < cuts:
            time.sleep(dice.uniform(0.05, 0.6))
            kind = dice.choice(hosts).cut(dice)
            kinds[kind] = kinds.get(kind, 0) + 1
            made += 1
    thread = threading.Thread(target=cutter)
    thread.start()
    work()
    over.set()
    thread.join()
    return kinds


def in_threads(count, work):
    todo, lock = list(range(count)), threading.Lock()

    def worker():
        while True:
            with lock:
                if not todo:
                    return
                number = todo.pop(0)
            work(number)
    threads = [threading.Thread(target=worker) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def ours(hosts):
    results = {"failed": [], "hung": 0, "wrong": [], "retried": 0}
    names = [f"job-{number}" for number in range(JOBS)]

    def work(number):
        name, host = names[number], hosts[number % len(hosts)].name
        try:
            ran = outlast("run", "--on", host, "-d", "--name", name, command(name, JUDGE))
            while ran.returncode != 0 and "cannot be reached" in ran.stderr and "not known" not in ran.stderr:
                # A first connection that fails is told at once: nothing was asked yet.
                results["retried"] += 1
                time.sleep(0.5)
                ran = outlast("run", "--on", host, "-d", "--name", name, command(name, JUDGE))
            if ran.returncode != 0:
                results["failed"].append(ran.stderr.strip())
                return
            handle = ran.stdout.strip()
            for _ in range(200):
                waited = outlast("wait", handle, "--exit", "--deadline", "120s")
                if waited.returncode == 0:
                    break
                results["retried"] += 1
                time.sleep(0.3)
            for _ in range(200):
                read = outlast("read", handle, "--raw")
                if read.returncode == 0:
                    break
                results["retried"] += 1
                time.sleep(0.3)
            lines = [line.rstrip("\r") for line in read.stdout.splitlines()]
            if lines != [f"{name} line {i}" for i in range(1, LINES + 1)]:
                results["wrong"].append(name)
        except subprocess.TimeoutExpired:
            results["hung"] += 1
    began = time.monotonic()
    kinds = under_cuts(hosts, CUTS, lambda: in_threads(JOBS, work))
    results["seconds"] = time.monotonic() - began
    results["kinds"] = kinds
    counts = counted(JUDGE)
    results["started"] = len(counts)
    results["twice"] = sum(1 for count in counts.values() if count > 1)
    results["never"] = sum(1 for name in names if name not in counts)
    return results


def plain(hosts, jobs):
    results = {"whole": 0, "cut": 0, "hung": 0}

    def work(number):
        name, host = f"plain-{number}", hosts[number % len(hosts)].name
        try:
            ran = subprocess.run([f"{ROOT}/bin/ssh", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=2",
                                  "-o", "ConnectTimeout=5", host, command(name, PLAIN_JUDGE)],
                                 capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
            whole = ran.returncode == 0 and len(ran.stdout.splitlines()) == LINES
            results["whole" if whole else "cut"] += 1
        except subprocess.TimeoutExpired:
            results["hung"] += 1
    results["kinds"] = under_cuts(hosts, CUTS, lambda: in_threads(jobs, work))
    return results


def by_codex(hosts, jobs):
    """The same commands through Codex's exec-server, over its own connections. Where sshd was killed, here it is the server."""
    results = {"whole": 0, "cut": 0, "hung": 0}
    for host in hosts:
        host.start_codex()
    time.sleep(5)

    def work(number):
        name, host = f"codex-{number}", hosts[number % len(hosts)]
        try:
            printed, code = exec_server.Client(host.address).run(name, command(name, CODEX_JUDGE))
            whole = code == 0 and printed.splitlines() == [f"{name} line {i}" for i in range(1, LINES + 1)]
        except (OSError, ValueError, exec_server.Refused):
            whole = False
        results["whole" if whole else "cut"] += 1
    results["kinds"] = under_cuts(hosts, CUTS, lambda: in_threads(jobs, work))
    return results


def clock(pids):
    """CPU seconds of processes so far."""
    ticks = 0
    for pid in pids:
        try:
            fields = open(f"/proc/{pid}/stat").read().rsplit(") ", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        except OSError:
            pass
    return ticks / os.sysconf("SC_CLK_TCK")


def timed(count, call):
    times = []
    for _ in range(count):
        began = time.monotonic()
        call()
        times.append(time.monotonic() - began)
    return statistics.median(times) * 1000


class Mcp:
    """A session with the MCP server: its connection to a host stays open."""

    def __init__(self):
        config = f"{ROOT}/config/outlast/config.toml"
        with open(config, "w") as file:
            file.write('[agents]\nhosts = ["h1"]\n')
        self.server = subprocess.Popen([PROGRAM, "mcp", "--session", "net"], env=environment(), stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.number = 0
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "machines", "version": "1"}})
        self.say({"method": "notifications/initialized"})

    def say(self, message):
        self.server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.server.stdin.flush()

    def ask(self, method, params):
        self.number += 1
        self.say({"id": self.number, "method": method, "params": params})
        while True:
            answer = json.loads(self.server.stdout.readline())
            if answer.get("id") == self.number:
                return answer

    def tail(self, handle):
        answer = self.ask("tools/call", {"name": "read_output", "arguments": {"handle": handle, "tail": 5}})
        assert "the end" in json.dumps(answer), answer

    def end(self):
        self.server.stdin.close()
        self.server.wait()


def over_an_open_connection(host):
    """A call of the MCP server about a far job, beside the same about a job here, and beside a byte through ssh and back."""
    outlast("run", "-d", "--name", "near", "seq 1000; echo the end")
    outlast("wait", "near", "--exit")
    mcp = Mcp()
    mcp.tail(f"{host.name}/big")
    far, near = timed(60, lambda: mcp.tail(f"{host.name}/big")), timed(60, lambda: mcp.tail("near"))
    mcp.end()
    echo = subprocess.Popen([f"{ROOT}/bin/ssh", "-o", "BatchMode=yes", host.name, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def there_and_back():
        echo.stdin.write(b"x")
        echo.stdin.flush()
        assert os.read(echo.stdout.fileno(), 1) == b"x"
    there_and_back()
    trip = timed(60, there_and_back)
    echo.kill()
    echo.wait()
    return far, near, trip


def cold_relays():
    """`jobs` over many relays that are started for it, beside starting and ending them and nothing else."""
    env = {**environment(), "XDG_CONFIG_HOME": f"{ROOT}/many", "OUTLAST_HOME": f"{ROOT}/many-near"}
    os.makedirs(f"{ROOT}/many/outlast")
    with open(f"{ROOT}/many/outlast/hosts.toml", "w") as hosts:
        for number in range(RELAYS):
            hosts.write(f'[host.r{number}]\nreach = "command:OUTLAST_HOME={ROOT}/many-{number % 4} exec {PROGRAM} relay"\n')
    jobs = lambda: subprocess.run([PROGRAM, "jobs"], env=env, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    bare = lambda: subprocess.run(f"seq {RELAYS} | xargs -P32 -I@ sh -c 'OUTLAST_HOME={ROOT}/many-bare exec {PROGRAM} relay < /dev/null > /dev/null'",
                                  shell=True, env=env, check=True)
    jobs()
    return timed(5, jobs), timed(5, bare)


def cost(hosts):
    host = hosts[0]

    def received():
        return int(open(f"/sys/class/net/{host.near}/statistics/rx_bytes").read())

    size = LOG_GIB << 30
    made = outlast("run", "--on", host.name, "-d", "--pipe", "--name", "big", "--log-cap", f"{LOG_GIB + 1}GiB",
                   f"yes 'a line of a large log, which is about sixty bytes long' | head -c {size}; echo the end", timeout=3600)
    assert made.returncode == 0, made.stderr
    outlast("wait", f"{host.name}/big", "--exit", "--deadline", "3000s", timeout=3600)
    outlast("read", f"{host.name}/big", "--tail", "1")
    times, moved = [], []
    for _ in range(10):
        before, began = received(), time.monotonic()
        read = outlast("read", f"{host.name}/big", "--tail", "200")
        times.append(time.monotonic() - began)
        moved.append(received() - before)
        assert read.stdout.rstrip().endswith("the end"), read
    bare = []
    for _ in range(10):
        began = time.monotonic()
        run(f"{ROOT}/bin/ssh", "-S", f"{ROOT}/run/outlast/%C", host.name, "true", check=False)
        bare.append(time.monotonic() - began)
    follower = subprocess.Popen([PROGRAM, "wait", f"{host.name}/idle", "--exit"], env=environment(), stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) if outlast(
        "run", "--on", host.name, "-d", "--name", "idle", "sleep 1000").returncode == 0 else None
    time.sleep(3)
    before, began = received(), time.monotonic()
    there = [int(pid) for pid in run("ip", "netns", "pids", host.space).stdout.split()]
    used = clock(there)
    time.sleep(60)
    busy = (clock(there) - used) / (time.monotonic() - began) * 100
    idle = received() - before
    follower.kill()
    follower.wait()
    outlast("kill", f"{host.name}/idle")
    kill = []
    for _ in range(5):
        handle = outlast("run", "--on", host.name, "-d", "sleep 1000").stdout.strip()
        began = time.monotonic()
        outlast("kill", handle)
        kill.append(time.monotonic() - began)
    show = timed(10, lambda: outlast("show", f"{host.name}/big"))
    far, near, trip = over_an_open_connection(host)
    jobs, bare_relays = cold_relays()
    return {"busy": busy, "kill": statistics.median(kill) * 1000, "show": show, "far": far, "near": near, "trip": trip, "jobs": jobs,
            "relays": bare_relays, "ms": statistics.median(times) * 1000, "moved": max(moved), "ssh": statistics.median(bare) * 1000, "idle": idle, "bytes": size}


def column(results, judge, jobs):
    """The cells of a table about another way."""
    if results is None:
        return ["not there"] * 7
    counts = counted(judge)
    return [jobs, len(counts), sum(1 for count in counts.values() if count > 1), jobs - len(counts), results["whole"], results["cut"],
            results["hung"]]


def page(our, other, codex, costs, plain_jobs):
    ours_column = [JOBS, our["started"], our["twice"], our["never"], our["started"] - len(our["wrong"]), len(our["wrong"]), our["hung"]]
    columns = [ours_column, column(other, PLAIN_JUDGE, plain_jobs), column(codex, CODEX_JUDGE, plain_jobs)]
    names = ["jobs asked for", "started", "started twice", "never started", "output and end came back whole",
             "output or end lost, or a line doubled", "calls that hung"]
    rows = "\n".join(f"| {name} | " + " | ".join(str(one[at]) for one in columns) + " |" for at, name in enumerate(names))
    build = "release" if "/release/" in PROGRAM else "debug"
    load = os.getloadavg()[0]
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(our["kinds"].items()))
    print(f"""# Other machines: what is left when links are cut

Written by `cargo xtask machines` (`cargo xtask test --full machines-net` runs it again). {HOSTS} hosts, each a real sshd in a network namespace of its own on one machine, {JOBS} jobs over them from
{6} callers at once, {sum(our["kinds"].values())} cuts at random moments ({kinds}: packets dropped or reset by nft, the link down, sshd and its sessions killed, relays frozen). Every
command appends its name to a file outside of every home: that file is the judge. Each job prints {LINES} lines, which are read back over the same link. Beside it, with cuts of the same kinds: plain `ssh host command`, and
Codex's `exec-server` with a client that comes back to its session for 25 s, as its own does; there the server itself is killed or frozen where it is sshd and relays here.

| | Outlast | `ssh host command` | Codex's exec-server |
|---|---|---|---|
{rows}

Calls that failed for want of a connection (a first one that cannot be made fails at once) and were made again by the caller: {our["retried"]}. Refused for another reason: {len(our["failed"])}. The whole took {our["seconds"]:.0f} s.

What it costs, over the same link without cuts. Calls of the command line go through a connection that is already there.

| | |
|---|---|
| the last 200 lines of a log of {costs["bytes"] >> 30} GiB | {costs["ms"]:.0f} ms, {costs["moved"] / 1024:.0f} KiB moved |
| `show`, and `kill` of a job | {costs["show"]:.0f} ms, {costs["kill"]:.0f} ms |
| `ssh host true` beside it, told to use the same connection | {costs["ssh"]:.0f} ms |
| MCP: the last lines of a far job over an open connection | {costs["far"]:.2f} ms; of a job here {costs["near"]:.2f} ms; a byte through `ssh host cat` and back {costs["trip"]:.2f} ms |
| a wait in which nothing happens, a minute | {costs["idle"] / 1024:.1f} KiB received, {costs["busy"]:.3f} % of a core for all processes of the host |
| `jobs` over {RELAYS} relays that are started for it by `command:` | {costs["jobs"]:.0f} ms; starting and ending the same relays with `xargs -P32` and nothing else {costs["relays"]:.0f} ms |

A {build} build; the load of the machine was {load:.1f} at the end. Times on a busy machine are good only beside each other.""")


def main():
    hosts = []
    try:
        hosts = setup()
        costs = cost(hosts)
        our = ours(hosts)
        plain_jobs = min(JOBS, 100)
        other = plain(hosts, plain_jobs)
        codex = by_codex(hosts, plain_jobs) if CODEX else None
        page(our, other, codex, costs, plain_jobs)
        broken = our["twice"] or our["never"] or our["wrong"] or our["hung"] or our["failed"]
        if broken:
            print(our, file=sys.stderr)
        return 1 if broken else 0
    finally:
        for host in hosts:
            subprocess.run([f"{ROOT}/bin/ssh", "-S", f"{ROOT}/run/outlast/%C", "-O", "exit", host.name], capture_output=True)
            host.end()
        for pid in os.listdir("/proc"):
            # Keepers of this run, and nothing else.
            try:
                if pid.isdigit() and ROOT.encode() in open(f"/proc/{pid}/environ", "rb").read() + open(f"/proc/{pid}/cmdline", "rb").read() and int(pid) != os.getpid():
                    os.kill(int(pid), signal.SIGKILL)
            except OSError:
                pass
        shutil.rmtree(ROOT, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
