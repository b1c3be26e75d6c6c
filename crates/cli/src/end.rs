//! Arguments of the verbs that end or remove jobs: `kill`, `prune`.

use std::time::Duration;

use clap::Args;

use crate::values::{bytes, duration};

/// End a job and everything that it started.
///
/// SIGTERM first, SIGKILL after the grace, to every process, also those that left its session. With --signal,
/// only that signal is sent.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast kill web
  outlast kill web --grace 1m
  outlast kill web --signal HUP
  outlast kill --all")]
pub struct KillArgs {
    /// Handles or names.
    #[arg(required_unless_present = "all")]
    pub jobs: Vec<String>,
    /// Every job of this session that runs.
    #[arg(short, long, conflicts_with = "jobs")]
    pub all: bool,
    /// Of a shell: only this step; the shell stays.
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["all", "signal"])]
    pub step: Option<u64>,
    /// How long it may take to end by itself [default: 10s at a terminal, where Ctrl-C hurries; else 200ms;
    /// settings: kill.grace_at_terminal and kill.grace].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub grace: Option<Duration>,
    /// Send this signal, and nothing else.
    #[arg(long, short, value_name = "NAME")]
    pub signal: Option<String>,
    /// Also the job that this very command runs in.
    #[arg(long)]
    pub force: bool,
}

/// Remove finished jobs that are past retention.
///
/// Without limits, what the settings say. Limits given here also take results that are young or that nobody
/// has read.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  outlast prune --dry-run\n  outlast prune --age 1h\n  outlast prune --unread         also what nobody has read\n  outlast prune --all"
)]
pub struct PruneArgs {
    /// Keep those that ended less than this ago.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub age: Option<Duration>,
    /// Keep at most this many.
    #[arg(long, value_name = "COUNT")]
    pub keep: Option<usize>,
    /// Keep at most this much.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub size: Option<u64>,
    /// Remove every finished job.
    #[arg(long, conflicts_with_all = ["age", "keep", "size"])]
    pub all: bool,
    /// Count results that nobody has read as read.
    #[arg(long, conflicts_with_all = ["age", "keep", "size", "all"])]
    pub unread: bool,
    /// Only say what would be removed.
    #[arg(long)]
    pub dry_run: bool,
}
