//! Runs a program with everything that it starts: all of it ends with the program, except jobs.
//!
//! An agent is more than one process: launchers, workers, its own servers. Killing the first leaves the
//! others to init. So the process that runs it becomes a subreaper, which adopts all orphans below it, and in
//! the end it walks the tree. Jobs that were started from inside are below it too: their keepers are
//! identified by their records, and are left alone with everything that they keep.

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

/// How long a process may take to end after SIGTERM.
const TERM_GRACE: Duration = Duration::from_secs(2);
/// How long SIGKILL is repeated before we give up: another user's process cannot be killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the processes are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Adopts orphans below us. Call it before the program is started.
///
/// # Errors
/// If the kernel refuses.
pub fn adopt_orphans() -> Result<(), Failure> {
    become_subreaper().map_err(|error| Failure::system("processes of the agent can't be followed", error))
}

/// Reaps orphans while the program runs, in a thread of its own.
pub fn reap_orphans(program: u32) {
    if let Some(pid) = i32::try_from(program).ok().and_then(Pid::from_raw) {
        std::thread::spawn(move || reap::reap_others_until_ended(pid));
    }
}

/// Calls `act` when this process gets a signal to end.
///
/// # Errors
/// If the process has no descriptor left.
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

/// Ends everything below this process except jobs. It may take `notice` to end by itself, before it gets
/// SIGTERM.
pub fn end_all(notice: Duration) {
    if ended_within(notice) {
        return;
    }
    signal_all(Signal::TERM);
    // A stopped process cannot end by itself.
    signal_all(Signal::CONT);
    if ended_within(TERM_GRACE) {
        return;
    }
    let until = Instant::now() + KILL_TIMEOUT;
    loop {
        // Stop everything first, so that nothing forks away from the walk.
        signal_all(Signal::STOP);
        signal_all(Signal::KILL);
        if ended_within(POLL_INTERVAL) || Instant::now() >= until {
            return;
        }
    }
}

fn signal_all(signal: Signal) {
    for process in members() {
        let _ = signal::send(&process, signal);
    }
}

/// A walk can miss a process that is just being reparented: two must agree.
fn ended_within(time: Duration) -> bool {
    let until = Instant::now() + time;
    loop {
        if members().is_empty() && members().is_empty() {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn members() -> Vec<Proc> {
    let mut processes = without_nested_jobs(procfs::descendants(getpid()));
    processes.retain(|process| !delivers(process.pid));
    processes
}

/// Whether it is a helper that a keeper has started to deliver wakes: it may finish.
fn delivers(pid: Pid) -> bool {
    procfs::arguments(pid)
        .is_some_and(|arguments| arguments.get(1).is_some_and(|verb| verb == DELIVER.as_bytes()))
}
