//! What a list says of a job: its record, without what only those want who look closer.

use serde::{Deserialize, Serialize};

use super::format::Info;
use crate::lifecycle::State;
use crate::spec::Handle;

/// A job's record in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The job's handle.
    pub handle: Handle,
    /// Its name, if it was given one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Who owns it.
    pub session: String,
    /// As a person would write the command.
    pub command: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where it was started.
    pub cwd: String,
    /// When it was claimed, in milliseconds since 1970.
    pub created_at: u64,
    /// The command's own process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// Where it is in its life.
    pub state: State,
}

impl From<&Info> for Summary {
    fn from(info: &Info) -> Self {
        Self {
            handle: info.handle,
            name: info.name.clone(),
            session: info.session.clone(),
            command: info.command.clone(),
            description: info.description.clone(),
            cwd: info.cwd.clone(),
            created_at: info.created_at,
            pid: info.process.as_ref().map(|process| process.pid),
            state: info.state.clone(),
        }
    }
}
