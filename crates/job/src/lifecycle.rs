//! The states of a job and how it ended, with what the kernel says in those words.

pub use outlast_protocol::lifecycle::*;

/// What the kernel says that a process used.
pub(crate) fn used(usage: outlast_pty::reap::Usage) -> Used {
    Used {
        user_ms: crate::clock::millis(usage.user),
        system_ms: crate::clock::millis(usage.system),
        max_rss_kib: usage.max_rss_kib,
    }
}

/// A process as `/proc` shows it.
pub(crate) fn process(process: outlast_pty::procfs::Proc) -> Process {
    let (pid, started) = (process.pid.as_raw_nonzero().get(), process.start_time);
    Process { pid, started, program: process.comm, ports: Vec::new() }
}
