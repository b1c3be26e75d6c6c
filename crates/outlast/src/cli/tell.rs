//! Arguments of the verbs that tell an agent.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::conditions::Conditions;
use super::duration;

/// Read what jobs have to tell: the session's outbox.
///
/// Every event has a number. It stays until it is acknowledged. Without --since and --reader, everything that is not
/// acknowledged comes; a reader with a name goes on where it was, also after a restart: whenever it is killed, each
/// event goes into its pipe exactly once. With --hold it is whoever reads the pipe that says how far it has come.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast events                              what is not acknowledged yet
  outlast events --follow --reader agent      one line each, as they come; each once
  outlast events --follow --reader agent --hold
  outlast events --reader agent --ack 15      the agent has dealt with everything up to 15
  outlast events --since 12 --json
  outlast events --ack 15                     everything up to 15 is dealt with")]
pub(crate) struct EventsArgs {
    /// Only those after this number.
    #[arg(long, value_name = "NUMBER", conflicts_with = "reader")]
    pub(crate) since: Option<u64>,
    /// Go on as they come.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Acknowledge everything up to this number; with --reader, for that reader.
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["since", "follow", "ack_all"])]
    pub(crate) ack: Option<u64>,
    /// Acknowledge everything.
    #[arg(long, conflicts_with_all = ["since", "follow"])]
    pub(crate) ack_all: bool,
    /// Read under a name: how far it has come is kept.
    #[arg(long, value_name = "NAME")]
    pub(crate) reader: Option<String>,
    /// With --reader: do not move on by oneself, but only to what --ack says for that reader.
    #[arg(long, requires = "reader")]
    pub(crate) hold: bool,
    /// The outbox of another session than this one.
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub(crate) session: Option<String>,
    /// Those of all sessions.
    #[arg(short, long, conflicts_with_all = ["ack", "ack_all", "reader", "since"])]
    pub(crate) all: bool,
    /// With --follow: not longer than this; then the exit code is 4.
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "follow")]
    pub(crate) deadline: Option<Duration>,
}

/// Choose what of a job is worth an event, from now on.
///
/// A watch lives in the job's keeper and needs no client; it looks at what is printed from now on. It tells once, or with --each every time; a flood is told
/// as one event with a count.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast watch web --pattern 'ERROR' --each
  outlast watch build --stable --quiet-for 30s
  outlast watch web --list
  outlast watch web --remove w1")]
pub(crate) struct WatchArgs {
    /// Its handle or name.
    pub(crate) job: String,
    #[command(flatten)]
    pub(crate) on: Conditions,
    /// Every time, instead of once.
    #[arg(long)]
    pub(crate) each: bool,
    /// What to call it; an older one of that name is replaced.
    #[arg(long, value_name = "NAME")]
    pub(crate) id: Option<String>,
    /// Only show the watches that are set.
    #[arg(short, long)]
    pub(crate) list: bool,
    /// Remove a watch.
    #[arg(long, value_name = "NAME")]
    pub(crate) remove: Option<String>,
}

/// Type into tmux panes, and watch them.
#[derive(Debug, Args)]
pub(crate) struct TmuxArgs {
    /// The socket of the tmux server [default: that of $TMUX, else the user's].
    #[arg(long, short = 'S', global = true, value_name = "PATH")]
    pub(crate) socket: Option<String>,
    #[command(subcommand)]
    pub(crate) verb: TmuxVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TmuxVerb {
    Submit(Box<SubmitArgs>),
    Watch(TmuxWatchArgs),
    Read(TmuxReadArgs),
    /// Does what `submit` was asked for; the command of its job.
    #[command(hide = true)]
    Work {
        /// Where it was written down.
        number: std::path::PathBuf,
    },
    /// Shows a pane and passes keys on; the command of `watch`'s job.
    #[command(hide = true)]
    Mirror(TmuxWatchArgs),
}

/// Type a command into a pane, and wake whoever lives there when the pane stands still.
///
/// Comes back at once; a job does the rest. It waits until nobody types or scrolls there and the pane has settled,
/// types the command, watches until the screen stands still, and types the notice into the empty input line of the
/// agent there. A notice is never typed into a shell or as the answer to a question: an event says so instead.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast tmux submit -- 'make test'                  into our own pane
  outlast tmux submit --target agents:0.1 -- '/compact'
  outlast tmux submit --ignore '[0-9]+s' --checks 5 -- 'cargo build'")]
pub(crate) struct SubmitArgs {
    /// The pane [default: the first of $GEMINI_TMUX_SESSION_NAME, else $TMUX_PANE].
    #[arg(long, short = 't', value_name = "PANE")]
    pub(crate) target: Option<String>,
    /// The pane that gets the notice [default: the same].
    #[arg(long, value_name = "PANE")]
    pub(crate) tell: Option<String>,
    /// What to type when it is done, one line; empty for nothing.
    #[arg(long, value_name = "TEXT", default_value = outlast_job::tmux::submit::NOTICE)]
    pub(crate) notice: String,
    /// How many checks must find the screen unchanged.
    #[arg(long, default_value_t = 3)]
    pub(crate) checks: u32,
    /// How far apart they are.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    pub(crate) interval: Duration,
    /// What always moves and is left out, as a regular expression; may be given more than once.
    #[arg(long, value_name = "REGEX")]
    pub(crate) ignore: Vec<String>,
    /// Rows that are left out, from 0 at the top; negative ones count from the bottom.
    #[arg(long, value_name = "ROW", allow_negative_numbers = true)]
    pub(crate) ignore_row: Vec<i32>,
    /// Watch for so long at most; then the notice comes all the same, if it can be typed.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5m")]
    pub(crate) cap: Duration,
    /// The pane must stand still for so long before anything is typed.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    pub(crate) settle: Duration,
    /// Give up when the pane is in use for so long: once for the command, once for the notice.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5m")]
    pub(crate) patience: Duration,
    /// What a prompt looks like there, if it ends in none of the usual marks ($ # % > and the like): a regular
    /// expression that ends where one types. What stands between it and the cursor is somebody's half-typed line.
    #[arg(long, value_name = "REGEX")]
    pub(crate) prompt: Option<String>,
    /// Press Escape and Ctrl-U first: clears a line, and interrupts some programs.
    #[arg(long)]
    pub(crate) clear: bool,
    /// The command, as it is to be typed.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Make a job of a pane: what it shows is the job's screen, and what is sent to the job goes there.
#[derive(Debug, Args)]
pub(crate) struct TmuxWatchArgs {
    /// The pane, as tmux names panes.
    pub(crate) pane: String,
}

/// Print what a pane shows.
#[derive(Debug, Args)]
pub(crate) struct TmuxReadArgs {
    /// The pane, as tmux names panes.
    pub(crate) pane: String,
    /// Add lines that have left the screen.
    #[arg(long, value_name = "LINES", default_value_t = 0)]
    pub(crate) scrollback: usize,
}
