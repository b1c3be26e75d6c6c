//! The connections of the HTTP server: who has shown the token, who waits for an answer, and who has to go.
//!
//! Whoever has not shown the token gets one of few places and little time, and the oldest of them goes first. So whoever
//! has it always gets through.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};
use tokio::sync::Notify;

/// At most so many connections that have not shown the token.
const MAX_STRANGERS: usize = 64;
/// At most so many that have.
const MAX_CONNECTIONS: usize = 1024;
/// How long a connection may take to show it.
const STRANGER_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection on which nothing is asked for so long is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// Descriptors that the server needs for itself.
const OWN_DESCRIPTORS: usize = 64;
/// Descriptors that a call takes: its connection, its jobs' keepers, its bell.
const DESCRIPTORS_PER_CALL: usize = 4;

#[derive(Debug)]
struct Entry {
    known: bool,
    /// How many requests are not answered to their end.
    busy: usize,
    /// Since when it has been as it is.
    since: Instant,
    changed: Arc<Notify>,
}

impl Entry {
    /// When it is closed, should nothing happen; none while somebody who may ask waits for an answer.
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

    /// Closes the one that has been idle for longest; false if there is none. Strangers are never anything else.
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

    /// One more connection, of somebody who has not shown the token yet.
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

    /// There are no descriptors left: a stranger has to go, or else somebody who asks for nothing.
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
    /// Returns when the connection has to be closed.
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

    /// Somebody who has shown the token asks for something, until what this returns is dropped. None when there are too
    /// many of them, and all are busy.
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
