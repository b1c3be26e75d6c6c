//! What one job uses, for somebody who looks at it closely.

use serde::{Deserialize, Serialize};

/// What a job uses, and whether it is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Details {
    /// It is kept whatever its age.
    pub pinned: bool,
    /// Somebody was told how it ended.
    pub read: bool,
    /// The disk space of its files, in bytes.
    pub disk_bytes: u64,
    /// What its processes use now; none when nothing of it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// What running processes use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// How many processes there are.
    pub processes: u64,
    /// CPU time so far, in milliseconds: theirs, and that of children they have waited for.
    pub cpu_ms: u64,
    /// Resident memory, in bytes. Pages that two of them share count twice.
    pub memory_bytes: u64,
}
