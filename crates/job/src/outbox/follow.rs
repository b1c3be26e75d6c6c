//! Follows outboxes: told by the kernel when one changes, or a new one appears.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use super::{FOLDER, Outbox};
use crate::failure::Failure;
use crate::registry::Home;

/// Says when an outbox may have changed.
#[derive(Debug)]
pub struct Changes {
    #[cfg(target_os = "linux")]
    inotify: OwnedFd,
}

#[cfg(target_os = "linux")]
fn broken(error: rustix::io::Errno) -> Failure {
    Failure::system("changes of the outbox can't be followed", error)
}

#[cfg(target_os = "linux")]
impl Changes {
    /// Begins to listen for sessions that get an outbox; to each outbox only once it is [added](Self::add).
    ///
    /// # Errors
    /// When the user has no inotify instances left.
    pub fn new(home: &Home) -> Result<Self, Failure> {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(broken)?;
        super::open_folder(home.as_dir(), FOLDER).map_err(broken)?;
        add_watch(&inotify, home.path().join(FOLDER), WatchFlags::CREATE).map_err(broken)?;
        Ok(Self { inotify })
    }

    /// Begins to listen for jobs that appear or are removed.
    ///
    /// # Errors
    /// When the user has no inotify instances left.
    pub fn of_jobs(home: &Home) -> Result<Self, Failure> {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(broken)?;
        let jobs = home.path().join(crate::registry::layout::JOBS);
        // A job gets its number, and loses it, by a change of its folder's name.
        add_watch(&inotify, jobs, WatchFlags::MOVED_TO | WatchFlags::MOVED_FROM).map_err(broken)?;
        Ok(Self { inotify })
    }

    /// Sleeps until something may have changed; false when `stop` became readable before.
    #[must_use]
    pub fn wait_or_stop(&self, stop: std::os::fd::BorrowedFd<'_>) -> bool {
        use rustix::event::{PollFd, PollFlags, poll};
        let mut both =
            [PollFd::new(&self.inotify, PollFlags::IN), PollFd::from_borrowed_fd(stop, PollFlags::IN)];
        let _ = poll(&mut both, None);
        let stopped = !both[1].revents().is_empty();
        self.forget();
        !stopped
    }

    /// Throws away what was told.
    fn forget(&self) {
        let mut buffer = [0; 4096];
        while let Ok(1..) = rustix::io::read(&self.inotify, &mut buffer) {}
    }

    /// Begins to listen to an outbox: what changes after this call is told. Again is no harm.
    ///
    /// # Errors
    /// When the user has no inotify watches left.
    pub fn add(&self, outbox: &Outbox) -> Result<(), Failure> {
        use rustix::fs::inotify::{WatchFlags, add_watch};
        let what = WatchFlags::MODIFY | WatchFlags::MOVED_TO | WatchFlags::CREATE;
        match add_watch(&self.inotify, &outbox.path, what) {
            // Retention has just removed it.
            Ok(_) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(broken(error)),
        }
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
        self.forget();
    }
}

/// Elsewhere the folder is looked at a few times a second: the one place that polls.
#[cfg(not(target_os = "linux"))]
impl Changes {
    /// # Errors
    /// Never.
    pub fn new(_: &Home) -> Result<Self, Failure> {
        Ok(Self {})
    }

    /// # Errors
    /// Never.
    pub fn of_jobs(_: &Home) -> Result<Self, Failure> {
        Ok(Self {})
    }

    /// Sleeps for a moment; false when `stop` became readable before.
    #[must_use]
    pub fn wait_or_stop(&self, stop: std::os::fd::BorrowedFd<'_>) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut stop = [PollFd::from_borrowed_fd(stop, PollFlags::IN)];
        let _ = poll(&mut stop, Some(&Timespec { tv_sec: 1, tv_nsec: 0 }));
        stop[0].revents().is_empty()
    }

    /// # Errors
    /// Never.
    pub fn add(&self, _: &Outbox) -> Result<(), Failure> {
        Ok(())
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
