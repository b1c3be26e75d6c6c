//! What the numbers of processes are worth: of which boot and of which namespace they are, and which ones a process has.

use std::sync::OnceLock;

use rustix::process::Pid;

use super::{Proc, ProcReader, everything};

/// The random id of this boot: start times of two boots must not be compared.
#[must_use]
pub fn boot_id() -> Option<String> {
    static KNOWN: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let mut reader = ProcReader::new();
        let id = reader.read(format_args!("/proc/sys/kernel/random/boot_id")).ok()?;
        Some(String::from_utf8_lossy(id).trim().to_owned())
    };
    KNOWN.get_or_init(read).clone()
}

/// Which namespace the numbers of processes that this process knows are of.
#[must_use]
pub fn pid_namespace() -> Option<u64> {
    static KNOWN: OnceLock<Option<u64>> = OnceLock::new();
    *KNOWN.get_or_init(|| rustix::fs::stat("/proc/self/ns/pid").ok().map(|stat| stat.st_ino))
}

/// The numbers that a process has: in our namespace of processes first, in the one that it lives in last.
#[must_use]
pub fn numbers(pid: Pid) -> Vec<i32> {
    let mut reader = ProcReader::new();
    let known = || vec![pid.as_raw_nonzero().get()];
    let Ok(status) = reader.read_record(format_args!("/proc/{pid}/status")) else { return known() };
    let status = String::from_utf8_lossy(status);
    let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    pids.map_or_else(known, |pids| pids.split_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

/// The process that has a number in another namespace, and was started then.
#[must_use]
pub fn find_in(namespace: u64, number: i32, started: u64) -> Option<Proc> {
    let is_of = |pid: Pid| {
        let path = format!("/proc/{}/ns/pid", pid.as_raw_nonzero());
        rustix::fs::stat(path).is_ok_and(|stat| stat.st_ino == namespace)
    };
    everything().into_iter().find(|process| {
        process.start_time == started && numbers(process.pid).last() == Some(&number) && is_of(process.pid)
    })
}
