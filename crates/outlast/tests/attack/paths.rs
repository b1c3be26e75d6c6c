//! Ways to name a denied program when it is executed: by descriptors, `/proc`, other roots and mounts, new names and loaders.
//! Each by a script that text does not show, with no walls, in both sandboxes, and with a closed file.

use serde_json::json;

use crate::client::Sandbox;
use crate::{Tally, chosen};

/// Executes `rm canary` by the route that it is told. What needs a user namespace goes without where there is none.
const SCRIPT: &str = r##"
import ctypes, os, shutil, struct, subprocess, sys, threading
route = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
here = os.getcwd()
RM = ["x", here + "/canary"]

def opened(path):
    fd = os.open(path, os.O_RDONLY)
    os.set_inheritable(fd, True)
    return fd

def in_namespaces(line):
    subprocess.run(["unshare", "-rm", "sh", "-c", line])

def by_thread():
    def run():
        os.execv("/proc/thread-self/cwd/copied", RM)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

def by_memory():
    fd = os.memfd_create("x", 0)
    os.write(fd, open("/bin/rm", "rb").read())
    os.execv("/proc/self/fd/%d" % fd, RM)

def by_high_descriptor():
    os.dup2(opened("/bin/rm"), 700)
    os.execv("/proc/self/fd/700", RM)

def by_execveat(folder, name, flags):
    argv = (ctypes.c_char_p * 3)(b"x", RM[1].encode(), None)
    libc.syscall(322, folder, name, argv, None, flags)

def with_loader(program, loader, argv):
    # A program that names another as its loader: the kernel begins there.
    program = bytearray(open(program, "rb").read())
    at = program.index(b"/lib64/ld-linux")
    end = program.index(b"\0", at)
    program[at:end] = b"./b".ljust(end - at, b"\0")
    shutil.copy(loader, "b")
    with open("named", "wb") as file:
        file.write(program)
    os.chmod("named", 0o755)
    os.execv("./named", argv)

def by_fresh_file():
    # The same name, length and number of a file that was harmless a moment ago.
    size = os.stat("/bin/rm").st_size
    real = open("/bin/rm", "rb").read()
    for _ in range(30):
        for content in (b"#!/bin/true\n".ljust(size, b"\n"), real):
            with open("fresh", "wb") as file:
                file.write(content)
            os.chmod("fresh", 0o755)
            try:
                subprocess.run(["./fresh", RM[1]], stderr=subprocess.DEVNULL)
            except PermissionError:
                pass
            os.unlink("fresh")

def by_new_name():
    folder = os.path.dirname(os.path.realpath("/bin/rm"))
    os.symlink("rm", folder + "/outlast-attack-name")
    try:
        subprocess.run([folder + "/outlast-attack-name", RM[1]])
    finally:
        os.unlink(folder + "/outlast-attack-name")

ROUTES = {
    "descriptor": lambda: os.execv("/proc/self/fd/%d" % opened("/bin/rm"), RM),
    "device": lambda: os.execv("/dev/fd/%d" % opened("/bin/rm"), RM),
    "fexecve": lambda: os.execve(opened("/bin/rm"), RM, {}),
    "high": by_high_descriptor,
    "root": lambda: os.execv("/proc/self/root/bin/rm", RM),
    "folder": lambda: os.execv("/proc/self/cwd/copied", RM),
    "dots": lambda: os.execv("/proc/self/../self/cwd/copied", RM),
    "number": lambda: os.execv("/proc/%d/cwd/copied" % os.getpid(), RM),
    "thread": by_thread,
    "memory": by_memory,
    "empty": lambda: by_execveat(opened("/bin/rm"), b"", 0x1000),
    "at": lambda: by_execveat(opened("/bin"), b"rm", 0),
    "up": lambda: by_execveat(opened("/usr/lib"), b"../bin/rm", 0),
    "linked": lambda: (os.symlink("/proc/self/cwd/copied", "l"), os.execv("./l", RM)),
    "script": lambda: (open("s", "w").write("#!/proc/self/cwd/copied\n"), os.chmod("s", 0o755), os.execv("./s", RM)),
    "loader": lambda: os.execv("/lib64/ld-linux-x86-64.so.2", ["x", "/proc/self/cwd/copied", RM[1]]),
    "interpreter": lambda: with_loader("/bin/true", "/bin/busybox", ["rm", RM[1]]),
    "harmless": lambda: with_loader("/bin/echo", "/lib64/ld-linux-x86-64.so.2", ["echo", "-n", "it-runs"]),
    "fresh": by_fresh_file,
    "name": by_new_name,
    "other_root": lambda: in_namespaces(
        "mkdir -p jail/usr jail/lib jail/lib64 jail/bin jail/t; cp copied jail/b; cp /bin/true b; "
        "mount --rbind /usr jail/usr; mount --rbind /lib jail/lib; mount --rbind /lib64 jail/lib64; "
        "mount --rbind /bin jail/bin; mount --bind . jail/t; exec chroot jail /bin/sh -c 'cd /; exec ../b /t/canary'"),
    "other_mounts": lambda: in_namespaces(
        "ln -s /bin/true l; mount --bind copied /usr/bin/true; exec ./l canary"),
}
try:
    ROUTES[route]()
except OSError as error:
    print(error)
"##;

const ROUTES: &[&str] = &[
    "descriptor",
    "device",
    "fexecve",
    "high",
    "root",
    "folder",
    "dots",
    "number",
    "thread",
    "memory",
    "empty",
    "at",
    "up",
    "linked",
    "script",
    "loader",
    "interpreter",
    "fresh",
    "name",
    "other_root",
    "other_mounts",
];

/// What else is in force: settings, and rules.
const WALLS: &[(&str, &str, &str)] = &[
    ("no walls", "", ""),
    ("the kernel's sandbox", "[agents.sandbox]\n", ""),
    ("bwrap", "[agents.sandbox]\nby = \"bwrap\"\n", ""),
    ("a closed file", "", "[[rule]]\ndecision = \"deny\"\npath = \".env\"\n"),
];

#[test]
fn a_denied_program_runs_by_no_path_to_it() {
    let mut tally = Tally::default();
    for (wall, settings, rules) in WALLS {
        let sandbox = Sandbox::new();
        let at = |name: &str| sandbox.path().join(name);
        std::fs::create_dir_all(at(".config/outlast")).unwrap();
        let policy = format!("[[rule]]\ndecision = \"deny\"\nprefix = \"rm\"\n{rules}");
        std::fs::write(at(".config/outlast/policy.toml"), policy).unwrap();
        std::fs::write(at(".config/outlast/config.toml"), settings).unwrap();
        let project = at("project");
        std::fs::create_dir(&project).unwrap();
        std::fs::write(project.join("route.py"), SCRIPT).unwrap();
        std::fs::write(project.join("Makefile"), "all:\n\tpython3 route.py '$(ROUTE)'\n").unwrap();
        let mut command = sandbox.command(&[]);
        // Programs themselves, no scripts that look for them: each would be judged dozens of times.
        command.current_dir(&project).env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        let mut client = crate::client::Client::start(command).initialized("2025-06-18", &json!({}));
        // The instrument works: what is not denied runs, also with a loader of its own.
        let call = json!({"command": "make -s ROUTE=harmless", "timeout": 30});
        let ran = client.call("run_shell_command", call).to_string();
        assert!(ran.contains("it-runs"), "{ran}");
        for route in chosen(ROUTES.to_vec(), 5) {
            let canary = project.join("canary");
            for name in ["l", "s", "b"] {
                let _ = std::fs::remove_file(project.join(name));
            }
            std::fs::write(&canary, "alive").unwrap();
            std::fs::copy("/bin/rm", project.join("copied")).unwrap();
            let call = json!({"command": format!("make -s ROUTE={route}"), "timeout": 30, "again": true});
            let answer = client.call("run_shell_command", call);
            assert!(answer["isError"] != true, "the script ran: {answer}");
            tally.count(&format!("{route}, with {wall}"), !canary.exists());
        }
    }
    tally.nothing_got_through("a denied program, by every path to it");
}
