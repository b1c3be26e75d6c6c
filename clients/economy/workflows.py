"""The seven workflows: what is in the folder, what must be seen, and what must be true afterwards."""

import os
import socket
import time

from server import Missed

# Lines of a build that fails at its end; the error must be seen.
BUILD = """import sys, time
seconds = float(sys.argv[1])
for n in range(1, 61):
    print(f"   Compiling crate-{n} v1.{n}.0 (/project/crates/crate-{n})", flush=True)
    time.sleep(seconds / 60)
print("error[E0308]: mismatched types\\n --> src/main.rs:41:9\\n   |\\n41 |     total: String,\\n   |            ^^^^^^ expected `u32`, found `String`\\n")
print("error: could not compile `app` (bin \\"app\\") due to 1 previous error", flush=True)
sys.exit(101)
"""
INSTALL = """printf 'Install into ./app? [y/N] '
read -r yes
[ "$yes" = y ] || exit 1
mkdir app
printf 'Which port? [8080] '
read -r port
printf 'Start at boot? [y/N] '
read -r boot
echo "installed, port ${port:-8080}, boot ${boot:-n}"
exit 4
"""
SUM = """#include <stdio.h>

int sum(int n) {
  int total = 0;
  for (int i = 1; i <= n; i++)
    total += i;
  return total;
}

int main(void) {
  printf("%d\\n", sum(4));
}
"""
FIB = "def fib(n): return n if n <= 1 else fib(n-1) + fib(n-2)"
MENU = "whiptail --menu 'Pick a colour' 15 40 4 r Red g Green b Blue 2>picked; echo; echo \"picked $(cat picked), code $?\""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def prepare(work, port):
    def put(name, text):
        with open(os.path.join(work, name), "w") as file:
            file.write(text)
    put("build.py", BUILD)
    put("install.sh", INSTALL)
    put("sum.c", SUM)
    put("menu.sh", MENU + "\n")
    put("index.html", "<h1>It works</h1>\n")
    put("test.sh", f"curl -s http://127.0.0.1:{port}/ && echo 1 test passed\n")
    os.system(f"cd {work} && cc -g -O0 -o sum sum.c")


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def content(server, name):
    with open(os.path.join(server.work, name)) as file:
        return file.read()


# What a play must have shown to the model, and what must be true of the world after it.
def check(name, server, port):
    if name == "ed":
        # Some echo the last line directly before it.
        server.seen(r"(?<!\d)14\b")
        if content(server, "hello.txt") != "Hello, world!\n":
            raise Missed("hello.txt is wrong")
    elif name == "fib":
        server.seen(r"\b55\b")
    elif name == "gdb":
        server.seen(r"Breakpoint 1, sum \(n=4\)", r"= 4\b", r"= 10\b")
    elif name == "dev server":
        server.seen("It works", "1 test passed")
        until = time.monotonic() + 2
        while listens(port):
            if time.monotonic() > until:
                raise Missed("the server was not stopped")
            time.sleep(0.05)
    elif name == "installer":
        server.seen("Install into", "Which port", "Start at boot", "installed, port 9000, boot n",
                    r"(?i)(exit|code|status)\D{0,20}\b4\b")
        if not os.path.isdir(os.path.join(server.work, "app")):
            raise Missed("nothing was installed")
    elif name == "build":
        server.seen(r"error\[E0308\]", "src/main.rs:41:9", "could not compile", r"(?i)(exit|code|status)\D{0,20}\b101\b")
    elif name == "menu":
        server.seen("Red", "Green", "Blue", "picked g, code 0")


NAMES = ["ed", "fib", "gdb", "dev server", "installer", "build", "menu"]
