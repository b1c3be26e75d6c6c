//! The thread between a call and the work it waits for: tells the work to stop, and the call which job it is on.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use outlast_job::{Failure, Handle};
use rustix::event::{EventfdFlags, eventfd};

/// One call's thread to its work.
#[derive(Debug)]
pub(crate) struct Watch {
    bell: OwnedFd,
    cancelled: AtomicBool,
    noted: AtomicBool,
    about: AtomicU64,
}

impl Watch {
    pub(crate) fn new() -> Result<Self, Failure> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| Failure::system("no event can be had", error))?;
        Ok(Self {
            bell,
            cancelled: AtomicBool::new(false),
            noted: AtomicBool::new(false),
            about: AtomicU64::new(0),
        })
    }

    /// The client gave the call up: nobody will read its answer.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        self.stop();
    }

    /// Ends every wait that looks at this.
    pub(crate) fn stop(&self) {
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    /// Whether nobody has taken note of the cancellation yet; the first who asks does.
    pub(crate) fn note_once(&self) -> bool {
        self.is_cancelled() && !self.noted.swap(true, Ordering::SeqCst)
    }

    /// Says which job the call waits for.
    pub(crate) fn set_about(&self, handle: Handle) {
        self.about.store(handle.0, Ordering::Relaxed);
    }

    /// Which job the call waits for, if it is known yet.
    pub(crate) fn about(&self) -> Option<Handle> {
        Some(self.about.load(Ordering::Relaxed)).filter(|handle| *handle > 0).map(Handle)
    }

    /// Becomes readable when the work is to stop.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
