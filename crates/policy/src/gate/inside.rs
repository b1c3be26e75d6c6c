//! Whether the caller runs inside a job.

use std::sync::OnceLock;

use outlast_job::lifecycle::Process;
use outlast_job::registry::format::Info;
use outlast_pty::procfs;
use rustix::process::{Pid, getpid};

/// No process has more ancestors than this.
const MAX_ANCESTORS: usize = 4096;

/// Whether this process runs in a job, or in one that was started from inside it: ending that job would end
/// the caller, or the one who started it.
pub(super) fn we_are_in(info: &Info) -> bool {
    let is = |known: &Option<Process>, pid: Pid, started: u64| {
        known
            .as_ref()
            .is_some_and(|known| known.pid == pid.as_raw_nonzero().get() && known.started == started)
    };
    ancestors().any(|(pid, started)| is(&info.keeper, pid, started) || is(&info.heir, pid, started))
}

/// Whether this process runs in a job of any home. It is found out once: no ancestor becomes a keeper later, and who loses its
/// parent is given to another ancestor.
pub(super) fn we_are_in_any() -> bool {
    static INSIDE: OnceLock<bool> = OnceLock::new();
    *INSIDE.get_or_init(look_for_keepers_above)
}

fn look_for_keepers_above() -> bool {
    let keeps = |pid: Pid| {
        procfs::arguments(pid).is_some_and(|arguments| arguments.get(1).is_some_and(|verb| verb == b"keep"))
    };
    ancestors().any(|(pid, _)| keeps(pid))
}

/// Whether our group is the foreground group of our terminal. A group outside our pid namespace has no
/// number.
pub(super) fn we_are_in_front() -> bool {
    procfs::stat(getpid()).is_some_and(|me| me.pgrp == me.tpgid)
}

/// The ancestors of this process, with their start times.
fn ancestors() -> impl Iterator<Item = (Pid, u64)> {
    let mut next = procfs::stat(getpid()).and_then(|me| me.ppid);
    std::iter::from_fn(move || {
        let process = procfs::stat(next?)?;
        next = process.ppid;
        Some((process.pid, process.start_time))
    })
    .take(MAX_ANCESTORS)
}
