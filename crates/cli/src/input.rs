//! Arguments of the verbs that type into a job or attach to it: `send`, `secret`, `resize`, `attach`.

use std::time::Duration;

use clap::Args;
use outlast_protocol::Size;

use crate::values::{duration, size};

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
    /// Show the answer for so long at the most [default: 3s, with --pattern 30s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub deadline: Option<Duration>,
    /// How long a program that does not read may hold it up.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    pub patience: Duration,
}

/// Answer a password prompt of a job.
///
/// You are asked in your own terminal, and nothing is shown there. What you type is in no log, event or
/// answer, also if the program prints it all the same. Refused unless the job is at a prompt that hides what
/// is typed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast secret deploy
  pass show server/root | outlast secret deploy --stdin")]
pub struct SecretArgs {
    /// Its handle or name.
    pub job: String,
    /// Take the first line of standard input.
    #[arg(long)]
    pub stdin: bool,
    /// Type it wherever the job is, even if it may be shown.
    #[arg(long)]
    pub force: bool,
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

/// Sit down in front of a job: its terminal, in yours.
///
/// The screen is there at once, keys go to the job, Ctrl-] leaves it and sends nothing. While you type,
/// agents can't, unless you share. The job takes the size of the smallest terminal that is attached to type.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outlast attach web\n  outlast attach --read-only web")]
pub struct AttachArgs {
    /// Its handle or name [default: the last job of this session that runs].
    pub job: Option<String>,
    /// Only look.
    #[arg(short, long)]
    pub read_only: bool,
    /// Let others type at the same time.
    #[arg(long, conflicts_with = "read_only")]
    pub shared: bool,
}
