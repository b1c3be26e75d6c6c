//! Arguments of `wakes`.

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::values::duration;

/// List, retry, cancel and pause the wakes of jobs.
///
/// What a job's --wake, or a wake of the settings, is to deliver is on the disk until it is delivered,
/// given up or cancelled. One that was given up is an event wake_failed, and can be tried again for a week.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast wakes list                     what waits, and what was given up
  outlast wakes retry 12.1               try one again, with the environment of
                                         this shell
  outlast wakes cancel 12.1              deliver it no more
  outlast wakes pause --pane %3 --for 1h do not disturb the agent in that pane
  outlast wakes resume --all             deliver what has waited")]
pub struct WakesArgs {
    /// What to do.
    #[command(subcommand)]
    pub verb: WakesVerb,
}

/// The verbs of `wakes`.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "a doc comment here would replace the help of the verb")]
pub enum WakesVerb {
    List(WakesListArgs),
    Retry(WakesRetryArgs),
    Cancel(WakesCancelArgs),
    Pause(WakesPauseArgs),
    Resume(WakesResumeArgs),
}

/// Show deliveries that wait, and those that were given up.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast wakes list --json")]
pub struct WakesListArgs {}

/// Try deliveries again that were given up.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast wakes retry 12.1")]
pub struct WakesRetryArgs {
    /// Their numbers, as `wakes list` shows them.
    #[arg(required = true, value_name = "NUMBER")]
    pub numbers: Vec<String>,
}

/// Cancel deliveries.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast wakes cancel 12.1")]
pub struct WakesCancelArgs {
    /// Their numbers, as `wakes list` shows them.
    #[arg(required = true, value_name = "NUMBER")]
    pub numbers: Vec<String>,
}

/// Do not disturb: deliver nothing to a pane, or nothing of a session's jobs.
///
/// What comes meanwhile waits on the disk. Events go to the outbox as always.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast wakes pause --pane %3 --for 1h")]
pub struct WakesPauseArgs {
    /// The tmux pane.
    #[arg(long, value_name = "PANE", conflicts_with = "session")]
    pub pane: Option<String>,
    /// The session whose jobs are not to disturb anybody [default: this one, unless a pane is named].
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// The socket of the tmux server [default: that of $TMUX, else the user's].
    #[arg(long, short = 'S', value_name = "PATH", requires = "pane")]
    pub socket: Option<String>,
    /// For how long [default: until `wakes resume`].
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub time: Option<Duration>,
}

/// End a pause, and deliver what has waited.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast wakes resume --all")]
pub struct WakesResumeArgs {
    /// The tmux pane.
    #[arg(long, value_name = "PANE", conflicts_with_all = ["session", "all"])]
    pub pane: Option<String>,
    /// The session [default: this one, unless a pane is named].
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub session: Option<String>,
    /// The socket of the tmux server [default: that of $TMUX, else the user's].
    #[arg(long, short = 'S', value_name = "PATH", requires = "pane")]
    pub socket: Option<String>,
    /// All pauses.
    #[arg(long)]
    pub all: bool,
}
