//! Folders whose changes are told, all by one inotify instance: the list of jobs, and sessions' outboxes.
//!
//! Where the kernel has no inotify, or the user has no instance of it left, the folders are looked at now and then: the
//! one place that polls.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::follow::News;
use super::waiter::Tell;
use crate::outbox::inotify::Inotify;

/// How often folders are looked at where the kernel does not tell.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// A folder, and which changes of it count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FolderKind {
    /// The jobs of a home: one appears, or is removed.
    Jobs(PathBuf),
    /// A session's outbox: it is written or replaced.
    Outbox(PathBuf),
}

impl FolderKind {
    fn watch(&self, inotify: &Inotify) -> Option<i32> {
        match self {
            Self::Jobs(path) => inotify.watch_jobs(path).ok()?,
            Self::Outbox(path) => inotify.watch_outbox(path).ok()?,
        }
    }
}

struct Subscriber {
    id: u64,
    kind: FolderKind,
    tell: Tell,
    /// The kernel's number of its watch.
    watch: Option<i32>,
    /// When the folder had last changed, where we look ourselves.
    seen: Option<SystemTime>,
}

/// All folders whose changes are told.
#[derive(Default)]
pub(super) struct Folders {
    inotify: Option<Inotify>,
    subscribers: Vec<Subscriber>,
    /// When to look next, where the kernel does not tell.
    look_at: Option<Instant>,
}

impl Folders {
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.as_ref().map(Inotify::fd)
    }

    pub(super) fn look_at(&self) -> Option<Instant> {
        self.look_at
    }

    pub(super) fn add(&mut self, id: u64, kind: FolderKind, tell: Tell) {
        if self.inotify.is_none() {
            self.inotify = Inotify::new();
        }
        let watch = self.inotify.as_ref().and_then(|inotify| kind.watch(inotify));
        let seen = changed_at(&kind);
        if watch.is_none() && self.look_at.is_none() {
            self.look_at = Some(Instant::now() + POLL_INTERVAL);
        }
        self.subscribers.push(Subscriber { id, kind, tell, watch, seen });
    }

    pub(super) fn remove(&mut self, id: u64) {
        let Some(at) = self.subscribers.iter().position(|one| one.id == id) else { return };
        let removed = self.subscribers.remove(at);
        // Several may share a watch.
        let shared = self.subscribers.iter().any(|one| one.watch == removed.watch);
        if let (Some(watch), Some(inotify), false) = (removed.watch, &self.inotify, shared) {
            inotify.unwatch(watch);
        }
        if self.subscribers.iter().all(|one| one.watch.is_some()) {
            self.look_at = None;
        }
    }

    /// Tells those whose folder has changed, by what the kernel says.
    pub(super) fn read(&mut self) {
        let Some(inotify) = &mut self.inotify else { return };
        let changed = inotify.changed();
        self.tell(|one| one.watch.is_some_and(|watch| changed.contains(&watch)));
    }

    /// The same by our own look, where it is time for one.
    pub(super) fn look_if_due(&mut self, now: Instant) {
        if self.look_at.is_none_or(|at| now < at) {
            return;
        }
        self.look_at = Some(now + POLL_INTERVAL);
        self.tell(|one| {
            let now = changed_at(&one.kind);
            let before = std::mem::replace(&mut one.seen, now);
            one.watch.is_none() && now != before
        });
    }

    fn tell(&mut self, mut has_changed: impl FnMut(&mut Subscriber) -> bool) {
        let mut over = Vec::new();
        for one in &mut self.subscribers {
            if has_changed(one) && !(one.tell)(News::Changed) {
                over.push(one.id);
            }
        }
        over.into_iter().for_each(|id| self.remove(id));
    }
}

/// When a folder last changed in a way that counts. An outbox's own time does not change when it grows, so its files
/// are looked at; jobs change all the time, so theirs are not.
fn changed_at(kind: &FolderKind) -> Option<SystemTime> {
    let modified = |path: &Path| std::fs::metadata(path).and_then(|data| data.modified()).ok();
    match kind {
        FolderKind::Jobs(folder) => modified(folder),
        FolderKind::Outbox(folder) => {
            let files = std::fs::read_dir(folder).ok()?.filter_map(Result::ok);
            files.filter_map(|file| modified(&file.path())).chain(modified(folder)).max()
        }
    }
}
