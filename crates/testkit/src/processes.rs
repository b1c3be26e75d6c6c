//! Processes of a test: found by their environment, identified by pid and start time, ended and verified.

use std::path::Path;

use outlast_pty::procfs::{self, Proc};
use outlast_pty::signal;
use rustix::process::{Pid, Signal};

use crate::{TEST_TIMEOUT, eventually};

/// The variable in the environment of every client of a sandbox, and so of every job in it.
pub(crate) const MARK: &str = "SANDBOX_MARK";

/// The living process with a pid and start time.
#[must_use]
pub fn alive(pid: i32, started: u64) -> Option<Proc> {
    let process = procfs::stat(Pid::from_raw(pid)?)?;
    (process.start_time == started && process.is_alive()).then_some(process)
}

/// The living process with a pid that the caller has just read.
#[must_use]
pub fn find(pid: i32) -> Option<Proc> {
    procfs::stat(Pid::from_raw(pid)?).filter(Proc::is_alive)
}

/// Sends a signal to a process, if it is still the same one.
pub fn send(process: &Proc, signal: Signal) {
    let _ = signal::send(process, signal);
}

/// Kills a process and waits until it has ended.
pub fn kill_dash_nine(process: &Proc) {
    let pid = process.pid.as_raw_nonzero().get();
    send(process, Signal::KILL);
    eventually("a killed process is gone", TEST_TIMEOUT, || match alive(pid, process.start_time) {
        None => Ok(()),
        Some(process) => Err(process),
    });
}

/// Keepers and heirs of a home, and everything that a client of its sandbox started.
pub(crate) fn of_sandbox(home: &Path, mark: &str) -> Vec<Proc> {
    let me = rustix::process::getpid();
    let wanted = format!("{MARK}={mark}");
    procfs::everything()
        .into_iter()
        .filter(|process| process.pid != me && process.is_alive())
        .filter(|process| keeps(process, home) || carries(process, wanted.as_bytes()))
        .collect()
}

/// Whether a process is a keeper or heir of a home: `PROGRAM keep HOME`.
fn keeps(process: &Proc, home: &Path) -> bool {
    procfs::arguments(process.pid).is_some_and(|arguments| match arguments.as_slice() {
        [_, verb, folder] | [_, verb, folder, _] => {
            verb == b"keep" && folder == home.as_os_str().as_encoded_bytes()
        }
        _ => false,
    })
}

/// Living processes that name a folder in their arguments or their environment, and so were started for it.
#[must_use]
pub fn naming(folder: &Path) -> Vec<Proc> {
    let wanted = folder.as_os_str().as_encoded_bytes();
    let me = rustix::process::getpid();
    let names = |process: &Proc| {
        let file = |name: &str| std::fs::read(format!("/proc/{}/{name}", process.pid.as_raw_nonzero()));
        let is_in = |bytes: Vec<u8>| bytes.windows(wanted.len()).any(|part| part == wanted);
        ["cmdline", "environ"].into_iter().any(|name| file(name).is_ok_and(is_in))
    };
    procfs::everything()
        .into_iter()
        .filter(|process| process.pid != me && process.is_alive() && names(process))
        .collect()
}

fn carries(process: &Proc, wanted: &[u8]) -> bool {
    let file = format!("/proc/{}/environ", process.pid.as_raw_nonzero());
    std::fs::read(file).is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == wanted))
}

/// A field of `/proc/PID/status` in KiB, for example `VmHWM`.
#[must_use]
pub fn status_kib(pid: i32, field: &str) -> u64 {
    kib(&format!("/proc/{pid}/status"), field)
}

/// Memory that a process does not share and that cannot be dropped, in KiB; `None` if only root may read it.
#[must_use]
pub fn private_dirty_kib(pid: i32) -> Option<u64> {
    let exact = format!("/proc/{pid}/smaps_rollup");
    std::fs::read(&exact).is_ok().then(|| kib(&exact, "Private_Dirty"))
}

fn kib(file: &str, field: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let value = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    value.unwrap_or_else(|| panic!("{file} has no {field}"))
}

/// The CPU time that a process has used, in clock ticks.
#[must_use]
pub fn cpu_ticks(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after = &text[text.rfind(')').unwrap() + 2..];
    let field = |i: usize| -> u64 { after.split(' ').nth(i).unwrap().parse().unwrap() };
    field(11) + field(12)
}
