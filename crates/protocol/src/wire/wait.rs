//! What a client waits for.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::reason::Reason;
use crate::units::millis;

/// Conditions; the first that holds ends the wait. An end of the job ends it too, since nothing else can come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "crate::v1::EitherWait", into = "crate::v1::EitherWait")]
pub struct Wait {
    /// What ends it.
    pub until: Vec<Condition>,
    /// Where it begins: an offset in the log; none means its end now.
    pub from: Option<u64>,
    /// At most this long, in milliseconds.
    pub deadline_ms: Option<u64>,
    /// Patterns see no secrets: for agents.
    pub masked: bool,
    /// In a shell: it is about this step, whose end counts as that of the job.
    pub step: Option<u64>,
}

impl Wait {
    /// Until one of these holds.
    #[must_use]
    pub fn of(until: impl Into<Vec<Condition>>) -> Self {
        Self { until: until.into(), ..Self::default() }
    }

    /// Until the job has ended.
    #[must_use]
    pub fn for_exit() -> Self {
        Self::of([Condition::Exit])
    }

    /// Until a regular expression is found in anything the job prints, from its first byte on.
    #[must_use]
    pub fn for_pattern(pattern: impl Into<String>) -> Self {
        Self { from: Some(0), ..Self::of([Condition::Pattern(pattern.into())]) }
    }

    /// Until nothing was printed for a while.
    #[must_use]
    pub fn for_quiet(quiet: Duration) -> Self {
        Self::of([Condition::Quiet { ms: millis(quiet) }])
    }

    /// Also until this holds.
    #[must_use]
    pub fn or(mut self, condition: Condition) -> Self {
        self.until.push(condition);
        self
    }

    /// Also until the job has ended.
    #[must_use]
    pub fn or_exit(self) -> Self {
        self.or(Condition::Exit)
    }

    /// Looks only at what is printed from an offset on.
    #[must_use]
    pub fn from(mut self, offset: u64) -> Self {
        self.from = Some(offset);
        self
    }

    /// It is about one step of a shell, from its first byte on unless told: its end counts as that of the job.
    #[must_use]
    pub fn of_step(mut self, step: u64) -> Self {
        self.step = Some(step);
        self.from.get_or_insert(0);
        self
    }

    /// Whether it can end for this reason, because it was asked to.
    #[must_use]
    pub fn has(&self, reason: Reason) -> bool {
        self.until.iter().any(|condition| condition.reason() == reason)
    }

    /// The regular expressions that it looks for in the output, in their order.
    #[must_use]
    pub fn patterns(&self) -> Vec<String> {
        let pattern = |condition: &Condition| {
            if let Condition::Pattern(pattern) = condition { Some(pattern.clone()) } else { None }
        };
        self.until.iter().filter_map(pattern).collect()
    }
}
