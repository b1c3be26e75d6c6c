//! Resource limits of a command: a cgroup of its own, or limits per process if there is none.

use std::io;
use std::os::fd::OwnedFd;

/// Prepared limits: what the child applies before it executes the command.
#[derive(Debug, Default)]
pub struct Limits {
    /// `cgroup.procs` of the cgroup to enter.
    pub group: Option<OwnedFd>,
    /// Private memory of each process, in bytes.
    pub memory: Option<u64>,
    /// The number of processes of this user.
    pub processes: Option<u64>,
    /// CPU time of each process, in seconds.
    pub cpu_seconds: Option<u64>,
}

impl Limits {
    /// Runs in the child between fork and exec, so it only makes system calls.
    pub(crate) fn apply(&self) -> io::Result<()> {
        if let Some(group) = &self.group {
            rustix::io::write(group, b"0")?;
        }
        if let Some(bytes) = self.memory {
            limit(libc::RLIMIT_DATA as i32, bytes, bytes)?;
        }
        self.apply_processes()?;
        if let Some(seconds) = self.cpu_seconds {
            // SIGXCPU comes first, with some time to clean up.
            limit(libc::RLIMIT_CPU as i32, seconds, seconds.saturating_add(2))?;
        }
        Ok(())
    }

    /// Only the number of processes: a user namespace keeps to what held when it was made.
    pub(crate) fn apply_processes(&self) -> io::Result<()> {
        match self.processes {
            Some(count) => limit(libc::RLIMIT_NPROC as i32, count, count),
            None => Ok(()),
        }
    }
}

fn limit(what: i32, soft: u64, hard: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: soft as libc::rlim_t, rlim_max: hard as libc::rlim_t };
    // SAFETY: the kernel only reads `limit`.
    #[expect(unsafe_code, reason = "runs between fork and exec")]
    let done = unsafe { libc::setrlimit(what as _, &raw const limit) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
