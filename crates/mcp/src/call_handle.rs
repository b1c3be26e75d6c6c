//! What a call and the work it waits for share: that the client gave it up, and which job it is about.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use outlast_job::Handle;
use outlast_job::system::Bell;

/// Something that the answer of a call says for the first time: noted once the answer is out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Receipt {
    /// The session has seen a job up to here: the value of this number in [`crate::cursors`].
    Seen { session: String, job: Handle, hold: u64 },
    /// The session was told of these entries of its outbox.
    Told { session: String, numbers: Vec<u64> },
}

/// One call.
#[derive(Debug)]
pub(crate) struct CallHandle {
    began: Instant,
    cancelled: AtomicBool,
    /// Becomes readable with the cancellation, for a thread that waits; none where there can be none.
    wake: OnceLock<Option<Bell>>,
    /// Its answer is out already.
    answered: AtomicBool,
    noted: AtomicBool,
    about: OnceLock<Handle>,
    receipts: Mutex<Vec<Receipt>>,
}

impl CallHandle {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            cancelled: AtomicBool::new(false),
            wake: OnceLock::new(),
            answered: AtomicBool::new(false),
            noted: AtomicBool::new(false),
            about: OnceLock::new(),
            receipts: Mutex::default(),
        }
    }

    /// When it began.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// The client gave the call up: nobody will read its answer.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        if let Some(Some(wake)) = self.wake.get() {
            wake.ring();
        }
    }

    /// What becomes readable when the client gives the call up.
    pub(crate) fn cancelled(&self) -> Option<BorrowedFd<'_>> {
        let wake = self.wake.get_or_init(|| Bell::new().ok());
        if self.is_cancelled() {
            // It may have come before there was anything to write to.
            self.cancel();
        }
        wake.as_ref().map(AsFd::as_fd)
    }

    /// Its answer is out.
    pub(crate) fn set_answered(&self) {
        self.answered.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.answered.load(Ordering::SeqCst)
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
        // A call waits for one job: the first that it names.
        let _ = self.about.set(handle);
    }

    /// Which job the call waits for, if it is known yet.
    pub(crate) fn about(&self) -> Option<Handle> {
        self.about.get().copied()
    }

    /// Its answer says something for the first time.
    pub(crate) fn add_receipt(&self, receipt: Receipt) {
        self.receipts.lock().unwrap_or_else(PoisonError::into_inner).push(receipt);
    }

    /// All that its answer says for the first time; the one that takes it settles it.
    pub(crate) fn take_receipts(&self) -> Vec<Receipt> {
        std::mem::take(&mut self.receipts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
