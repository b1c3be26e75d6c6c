//! Arguments of `tmux`.

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::values::duration;

/// What is typed into a pane when a command there is done, unless something else was asked for.
pub const NOTICE: &str = "[SYSTEM COMMAND] Command complete. Resume.";

/// Type into tmux panes, and watch them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast tmux submit --target agents:0.1 -- 'make test'
  outlast tmux watch agents:0.1
  outlast tmux read agents:0.1")]
pub struct TmuxArgs {
    /// The socket of the tmux server [default: that of $TMUX, else the user's].
    #[arg(long, short = 'S', global = true, value_name = "PATH")]
    pub socket: Option<String>,
    /// What to do.
    #[command(subcommand)]
    pub verb: TmuxVerb,
}

/// The verbs of `tmux`.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "a doc comment here would replace the help of the verb")]
pub enum TmuxVerb {
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

/// Type a command into a pane, and wake the program in it when the pane stands still.
///
/// Comes back at once; a job does the rest. It waits until nobody types or scrolls there and the pane has
/// settled, types the command, watches until the screen stands still, and types the notice into the empty
/// input line of the agent there. A notice is never typed into a shell or as the answer to a question: an
/// event says so instead.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast tmux submit -- 'make test'                  into our own pane
  outlast tmux submit --target agents:0.1 -- '/compact'
  outlast tmux submit --ignore '[0-9]+s' --checks 5 -- 'cargo build'")]
pub struct SubmitArgs {
    /// The pane [default: the first of $GEMINI_TMUX_SESSION_NAME, else $TMUX_PANE].
    #[arg(long, short = 't', value_name = "PANE")]
    pub target: Option<String>,
    /// The pane that gets the notice [default: the same].
    #[arg(long, value_name = "PANE")]
    pub tell: Option<String>,
    /// What to type when it is done, one line; empty for nothing. The default says how it went: complete,
    /// asks for an answer (exit code 6 of the job), or the time is up (4).
    #[arg(long, value_name = "TEXT", default_value = NOTICE)]
    pub notice: String,
    /// How many checks must find the screen unchanged.
    #[arg(long, default_value_t = 3)]
    pub checks: u32,
    /// How far apart they are.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    pub interval: Duration,
    /// What always moves and is left out, as a regular expression; may be given more than once.
    #[arg(long, value_name = "REGEX")]
    pub ignore: Vec<String>,
    /// Rows that are left out, from 0 at the top; negative ones count from the bottom.
    #[arg(long, value_name = "ROW", allow_negative_numbers = true)]
    pub ignore_row: Vec<i32>,
    /// Watch for so long at most. Then the job ends with exit code 4 at once; the notice says so, as soon as
    /// the pane can take it within --patience, else an event wake_failed does.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5m")]
    pub cap: Duration,
    /// The pane must stand still for so long before anything is typed.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    pub settle: Duration,
    /// Give up when the pane is in use for so long: once for the command, once for the notice.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5m")]
    pub patience: Duration,
    /// What a prompt looks like there, if it ends in none of the usual marks ($ # % > and the like): a
    /// regular expression that ends where one types. What stands between it and the cursor is somebody's
    /// half-typed line.
    #[arg(long, value_name = "REGEX")]
    pub prompt: Option<String>,
    /// Press Escape and Ctrl-U first: clears a line, and interrupts some programs.
    #[arg(long)]
    pub clear: bool,
    /// Type key by key instead of pasting, for programs that take no pastes: 20 ms between keys, 500 ms
    /// before Enter.
    #[arg(long)]
    pub keys: bool,
    /// The command, as it is to be typed.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Make a job of a pane: what it shows is the job's screen, and what is sent to the job goes there.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast tmux watch agents:0.1")]
pub struct TmuxWatchArgs {
    /// The pane, as tmux names panes.
    pub pane: String,
}

/// Print what a pane shows.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast tmux read agents:0.1 --scrollback 100")]
pub struct TmuxReadArgs {
    /// The pane, as tmux names panes.
    pub pane: String,
    /// Add lines that have left the screen.
    #[arg(long, value_name = "LINES", default_value_t = 0)]
    pub scrollback: usize,
}
