//! What can be decided.

use outlast_job::Failure;
pub use outlast_protocol::Tool;
use serde::{Deserialize, Serialize};

/// What may be done. The stricter is the greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// Go ahead.
    #[default]
    Allow,
    /// A person must agree.
    Ask,
    /// No.
    Deny,
}

/// What an agent may do without a person where nobody is in front of it. The stricter is the greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unattended {
    /// End any job, and type into it.
    All,
    /// The same, for jobs of its own session.
    #[default]
    Own,
    /// Nothing of that.
    None,
}

impl Decision {
    /// The decision of a word.
    ///
    /// # Errors
    /// A usage failure that lists them.
    pub fn from_name(name: &str) -> Result<Self, Failure> {
        [Decision::Allow, Decision::Ask, Decision::Deny]
            .into_iter()
            .find(|decision| decision.name() == name)
            .ok_or_else(|| Failure::usage(format!("{name:?} is none of allow, ask and deny")))
    }

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Decision::Allow => "allow",
            Decision::Ask => "ask",
            Decision::Deny => "deny",
        }
    }
}
