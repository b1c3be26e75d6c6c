//! Removes one ended job, and says what is pinned.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_protocol::{Call, Hint};
use outlast_pty::procfs;
use outlast_pty::watched::Watched;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, statat};
use rustix::process::Pid;

use super::{Local, LocalJob};
use crate::failure::Failure;
use crate::registry::format::Info;
use crate::registry::layout;
use crate::registry::sweep::remove_job;
use crate::spec::Handle;

/// How long the keeper of a job that has ended may take to leave.
const KEEPER_TIMEOUT: Duration = Duration::from_secs(10);

impl Local {
    /// Removes a job that has ended; says how much disk space that gave back.
    ///
    /// # Errors
    /// A usage failure for a job that runs, that left processes which still run, or that is pinned.
    pub(super) fn remove(&self, handle: Handle) -> Result<u64, Failure> {
        let job = LocalJob::new(Arc::new(self.open_apart(handle)?), false);
        let info = job.info()?;
        if job.open.dir.is_pinned() {
            return Err(Failure::usage(format!("job {handle} is pinned"))
                .hint(format!("let it go first: outlast pin --remove {handle}")));
        }
        if !info.state.is_live() && !super::leftover::find(&info).is_empty() {
            return Err(Failure::usage(format!("job {handle} has ended, and left processes that still run"))
                .hint(Hint::call("end them first: ", Call::Kill(handle.to_string()))));
        }
        if !info.state.is_live() {
            wait_for_keeper(&info);
        }
        remove_job(&self.home, handle)
    }

    pub(super) fn is_pinned(&self, handle: Handle) -> bool {
        let mark = format!("{handle}/{}", layout::PINNED);
        statat(self.home.jobs_dir(), mark, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }
}

/// Waits until the keeper and the heir of a job that has ended are gone: they still bring its log to the disk.
fn wait_for_keeper(info: &Info) {
    let deadline = Instant::now() + KEEPER_TIMEOUT;
    for process in [&info.keeper, &info.heir].into_iter().flatten() {
        let Some(pid) = Pid::from_raw(process.pid) else { continue };
        let Ok(end) = Watched::open(pid) else { continue };
        // Only now: the descriptor stays with this process, even if its number is given away later.
        if procfs::start_time(pid) == Some(process.started) {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout =
                Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
            let _ = poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&timeout));
        }
    }
}
