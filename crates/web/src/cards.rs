//! What the list shows of a job.

use outlast_job::wire::{Activity, Awaiting};
use outlast_protocol::lifecycle::State;
use outlast_protocol::request::ListedJob;
use serde::Serialize;

/// How long a failure stands above what runs, in milliseconds.
const FAILURE_IS_NEWS_MS: u64 = 24 * 3600 * 1000;

/// Who needs somebody: the list is sorted by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rank {
    /// It asks something.
    Asks,
    /// It has failed, not long ago.
    Failed,
    /// It runs.
    Running,
    /// It is over.
    Done,
}

/// A job of the list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Card {
    pub(crate) job: String,
    pub(crate) name: Option<String>,
    pub(crate) command: String,
    pub(crate) description: Option<String>,
    pub(crate) session: String,
    pub(crate) folder: String,
    pub(crate) created_at: u64,
    pub(crate) ended_at: Option<u64>,
    pub(crate) rank: Rank,
    pub(crate) state: &'static str,
    /// How it ended, in words.
    pub(crate) ending: Option<String>,
    pub(crate) awaiting: Option<Awaiting>,
    pub(crate) ports: Vec<u16>,
    pub(crate) last_line: String,
    pub(crate) held_by: Option<String>,
    pub(crate) pinned: bool,
    pub(crate) stopped: bool,
    /// What it waits for before it runs, in words.
    pub(crate) queued: Option<String>,
    /// The machine that it is on, where that is another.
    pub(crate) host: Option<String>,
}

impl Card {
    pub(crate) fn new(listed: ListedJob, now_ms: u64) -> Self {
        let now = listed.now.as_deref();
        let awaiting = now.and_then(|now| now.awaiting_input.clone());
        let state = &listed.job.state;
        let ended_at = ended_at(state);
        let ending =
            state.receipt().map(|receipt| receipt.words().unwrap_or_else(|error| error.message.clone()));
        Self {
            rank: Rank::of(state, awaiting.as_ref(), now_ms),
            queued: queued(state),
            host: listed.job.handle.host().map(|host| host.to_string()),
            state: state.name(),
            ending,
            ended_at,
            ports: now.map(|now| now.ports.clone()).unwrap_or_default(),
            held_by: now.and_then(|now| now.held_by.clone()),
            stopped: now.is_some_and(|now| now.activity == Activity::Stopped),
            awaiting,
            job: listed.job.handle.to_string(),
            name: listed.job.name,
            command: listed.job.command,
            description: listed.job.description,
            session: listed.job.session,
            folder: listed.job.cwd,
            created_at: listed.job.created_at,
            last_line: listed.last_line,
            pinned: listed.pinned,
        }
    }
}

pub(crate) fn ended_at(state: &State) -> Option<u64> {
    match state {
        State::Completed(receipt) | State::Failed(receipt) | State::Killed(receipt) => Some(receipt.ended_at),
        State::Lost { found_at, .. } => Some(*found_at),
        State::Queued(_) | State::Starting | State::Running { .. } => None,
    }
}

/// What a job waits for that does not run yet.
pub(crate) fn queued(state: &State) -> Option<String> {
    state.queued().map(|queued| format!("queued: {}", queued.words()))
}

impl Rank {
    pub(crate) fn of(state: &State, awaiting: Option<&Awaiting>, now_ms: u64) -> Self {
        let is_news = ended_at(state).is_none_or(|at| now_ms.saturating_sub(at) < FAILURE_IS_NEWS_MS);
        match state {
            State::Queued(_) | State::Starting | State::Running { .. } => {
                if awaiting.is_some_and(|awaiting| awaiting.kind.is_question()) {
                    Self::Asks
                } else {
                    Self::Running
                }
            }
            State::Completed(_) | State::Failed(_) | State::Killed(_) | State::Lost { .. } => {
                if state.went_wrong() && is_news { Self::Failed } else { Self::Done }
            }
        }
    }
}
