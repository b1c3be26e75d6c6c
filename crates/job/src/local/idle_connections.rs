//! A pool of open connections to keepers that are owed no answer, for the next request to the same keeper: connecting
//! again costs both sides more than most answers do.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::connection::Connection;
use crate::spec::Handle;

/// More are closed, the oldest first.
const MAX_IDLE: usize = 16;

/// The idle connections of one client, by job.
#[derive(Debug, Default)]
pub(super) struct IdleConnections(Mutex<VecDeque<(Handle, Connection)>>);

impl IdleConnections {
    pub(super) fn take(&self, job: Handle) -> Option<Connection> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|(handle, _)| *handle == job)?;
        all.remove(at).map(|(_, connection)| connection)
    }

    /// Keeps a connection on which nothing is asked and nothing is left to read.
    pub(super) fn put(&self, job: Handle, connection: Connection) {
        if connection.has_unread() {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(handle, _)| *handle != job);
        if all.len() >= MAX_IDLE {
            all.pop_front();
        }
        all.push_back((job, connection));
    }
}
