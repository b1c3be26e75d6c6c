//! The sessions of the HTTP server: which are in use, and which must be closed.
//!
//! A client that disconnects without ending its session leaves it behind. A session that is unused for long
//! is closed, and so is the one that is unused for longest if there are too many. The client then gets an
//! error, and starts another.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager};

/// The most sessions.
const MAX_SESSIONS: usize = 256;

#[derive(Debug)]
struct Usage {
    /// How many of its requests and streams are open.
    open: usize,
    since: Instant,
}

/// The sessions of a server.
#[derive(Debug)]
pub(crate) struct Sessions {
    manager: Arc<LocalSessionManager>,
    idle_limit: Duration,
    used: Mutex<HashMap<SessionId, Usage>>,
}

impl Sessions {
    pub(crate) fn new(manager: Arc<LocalSessionManager>, idle_limit: Duration) -> Self {
        Self { manager, idle_limit, used: Mutex::default() }
    }

    /// A request of a session begins; it lasts until the returned value is dropped.
    pub(crate) fn begin(self: &Arc<Self>, id: &str) -> Option<InUse> {
        let id = self.lock().get_key_value(id).map(|(id, _)| SessionId::clone(id))?;
        Some(self.in_use(id))
    }

    /// A session was created. `None` if there are too many and all are in use: then it is closed again.
    pub(crate) async fn opened(self: &Arc<Self>, id: &str) -> Option<InUse> {
        let id = SessionId::from(id);
        let (has_place, in_the_way) = self.take_place(&id);
        for unused in &in_the_way {
            self.close(unused).await;
        }
        if !has_place {
            self.close(&id).await;
            return None;
        }
        Some(InUse { sessions: Arc::clone(self), id })
    }

    /// Whether there is a slot for a session, which is then in use; and the least recently used sessions that
    /// must be closed for it. All in one step: two that are created at the same time must not close the same
    /// one.
    fn take_place(&self, id: &SessionId) -> (bool, Vec<SessionId>) {
        let mut used = self.lock();
        let mut in_the_way = Vec::new();
        while used.len() >= MAX_SESSIONS {
            let idle = used.iter().filter(|(_, usage)| usage.open == 0);
            let oldest = idle.min_by_key(|(_, usage)| usage.since).map(|(id, _)| SessionId::clone(id));
            let Some(oldest) = oldest else { return (false, in_the_way) };
            used.remove(&oldest);
            in_the_way.push(oldest);
        }
        used.insert(SessionId::clone(id), Usage { open: 1, since: Instant::now() });
        (true, in_the_way)
    }

    /// The client ended a session.
    pub(crate) fn ended(&self, id: &str) {
        self.lock().remove(id);
    }

    /// Closes sessions that are unused for long, while the server runs.
    pub(crate) async fn close_idle(self: Arc<Self>) {
        loop {
            tokio::time::sleep((self.idle_limit / 4).min(Duration::from_secs(60))).await;
            self.note_unknown().await;
            let idle: Vec<SessionId> = self
                .lock()
                .iter()
                .filter(|(_, usage)| usage.open == 0 && usage.since.elapsed() >= self.idle_limit)
                .map(|(id, _)| SessionId::clone(id))
                .collect();
            for id in idle {
                self.close(&id).await;
            }
        }
    }

    /// Counts sessions whose client disconnected before it got their id: otherwise nothing would ever close
    /// them.
    async fn note_unknown(&self) {
        let all: Vec<SessionId> = self.manager.sessions.read().await.keys().cloned().collect();
        let mut used = self.lock();
        for id in all {
            used.entry(id).or_insert_with(|| Usage { open: 0, since: Instant::now() });
        }
    }

    async fn close(&self, id: &SessionId) {
        self.lock().remove(id);
        // It may have ended by itself.
        let _ = self.manager.close_session(id).await;
    }

    fn in_use(self: &Arc<Self>, id: SessionId) -> InUse {
        self.change(&id, |usage| usage.open += 1);
        InUse { sessions: Arc::clone(self), id }
    }

    fn change(&self, id: &SessionId, change: impl FnOnce(&mut Usage)) {
        if let Some(usage) = self.lock().get_mut(id) {
            change(usage);
            usage.since = Instant::now();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Usage>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request or a stream of a session.
#[derive(Debug)]
pub(crate) struct InUse {
    sessions: Arc<Sessions>,
    id: SessionId,
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.sessions.change(&self.id, |usage| usage.open = usage.open.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_whose_client_never_got_its_id_is_closed_too() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let manager = Arc::new(LocalSessionManager::default());
            let (id, _transport) = manager.create_session().await.unwrap();
            let sessions = Arc::new(Sessions::new(Arc::clone(&manager), Duration::from_millis(20)));
            let closing = tokio::spawn(sessions.close_idle());
            tokio::time::timeout(Duration::from_secs(60), async {
                while manager.has_session(&id).await.unwrap() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            })
            .await
            .unwrap();
            closing.abort();
        });
    }

    #[test]
    fn the_least_recently_used_session_is_closed_and_none_in_use() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let manager = Arc::new(LocalSessionManager::default());
            let sessions = Arc::new(Sessions::new(manager, Duration::from_secs(3600)));
            let mut held = Vec::new();
            for n in 0..MAX_SESSIONS {
                held.push(sessions.opened(&n.to_string()).await.unwrap());
            }
            assert!(sessions.opened("late").await.is_none(), "all are in use");
            drop(held.remove(7));
            let late = sessions.opened("late").await;
            assert!(late.is_some() && sessions.begin("7").is_none());
            assert_eq!(sessions.lock().len(), MAX_SESSIONS);
        });
    }
}
