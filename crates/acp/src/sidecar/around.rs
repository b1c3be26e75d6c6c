//! What a conversation uses of the sidecar around it.

use outlast_job::Outlast;
use outlast_job::registry::Home;
use serde_json::json;

use super::Options;
use super::queue::Queue;
use super::state::States;

/// The queues to both sides.
#[derive(Clone, Debug)]
pub(crate) struct Sides {
    pub(crate) editor: Queue,
    pub(crate) agent: Queue,
}

/// What a conversation uses of the sidecar.
#[derive(Debug)]
pub(crate) struct Around<'a> {
    pub(crate) home: &'a Home,
    pub(crate) sides: &'a Sides,
    pub(crate) states: &'a States,
    pub(crate) options: &'a Options,
}

impl<'a> Around<'a> {
    pub(crate) fn of(
        outlast: &'a Outlast,
        sides: &'a Sides,
        states: &'a States,
        options: &'a Options,
    ) -> Self {
        Self { home: outlast.home(), sides, states, options }
    }

    /// Answers a request of the editor instead of the agent.
    pub(crate) fn answer(&self, id: &str, result: &str) {
        self.sides
            .editor
            .push(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n").into_bytes());
    }

    pub(crate) fn refuse(&self, id: &str, code: i32, message: &str) {
        let error = json!({ "code": code, "message": message });
        self.sides
            .editor
            .push(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n").into_bytes());
    }
}
