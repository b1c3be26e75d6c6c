//! Follows an outbox: told by the kernel when it changes.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use super::Outbox;
use crate::failure::Failure;

/// Says when a folder's outbox may have changed.
#[derive(Debug)]
pub struct Changes {
    #[cfg(target_os = "linux")]
    inotify: OwnedFd,
}

#[cfg(target_os = "linux")]
impl Changes {
    /// Begins to listen: what changes after this call is told.
    ///
    /// # Errors
    /// When the user has no inotify instances left.
    pub fn of(outboxes: &[&Outbox]) -> Result<Self, Failure> {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let broken = |error| Failure::system("changes of the outbox can't be followed", error);
        let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(broken)?;
        for outbox in outboxes {
            let what = WatchFlags::MODIFY | WatchFlags::MOVED_TO | WatchFlags::CREATE;
            add_watch(&inotify, &outbox.path, what).map_err(broken)?;
        }
        Ok(Self { inotify })
    }

    /// Sleeps until something may have changed, or the deadline.
    pub fn wait(&self, deadline: Option<Instant>) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let left = deadline.map(|at| {
            let left = at.saturating_duration_since(Instant::now());
            Timespec {
                tv_sec: left.as_secs().min(1 << 30).cast_signed(),
                tv_nsec: i64::from(left.subsec_nanos()),
            }
        });
        let _ = poll(&mut [PollFd::new(&self.inotify, PollFlags::IN)], left.as_ref());
        let mut buffer = [0; 4096];
        while let Ok(1..) = rustix::io::read(&self.inotify, &mut buffer) {}
    }
}

/// Elsewhere the folder is looked at a few times a second: the one place that polls.
#[cfg(not(target_os = "linux"))]
impl Changes {
    /// # Errors
    /// Never.
    pub fn of(_: &[&Outbox]) -> Result<Self, Failure> {
        Ok(Self {})
    }

    /// Sleeps for a moment.
    pub fn wait(&self, deadline: Option<Instant>) {
        let left = deadline.map_or(LOOK, |at| at.saturating_duration_since(Instant::now()));
        std::thread::sleep(left.min(LOOK));
    }
}

#[cfg(not(target_os = "linux"))]
const LOOK: Duration = Duration::from_millis(250);

/// How long entries are gathered before they are handed on together.
pub const BATCH: Duration = Duration::from_millis(200);
