//! Follows outboxes: told by the kernel when one changes, or a new one appears.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::inotify::Inotify;
use super::{FOLDER, Outbox};
use crate::failure::Failure;
use crate::registry::Home;

/// How often the folder is looked at where the kernel does not tell.
const LOOK: Duration = Duration::from_millis(250);

/// Says when an outbox may have changed.
#[derive(Debug)]
pub struct Changes {
    /// None where the kernel has none, or the user has no instances of it left. Then we look: the one place that polls.
    inotify: Option<Inotify>,
    folder: PathBuf,
    /// When the folder had last changed at the last look.
    seen: Mutex<Option<SystemTime>>,
}

impl Changes {
    /// Begins to listen for sessions that get an outbox; to each outbox only once it is [added](Self::add).
    ///
    /// # Errors
    /// When the user has no inotify watches left, or the home can't be used.
    pub fn new(home: &Home) -> Result<Self, Failure> {
        super::open_folder(home.as_dir(), FOLDER)
            .map_err(|error| Failure::system("cannot open the outbox", error))?;
        Self::of(home.path().join(FOLDER), Inotify::watch_sessions)
    }

    /// Begins to listen for jobs that appear or are removed.
    ///
    /// # Errors
    /// When the user has no inotify watches left.
    pub fn of_jobs(home: &Home) -> Result<Self, Failure> {
        let jobs = home.path().join(crate::registry::layout::JOBS);
        Self::of(jobs, Inotify::watch_jobs)
    }

    fn of(
        folder: PathBuf,
        watch: impl FnOnce(&Inotify, &Path) -> Result<Option<i32>, Failure>,
    ) -> Result<Self, Failure> {
        let inotify = Inotify::new();
        if let Some(inotify) = &inotify {
            watch(inotify, &folder)?;
        }
        let seen = Mutex::new(changed_at(&folder));
        Ok(Self { inotify, folder, seen })
    }

    /// Begins to listen to an outbox: what changes after this call is told. Calling it again does no harm.
    ///
    /// # Errors
    /// When the user has no inotify watches left.
    pub fn add(&self, outbox: &Outbox) -> Result<(), Failure> {
        self.inotify.as_ref().map_or(Ok(()), |inotify| inotify.watch_outbox(&outbox.path).map(drop))
    }

    /// Sleeps until something may have changed, or the deadline.
    pub fn wait(&self, deadline: Option<Instant>) {
        let Some(inotify) = &self.inotify else {
            let left = deadline.map_or(LOOK, |at| at.saturating_duration_since(Instant::now()));
            return std::thread::sleep(left.min(LOOK));
        };
        inotify.wait(deadline);
    }

    /// Sleeps until the folder itself has changed.
    pub fn wait_for_change(&self) {
        loop {
            self.wait(None);
            let now = changed_at(&self.folder);
            let before =
                std::mem::replace(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner), now);
            if self.inotify.is_some() || now != before {
                return;
            }
        }
    }
}

fn changed_at(folder: &Path) -> Option<SystemTime> {
    std::fs::metadata(folder).and_then(|data| data.modified()).ok()
}

/// How long entries are gathered before they are handed on together.
pub const BATCH: Duration = Duration::from_millis(200);
