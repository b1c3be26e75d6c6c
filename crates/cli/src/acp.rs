//! Arguments of the verbs that speak ACP.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::values::{bytes, duration};
use outlast_protocol::EntryKind;

/// Speak ACP, the protocol between editors and agents.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast acp agent
  outlast acp sidecar -- gemini --acp
  outlast acp tap --out wire.jsonl -- gemini --acp")]
pub struct AcpArgs {
    /// What to be.
    #[command(subcommand)]
    pub verb: AcpVerb,
}

/// The verbs of `acp`.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "a doc comment here would replace the help of the verb")]
pub enum AcpVerb {
    Agent(AcpAgentArgs),
    Sidecar(SidecarArgs),
    Tap(TapArgs),
}

/// Run as an agent whose turns are shell commands.
///
/// A prompt is a command line; with & at its end it runs in the background. Each job is a tool call that gets
/// its lines as they come, also after the turn, until the job has ended. /send, /keys, /jobs, /read, /wait
/// and /kill do the rest.
#[derive(Debug, Args)]
#[command(after_help = "Example, in an editor's settings for agents:\n  outlast acp agent")]
pub struct AcpAgentArgs {}

/// Run between an editor and an agent, and wake the agent when something happens.
///
/// The agent gets our tools, the editor sees its jobs live. When the agent is idle and one of its jobs ended,
/// asks for input or found a pattern, it is prompted once with all of it, and the user sees that. In the
/// editor, /outlast off, /outlast on and /outlast status are for the sidecar.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast acp sidecar -- gemini --acp
  outlast acp sidecar --per-hour 20 --events exit,awaiting_input -- codex-acp")]
pub struct SidecarArgs {
    /// Wake the agent at most this many times in a minute.
    #[arg(long, value_name = "COUNT", default_value_t = 4)]
    pub per_minute: u32,
    /// And at most this many times in an hour: a quarter at once, the rest spread. Ends of jobs and questions have a
    /// quarter more.
    #[arg(long, value_name = "COUNT", default_value_t = 60)]
    pub per_hour: u32,
    /// And at most this many times in a row; a prompt of the user begins a new row [default: no such limit].
    #[arg(long, value_name = "COUNT")]
    pub turns: Option<u32>,
    /// At most this much text in one prompt; more becomes counts.
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "8KiB")]
    pub prompt_bytes: u64,
    /// At most this much text in an hour.
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "512KiB")]
    pub bytes_per_hour: u64,
    /// How long events are gathered before the agent is woken.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    pub window: Duration,
    /// Which events wake it, separated by commas: exit, awaiting_input, port, pattern, quiet, stable, lines,
    /// stream [default: all].
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = EntryKind::wanted)]
    pub events: Vec<EntryKind>,
    /// Never wake it; events go along with the user's prompts.
    #[arg(long)]
    pub no_wake: bool,
    /// Do not show the agent's jobs as tool calls of their own.
    #[arg(long)]
    pub no_jobs: bool,
    /// Which names our tools go by: plain, gemini, codex or claude.
    #[arg(long, default_value = "plain")]
    pub profile: String,
    /// The agent and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "AGENT")]
    pub agent: Vec<String>,
}

/// Record what an editor and an agent say to each other.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast acp tap --out wire.jsonl -- gemini --acp
  outlast acp tap --show wire.jsonl")]
pub struct TapArgs {
    /// Where to write it [default: acp-tap-TIME.jsonl in the folder for temporary files].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print a recording readably; with --json, as JSON lines.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "agent"])]
    pub show: Option<PathBuf>,
    /// The agent and its arguments.
    #[arg(
        required_unless_present = "show",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "AGENT"
    )]
    pub agent: Vec<String>,
}
