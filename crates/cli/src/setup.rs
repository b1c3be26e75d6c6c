//! Arguments of the verbs about the program itself: `mcp`, `relay`, `doctor`, `completions`, `man`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::values::duration;

/// Serve agents over MCP.
///
/// On standard input and output, or over HTTP on this machine. Jobs are kept by their keepers: a server can
/// be ended and started again at any time.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast mcp
  outlast mcp --profile claude
  outlast mcp --http 127.0.0.1:8390")]
pub struct McpArgs {
    /// Serve streamable HTTP here instead; a bearer token is made and its file is named.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub http: Option<std::net::SocketAddr>,
    /// Which names the tools go by: plain, gemini, codex or claude.
    #[arg(long, default_value = "plain")]
    pub profile: String,
    /// Who owns what is started [default: told from what the client sends].
    #[arg(long)]
    pub session: Option<String>,
    /// May agents end and type into jobs of their own: allow, ask or deny [default: what the policy says,
    /// else ask where the client can].
    #[arg(long, value_name = "DECISION")]
    pub own: Option<String>,
    /// No call blocks longer than this [default: 50s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub longest_call: Option<Duration>,
    /// The program that starts this prompts the agent when something happened.
    #[arg(long, hide = true)]
    pub prompted: bool,
    /// The key by which the program that starts this recognises the calls that start jobs.
    #[arg(long, hide = true, value_name = "KEY")]
    pub call_key: Option<String>,
}

/// Serve another machine, or a program, over a pipe.
///
/// Answers requests about the jobs of this machine on standard input and output, in frames that docs/formats/relay.md
/// describes. `ssh host outlast relay` is how one machine reaches the jobs of another.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast relay
  ssh gpu1 outlast relay")]
pub struct RelayArgs {
    /// Pass requests on to the hosts that this machine knows: for programs that want to reach all of them.
    #[arg(long)]
    pub hosts: bool,
}

/// Check that this machine can do what jobs need.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outlast doctor\n  outlast doctor --json")]
pub struct DoctorArgs {}

/// Print completions for a shell.
///
/// They complete verbs, options, and the names of jobs, keys, signals and sessions.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast completions bash > ~/.local/share/bash-completion/completions/outlast
  source <(outlast completions zsh)      in ~/.zshrc, after compinit
  outlast completions fish > ~/.config/fish/completions/outlast.fish")]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// A shell that completions can be made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "a doc comment would be shown beside each name in the help")]
pub enum Shell {
    Bash,
    Elvish,
    Fish,
    #[value(name = "powershell")]
    PowerShell,
    Zsh,
}

/// Write the man pages into a folder.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  outlast man ~/.local/share/man/man1")]
pub struct ManArgs {
    /// The folder.
    pub folder: PathBuf,
}
