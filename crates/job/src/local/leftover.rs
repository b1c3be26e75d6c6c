//! What a lost job left running. Keeper and heir are gone, so nobody is its parent any more; but its processes
//! still belong to the session the heir led, hold the job's terminal or pipes, carry its mark in their environment, or are in
//! its control group. One that has left all of these, as with `setsid env -i`, or that belongs to another user, is not found.

use std::time::{Duration, Instant};

use outlast_pty::procfs::{self, Proc};
use outlast_pty::{ports, signal};
use rustix::process::{Pid, Signal};

use crate::lifecycle::{self, Process, State};
use crate::limits::{Group, LimitedBy};
use crate::registry::format::Info;
use crate::spec::MARK;
use crate::wire::Killed;

/// How long we try before we name what can't be ended.
const GIVE_UP: Duration = Duration::from_secs(2);
/// Of more processes than this the ports are not looked for.
const MAX_WITH_PORTS: usize = 16;
/// A command's start is known to a clock tick, and its terminal was made just before.
const TERMINAL_SLACK: Duration = Duration::from_millis(20);
/// How often we look again.
const ROUND: Duration = Duration::from_millis(10);

/// The processes that a job which has ended, or is lost, left and that still run.
#[must_use]
pub(crate) fn find(info: &Info) -> Vec<Process> {
    match &info.state {
        State::Lost { .. } => with_ports(living(info)),
        ended @ (State::Queued(_)
        | State::Starting
        | State::Running { .. }
        | State::Completed(_)
        | State::Failed(_)
        | State::Killed(_)) => {
            let left = ended.receipt().map(|receipt| still_there(info, &receipt.left_behind));
            with_ports(left.unwrap_or_default())
        }
    }
}

/// Those of a receipt that have not ended since, as they are now: a shell that was about to execute a program is that program.
fn still_there(info: &Info, left_behind: &[Process]) -> Vec<Proc> {
    if left_behind.is_empty() || procfs::boot_id().is_none_or(|boot| boot != info.boot_id) {
        return Vec::new();
    }
    let now = |process: &Process| {
        let now = Pid::from_raw(process.pid).and_then(procfs::stat)?;
        (now.start_time == process.started && now.is_alive()).then_some(now)
    };
    left_behind.iter().filter_map(now).collect()
}

/// With the ports that they listen on. A port of a process that was started later counts for the one above it.
fn with_ports(living: Vec<Proc>) -> Vec<Process> {
    let held: Vec<Vec<ports::Port>> = living.iter().take(MAX_WITH_PORTS).map(ports::listening_with).collect();
    let mut processes: Vec<Process> = living.into_iter().map(lifecycle::process).collect();
    for (above, port) in
        held.into_iter().enumerate().flat_map(|(i, held)| held.into_iter().map(move |port| (i, port)))
    {
        let holder = processes.iter().position(|one| one.pid == port.pid.as_raw_nonzero().get());
        let ports = &mut processes[holder.unwrap_or(above)].ports;
        if !ports.contains(&port.port) {
            ports.push(port.port);
        }
    }
    processes
}

/// As [`find`], for a job of which it is not known that it is lost: none otherwise.
#[must_use]
pub(crate) fn find_if_lost(info: &Info) -> Vec<Process> {
    if matches!(info.state, State::Lost { .. }) { find(info) } else { Vec::new() }
}

/// Ends what a lost job left.
pub(crate) fn end(info: &Info, grace: Duration) -> Killed {
    let signalled = end_all(|| living(info), grace);
    // Nobody is its parent any more, so the kernel does not tell us either whether one of another user is left.
    let unseen = procfs::hides_other_users();
    let note = unseen.then(|| {
        "what it started as another user can't be seen here (/proc hides it), and may still run".to_owned()
    });
    Killed { signalled, survivors: find(info), already_ended: signalled == 0 && !unseen, unseen, note }
}

/// Ends processes that are not ours: `SIGTERM`, and `SIGKILL` after the grace. Says how many got the first signal.
pub(super) fn end_all(living: impl Fn() -> Vec<Proc>, grace: Duration) -> usize {
    let signalled = signal_all(&living(), Signal::TERM);
    signal_all(&living(), Signal::CONT);
    let force_at = Instant::now() + grace;
    while !living().is_empty() && Instant::now() < force_at + GIVE_UP {
        if Instant::now() >= force_at {
            signal_all(&living(), Signal::STOP);
            signal_all(&living(), Signal::KILL);
        }
        // They are not our children: the kernel does not tell us when they end.
        std::thread::sleep(ROUND);
    }
    signalled
}

pub(super) fn signal_all(processes: &[Proc], signal: Signal) -> usize {
    processes.iter().filter(|process| signal::send(process, signal).is_ok()).count()
}

/// All living processes that are known to be of a job, no matter who their parent is.
pub(crate) fn living(info: &Info) -> Vec<Proc> {
    if procfs::boot_id().is_none_or(|boot| boot != info.boot_id) {
        return Vec::new();
    }
    let Some(born) = info.process.as_ref().map(|process| process.started) else { return Vec::new() };
    // The number of a session stays taken for as long as one process is in it. One from another namespace says nothing here.
    let is_known = info.pid_namespace.is_none_or(|of| procfs::pid_namespace() == Some(of));
    let session = info.heir.as_ref().filter(|_| is_known).map(|heir| heir.pid);
    let mark = info.mark.as_ref().map(|mark| format!("{MARK}={mark}"));
    let is_marked = |pid| mark.as_ref().is_some_and(|mark| procfs::environment_has(pid, mark.as_bytes()));
    let in_group = match &info.limited_by {
        Some(LimitedBy::Cgroup(path)) => Group::members(path),
        Some(LimitedBy::EachProcess) | None => Vec::new(),
    };
    let made_before = procfs::wall_time_of(born) + TERMINAL_SLACK;
    let own = rustix::process::getpid();
    procfs::everything()
        .into_iter()
        .filter(|process| process.is_alive() && process.start_time >= born && process.pid != own)
        .filter(|process| {
            session == Some(process.session)
                || in_group.contains(&process.pid.as_raw_nonzero().get())
                || holds_an_end(process, &info.endpoints, made_before)
                || is_marked(process.pid)
        })
        .collect()
}

/// Whether one of a process's standard descriptors is an end of the job. A terminal whose master is closed shows as deleted.
/// Its number is given away again, so one that was made after the job's command began is another one.
fn holds_an_end(process: &Proc, endpoints: &[String], made_before: Duration) -> bool {
    procfs::standard_descriptors(process.pid).iter().any(|(fd, name)| {
        let end = name.strip_suffix(" (deleted)").unwrap_or(name);
        if !endpoints.iter().any(|endpoint| endpoint == end) {
            return false;
        }
        let is_terminal = end.starts_with("/dev/");
        !is_terminal
            || (end.len() < name.len() && made_at(process.pid, *fd).is_some_and(|at| at <= made_before))
    })
}

/// When the file behind a descriptor was made, since 1970: for a terminal, whose owner and mode nobody changes, the time of
/// the last such change.
fn made_at(pid: Pid, fd: i32) -> Option<Duration> {
    let file = rustix::fs::stat(format!("/proc/{}/fd/{fd}", pid.as_raw_nonzero())).ok()?;
    Some(Duration::new(u64::try_from(file.st_ctime).ok()?, u32::try_from(file.st_ctime_nsec).ok()?))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;

    /// Numbers of terminals are given away again: what runs on a later one is not ours, and must not be ended.
    #[test]
    fn a_later_terminal_of_the_same_number_is_another_one() {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let terminal = std::fs::OpenOptions::new().read(true).write(true).open(&name).unwrap();
        let mut child =
            Command::new("sleep").arg("1000").stdin(terminal).stdout(Stdio::null()).spawn().unwrap();
        drop(master);
        let process = procfs::stat(Pid::from_child(&child)).unwrap();
        let made = made_at(process.pid, 0).unwrap();
        let ends = [name];
        assert!(holds_an_end(&process, &ends, made));
        assert!(!holds_an_end(&process, &ends, made - Duration::from_millis(1)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
