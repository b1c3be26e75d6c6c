//! Watches: waits without a client. They live in the keeper, and what they find is an event.

use serde::{Deserialize, Serialize};

use super::{Found, Reason};
use crate::condition::Condition;

/// What is worth an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "crate::v1::EitherWatch", into = "crate::v1::EitherWatch")]
pub struct Watch {
    /// What it is called: a new watch takes the place of an old one of the same name.
    pub id: String,
    /// The conditions; each counts by itself.
    pub until: Vec<Condition>,
    /// Where in the log patterns begin; none means its end now.
    pub from: Option<u64>,
    /// Every time, instead of once.
    pub each: bool,
}

impl Watch {
    /// Whether it could never have something to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.until.is_empty()
    }
}

/// A watch has something to tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fired {
    /// Which watch.
    pub watch: String,
    /// Which of its conditions.
    pub reason: Reason,
    /// How often, since it last told.
    pub count: u64,
    /// Where in the log the first time was.
    pub from: u64,
    /// Where the last time was.
    pub to: u64,
    /// What was found first.
    #[serde(rename = "match", default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
    /// For a watch of lines: each that was printed, in order, up to a bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LineTold>,
    /// Which port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

impl Fired {
    /// Where in the log it is worth reading on: behind the lines that are told here if there are more, else where it was.
    #[must_use]
    pub fn read_from(&self) -> u64 {
        match (self.lines.first(), self.lines.last()) {
            (Some(first), Some(_)) if self.lines.len() as u64 >= self.count => {
                // With its end, which is CR LF on a terminal.
                first.to.saturating_sub(first.text.len() as u64 + 2)
            }
            (_, Some(last)) => last.to,
            // Enough before it to know what it is about.
            _ => self.from.saturating_sub(400),
        }
    }
}

/// A line that was printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineTold {
    /// Its text, without its end.
    pub text: String,
    /// Where it ends in the log: what comes after it is read from here.
    pub to: u64,
}
