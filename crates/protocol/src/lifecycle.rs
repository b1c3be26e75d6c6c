//! The states of a job and how it ended.
//!
//! `(queued →) starting → running → completed | failed | killed`, or `lost` when keeper and heir both vanished. An ended
//! state owns the [`Receipt`]; there is no such thing as an ended job without one.

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::hint::{Call, Hint};
use crate::queue::Queued;

/// Where a job is in its life.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum State {
    /// Accepted; it runs when there is a place for it, or when other jobs have ended.
    Queued(Box<Queued>),
    /// Claimed, the command not yet running.
    Starting,
    /// The command runs.
    Running {
        /// Set once somebody began to end it: so that the receipt names the right one, no matter who writes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ending: Option<EndedBy>,
    },
    /// Ended with code 0.
    Completed(Receipt),
    /// Ended with another code, or never started.
    Failed(Receipt),
    /// Ended by a signal.
    Killed(Receipt),
    /// Keeper and heir vanished; nobody saw the end.
    Lost {
        /// When it was found, in milliseconds since 1970.
        found_at: u64,
        /// Whether the machine was started anew since: that is what ended it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        restarted: bool,
    },
}

impl State {
    /// The word for it, as in `status`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            State::Queued(_) => "queued",
            State::Starting => "starting",
            State::Running { .. } => "running",
            State::Completed(_) => "completed",
            State::Failed(_) => "failed",
            State::Killed(_) => "killed",
            State::Lost { .. } => "lost",
        }
    }

    /// Whether the command has not ended yet, as far as this state knows.
    #[must_use]
    pub fn is_live(&self) -> bool {
        matches!(self, State::Queued(_) | State::Starting | State::Running { .. })
    }

    /// Whether it ended in a way that somebody should look at: it failed, or was ended by what nobody asked for.
    #[must_use]
    pub fn went_wrong(&self) -> bool {
        match self {
            State::Queued(_) | State::Starting | State::Running { .. } | State::Completed(_) => false,
            State::Failed(_) | State::Lost { .. } => true,
            State::Killed(receipt) => match receipt.ended_by {
                EndedBy::Kill { .. } | EndedBy::Key { .. } => false,
                EndedBy::Itself
                | EndedBy::Timeout { .. }
                | EndedBy::Inactivity { .. }
                | EndedBy::OomKiller
                | EndedBy::BrokenPipe
                | EndedBy::CpuLimit { .. }
                | EndedBy::Crash
                | EndedBy::Outside
                | EndedBy::Hangup
                | EndedBy::Unknown => true,
            },
        }
    }

    /// What it waits for, if it does not run yet because of that.
    #[must_use]
    pub fn queued(&self) -> Option<&Queued> {
        match self {
            State::Queued(queued) => Some(queued),
            State::Starting
            | State::Running { .. }
            | State::Completed(_)
            | State::Failed(_)
            | State::Killed(_)
            | State::Lost { .. } => None,
        }
    }

    /// How it ended, if it has.
    #[must_use]
    pub fn receipt(&self) -> Option<&Receipt> {
        match self {
            State::Completed(receipt) | State::Failed(receipt) | State::Killed(receipt) => Some(receipt),
            State::Queued(_) | State::Starting | State::Running { .. } | State::Lost { .. } => None,
        }
    }

    /// Why nobody can say how it ended, if that is so.
    #[must_use]
    pub fn why_lost(&self) -> Option<&'static str> {
        match self {
            State::Lost { restarted: true, .. } => Some("the machine restarted while it ran"),
            State::Lost { restarted: false, .. } => Some("nobody saw how it ended"),
            State::Queued(_)
            | State::Starting
            | State::Running { .. }
            | State::Completed(_)
            | State::Failed(_)
            | State::Killed(_) => None,
        }
    }

    /// The exit code, if it ended with one.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        match &self.receipt()?.outcome {
            Outcome::Exited { code } => Some(*code),
            Outcome::Signalled { .. } | Outcome::NotStarted { .. } => None,
        }
    }

    /// The signal that ended it.
    #[must_use]
    pub fn signal(&self) -> Option<&str> {
        match &self.receipt()?.outcome {
            Outcome::Signalled { signal, .. } => Some(signal),
            Outcome::Exited { .. } | Outcome::NotStarted { .. } => None,
        }
    }

    /// The ended state for a receipt.
    #[must_use]
    pub fn ended(receipt: Receipt) -> Self {
        match &receipt.outcome {
            Outcome::Exited { code: 0 } => State::Completed(receipt),
            Outcome::Exited { .. } | Outcome::NotStarted { .. } => State::Failed(receipt),
            Outcome::Signalled { .. } => State::Killed(receipt),
        }
    }
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// What the kernel said.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// When, in milliseconds since 1970.
    pub ended_at: u64,
    /// Who ended it.
    pub ended_by: EndedBy,
    /// What was left running when the command ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_behind: Vec<Process>,
    /// What the command and its waited-for children used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Used>,
}

impl Receipt {
    /// How the command ended, and who ended it if that was not itself, in a few words.
    ///
    /// # Errors
    /// It never ran: why not.
    pub fn words(&self) -> Result<String, &StartError> {
        let how = match &self.outcome {
            Outcome::Exited { code } => format!("exit code {code}"),
            Outcome::Signalled { signal, .. } => signal.clone(),
            Outcome::NotStarted { error } => return Err(error),
        };
        Ok(match &self.ended_by {
            EndedBy::Itself => how,
            by @ (EndedBy::Kill { .. }
            | EndedBy::Timeout { .. }
            | EndedBy::Inactivity { .. }
            | EndedBy::OomKiller
            | EndedBy::Key { .. }
            | EndedBy::BrokenPipe
            | EndedBy::CpuLimit { .. }
            | EndedBy::Crash
            | EndedBy::Outside
            | EndedBy::Hangup
            | EndedBy::Unknown) => format!("{how}, ended {}", by.describe()),
        })
    }
}

/// What the kernel said about the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It ended by itself.
    Exited {
        /// Its exit code.
        code: i32,
    },
    /// A signal ended it.
    Signalled {
        /// The signal's name, for example `SIGKILL`.
        signal: String,
        /// Whether it left a core file.
        #[serde(default)]
        core_dumped: bool,
    },
    /// It never ran.
    NotStarted {
        /// Why not.
        error: StartError,
    },
}

/// Why a command could not be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartError {
    /// `no_such_program`, `not_executable`, `no_such_folder`, `no_terminal_left`, `too_long`, `system`.
    pub kind: String,
    /// In a sentence.
    pub message: String,
    /// What to do about it.
    #[serde(flatten)]
    pub hint: Hint,
}

impl From<Failure> for StartError {
    fn from(failure: Failure) -> Self {
        Self {
            kind: failure.kind.name().into(),
            message: failure.message,
            hint: failure.hint.unwrap_or_else(|| Hint::call("see ", Call::Doctor)),
        }
    }
}

/// Who ended a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "who", rename_all = "snake_case")]
pub enum EndedBy {
    /// The command itself.
    Itself,
    /// Someone asked for it.
    Kill {
        /// The session that asked.
        session: String,
        /// With which signal it began.
        signal: String,
    },
    /// It ran longer than it was allowed to.
    Timeout {
        /// The limit, in milliseconds.
        limit_ms: u64,
    },
    /// It printed nothing for longer than it was allowed to.
    Inactivity {
        /// The limit, in milliseconds.
        limit_ms: u64,
    },
    /// The kernel ran out of memory.
    OomKiller,
    /// A key that its terminal turned into a signal.
    Key {
        /// The key, for example `Ctrl-C`.
        key: Box<str>,
        /// The session that typed it, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<Box<str>>,
    },
    /// It wrote into a pipe or socket that nobody reads any more (`SIGPIPE`).
    BrokenPipe,
    /// It used more CPU time than it was allowed to.
    CpuLimit {
        /// The limit, in milliseconds.
        limit_ms: u64,
    },
    /// A fault of its own, such as a bad memory access or a failed assertion.
    Crash,
    /// A signal from a process outside the job; the kernel does not tell which.
    Outside,
    /// The heir was killed, and the kernel hung up the terminal.
    Hangup,
    /// Something a newer version knows.
    #[serde(other)]
    Unknown,
}

impl EndedBy {
    /// In a few words, for people and models.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            EndedBy::Itself => "by itself".into(),
            EndedBy::Kill { session, signal } => format!("by kill ({signal}) from session {session}"),
            EndedBy::Timeout { limit_ms } => format!("by its timeout of {} s", *limit_ms as f64 / 1000.0),
            EndedBy::Inactivity { limit_ms } => {
                format!("by its inactivity limit of {} s", *limit_ms as f64 / 1000.0)
            }
            EndedBy::OomKiller => "by the kernel, which ran out of memory".into(),
            EndedBy::Key { key, session: Some(session) } => format!("by {key} typed by session {session}"),
            EndedBy::Key { key, session: None } => format!("by {key} typed into its terminal"),
            EndedBy::BrokenPipe => "because nobody reads what it writes any more".into(),
            EndedBy::CpuLimit { limit_ms } => format!("by its CPU limit of {} s", *limit_ms as f64 / 1000.0),
            EndedBy::Crash => "by a fault of its own".into(),
            EndedBy::Outside => "by a signal from outside (sender unknown)".into(),
            EndedBy::Hangup => "by hang-up: its heir process was killed".into(),
            EndedBy::Unknown => "by something this version does not know".into(),
        }
    }
}

/// A process of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its pid.
    pub pid: i32,
    /// When it started, in clock ticks since boot: tells it from a later process of the same pid.
    pub started: u64,
    /// Its program's name.
    pub program: String,
    /// The ports that it listens on, where they were looked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
}

/// Resources used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// CPU time in user code, in milliseconds.
    pub user_ms: u64,
    /// CPU time in the kernel, in milliseconds.
    pub system_ms: u64,
    /// The largest resident set, in KiB.
    pub max_rss_kib: u64,
}
