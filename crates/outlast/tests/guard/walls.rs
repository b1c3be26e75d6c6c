//! Ways around the walls that need no hole in them: code loaded into the program that builds them, and calls that change
//! processes outside.

use std::process::{Child, Command, Stdio};

use outlast_testkit::{TEST_TIMEOUT, eventually, has};

use crate::sandbox;
use crate::sandbox::{can, confined, has_bwrap};

/// Appends to the files that its environment names: one outside the walls, one inside.
const INTRUDER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static void leave(const char *name) {
  const char *path = getenv(name);
  FILE *file = path ? fopen(path, "a") : NULL;
  if (file) { fputs("loaded\n", file); fclose(file); }
}
__attribute__((constructor)) static void loaded(void) { leave("OUTSIDE"); leave("INSIDE"); }
unsigned int la_version(unsigned int version) { leave("OUTSIDE"); return version; }
"#;

#[test]
fn libraries_that_a_job_preloads_are_not_loaded_into_bubblewrap() {
    let sandbox = sandbox();
    if !has_bwrap(&sandbox) || !has("gcc") {
        return;
    }
    let work = sandbox.work();
    std::fs::write(work.join("intruder.c"), INTRUDER).unwrap();
    let built = Command::new("gcc")
        .args(["-shared", "-fPIC", "-o", "intruder.so", "intruder.c"])
        .current_dir(&work)
        .status()
        .unwrap();
    assert!(built.success());
    // By LD_LIBRARY_PATH under the names of libraries that bubblewrap is linked with.
    std::fs::create_dir(work.join("lib")).unwrap();
    for name in ["libcap.so.2", "libselinux.so.1"] {
        std::fs::copy(work.join("intruder.so"), work.join("lib").join(name)).unwrap();
    }
    let outside = sandbox.root().join("outside");
    let path = |name: &str| work.join(name).display().to_string();
    for (variable, value, acts_inside) in [
        ("LD_PRELOAD", path("intruder.so"), true),
        ("LD_AUDIT", path("intruder.so"), true),
        ("LD_LIBRARY_PATH", path("lib"), false),
    ] {
        let inside = work.join(format!("inside-{variable}"));
        let ran = sandbox
            .call(["run", "-q", "-n", "--sandbox=bwrap"])
            .args(["-e", &format!("OUTSIDE={}", outside.display())])
            .args(["-e", &format!("INSIDE={}", inside.display())])
            .args(["-e", &format!("{variable}={value}")])
            .args(["--", "/bin/sh", "-c", &format!("echo ${variable}")])
            .run();
        assert!(!outside.exists(), "{variable} acted outside the walls");
        assert!(ran.ok().text().contains(&value), "the job has {variable} all the same");
        assert_eq!(inside.exists(), acts_inside, "{variable} acts in the job itself");
    }
}

#[test]
fn no_command_line_shows_what_a_job_under_bubblewrap_is_given() {
    let sandbox = sandbox();
    if !has_bwrap(&sandbox) {
        return;
    }
    let secret = "rV7-otter-Qx42/no-one";
    let variable = format!("DEPLOY_TOKEN={secret}");
    let line = "test -n \"$DEPLOY_TOKEN\" && echo has it && sleep 1000";
    let job = sandbox.start(["--sandbox=bwrap", "-e", &variable, "--", "sh", "-c", line]);
    sandbox.wait_for_text(job, "has it");
    let mut seen = 0;
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let arguments = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        seen += usize::from(arguments.windows(5).any(|window| window == b"bwrap"));
        assert!(!arguments.windows(secret.len()).any(|window| window == secret.as_bytes()));
    }
    assert!(seen > 0, "bubblewrap runs");
}

#[test]
fn the_kernels_own_settings_are_read_only_under_bubblewrap() {
    let sandbox = sandbox();
    if !has_bwrap(&sandbox) {
        return;
    }
    // Root can write them outside. Nothing is written here: the kernel is only asked whether it could be.
    let line = "for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger; do test -w $f && echo writable: $f; done; \
        cat /proc/sys/kernel/ostype";
    let text = sandbox.run(["run", "-q", "-n", "--sandbox=bwrap", "--", "bash", "-c", line]).ok().text();
    assert_eq!(text.trim(), "Linux");
}

#[test]
fn nothing_is_left_behind_by_a_job_under_bubblewrap() {
    let sandbox = sandbox();
    if !has_bwrap(&sandbox) {
        return;
    }
    // Its namespace dies with it, and many processes take a moment to go.
    let line = "for i in $(seq 30); do sleep 1000 & done; exit 0";
    let job = sandbox.start(["--sandbox=bwrap", "--", "bash", "-c", line]);
    sandbox.wait_for_end(job);
    let ended = sandbox.events(job).into_iter().find(|event| event["status"] == "completed").unwrap();
    assert!(ended["left_behind"].as_array().is_none_or(Vec::is_empty), "{ended}");
    sandbox.nothing_runs();
}

/// Runs a line in a sandbox of a user who can't have namespaces, where we can make one.
fn confined_without_namespaces(
    sandbox: &outlast_testkit::Sandbox,
    line: &str,
) -> Option<outlast_testkit::Ran> {
    crate::without_namespaces(sandbox, &["run", "-q", "-n", "--sandbox", "bash", "-c", line])
}

/// A process outside, ended with the test.
struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn it_changes_limits_and_priorities_of_itself_and_of_nobody_else() {
    let sandbox = sandbox();
    if !can(&sandbox) || !has("prlimit") || !has("taskset") {
        return;
    }
    let nothing = Stdio::null;
    let mut victim = Command::new("sleep");
    victim.arg("1000").stdin(nothing()).stdout(nothing()).stderr(nothing());
    let mut victim = Victim(victim.spawn().unwrap());
    let pid = victim.0.id();
    let limits = || std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let nice = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(") ").next().unwrap().split(' ').nth(16).unwrap().to_owned()
    };
    let before = (limits(), nice());
    for line in [
        format!("prlimit --pid {pid} --cpu=1:1"),
        format!("prlimit --pid {pid} --nofile=3:3"),
        format!("taskset -pc 0 {pid}"),
        format!("chrt -b -p 0 {pid}"),
        format!("renice -n 9 -p {pid}"),
        "renice -n 9 -u $(id -u)".to_owned(),
        format!("ionice -c 3 -p {pid}"),
    ] {
        let ran = confined(&sandbox, &[], &line);
        // With processes of its own it does not see others; without, the kernel refuses.
        assert!(ran.code != Some(0) || line.contains("-u "), "{line}: {}", ran.text());
        if let Some(ran) = confined_without_namespaces(&sandbox, &line) {
            assert!(ran.code != Some(0) && ran.text().contains("not permitted"), "{line}: {}", ran.text());
        }
    }
    assert_eq!((limits(), nice()), before);
    assert!(victim.0.try_wait().unwrap().is_none(), "it lives");
    let own = "prlimit --nofile=500:500 bash -c 'ulimit -n' && (ulimit -S -c 0; ulimit -n 400; ulimit -n) && \
        taskset -c 0 true && chrt -b 0 true && nice -n 5 nice && ionice -c 3 true && prlimit --pid $$ --nofile";
    let text = confined(&sandbox, &[], own).ok().text();
    assert!(text.replace('\r', "").starts_with("500\n400\n5\n"), "{text}");
}

#[test]
fn it_shares_no_memory_and_sends_no_datagram_past_the_file_system() {
    let sandbox = sandbox();
    if !can(&sandbox) || !has("/usr/bin/python3") {
        return;
    }
    let path = sandbox.root().join("log");
    let listener = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let send = format!(
        "import socket; a,b=socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b\"hello\", \"{}\")",
        path.display()
    );
    let python = |code: &str| format!("/usr/bin/python3 -c '{code}'");
    let mut heard = [0; 8];
    assert_ne!(confined(&sandbox, &[], &python(&send)).code, Some(0));
    assert!(listener.recv(&mut heard).is_err(), "{heard:?}");
    sandbox.run(["run", "-q", "-n", "bash", "-c", &python(&send)]).ok();
    eventually("it is heard from outside", TEST_TIMEOUT, || listener.recv(&mut heard).map_err(|e| e.kind()));
    // shmget, semget and msgget, private ones too: the kernel is said not to know them.
    let make = "import ctypes,os; l=ctypes.CDLL(None, use_errno=True)\n\
        for made in (lambda: l.shmget(0, 64, 0o1600), lambda: l.semget(0, 1, 0o1600), lambda: l.msgget(0, 0o1600)):\n\
        \x20 assert made() == -1 and ctypes.get_errno() == 38";
    if let Some(ran) = confined_without_namespaces(&sandbox, &python(make)) {
        ran.ok();
    }
    // With an IPC namespace it has its own: what is outside is not there.
    if has("ipcmk") && has("ipcrm") {
        let made = Command::new("ipcmk").args(["-M", "64"]).output().unwrap();
        let id: String = String::from_utf8_lossy(&made.stdout).chars().filter(char::is_ascii_digit).collect();
        let attach = format!(
            "import ctypes; l=ctypes.CDLL(None); l.shmat.restype=ctypes.c_long; assert l.shmat({id}, None, 0) == -1"
        );
        let ran = confined(&sandbox, &[], &python(&attach));
        assert!(Command::new("ipcrm").args(["-m", &id]).status().unwrap().success());
        ran.ok();
    }
    // What programs use of sockets among themselves works.
    let pairs = "import socket\nfor kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):\n\
        \x20 a,b=socket.socketpair(socket.AF_UNIX, kind); a.send(b\"x\"); assert b.recv(1) == b\"x\"";
    confined(&sandbox, &[], &python(pairs)).ok();
}
