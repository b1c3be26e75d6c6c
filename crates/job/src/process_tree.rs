//! A program that is run for somebody, with everything that it starts: all of it ends with it, except jobs.
//!
//! An agent is more than one process: launchers, workers, servers of its own. Killing the first leaves the others to
//! init. So whoever runs it becomes a subreaper, which makes everything that loses its parent its own child, and in the
//! end it walks the tree. Jobs that were started from inside are below it too: their keepers are known by their records,
//! and are left alone with all that they keep.

use std::time::{Duration, Instant};

use outlast_pty::detach::become_subreaper;
use outlast_pty::procfs::{self, Proc};
use outlast_pty::signals::Signals;
use outlast_pty::{reap, signal};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, getpid};

use crate::failure::Failure;
use crate::keeper::nested::without_nested_jobs;
use crate::wakes::deliver::DELIVER;

/// How long it may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);
/// How long it is killed before we give up: another user's process can't be ended.
const GIVE_UP: Duration = Duration::from_secs(5);
/// How often we look.
const ROUND: Duration = Duration::from_millis(10);

/// Takes in what loses its parent below us. Call it before the program is started.
///
/// # Errors
/// When the kernel refuses.
pub fn adopt_orphans() -> Result<(), Failure> {
    become_subreaper().map_err(|error| Failure::system("processes of the agent can't be followed", error))
}

/// Lets go of orphans that have ended, as long as the program runs, in a thread of its own.
pub fn reap_orphans(program: u32) {
    if let Some(pid) = i32::try_from(program).ok().and_then(Pid::from_raw) {
        std::thread::spawn(move || reap::reap_others_until_ended(pid));
    }
}

/// Calls `act` when somebody asks this process to end.
///
/// # Errors
/// When the process has no descriptor left.
pub fn on_end_signal(act: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let signals = Signals::catch(&[Signal::TERM, Signal::HUP, Signal::INT])
        .map_err(|error| Failure::system("signals can't be caught", error))?;
    std::thread::spawn(move || {
        while signals.take().is_empty() {
            let _ = poll(&mut [PollFd::new(&signals, PollFlags::IN)], None);
        }
        act();
    });
    Ok(())
}

/// Ends everything below this process that is no job. It may take `notice` to end by itself, before it is asked to.
pub fn end_all(notice: Duration) {
    if gone_within(notice) {
        return;
    }
    signal_all(Signal::TERM);
    // What is stopped can't end by itself.
    signal_all(Signal::CONT);
    if gone_within(GRACE) {
        return;
    }
    let until = Instant::now() + GIVE_UP;
    loop {
        // Stopped first, so that nothing forks away from the walk.
        signal_all(Signal::STOP);
        signal_all(Signal::KILL);
        if gone_within(ROUND) || Instant::now() >= until {
            return;
        }
    }
}

fn signal_all(signal: Signal) {
    for process in members() {
        let _ = signal::send(&process, signal);
    }
}

/// A walk can miss a process that is just being handed over: two must agree.
fn gone_within(time: Duration) -> bool {
    let until = Instant::now() + time;
    loop {
        if members().is_empty() && members().is_empty() {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(ROUND);
    }
}

fn members() -> Vec<Proc> {
    let mut processes = without_nested_jobs(procfs::descendants(getpid()));
    processes.retain(|process| !delivers(process.pid));
    processes
}

/// Whether it is a helper that a keeper has left to do its work: what it tells is told.
fn delivers(pid: Pid) -> bool {
    procfs::arguments(pid)
        .is_some_and(|arguments| arguments.get(1).is_some_and(|verb| verb == DELIVER.as_bytes()))
}
