//! The verbs about who may do what.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// See what the policy says, and answer what it asks.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast policy check --explain 'make && sudo rm -rf build'")]
pub struct PolicyArgs {
    /// What to do.
    #[command(subcommand)]
    pub verb: PolicyVerb,
}

/// The verbs of `policy`.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "a doc comment here would replace the help of the verb")]
pub enum PolicyVerb {
    Check(PolicyCheckArgs),
    Pending(PolicyPendingArgs),
    Answer(PolicyAnswerArgs),
    Log(PolicyLogArgs),
    Init(PolicyInitArgs),
}

/// Say what the policy decides about a command, and why; without one, which files are in force.
///
/// Nothing is run. The exit code is 5 when it is denied.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast policy check
  outlast policy check --explain 'make && sudo rm -rf build'
  outlast policy check --tool send_input 'git push'")]
pub struct PolicyCheckArgs {
    /// The command: one argument is a line for the shell, more are a program and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Every reason, not only the one that decides.
    #[arg(long)]
    pub explain: bool,
    /// The tool that would run it [default: run_shell_command].
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// Also what the project around this folder says.
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
}

/// List programs of jobs that stand still until a person agrees.
///
/// A rule asks about what they want to execute. No answer in time is a no.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast policy pending")]
pub struct PolicyPendingArgs {}

/// Answer what a program of a job wants to execute.
///
/// A yes counts for this once. Only outside of jobs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast policy pending
  outlast policy answer 3 1 yes")]
pub struct PolicyAnswerArgs {
    /// The job, by its number or name.
    #[arg(value_name = "JOB")]
    pub job: String,
    /// The question's number.
    #[arg(value_name = "QUESTION")]
    pub question: u64,
    /// Whether it may.
    #[arg(value_name = "ANSWER")]
    pub answer: YesNo,
}

/// Show what was asked about, refused, or allowed by a rule, and whether the log is whole.
///
/// The exit code is 1 if entries are missing or were changed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast policy log
  outlast policy log -n 200 --json")]
pub struct PolicyLogArgs {
    /// How many of the last entries [default: 50].
    #[arg(
        short = 'n',
        long = "lines",
        value_name = "COUNT",
        default_value_t = 50,
        hide_default_value = true
    )]
    pub lines: usize,
}

/// Write a policy and a sandbox for agents to begin with, as files to edit.
///
/// Rules hold an agent that is careless, the sandbox one that is not; each leaves open what the other closes. Files that exist
/// are left alone: what is missing in them is shown.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outlast policy init --dry-run\n  outlast policy init")]
pub struct PolicyInitArgs {
    /// Only show what would be written.
    #[arg(long)]
    pub dry_run: bool,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum YesNo {
    /// It may, this once.
    Yes,
    /// It may not.
    No,
}
