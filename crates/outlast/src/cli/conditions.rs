//! What `wait` and `watch` can look for in a job; said once.

use std::time::Duration;

use clap::Args;
use outlast_job::Wait;
use outlast_job::clock::millis;
use outlast_job::wire::Stable;

use super::duration;

/// Conditions that a job may meet.
#[derive(Debug, Args)]
pub(crate) struct Conditions {
    /// It has ended.
    #[arg(long)]
    pub(crate) exit: bool,
    /// This regular expression is found; may be given more than once.
    #[arg(long, value_name = "REGEX")]
    pub(crate) pattern: Vec<String>,
    /// It has printed nothing for so long.
    #[arg(long, visible_alias = "quiet", value_name = "TIME", value_parser = duration)]
    pub(crate) quiet_for: Option<Duration>,
    /// It waits for input.
    #[arg(long)]
    pub(crate) input: bool,
    /// It, or a child of it, listens on a TCP port: this one, or any.
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "0")]
    pub(crate) port: Option<u16>,
    /// Its screen has not changed for so many checks of a second.
    #[arg(long, value_name = "CHECKS", num_args = 0..=1, default_missing_value = "3")]
    pub(crate) stable: Option<u32>,
    /// How far apart the checks of --stable are.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    pub(crate) stable_interval: Duration,
    /// What --stable leaves out: a regular expression for clocks and spinners; may be given more than once.
    #[arg(long, value_name = "REGEX")]
    pub(crate) stable_ignore: Vec<String>,
}

impl Conditions {
    /// As a wait that begins nowhere yet.
    pub(crate) fn wait(&self) -> Wait {
        Wait {
            exit: self.exit,
            patterns: self.pattern.clone(),
            quiet_ms: self.quiet_for.map(millis),
            awaiting_input: self.input,
            port: self.port,
            stable: self.stable.map(|checks| Stable {
                checks,
                interval_ms: millis(self.stable_interval),
                ignore: self.stable_ignore.clone(),
                ..Stable::default()
            }),
            ..Wait::default()
        }
    }
}
