//! Watches: waits without a client. They live in the keeper, and what they find is an event.

use serde::{Deserialize, Serialize};

use super::{Found, Reason, Wait};

/// What is worth an event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Watch {
    /// What it is called: a new watch takes the place of an old one of the same name.
    pub id: String,
    /// The conditions; each counts by itself. `from` says where in the log patterns begin.
    pub on: Wait,
    /// Every time, instead of once.
    pub each: bool,
}

impl Watch {
    /// Whether it could ever have something to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let on = &self.on;
        !on.exit
            && !on.output
            && !on.awaiting_input
            && on.patterns.is_empty()
            && on.quiet_ms.is_none()
            && on.stable.is_none()
            && on.port.is_none()
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
    /// Which port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}
