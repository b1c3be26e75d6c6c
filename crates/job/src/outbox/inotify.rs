//! Changes of folders, as the kernel tells them.

use std::collections::BTreeSet;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Instant;

use crate::failure::Failure;

#[cfg(any(not(target_os = "linux"), outlast_portable))]
pub(crate) use elsewhere::Inotify;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
pub(crate) use linux::Inotify;

#[cfg(all(target_os = "linux", not(outlast_portable)))]
mod linux {
    use std::mem::MaybeUninit;
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init, remove_watch};

    use super::{BTreeSet, BorrowedFd, Failure, Instant, Path};
    use crate::clock::time_until;

    /// One instance: the user has few of them.
    #[derive(Debug)]
    pub(crate) struct Inotify(OwnedFd);

    impl Inotify {
        pub(crate) fn new() -> Option<Self> {
            init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok().map(Self)
        }

        pub(crate) fn fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }

        pub(crate) fn watch_sessions(&self, folder: &Path) -> Result<Option<i32>, Failure> {
            self.watch(folder, WatchFlags::CREATE)
        }

        /// A job gets its number, and loses it, by a change of its folder's name.
        pub(crate) fn watch_jobs(&self, folder: &Path) -> Result<Option<i32>, Failure> {
            self.watch(folder, WatchFlags::MOVED_TO | WatchFlags::MOVED_FROM)
        }

        pub(crate) fn watch_outbox(&self, folder: &Path) -> Result<Option<i32>, Failure> {
            self.watch(folder, WatchFlags::MODIFY | WatchFlags::MOVED_TO | WatchFlags::CREATE)
        }

        /// Orders come, go, and change how far they are.
        pub(crate) fn watch_spool(&self, folder: &Path) -> Result<Option<i32>, Failure> {
            self.watch(folder, WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVED_TO)
        }

        fn watch(&self, folder: &Path, what: WatchFlags) -> Result<Option<i32>, Failure> {
            match add_watch(&self.0, folder, what) {
                Ok(watch) => Ok(Some(watch)),
                // Retention has just removed it.
                Err(rustix::io::Errno::NOENT) => Ok(None),
                Err(error) => Err(Failure::system("cannot follow changes of the outbox", error)
                    .hint("the user may have no inotify watches left: see fs.inotify.max_user_watches")),
            }
        }

        pub(crate) fn unwatch(&self, watch: i32) {
            let _ = remove_watch(&self.0, watch);
        }

        /// Which watches have something to tell.
        pub(crate) fn changed(&self) -> BTreeSet<i32> {
            let mut buffer = [MaybeUninit::uninit(); 4096];
            let mut events = Reader::new(&self.0, &mut buffer);
            let mut changed = BTreeSet::new();
            while let Ok(event) = events.next() {
                changed.insert(event.wd());
            }
            changed
        }

        /// Sleeps until something has changed, or the deadline.
        pub(crate) fn wait(&self, deadline: Option<Instant>) {
            let left = deadline.map(time_until);
            let _ = poll(&mut [PollFd::new(&self.0, PollFlags::IN)], left.as_ref());
            self.changed();
        }
    }
}

/// Elsewhere there is none.
#[cfg(any(not(target_os = "linux"), outlast_portable))]
mod elsewhere {
    use super::{BTreeSet, BorrowedFd, Failure, Instant, Path};

    #[derive(Debug)]
    pub(crate) enum Inotify {}

    impl Inotify {
        pub(crate) fn new() -> Option<Self> {
            None
        }

        pub(crate) fn fd(&self) -> BorrowedFd<'_> {
            match *self {}
        }

        pub(crate) fn watch_sessions(&self, _: &Path) -> Result<Option<i32>, Failure> {
            match *self {}
        }

        pub(crate) fn watch_jobs(&self, _: &Path) -> Result<Option<i32>, Failure> {
            match *self {}
        }

        pub(crate) fn watch_outbox(&self, _: &Path) -> Result<Option<i32>, Failure> {
            match *self {}
        }

        pub(crate) fn watch_spool(&self, _: &Path) -> Result<Option<i32>, Failure> {
            match *self {}
        }

        pub(crate) fn unwatch(&self, _: i32) {
            match *self {}
        }

        pub(crate) fn changed(&self) -> BTreeSet<i32> {
            match *self {}
        }

        pub(crate) fn wait(&self, _: Option<Instant>) {
            match *self {}
        }
    }
}
