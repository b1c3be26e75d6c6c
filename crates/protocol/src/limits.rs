//! How much a job may use, as it is asked for and as it is written down.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Limits as they were requested.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Memory, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Processors, in thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_milli: Option<u64>,
    /// CPU time of each process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_time: Option<Duration>,
}

/// What enforces the limits of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// A cgroup at this path, for the whole job.
    Cgroup(PathBuf),
    /// The kernel's limits, for each process by itself.
    EachProcess,
}

impl Limits {
    /// Whether nothing is limited.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
