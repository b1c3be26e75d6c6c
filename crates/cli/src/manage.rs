//! Arguments of the verbs about one job as a whole: `show`, `rerun`, `pin`, `rm`.

use clap::Args;

/// Show everything that is known about a job.
///
/// When it was started and how long it took, its folder, command and limits, what it uses, who ended it and
/// what it left behind.
#[derive(Debug, Args)]
#[command(
    visible_alias = "status",
    after_help = "\
Examples:
  outlast show              the last job of this session
  outlast show web
  outlast show shell main   a shell that remembers: its folder, what was changed
                            in it, its steps
  outlast show web --json"
)]
pub struct ShowArgs {
    /// Its handle or name [default: the last job of this session].
    pub job: Option<String>,
    /// After the word `shell`: the name of a shell that remembers.
    #[arg(value_name = "SHELL")]
    pub name: Option<String>,
}

/// Run the command of a job again.
///
/// The same command, folder, name, limits and sandbox, in your own environment; it becomes a new job. One that
/// still runs is ended first, if you name it.
#[derive(Debug, Args)]
#[command(
    visible_alias = "restart",
    after_help = "\
Examples:
  outlast rerun             the last job of this session again
  outlast rerun -d web      a server, with the code as it is now
  outlast rerun 12 -e DEBUG=1"
)]
pub struct RerunArgs {
    /// Its handle or name [default: the last job of this session].
    pub job: Option<String>,
    /// Start it and come back at once.
    #[arg(short = 'd', long)]
    pub background: bool,
    /// Set an environment variable; without a value, remove it. A job's own variables are not kept.
    #[arg(long = "env", short = 'e', value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,
    /// In the foreground: say nothing of our own.
    #[arg(short = 'q', long)]
    pub quiet: bool,
}

/// Keep jobs: retention, `prune` and `rm` leave them alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast pin build
  outlast pin --remove build     it may go again")]
pub struct PinArgs {
    /// Handles or names.
    #[arg(required = true)]
    pub jobs: Vec<String>,
    /// No longer.
    #[arg(long)]
    pub remove: bool,
}

/// Remove jobs that have ended, with all that they printed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast rm 12 13
  outlast rm --force web         end it first if it runs; pinned ones too")]
pub struct RmArgs {
    /// Handles or names.
    #[arg(required = true)]
    pub jobs: Vec<String>,
    /// End it first if it runs, and remove it even if it is pinned.
    #[arg(short, long)]
    pub force: bool,
}
