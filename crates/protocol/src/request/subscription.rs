//! What a door may be told of from now on, and what it is told then.

use serde::{Deserialize, Serialize};

use crate::job::Handle;
use crate::wire::event::Event;
use crate::wire::{Attach, Attached, Grown};

/// What a door may be told of, from now on.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "subscribe", rename_all = "snake_case")]
pub enum Subscription {
    /// A job: how far its log has grown, and its events, until it is over.
    Job {
        /// Which.
        job: Handle,
    },
    /// A job's terminal, for a person in front of it: its screen, and then as [`Subscription::Job`]. Refused with
    /// `not_running` when the job has no keeper any more.
    Attach {
        /// Which.
        job: Handle,
        /// How.
        attach: Attach,
    },
    /// The list of jobs: that one was started or removed.
    JobList,
    /// A session's outbox: that it has changed.
    Session {
        /// Whose.
        session: String,
    },
}

/// What a subscriber is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum News {
    /// The job's logs have grown.
    Grown(Grown),
    /// Something happened to the job.
    Event(Event),
    /// What paints the screen of a job to which a person attached: at once, and whenever it must be drawn anew.
    Attached(Attached),
    /// The list, or the outbox, has changed.
    Changed,
    /// There will be no more.
    Over,
}
