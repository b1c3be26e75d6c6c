//! Lists of jobs.

use serde::{Deserialize, Serialize};

use crate::info::Info;
use crate::job::Handle;
use crate::lifecycle::{Process, State};
use crate::wire::brief_status::BriefStatus;

/// Which jobs are listed, and how closely they are looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct List {
    /// Only those of this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Only those that run.
    pub running: bool,
    /// Only those that run, or may have left processes that do.
    pub unfinished: bool,
    /// Whose keepers are asked how their jobs are right now.
    pub keepers: AskKeepers,
    /// With the last line that each has printed.
    pub last_lines: bool,
    /// With the processes that each has left behind.
    pub left_behind: bool,
    /// With whether each is pinned.
    pub pins: bool,
}

/// Whose keepers a list asks. One that does not answer in time keeps the list from nobody.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskKeepers {
    /// Nobody's: a list from the files alone.
    #[default]
    None,
    /// Those of this session's jobs.
    OfSession(String),
    /// Those of all jobs in the list.
    All,
}

/// One job of a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListedJob {
    /// Its record in short.
    pub job: Summary,
    /// The end of its log.
    pub log_end: u64,
    /// How it is right now, if it was asked and has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<Box<BriefStatus>>,
    /// What it printed last, if that was asked for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_line: String,
    /// The processes that it left behind and that still run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_behind: Vec<Process>,
    /// It is kept whatever its age, if that was asked for.
    #[serde(default)]
    pub pinned: bool,
}

impl ListedJob {
    /// Whether it runs, as far as is known.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.job.state.is_live()
    }
}

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
