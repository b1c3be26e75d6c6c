//! Ways out of an agent's sandbox: reads, writes, signals and connections that must not reach what is outside.

use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::Tally;
use crate::client::{Client, Sandbox};

const KEY: &str = "the-key-that-nobody-inside-may-see";

/// Lines, with `HOME`, `OUTSIDE`, `VICTIM`, `TCP`, `UDP`, `STREAM`, `DATAGRAM` and `JOBS` for what is outside.
const LINES: &[&str] = &[
    "cat HOME/.ssh/id",
    "cd HOME/.ssh && cat id",
    "cat ../.ssh/id",
    "ln -s HOME/.ssh l; cat l/id",
    "ln HOME/.ssh/id hard; cat hard",
    "cp -r HOME/.ssh copied; cat copied/id",
    "cat /proc/self/root/HOME/.ssh/id",
    "cat /proc/1/root/HOME/.ssh/id",
    "for p in /proc/[0-9]*; do cat $p/root/HOME/.ssh/id $p/cwd/.ssh/id; done",
    "cat /proc/[0-9]*/environ | tr '\\0' '\\n'",
    "for p in /proc/[0-9]*/fd/*; do head -c 100 $p; done < /dev/null",
    "python3 -c 'import os; print(os.open(\"HOME/.ssh/id\", os.O_RDONLY))' && cat HOME/.ssh/id",
    "python3 -c 'import os; d=os.open(\"/\", os.O_PATH); print(open(os.open(\"HOME/.ssh/id\"[1:], 0, dir_fd=d)).read())'",
    "tar cf - HOME/.ssh | tar xOf -",
    "mount --bind HOME/.ssh . && cat id",
    "unshare -Urm cat HOME/.ssh/id",
    "unshare -r cat HOME/.ssh/id",
    "nsenter -t 1 -m cat HOME/.ssh/id",
    "chroot / cat HOME/.ssh/id",
    "echo x > OUTSIDE",
    "echo x >> OUTSIDE",
    "truncate -s 0 OUTSIDE",
    "rm -f OUTSIDE",
    "mv OUTSIDE OUTSIDE.moved",
    "ln -sf /dev/null OUTSIDE",
    "cp /etc/hostname OUTSIDE",
    "python3 -c 'import os; os.truncate(\"OUTSIDE\", 0)'",
    "python3 -c 'import os; os.rename(\"OUTSIDE\", \"OUTSIDE.moved\")'",
    "umount HOME; umount -l HOME/project; echo x > OUTSIDE",
    "mount -o remount,rw /; echo x > OUTSIDE",
    "kill -9 VICTIM",
    "kill -STOP VICTIM",
    "kill -9 -1",
    "pkill -9 -f sleep.123454321",
    "prlimit --pid VICTIM --cpu=1:1",
    "prlimit --pid VICTIM --nofile=3:3",
    "python3 -c 'import os; os.kill(VICTIM, 9)'",
    "python3 -c 'import os,signal; signal.pidfd_send_signal(os.pidfd_open(VICTIM), 9)'",
    "gdb -p VICTIM -batch -ex 'call (int)exit(0)'",
    "python3 -c 'import ctypes; print(ctypes.CDLL(None).ptrace(16, VICTIM, 0, 0))'",
    "bash -c 'echo KEEP > /dev/tcp/127.0.0.1/TCP'",
    "bash -c 'echo KEEP > /dev/udp/127.0.0.1/UDP'",
    "python3 -c 'import socket; s=socket.create_connection((\"127.0.0.1\", TCP)); s.send(b\"x\")'",
    "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b\"x\", (\"127.0.0.1\", UDP))'",
    "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"STREAM\")'",
    "python3 -c 'import socket; a,b=socket.socketpair(); a.connect(\"STREAM\")'",
    "python3 -c 'import socket; a,b=socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b\"x\", \"DATAGRAM\")'",
    "python3 -c 'import socket; a,b=socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.connect(\"DATAGRAM\"); a.send(b\"x\")'",
    "PROGRAM --home JOBS run 'echo x > OUTSIDE'",
    "PROGRAM --home JOBS run -d --cwd HOME 'cat .ssh/id'; sleep 1; PROGRAM --home JOBS logs",
    "cat JOBS/jobs/*/info.json | grep -o the-key",
    "echo x > JOBS/planted",
    "cat /proc/sys/kernel/core_pattern > cp && cat cp > /proc/sys/kernel/core_pattern && echo x > OUTSIDE",
    "mknod disk b 254 0 && head -c 100 disk && echo the-key-that-nobody-inside-may-see",
    "dmesg && echo the-key-that-nobody-inside-may-see",
    "echo x > .git/hooks/pre-commit",
    "echo x >> .git/config",
    "mv .git g && cp -r g .git && echo x > .git/hooks/pre-commit",
    "echo ../x > .git/commondir",
    "mkdir -p .outlast && echo 'default = \"allow\"' > .outlast/policy.toml",
    "echo x > .mcp.json",
    "mkdir -p .vscode && echo x > .vscode/tasks.json",
    "echo x > .envrc",
    "echo x > .bashrc",
    "mkdir -p .claude && echo x > .claude/settings.json",
    "python3 -c 'import os; os.symlink(\"x\", \".mcp.json\")'",
    "mkdir t && mv t .codex",
    "chmod 777 OUTSIDE",
    "touch -d @1 OUTSIDE",
    "python3 -c 'import os; os.setxattr(\"OUTSIDE\", \"user.x\", b\"1\")'",
    "chmod 700 HOME/.config",
    "stat HOME/.ssh/id > /dev/null && FOUND",
    "ls -d HOME/.ssh/id && FOUND",
    "readlink HOME/linked && FOUND",
    "python3 -c 'import ctypes,sys; c=ctypes.CDLL(None); sys.exit(c.inotify_add_watch(c.inotify_init(), b\"HOME/.ssh\", 4095) < 0)' && FOUND",
    "python3 -c 'import ctypes,sys; c=ctypes.CDLL(None); sys.exit(c.inotify_add_watch(c.inotify_init(), b\"HOME/outside\", 4095) < 0)' && FOUND",
    "python3 -c 'import ctypes,sys; c=ctypes.CDLL(None); sys.exit(c.fanotify_init(512, 0) < 0)' && FOUND",
    "echo x > sub/.git/hooks/pre-commit",
    "mv sub/.git sub/g; mkdir -p sub/.git/hooks; echo x > sub/.git/hooks/pre-commit",
    "mv sub aside; mkdir -p sub/.git/hooks; echo x > sub/.git/hooks/pre-commit",
    "python3 -c 'import os; os.mkdir(\"n\"); os.rename(\"sub\", \"aside\"); os.rename(\"n\", \"sub\")'; mkdir -p sub/.git/hooks; echo x > sub/.git/hooks/pre-commit",
    "python3 -c 'import ctypes; print(ctypes.CDLL(None).syscall(467, -100, b\"/\", 1, 0, 0))' | grep -v -e -1 && FOUND",
    "cat /proc/VICTIM/cmdline && FOUND",
];

/// Says what only the key says, for what is found out without reading it.
const FOUND: &str = "printf 'the-key-that-%s' nobody-inside-may-see";

/// Parameters of a call that must move no wall; the command is always the same.
fn parameters(home: &str) -> Vec<serde_json::Value> {
    let read = "cat HOME/.ssh/id; cat id; echo x > OUTSIDE; echo x >> .bashrc";
    vec![
        json!({"command": read, "dir_path": format!("{home}/.ssh")}),
        json!({"command": read, "dir_path": home}),
        json!({"command": read, "dir_path": "/"}),
        json!({"command": read, "dir_path": "/etc"}),
        json!({"command": read, "dir_path": "../.ssh"}),
        json!({"command": read, "env": {"HOME": "/"}}),
        json!({"command": read, "env": {"JAVA_HOME": format!("{home}/.ssh")}}),
        json!({"command": read, "env": {"PATH": format!("{home}/shims:/usr/bin:/bin")}}),
        json!({"command": read, "env": {"PATH": format!("{home}:/usr/bin:/bin"), "VIRTUAL_ENV": home}}),
        json!({"command": read, "env": {"OUTLAST_HOME": home, "OUTLAST_CONFIG": "/none"}}),
        json!({"command": read, "env": {"TMPDIR": home, "XDG_CACHE_HOME": home}}),
        json!({"command": "true", "env": {"LD_PRELOAD": format!("{home}/project/evil.so")}}),
        json!({"command": "true", "env": {"LD_AUDIT": format!("{home}/project/evil.so")}}),
    ]
}

/// Loaded into a process, it takes the key out of the home.
const INTRUDER: &str = r#"
#include <stdlib.h>
__attribute__((constructor)) static void loaded(void) {
  unsetenv("LD_PRELOAD"); unsetenv("LD_AUDIT");
  (void)!system("cat HOME/.ssh/id > OUTSIDE");
}
unsigned int la_version(unsigned int version) { return version; }
"#;

struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is outside, and how it was.
struct Outside {
    sandbox: Sandbox,
    home: PathBuf,
    tcp: TcpListener,
    udp: UdpSocket,
    stream: UnixListener,
    datagram: UnixDatagram,
    victim: Victim,
    limits: String,
    permissions: std::fs::Permissions,
    modified: std::time::SystemTime,
}

impl Outside {
    fn new(by: &str) -> Self {
        let sandbox = Sandbox::new();
        let home = sandbox.path().canonicalize().unwrap().join("user");
        for folder in [".ssh", ".config/outlast", "project", "shims"] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        std::fs::write(home.join(".ssh/id"), KEY).unwrap();
        std::fs::write(home.join("outside"), "as it was").unwrap();
        std::fs::write(home.join(".bashrc"), "").unwrap();
        let settings = format!("[agents.sandbox]\nby = \"{by}\"\n");
        std::fs::write(home.join(".config/outlast/config.toml"), settings).unwrap();
        for repository in ["project", "project/sub"] {
            let git = Command::new("git").args(["init", "-q"]).arg(home.join(repository)).status();
            assert!(git.is_ok_and(|done| done.success()), "git is here");
        }
        std::os::unix::fs::symlink("somewhere", home.join("linked")).unwrap();
        let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let stream = UnixListener::bind(home.join("stream")).unwrap();
        let datagram = UnixDatagram::bind(home.join("datagram")).unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        stream.set_nonblocking(true).unwrap();
        datagram.set_nonblocking(true).unwrap();
        let mut victim = Command::new("sleep");
        victim.arg("123454321").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let victim = Victim(victim.spawn().unwrap());
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", victim.0.id())).unwrap();
        std::fs::set_permissions(home.join(".config"), std::fs::Permissions::from_mode(0o750)).unwrap();
        let outside = std::fs::metadata(home.join("outside")).unwrap();
        let (permissions, modified) = (outside.permissions(), outside.modified().unwrap());
        Self { sandbox, home, tcp, udp, stream, datagram, victim, limits, permissions, modified }
    }

    fn filled(&self, line: &str) -> String {
        let home = self.home.display().to_string();
        line.replace("HOME", &home)
            .replace("OUTSIDE", &format!("{home}/outside"))
            .replace("VICTIM", &self.victim.0.id().to_string())
            .replace("TCP", &self.tcp.local_addr().unwrap().port().to_string())
            .replace("UDP", &self.udp.local_addr().unwrap().port().to_string())
            .replace("STREAM", &format!("{home}/stream"))
            .replace("DATAGRAM", &format!("{home}/datagram"))
            .replace("JOBS", &self.sandbox.path().join("home").display().to_string())
            .replace("PROGRAM", crate::client::PROGRAM)
            .replace("FOUND", FOUND)
    }

    /// What has changed outside, if anything.
    fn harm(&mut self, said: &str) -> Option<&'static str> {
        let mut bytes = [0; 64];
        let project = self.home.join("project");
        let hooks =
            [".git", "sub/.git"].iter().any(|git| project.join(git).join("hooks/pre-commit").exists());
        let outside = std::fs::metadata(self.home.join("outside")).ok();
        let is_as_it_was = outside.is_some_and(|now| {
            now.permissions() == self.permissions && now.modified().ok() == Some(self.modified)
        });
        let has_attributes =
            rustix::fs::listxattr(self.home.join("outside"), &mut [0_u8; 64]).is_ok_and(|len| len > 0);
        let config_mode =
            std::fs::metadata(self.home.join(".config")).map(|found| found.permissions().mode() & 0o777);
        let config = std::fs::read_to_string(project.join(".git/config")).unwrap_or_default();
        let limits =
            std::fs::read_to_string(format!("/proc/{}/limits", self.victim.0.id())).unwrap_or_default();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.victim.0.id())).unwrap_or_default();
        let has_more = |name: &str| {
            let path = project.join(name);
            path.is_file()
                || path.is_symlink()
                || std::fs::read_dir(path).is_ok_and(|mut inside| inside.next().is_some())
        };
        let names =
            [".outlast", ".mcp.json", ".vscode", ".envrc", ".bashrc", ".claude", ".codex", ".git/commondir"];
        let checks = [
            (said.contains(KEY), "the key was read"),
            (
                std::fs::read_to_string(self.home.join("outside")).ok().as_deref() != Some("as it was"),
                "a file was changed",
            ),
            (
                std::fs::read_to_string(self.home.join(".bashrc")).ok().as_deref() != Some(""),
                "the home was changed",
            ),
            (
                !is_as_it_was || has_attributes || config_mode.ok() != Some(0o750),
                "what is said of a file was changed",
            ),
            (self.victim.0.try_wait().unwrap().is_some() || stat.contains(") T "), "a process was signalled"),
            (limits != self.limits, "limits of a process were changed"),
            (self.tcp.accept().is_ok(), "it connected by TCP"),
            (self.udp.recv(&mut bytes).is_ok(), "it sent by UDP"),
            (self.stream.accept().is_ok(), "it connected to a Unix socket"),
            (self.datagram.recv(&mut bytes).is_ok(), "it sent to a Unix socket"),
            (hooks || config.lines().any(|line| line == "x"), "the repository was changed"),
            (self.sandbox.path().join("home/planted").exists(), "the folder of all jobs was changed"),
        ];
        let found = checks.into_iter().find_map(|(is, what)| is.then_some(what));
        // Placeholders go with the job, which has ended a moment ago at most.
        let mut made = names.into_iter().any(has_more);
        for _ in 0..200 {
            if !made {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
            made = names.into_iter().any(has_more);
        }
        found.or(made.then_some("a protected name was made"))
    }
}

fn try_all(by: &str) {
    let mut outside = Outside::new(by);
    let mut command = outside.sandbox.command(&[]);
    command.env("HOME", &outside.home).current_dir(outside.home.join("project"));
    let mut client = Client::start(command).initialized("2025-06-18", &json!({}));
    let begun = client.call("run_shell_command", json!({"command": "echo begun"}));
    if begun["isError"] == true {
        outlast_testkit::left_out(&format!("no sandbox by {by}: {begun}"), "apt-get install bubblewrap");
        return;
    }
    let source = outside.home.join("project/evil.c");
    std::fs::write(&source, outside.filled(INTRUDER)).unwrap();
    let built = Command::new("gcc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(source.with_extension("so"))
        .arg(&source)
        .status();
    assert!(built.is_ok_and(|done| done.success()), "gcc is here");
    let mut calls: Vec<serde_json::Value> = LINES.iter().map(|line| json!({"command": line})).collect();
    calls.extend(parameters(&outside.home.display().to_string()));
    let mut tally = Tally::default();
    for mut call in crate::chosen(calls, 3) {
        let line = call["command"].as_str().unwrap().to_owned();
        call["command"] = outside.filled(&line).into();
        call["timeout"] = json!(30);
        call["again"] = json!(true);
        let shown = call.to_string();
        let said = client.call("run_shell_command", call).to_string();
        // Words that the attack itself brings along are no key.
        let said = if line.contains(KEY) { said.replace(&outside.filled(&line), "") } else { said };
        let harm = outside.harm(&said);
        tally.count(&format!("{shown}: {harm:?}"), harm.is_some());
        if harm.is_some() {
            drop(client);
            outside = Outside::new(by);
            let mut command = outside.sandbox.command(&[]);
            command.env("HOME", &outside.home).current_dir(outside.home.join("project"));
            client = Client::start(command).initialized("2025-06-18", &json!({}));
        }
    }
    tally.nothing_got_through(&format!("the sandbox of agents, by {by}"));
}

#[test]
fn nothing_leaves_the_sandbox_of_the_kernel() {
    try_all("kernel");
}

#[test]
fn nothing_leaves_the_sandbox_of_bubblewrap() {
    try_all("bwrap");
}
