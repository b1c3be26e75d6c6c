//! A queue of outgoing lines. Pushing never blocks; threads that produce many lines wait for room first.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Beyond this, readers of the other side wait, and streams batch lines instead of sending them.
const MAX_QUEUED_BYTES: usize = 4 << 20;

#[derive(Debug, Default)]
struct Inner {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Nothing more will be pushed.
    closed: bool,
    /// The writer has failed: nothing is taken out any more.
    broken: bool,
}

/// A queue of lines to one side.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    inner: Arc<(Mutex<Inner>, Condvar)>,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line.
    pub(crate) fn push(&self, line: Vec<u8>) {
        let mut inner = self.lock();
        if !inner.closed && !inner.broken {
            inner.bytes += line.len();
            inner.lines.push_back(line);
            self.inner.1.notify_all();
        }
    }

    /// Nothing more will be pushed: the writer ends when the queue is empty.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.inner.1.notify_all();
    }

    /// Whether a stream may push something.
    pub(crate) fn has_room(&self) -> bool {
        self.lock().bytes < MAX_QUEUED_BYTES / 4
    }

    /// Blocks until the other side has read enough.
    pub(crate) fn wait_for_room(&self) {
        let mut inner = self.lock();
        while inner.bytes > MAX_QUEUED_BYTES && !inner.broken && !inner.closed {
            inner = self.inner.1.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Writes lines until the queue is closed and empty, or the other side has disconnected.
    pub(crate) fn write_to(&self, mut sink: impl Write) {
        loop {
            let mut inner = self.lock();
            while inner.lines.is_empty() && !inner.closed {
                inner = self.inner.1.wait(inner).unwrap_or_else(PoisonError::into_inner);
            }
            let Some(line) = inner.lines.pop_front() else { return };
            drop(inner);
            let written = sink.write_all(&line).and_then(|()| sink.flush());
            let mut inner = self.lock();
            inner.bytes -= line.len();
            inner.broken |= written.is_err();
            self.inner.1.notify_all();
            if inner.broken {
                return;
            }
        }
    }
}
