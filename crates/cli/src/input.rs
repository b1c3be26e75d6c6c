//! Arguments of the verbs that type into a job or attach to it: `send`, `secret`, `resize`, `attach`.

use std::time::Duration;

use clap::{Args, Subcommand};
use outlast_protocol::shell::ShellKind;
use outlast_protocol::{DetachKey, Size};

use crate::values::{detach_key, duration, shell_kind, size};

/// Type into a job.
///
/// The text is typed as it is, then Enter, then the keys; several lines one by one where the program reads
/// lines. What the program prints in answer is shown, until it asks for more, ends, or the time is up.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast send repl 'print(2 + 2)'
  outlast send repl --no-newline 'par' --key Tab
  outlast send server --key Ctrl-C
  outlast send counter --eof
  outlast send importer --stdin < data.csv")]
pub struct SendArgs {
    /// Its handle or name.
    pub job: String,
    /// The text.
    #[arg(allow_hyphen_values = true)]
    pub text: Option<String>,
    /// No Enter after the text.
    #[arg(long)]
    pub no_newline: bool,
    /// Several lines as one paste; otherwise as suits the program that reads.
    #[arg(long, conflicts_with_all = ["no_paste", "stdin"])]
    pub paste: bool,
    /// Several lines one by one, each when the program asks again.
    #[arg(long, conflicts_with = "stdin")]
    pub no_paste: bool,
    /// Press a key: Enter, Tab, Up, F5, Ctrl-C, Alt-x and so on; may be given more than once.
    #[arg(long = "key", short = 'k', value_name = "KEY")]
    pub keys: Vec<String>,
    /// Then end the input, as Ctrl-D does.
    #[arg(long)]
    pub eof: bool,
    /// Type what comes on standard input, of any size.
    #[arg(long, conflicts_with = "text")]
    pub stdin: bool,
    /// Come back at once; otherwise what it prints in answer is shown, until it asks again.
    #[arg(long)]
    pub no_wait: bool,
    /// Show the answer until this regular expression is found in it.
    #[arg(long, value_name = "REGEX")]
    pub pattern: Vec<String>,
    /// Show the answer for at most this long [default: 3s, with --pattern 30s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub deadline: Option<Duration>,
    /// How long a program that does not read may hold it up.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    pub patience: Duration,
}

/// Answer a password prompt of a job.
///
/// You are asked in your own terminal, and nothing is shown there. What you type is in no log, event or
/// answer, even if the program prints it. Refused unless the job is at a prompt that hides what
/// is typed.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  outlast secret deploy
  pass show server/root | outlast secret deploy --stdin
  outlast secret list"
)]
pub struct SecretArgs {
    /// About the secrets that all jobs know.
    #[command(subcommand)]
    pub verb: Option<SecretVerb>,
    /// Its handle or name.
    #[arg(required = true)]
    pub job: Option<String>,
    /// Take the first line of standard input.
    #[arg(long)]
    pub stdin: bool,
    /// Type it wherever the job is, even if it may be shown.
    #[arg(long)]
    pub force: bool,
}

/// What to do about known secrets.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "a doc comment here would replace the help of the verb")]
pub enum SecretVerb {
    List(SecretListArgs),
    Forget(SecretForgetArgs),
}

/// List the secrets that all jobs know, without their values.
///
/// What a job was given in a variable, what was typed as a secret, and values of the settings are hidden from agents in every
/// job, for 30 days after they were last given.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast secret list")]
pub struct SecretListArgs {}

/// Let jobs forget a secret: from then on they show it.
///
/// The job that was given it hides it for as long as it is kept. What runs inside a job can't do this.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outlast secret forget 9f2c55d0\n  outlast secret forget --all")]
pub struct SecretForgetArgs {
    /// Which, as `outlast secret list` names them.
    #[arg(value_name = "ID", required_unless_present = "all")]
    pub ids: Vec<String>,
    /// All of them.
    #[arg(long, conflicts_with = "ids")]
    pub all: bool,
}

/// Give a job's terminal another size.
///
/// The program is told (SIGWINCH), and the screen is laid out anew. While people are attached to type, their
/// terminals come first: the job has the size that was asked for when they have left.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast resize editor 80x24")]
pub struct ResizeArgs {
    /// Its handle or name.
    pub job: String,
    /// Columns and rows, for example 120x40.
    #[arg(value_name = "COLSxROWS", value_parser = size)]
    pub size: Size,
}

/// Open a shell that remembers, with a prompt in your terminal.
///
/// It is the shell that agents and `run --shell` use, with its folder, variables and functions; one of that name is made if
/// there is none. What you type are steps of yours, theirs wait until you leave with Ctrl-]. A line that is only half
/// typed then is dropped.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast shell                   the one called main
  outlast shell work --with zsh --rc
  outlast show shell main         its folder, what was changed in it, its steps")]
pub struct ShellArgs {
    /// Its name.
    #[arg(default_value = "main")]
    pub name: String,
    /// Which one it is, if it is new: bash, zsh, fish or dash [default: the setting shells.with].
    #[arg(long, value_name = "SHELL", value_parser = shell_kind)]
    pub with: Option<ShellKind>,
    /// If it is new, it reads your startup files.
    #[arg(long)]
    pub rc: bool,
}

/// Attach your terminal to a running job.
///
/// The screen is there at once, keys go to the job, Ctrl-] leaves it and sends nothing. To send a Ctrl-], leave with
/// another key: --detach-key. While you type,
/// agents can't, unless you share. The job takes the size of the smallest terminal that is attached to type.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  outlast attach web\n  outlast attach --read-only web\n  outlast attach --detach-key Ctrl-A telnet"
)]
pub struct AttachArgs {
    /// Its handle or name [default: the last job of this session that runs].
    pub job: Option<String>,
    /// Only look.
    #[arg(short, long)]
    pub read_only: bool,
    /// Let others type at the same time.
    #[arg(long, conflicts_with = "read_only")]
    pub shared: bool,
    /// The key that leaves it, as Ctrl-A; or none [default: Ctrl-], or your setting].
    #[arg(long, value_name = "KEY", value_parser = detach_key)]
    pub detach_key: Option<DetachKey>,
}
