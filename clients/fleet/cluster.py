"""Three real nats-servers in a cluster, each in a network namespace, and homes for hosts and users: what the other scripts of this folder share. As root."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

PROGRAM, NATS = (os.path.abspath(word) for word in sys.argv[1:3])
ROOT = tempfile.mkdtemp(prefix="outlast-fleet-")
PREFIX = f"of{os.getpid() % 10000}"
SPACES = []


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
        SPACES.append(self.space)
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
    def start(self, more=()):
        routes = ",".join(f"nats://10.232.0.{10 + n}:6222" for n in range(3))
        words = [NATS, "-a", self.address, "-p", "4222", "-js", "-sd", f"{ROOT}/{self.name}", "-n", self.name,
                 "--cluster_name", "fleet", "--cluster", f"nats://{self.address}:6222", "--routes", routes, "-m", "8222", *more]
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


def up():
    """The bridge, and three servers that have a leader."""
    run("ip", "link", "add", f"{PREFIX}b", "type", "bridge")
    run("ip", "addr", "add", "10.232.0.1/24", "dev", f"{PREFIX}b")
    run("ip", "link", "set", f"{PREFIX}b", "up")
    servers = [Server(f"s{n}", 10 + n) for n in range(3)]
    for server in servers:
        server.start()
    deadline = time.time() + 60
    while outlast("fleet", "status").returncode != 0 and time.time() < deadline:
        time.sleep(1)
    return servers


def down(keep):
    """Ends everything that runs in our namespaces, and removes them."""
    for name in sorted(os.listdir(ROOT)):
        if os.path.isdir(f"{ROOT}/{name}/jobs/jobs") or os.path.isdir(f"{ROOT}/{name}/jobs"):
            outlast("kill", "--all", who=name)
    for name in SPACES:
        for pid in run("ip", "netns", "pids", name, check=False).stdout.split():
            os.kill(int(pid), signal.SIGKILL)
        run("ip", "netns", "del", name, check=False)
    run("ip", "link", "del", f"{PREFIX}b", check=False)
    if keep:
        say(f"kept: {ROOT}")
    else:
        shutil.rmtree(ROOT, ignore_errors=True)


def machine():
    """On what it was measured."""
    with open("/proc/loadavg") as load:
        return (f"{'Release' if '/release/' in PROGRAM else 'Debug'} build, nats-server {run(NATS, '--version').stdout.split()[-1]}, {os.cpu_count()} processors that brokers, "
                f"nodes and clients share, load {load.read().split()[0]} at the end.")
