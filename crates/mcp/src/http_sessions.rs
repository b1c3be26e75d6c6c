//! The sessions of the HTTP server: which are in use, and which have to go.
//!
//! A client that never says goodbye leaves its session behind. One that is not in use for long is closed, and so is the one
//! longest unused when there are too many. The client is then told that it is gone, and begins another.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager};

/// At most so many sessions.
const MAX_SESSIONS: usize = 256;

#[derive(Debug)]
struct Usage {
    /// How many requests and streams of it are open.
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

    /// Somebody asks for something in a session, until what this returns is dropped.
    pub(crate) fn begin(self: &Arc<Self>, id: &str) -> Option<InUse> {
        let id = self.lock().get_key_value(id).map(|(id, _)| SessionId::clone(id))?;
        Some(self.in_use(id))
    }

    /// A session has been made. None when there are too many and all are in use: then it is closed again.
    pub(crate) async fn opened(self: &Arc<Self>, id: &str) -> Option<InUse> {
        let id = SessionId::from(id);
        let in_the_way = {
            let used = self.lock();
            let idle = used.iter().filter(|(_, usage)| usage.open == 0);
            let oldest = idle.min_by_key(|(_, usage)| usage.since).map(|(id, _)| SessionId::clone(id));
            if used.len() < MAX_SESSIONS { None } else { Some(oldest) }
        };
        match in_the_way {
            None => {}
            Some(Some(oldest)) => self.close(&oldest).await,
            Some(None) => {
                self.close(&id).await;
                return None;
            }
        }
        self.lock().insert(SessionId::clone(&id), Usage { open: 0, since: Instant::now() });
        Some(self.in_use(id))
    }

    /// A session was ended by its client.
    pub(crate) fn ended(&self, id: &str) {
        self.lock().remove(id);
    }

    /// Closes sessions that are not used for long, for as long as the server runs.
    pub(crate) async fn close_idle(self: Arc<Self>) {
        loop {
            tokio::time::sleep((self.idle_limit / 4).min(Duration::from_secs(60))).await;
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

    async fn close(&self, id: &SessionId) {
        self.lock().remove(id);
        // One that has ended by itself is closed already.
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
