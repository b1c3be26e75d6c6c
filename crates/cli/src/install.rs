//! The command lines of `install` and `uninstall`.

use clap::{Args, ValueEnum};

/// Register the MCP server with an agent.
///
/// With the agent's own command where it has one, else by a change of its settings file: the rest of the file
/// stays as it is, and a copy of it as it was is kept beside it (.outlast-backup). Nothing is approved: the
/// agent asks you as it does for any other server.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast install                       which agents are on this machine, and
                                        what to type for them
  outlast install claude
  outlast install claude --plugin       with hooks and a skill, as one plugin
  outlast install zed --scope project --dry-run
  outlast install cursor --print        only show what to put in, and where")]
pub struct InstallArgs {
    /// Which agents.
    #[command(flatten)]
    pub agents: Agents,
    /// For whom, and how.
    #[command(flatten)]
    pub target: Target,
    /// Which names the tools go by: plain, gemini, codex or claude [default: those that its models know].
    #[arg(long)]
    pub profile: Option<String>,
    /// Have the agent tell when it works, is idle, asks or is done, by hooks of its own: claude, codex, gemini and opencode.
    /// outlast jobs then shows which agent waits for you.
    #[arg(long, conflicts_with_all = ["list", "print"])]
    pub hooks: bool,
    /// As a plugin of the agent, by its own commands: the server, the hooks and a skill in one. claude, codex and gemini have
    /// plugins.
    #[arg(long, conflicts_with_all = ["list", "print", "hooks"])]
    pub plugin: bool,
    /// Only write that plugin into a folder, to publish it or to add it by hand; it calls outlast from the PATH.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["list", "print", "hooks", "plugin", "dry_run"])]
    pub plugin_folder: Option<std::path::PathBuf>,
    /// Only print the entry.
    #[arg(long, conflicts_with_all = ["list", "dry_run"])]
    pub print: bool,
    /// List the agents that are known: which are on this machine, and which know the server.
    #[arg(long, conflicts_with_all = ["client", "named", "dry_run"])]
    pub list: bool,
}

/// Remove the MCP server from an agent's settings.
///
/// Only the entry of that name goes; a copy of the file as it was is kept beside it (.outlast-backup).
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast uninstall claude")]
pub struct UninstallArgs {
    /// Which agents.
    #[command(flatten)]
    pub agents: Agents,
    /// For whom, and how.
    #[command(flatten)]
    pub target: Target,
}

/// Which agents are meant.
#[derive(Debug, Args)]
pub struct Agents {
    /// The agent, or several.
    #[arg(value_enum, value_name = "AGENT", value_delimiter = ',')]
    pub named: Vec<Client>,
    /// The same as an option; may be given more than once.
    #[arg(long, value_enum, value_name = "AGENT", value_delimiter = ',', hide_possible_values = true)]
    pub client: Vec<Client>,
}

impl Agents {
    /// All of them, in the order of the command line.
    #[must_use]
    pub fn all(&self) -> Vec<Client> {
        self.named.iter().chain(&self.client).copied().collect()
    }
}

/// For whom, and how.
#[derive(Debug, Args)]
pub struct Target {
    /// For whom.
    #[arg(long, value_enum, default_value = "user")]
    pub scope: Scope,
    /// Only show what would be done, as a diff.
    #[arg(long)]
    pub dry_run: bool,
    /// Change the settings file, even if the agent has a command for it.
    #[arg(long)]
    pub no_command: bool,
}

/// A program that speaks MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Client {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    Vscode,
    /// Zed.
    Zed,
    /// Windsurf.
    Windsurf,
    /// Copilot CLI.
    Copilot,
    /// Qwen Code.
    Qwen,
    /// Amp.
    Amp,
    /// Crush.
    Crush,
    /// Claude Desktop.
    ClaudeDesktop,
}

/// For whom a client is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scope {
    /// For this user, in every project.
    User,
    /// For this project: a file in the folder where the call is made.
    Project,
}

impl Scope {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scope::User => "user",
            Scope::Project => "project",
        }
    }
}

impl Client {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Report the state of the agent that runs this as a hook: its input is JSON on standard input.
#[derive(Debug, Args)]
pub struct HookArgs {
    /// Which agent.
    #[arg(value_enum)]
    pub client: Client,
    /// How it is: working, idle, asks or done.
    #[arg(value_name = "STATE")]
    pub state: outlast_protocol::AgentState,
    /// Tell nothing; wait until a job of the agent has something to tell that wakes it (a wake of kind "agent"), say it on
    /// standard error, and end with 2.
    #[arg(long)]
    pub wake: bool,
}
