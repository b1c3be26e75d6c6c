//! Arguments of `run`: the command, how long to stay with it, and the walls around it.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use outlast_protocol::{DetachKey, Size};

use crate::conditions::ComesBackAt;
use crate::sandbox::BoundsArgs;
use crate::values::{bytes, detach_key, duration, size};

/// Run a command as a job.
///
/// One argument is a line for the shell; more are a program and its arguments. In the foreground, output
/// comes live, keys go to the job, and the exit code is the job's own. Standard input that is not a terminal is
/// what the job reads, to its end.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast run 'cargo build 2>&1 | tee build.log'
  outlast run -- grep -r 'two words' src
  outlast run -d --name db --cwd /srv postgres -D data
  outlast run --pattern 'listening on \\S+:(\\d+)' --deadline 20s node server.js
  outlast run --pipe 'make 2>errors'     no terminal: stdout and stderr apart
  outlast run --pipe 'tar cz src' > s.tgz
                                         exact bytes; without --pipe it is text
  outlast run 'sort | uniq -c' < words   it reads the file, byte for byte
  outlast run --on gpu1 -d --name train ./train.sh
  outlast run -d --slot build 'cargo test'     waits for its place; see [slots]
                                               in the settings
  outlast run -d --after 17 './deploy'         waits until job 17 has succeeded
  outlast run --shell main 'cd src && source venv/bin/activate'
                                         the next step in that shell goes on
                                         from there
  outlast run --with fish 'for i in (seq 3); echo $i; end'
  outlast run --sandbox --memory 2GiB 'npm test'")]
pub struct RunArgs {
    /// The command.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Start it and come back at once.
    #[arg(short = 'd', long)]
    pub background: bool,
    /// At what it comes back.
    #[command(flatten)]
    pub until: ComesBackAt,
    /// With what it comes back at, such as --pattern: come back after this long at the latest [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub deadline: Option<Duration>,
    /// End the job after this long.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// End the job when it has printed nothing for this long.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub inactivity_timeout: Option<Duration>,
    /// Run it as a step in the shell of this name, which remembers folder, variables and functions; the shell is made if
    /// there is none. --cwd, --env and --timeout are then for this step alone.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "pipe", "size", "no_stdin", "tty", "wake", "notify", "inactivity_timeout"])]
    pub shell: Option<String>,
    /// With --shell: a shell that is made reads your startup files.
    #[arg(long, requires = "shell")]
    pub rc: bool,
    /// With --shell: run nothing if another step runs, instead of waiting for it.
    #[arg(long, requires = "shell")]
    pub if_idle: bool,
    /// Have another program than bash read the line: fish, zsh, 'zsh -f', python3, node. With --shell, which one it is if
    /// it is new: bash, zsh, fish or dash.
    #[arg(long, value_name = "PROGRAM")]
    pub with: Option<String>,
    /// A name to call it by.
    #[arg(long)]
    pub name: Option<String>,
    /// What it is for.
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Run it on another machine: a host, or the better one of those with a label. See `outlast host`.
    #[arg(long, value_name = "HOST")]
    pub on: Option<String>,
    /// Queue it for a place in this slot, and run it when it has one: `[slots]` in the settings says how many places there
    /// are, else it is one. Places are given in the order of the jobs' numbers, to all who use this home.
    #[arg(long, value_name = "SLOT", conflicts_with = "shell")]
    pub slot: Option<String>,
    /// With --slot: do not queue it; if there is no place, nothing is run.
    #[arg(long, requires = "slot")]
    pub if_free: bool,
    /// Queue it until this job has ended with code 0; if that fails, it does not run. May be given more than once.
    #[arg(long, value_name = "JOB", conflicts_with = "shell")]
    pub after: Vec<String>,
    /// Queue it until this job has ended, however it ends. May be given more than once.
    #[arg(long, value_name = "JOB", conflicts_with = "shell")]
    pub after_any: Vec<String>,
    /// The folder to start it in.
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Set an environment variable; without a value, remove it.
    #[arg(long = "env", short = 'e', value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,
    /// Run it on pipes instead of a terminal.
    #[arg(long, conflicts_with = "size")]
    pub pipe: bool,
    /// The size of its terminal [default: that of yours, else 120x40].
    #[arg(long, value_name = "COLSxROWS", value_parser = size)]
    pub size: Option<Size>,
    /// How much of its output is kept; past it, the middle goes [default: 1GiB].
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub log_cap: Option<u64>,
    /// What goes to the session's outbox: exit, awaiting_input, port, lines, pattern=REGEX, quiet=30s,
    /// stable, or none [default: exit,awaiting_input, and nothing in the foreground].
    #[arg(long, value_name = "WHAT")]
    pub notify: Vec<String>,
    /// Whom to wake for it: exec:COMMAND, webhook:URL, tmux:PANE, agent, `codex[:THREAD]`, file:PATH; may be given more
    /// than once.
    #[arg(long, value_name = "HOW")]
    pub wake: Vec<String>,
    /// The walls around it.
    #[command(flatten)]
    pub bounds: BoundsArgs,
    /// Give the job no input: whatever it reads ends at once.
    #[arg(short = 'n', long, conflicts_with = "tty")]
    pub no_stdin: bool,
    /// Let it read its terminal, whatever standard input is: it can be sent input later.
    #[arg(short = 't', long, conflicts_with = "pipe")]
    pub tty: bool,
    /// In the foreground: say nothing of our own.
    // The condition has the plain id.
    #[arg(id = "silent", short = 'q', long = "quiet")]
    pub quiet: bool,
    /// The key that leaves it running, as Ctrl-A; or none [default: Ctrl-], or your setting].
    #[arg(long, value_name = "KEY", value_parser = detach_key)]
    pub detach_key: Option<DetachKey>,
}
