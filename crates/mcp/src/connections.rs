//! The connections of the HTTP server: which are authenticated, which wait for an answer, and which must be
//! closed.
//!
//! A connection that has not sent the token gets one of few slots and little time, and the oldest of them is
//! closed first. So an authenticated client always gets through.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};
use tokio::sync::Notify;

/// The most connections that are not authenticated.
const MAX_STRANGERS: usize = 64;
/// The most connections that are.
const MAX_CONNECTIONS: usize = 1024;
/// How long a connection may take to authenticate.
const STRANGER_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection without a request for this long is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// Descriptors that the server itself needs.
const OWN_DESCRIPTORS: usize = 64;
/// Descriptors that a call needs: its connection, its jobs' keepers, its cancellation.
const DESCRIPTORS_PER_CALL: usize = 4;

#[derive(Debug)]
struct Entry {
    known: bool,
    /// How many requests are not fully answered.
    busy: usize,
    /// When its state last changed.
    since: Instant,
    changed: Arc<Notify>,
}

impl Entry {
    /// When it is closed if nothing happens; `None` while an authenticated client waits for an answer.
    fn deadline(&self) -> Option<Instant> {
        match (self.known, self.busy) {
            (false, _) => Some(self.since + STRANGER_TIMEOUT),
            (true, 0) => Some(self.since + IDLE_TIMEOUT),
            (true, _) => None,
        }
    }
}

#[derive(Debug, Default)]
struct Entries {
    next: u64,
    all: BTreeMap<u64, Entry>,
}

impl Entries {
    fn count(&self, known: bool) -> usize {
        self.all.values().filter(|entry| entry.known == known).count()
    }

    /// Closes the one that has been idle for longest; false if there is none. Unauthenticated ones always
    /// count as idle.
    fn close_oldest(&mut self, known: bool) -> bool {
        let idle = self.all.iter().filter(|(_, entry)| entry.known == known && (!known || entry.busy == 0));
        let Some(oldest) = idle.min_by_key(|(_, entry)| entry.since).map(|(id, _)| *id) else { return false };
        if let Some(entry) = self.all.remove(&oldest) {
            entry.changed.notify_one();
        }
        true
    }
}

/// All connections of a server.
#[derive(Debug)]
pub(crate) struct Connections {
    strangers: usize,
    known: usize,
    entries: Mutex<Entries>,
}

impl Connections {
    pub(crate) fn new() -> Self {
        let descriptors = getrlimit(Resource::Nofile).current.and_then(|limit| usize::try_from(limit).ok());
        let descriptors = descriptors.unwrap_or(usize::MAX);
        let strangers = (descriptors / 8).clamp(4, MAX_STRANGERS);
        let rest = descriptors.saturating_sub(OWN_DESCRIPTORS + strangers);
        let known = (rest / DESCRIPTORS_PER_CALL).clamp(4, MAX_CONNECTIONS);
        Self { strangers, known, entries: Mutex::default() }
    }

    /// Adds a connection that is not authenticated yet.
    pub(crate) fn enter(self: &Arc<Self>) -> Connection {
        let mut entries = self.lock();
        while entries.count(false) >= self.strangers && entries.close_oldest(false) {}
        let id = entries.next;
        entries.next += 1;
        let changed = Arc::new(Notify::new());
        let entry = Entry { known: false, busy: 0, since: Instant::now(), changed: Arc::clone(&changed) };
        entries.all.insert(id, entry);
        Connection { id, changed, connections: Arc::clone(self) }
    }

    /// There are no descriptors left: closes an unauthenticated connection, or else an idle one.
    pub(crate) fn make_room(&self) {
        let mut entries = self.lock();
        let _ = entries.close_oldest(false) || entries.close_oldest(true);
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    id: u64,
    changed: Arc<Notify>,
    connections: Arc<Connections>,
}

impl Connection {
    /// Returns when the connection must be closed.
    pub(crate) async fn over(&self) {
        loop {
            let Some(deadline) = self.connections.lock().all.get(&self.id).map(Entry::deadline) else {
                return;
            };
            match deadline {
                Some(at) if at <= Instant::now() => return,
                Some(at) => {
                    let _ = tokio::time::timeout_at(at.into(), self.changed.notified()).await;
                }
                None => self.changed.notified().await,
            }
        }
    }

    /// An authenticated request begins; it lasts until the returned value is dropped. `None` if there are too
    /// many connections, and all are busy.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<Busy> {
        let mut entries = self.connections.lock();
        let is_new = entries.all.get(&self.id).is_some_and(|entry| !entry.known);
        if is_new && entries.count(true) >= self.connections.known && !entries.close_oldest(true) {
            return None;
        }
        let entry = entries.all.get_mut(&self.id)?;
        entry.known = true;
        entry.busy += 1;
        entry.since = Instant::now();
        self.changed.notify_one();
        Some(Busy(Arc::clone(self)))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connections.lock().all.remove(&self.id);
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Connection>);

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(entry) = self.0.connections.lock().all.get_mut(&self.0.id) {
            entry.busy = entry.busy.saturating_sub(1);
            entry.since = Instant::now();
            self.0.changed.notify_one();
        }
    }
}
