//! Events: numbered facts about a job, in its `events.jsonl` and to its followers.

use serde::{Deserialize, Serialize};

use super::Awaiting;
use crate::lifecycle::State;

/// A numbered fact about a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Counts from 1 in each job, without gaps.
    pub seq: u64,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// The end of the log then.
    pub offset: u64,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// What can happen to a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// The command runs.
    Started {
        /// Its pid.
        pid: i32,
    },
    /// The command has ended.
    Ended {
        /// How.
        #[serde(flatten)]
        state: State,
    },
    /// Children that the command left behind have ended too.
    AllGone,
    /// It waits for input.
    AwaitingInput {
        /// For what, and how we know.
        #[serde(flatten)]
        awaiting: Box<Awaiting>,
    },
    /// It no longer waits for input.
    WentOn,
    /// It listens on a TCP port.
    PortOpen {
        /// Which.
        port: u16,
    },
    /// The log can't be written.
    LogFailing {
        /// What the system says.
        error: String,
    },
    /// The log can be written again.
    LogResumed {
        /// The first byte that was lost.
        lost_from: u64,
        /// Just after the last one.
        lost_to: u64,
    },
    /// The log has reached its cap; this part was given back to the disk.
    LogCapped {
        /// Its first byte.
        from: u64,
        /// Just after its last one.
        to: u64,
    },
    /// The keeper died and its heir took over.
    TookOver {
        /// Typed input that the program had not taken yet, and that is gone.
        input_lost: u64,
    },
    /// The heir died; nobody would take over now.
    HeirGone,
    /// Something a newer version knows.
    #[serde(other)]
    Unknown,
}
