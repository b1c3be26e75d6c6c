//! The command lines of `install` and `uninstall`.

use clap::Args;

use super::clients::{Client, Scope};

/// Make the MCP server known to an agent.
///
/// With the agent's own command where it has one, else by a change of its settings file: the rest of the file stays
/// as it is, and a copy of it as it was is kept beside it (.outlast-backup). Nothing is approved: the agent asks you
/// as it does for any other server.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast install --list
  outlast install --client claude
  outlast install --client zed --scope project --dry-run
  outlast install --client cursor --print        only show what to put in, and where")]
pub(crate) struct InstallArgs {
    /// The agent; may be given more than once.
    #[arg(long, value_enum, value_name = "CLIENT", value_delimiter = ',', required_unless_present = "list")]
    pub(crate) client: Vec<Client>,
    #[command(flatten)]
    pub(crate) target: Target,
    /// Which names the tools go by: plain, gemini, codex or claude [default: those that its models know].
    #[arg(long)]
    pub(crate) profile: Option<String>,
    /// Only print the entry.
    #[arg(long, conflicts_with_all = ["list", "dry_run"])]
    pub(crate) print: bool,
    /// List the agents that are known: which are on this machine, and which know the server.
    #[arg(long, conflicts_with_all = ["client", "dry_run"])]
    pub(crate) list: bool,
}

/// Take the MCP server out of an agent's settings again.
///
/// Only the entry of that name goes; a copy of the file as it was is kept beside it (.outlast-backup).
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast uninstall --client claude")]
pub(crate) struct UninstallArgs {
    /// The agent; may be given more than once.
    #[arg(long, value_enum, value_name = "CLIENT", value_delimiter = ',', required = true)]
    pub(crate) client: Vec<Client>,
    #[command(flatten)]
    pub(crate) target: Target,
}

/// For whom, and how.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// For whom.
    #[arg(long, value_enum, default_value = "user")]
    pub(crate) scope: Scope,
    /// Only say what would be done.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Change the settings file, even if the agent has a command for it.
    #[arg(long)]
    pub(crate) no_command: bool,
}
