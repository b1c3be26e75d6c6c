//! How many connections there may be, and for how long: so that nobody who has not authenticated keeps out somebody who has.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// The most connections that have not authenticated; the oldest is closed for the next.
const MAX_STRANGERS: usize = 64;
/// The most connections that have.
const MAX_KNOWN: usize = 256;
/// How long a connection may take to authenticate.
const STRANGER_TIMEOUT: Duration = Duration::from_secs(20);
/// How long the head of a request may take to come, and how long a connection may be idle.
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// How long its body may take.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(15);
/// The longest body: a paste, with room for its escapes.
pub(crate) const MAX_BODY: usize = 512 << 10;
/// The longest message of a socket.
pub(crate) const MAX_MESSAGE: usize = 128 << 10;

/// All connections.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    strangers: Mutex<VecDeque<Arc<Stranger>>>,
    known: AtomicUsize,
}

#[derive(Debug, Default)]
struct Stranger {
    pushed_out: Notify,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    all: Arc<Connections>,
    entry: Arc<Stranger>,
    is_known: AtomicBool,
}

impl Connections {
    /// Adds a connection that has not authenticated yet.
    pub(crate) fn enter(self: &Arc<Self>) -> Arc<Connection> {
        let entry = Arc::new(Stranger::default());
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        strangers.push_back(Arc::clone(&entry));
        while strangers.len() > MAX_STRANGERS {
            if let Some(oldest) = strangers.pop_front() {
                oldest.pushed_out.notify_one();
            }
        }
        Arc::new(Connection { all: Arc::clone(self), entry, is_known: AtomicBool::new(false) })
    }

    fn forget(&self, entry: &Arc<Stranger>) {
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        strangers.retain(|one| !Arc::ptr_eq(one, entry));
    }
}

impl Connection {
    /// It has authenticated; false when there are too many.
    pub(crate) fn authenticated(&self) -> bool {
        if self.is_known.swap(true, Ordering::SeqCst) {
            return true;
        }
        if self.all.known.fetch_add(1, Ordering::SeqCst) >= MAX_KNOWN {
            self.all.known.fetch_sub(1, Ordering::SeqCst);
            self.is_known.store(false, Ordering::SeqCst);
            return false;
        }
        self.all.forget(&self.entry);
        true
    }

    /// Returns when it must be closed.
    pub(crate) async fn over(&self) {
        loop {
            let pushed_out = tokio::time::timeout(STRANGER_TIMEOUT, self.entry.pushed_out.notified()).await;
            if pushed_out.is_ok() || !self.is_known.load(Ordering::SeqCst) {
                return;
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.is_known.load(Ordering::SeqCst) {
            self.all.known.fetch_sub(1, Ordering::SeqCst);
        }
        self.all.forget(&self.entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_push_out_strangers_and_nobody_else() {
        let all = Arc::new(Connections::default());
        let known = all.enter();
        assert!(known.authenticated());
        let strangers: Vec<_> = (0..MAX_STRANGERS * 3).map(|_| all.enter()).collect();
        assert_eq!(all.strangers.lock().unwrap().len(), MAX_STRANGERS);
        assert!(known.authenticated());
        drop(strangers);
        assert_eq!(all.strangers.lock().unwrap().len(), 0);
        drop(known);
        assert_eq!(all.known.load(Ordering::SeqCst), 0);
    }
}
