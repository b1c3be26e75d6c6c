//! How a wait ended, as a keeper tells it.

use serde::{Deserialize, Serialize};

use super::{Awaiting, Reason};

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waited {
    /// What ended it.
    pub reason: Reason,
    /// Where in the log: behind the match, or its end then.
    pub offset: u64,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
    /// Whether it held already when the wait began.
    #[serde(default)]
    pub already: bool,
    /// What was found.
    #[serde(rename = "match", default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaiting_input: Option<Awaiting>,
    /// Who takes input, of a job that does not wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listening: Option<Box<Awaiting>>,
    /// Which port it listens on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Whether a full-screen program has the terminal then; older keepers do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_screen: Option<bool>,
    /// Of a wait for a step of a shell: how the step is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Box<crate::shell::Step>>,
}

impl Waited {
    /// A wait that ended for a reason, with nothing more to say.
    #[must_use]
    pub fn because(reason: Reason, offset: u64) -> Self {
        Self {
            reason,
            offset,
            elapsed_ms: 0,
            already: false,
            found: None,
            awaiting_input: None,
            listening: None,
            port: None,
            full_screen: None,
            step: None,
        }
    }
}

/// A match of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Which of the patterns, counted from 0.
    pub pattern: usize,
    /// What it matched.
    pub text: String,
    /// Its groups, from the first on.
    pub captures: Vec<Option<String>>,
}

/// How much of a match goes into an event, and of each of its groups.
const MAX_MATCH_BYTES: usize = 200;
/// How many groups of a match go into an event.
const MAX_GROUPS: usize = 9;

impl Found {
    /// As it goes into an event: a match may be long, and events are kept.
    #[must_use]
    pub fn shortened(mut self) -> Self {
        self.text.truncate(self.text.floor_char_boundary(MAX_MATCH_BYTES));
        self.captures.truncate(MAX_GROUPS);
        for capture in self.captures.iter_mut().flatten() {
            capture.truncate(capture.floor_char_boundary(MAX_MATCH_BYTES));
        }
        self
    }
}
