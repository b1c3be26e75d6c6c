//! The process at the other end of our stdin: for a server that an agent started, the agent.
//!
//! Launchers (`sh -c`, `npx`, `uvx`) pass on their own stdin. So the process that created the pipe is the
//! first ancestor with a different stdin.

use rustix::process::{Pid, getpid};

use crate::procfs::{self, Proc};

/// The living process at the other end of stdin; `None` if it cannot be seen from here, as across containers.
#[must_use]
pub fn stdin_peer() -> Option<Proc> {
    let stdin = procfs::descriptor_name(0)?;
    if stdin.starts_with("socket:")
        && let Some(peer) = procfs::peer_of(rustix::stdio::stdin()).and_then(living)
        && peer.pid != getpid()
    {
        return Some(peer);
    }
    if !stdin.starts_with("socket:") && !stdin.starts_with("pipe:") {
        return rustix::process::getppid().and_then(living);
    }
    let mut maker = None;
    procfs::walk_up(getpid(), |process, _| {
        let passes_on = process.pid == getpid() || stdin_name(process.pid).as_ref() == Some(&stdin);
        if !passes_on {
            maker = Some(process.clone());
        }
        passes_on
    });
    // A process whose parent is init was orphaned, and init did not create the pipe (except perhaps in a
    // container).
    maker.filter(|maker| maker.pid != Pid::INIT).or_else(|| holder(&stdin))
}

fn living(pid: Pid) -> Option<Proc> {
    procfs::stat(pid).filter(Proc::is_alive)
}

fn stdin_name(pid: Pid) -> Option<String> {
    procfs::standard_descriptors(pid).into_iter().find(|(fd, _)| *fd == 0).map(|(_, name)| name)
}

/// The oldest process that holds a pipe other than as its stdin.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
fn holder(pipe: &str) -> Option<Proc> {
    let holds = |process: &Proc| {
        let Ok(fds) = std::fs::read_dir(format!("/proc/{}/fd", process.pid.as_raw_nonzero())) else {
            return false;
        };
        fds.flatten().any(|fd| {
            fd.file_name() != "0" && std::fs::read_link(fd.path()).is_ok_and(|link| link.as_os_str() == pipe)
        })
    };
    let mut all = procfs::everything();
    all.retain(|process| process.pid != getpid() && process.is_alive());
    all.sort_by_key(|process| process.start_time);
    all.into_iter().find(holds)
}

/// Descriptors of others can't be seen.
#[cfg(any(not(target_os = "linux"), outlast_portable))]
fn holder(_pipe: &str) -> Option<Proc> {
    None
}
