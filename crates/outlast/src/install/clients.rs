//! The clients that are known: where each keeps its servers, in which form, and which command of its own it has.

use std::path::PathBuf;
use std::time::Duration;

use outlast_cli::{Client, Scope};
use serde_json::{Value, json};

/// The name under which clients know the server. No underscores: some join it with a tool's name by them.
pub(crate) const NAME: &str = "outlast";

/// How long a call may take with an agent whose own limit is set too: a build is one call then.
const LONGEST_CALL: Duration = Duration::from_secs(1800);

/// How to start the server.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
}

/// A command line of the client's own.
pub(crate) type CommandLine = Vec<String>;

/// What is known of a client: its settings, and the commands of its own.
pub(crate) trait KnownClient: Sized {
    /// Where the tools have names of their own that this client's models were trained with.
    fn profile(self) -> &'static str;

    /// How long a call may take there, if that is more than everywhere: where its own limit can be set beside ours.
    fn longest_call(self) -> Option<Duration>;

    /// The program to look for on `PATH`.
    fn program(self) -> Option<&'static str>;

    /// Its settings file; the first of several that is there, else the first. None where it has none for that scope.
    fn file(self, scope: Scope) -> Option<PathBuf>;

    /// Under which key of that file servers are.
    fn key(self) -> &'static str;

    /// What stands there for a server. Nothing in it approves anything.
    fn entry(self, server: &Server) -> Value;

    /// The parts of an entry that are ours; whatever else the user put beside them stays theirs.
    fn our_keys(self) -> &'static [&'static str];

    /// The client's own command that adds the server.
    fn adds(self, scope: Scope, server: &Server) -> Option<CommandLine>;

    /// The client's own command that removes it.
    fn removes(self, scope: Scope) -> Option<CommandLine>;

    /// What is left to do for its user, once it is installed.
    fn what_now(self) -> &'static str;
}

impl KnownClient for Client {
    fn profile(self) -> &'static str {
        match self {
            Client::Claude => "claude",
            Client::Codex => "codex",
            Client::Gemini => "gemini",
            Client::Opencode
            | Client::Cursor
            | Client::Vscode
            | Client::Zed
            | Client::Windsurf
            | Client::Copilot
            | Client::Qwen
            | Client::Amp
            | Client::Crush
            | Client::ClaudeDesktop => "plain",
        }
    }

    fn longest_call(self) -> Option<Duration> {
        matches!(self, Client::Claude | Client::Codex | Client::Gemini | Client::Opencode)
            .then_some(LONGEST_CALL)
    }

    fn program(self) -> Option<&'static str> {
        match self {
            Client::Claude => Some("claude"),
            Client::Codex => Some("codex"),
            Client::Gemini => Some("gemini"),
            Client::Opencode => Some("opencode"),
            Client::Cursor => Some("cursor"),
            Client::Vscode => Some("code"),
            Client::Zed => Some("zed"),
            Client::Windsurf => Some("windsurf"),
            Client::Copilot => Some("copilot"),
            Client::Qwen => Some("qwen"),
            Client::Amp => Some("amp"),
            Client::Crush => Some("crush"),
            Client::ClaudeDesktop => None,
        }
    }

    fn file(self, scope: Scope) -> Option<PathBuf> {
        let candidates = match scope {
            Scope::User => user_files(self)?,
            Scope::Project => {
                let here = std::env::current_dir().ok()?;
                project_files(self).iter().map(|file| here.join(file)).collect()
            }
        };
        candidates.iter().find(|file| file.exists()).or(candidates.first()).cloned()
    }

    fn key(self) -> &'static str {
        match self {
            Client::Codex => "mcp_servers",
            Client::Opencode | Client::Crush => "mcp",
            Client::Vscode => "servers",
            Client::Zed => "context_servers",
            Client::Amp => "amp.mcpServers",
            Client::Claude
            | Client::Gemini
            | Client::Cursor
            | Client::Windsurf
            | Client::Copilot
            | Client::Qwen
            | Client::ClaudeDesktop => "mcpServers",
        }
    }

    fn entry(self, server: &Server) -> Value {
        let Server { command, args } = server;
        // How long a call may take: a little more than our own limit, which is in `args`.
        let secs = LONGEST_CALL.as_secs() + 60;
        match self {
            Client::Opencode => {
                let line: Vec<&String> = std::iter::once(command).chain(args).collect();
                json!({ "type": "local", "command": line, "enabled": true, "timeout": secs * 1000 })
            }
            Client::Claude => {
                json!({ "type": "stdio", "command": command, "args": args, "timeout": secs * 1000 })
            }
            Client::Vscode | Client::Crush => {
                json!({ "type": "stdio", "command": command, "args": args })
            }
            // Which tools are offered, not which are approved; it can't be left out.
            Client::Copilot => json!({ "type": "local", "command": command, "args": args, "tools": ["*"] }),
            Client::Codex => json!({ "command": command, "args": args, "tool_timeout_sec": secs }),
            Client::Gemini => json!({ "command": command, "args": args, "timeout": secs * 1000 }),
            Client::Cursor
            | Client::Zed
            | Client::Windsurf
            | Client::Qwen
            | Client::Amp
            | Client::ClaudeDesktop => json!({ "command": command, "args": args }),
        }
    }

    fn our_keys(self) -> &'static [&'static str] {
        match self {
            Client::Opencode => &["command", "timeout"],
            Client::Codex => &["command", "args", "tool_timeout_sec"],
            Client::Claude | Client::Gemini => &["command", "args", "timeout"],
            Client::Cursor
            | Client::Vscode
            | Client::Zed
            | Client::Windsurf
            | Client::Copilot
            | Client::Qwen
            | Client::Amp
            | Client::Crush
            | Client::ClaudeDesktop => &["command", "args"],
        }
    }

    fn adds(self, scope: Scope, server: &Server) -> Option<CommandLine> {
        let words = |words: &[&str]| -> CommandLine { words.iter().map(|&word| word.to_owned()).collect() };
        let tail = || std::iter::once(&server.command).chain(&server.args).cloned();
        let mut line = match (self, scope) {
            (Client::Claude, _) => words(&["claude", "mcp", "add", "--scope", scope.name(), NAME, "--"]),
            (Client::Codex, Scope::User) => words(&["codex", "mcp", "add", NAME, "--"]),
            (Client::Gemini, _) => words(&["gemini", "mcp", "add", "--scope", scope.name(), NAME]),
            (Client::Qwen, _) => words(&["qwen", "mcp", "add", "--scope", scope.name(), NAME]),
            (Client::Vscode, Scope::User) => {
                let server = json!({ "name": NAME, "command": server.command, "args": server.args });
                return Some(vec!["code".to_owned(), "--add-mcp".to_owned(), server.to_string()]);
            }
            _ => return None,
        };
        line.extend(tail());
        Some(line)
    }

    fn what_now(self) -> &'static str {
        match self {
            Client::Claude => {
                "start Claude Code anew; /mcp shows the server, and it asks before the first use"
            }
            Client::Codex => "start Codex anew; /mcp shows the server",
            Client::Gemini => {
                "start Gemini CLI anew; /mcp shows the server, and it asks before the first use"
            }
            Client::Opencode => "start opencode anew; `opencode mcp list` shows the server",
            Client::Cursor => "open Cursor's settings, MCP, and switch the server on",
            Client::Vscode => {
                "in VS Code, run `MCP: List Servers` and start it; it asks whether you trust it"
            }
            Client::Zed => "Zed has it at once: its agent panel's settings show the server",
            Client::Windsurf => "in Windsurf, press refresh in the MCP servers of Cascade",
            Client::Copilot => "start Copilot CLI anew; /mcp shows the server",
            Client::Qwen => "start Qwen Code anew; /mcp shows the server",
            Client::Amp => "start Amp anew; it asks before the first use",
            Client::Crush => "start Crush anew; it asks before the first use",
            Client::ClaudeDesktop => "quit Claude Desktop and start it anew",
        }
    }

    fn removes(self, scope: Scope) -> Option<CommandLine> {
        let line: &[&str] = match (self, scope) {
            (Client::Claude, _) => &["claude", "mcp", "remove", "--scope", scope.name(), NAME],
            (Client::Codex, Scope::User) => &["codex", "mcp", "remove", NAME],
            (Client::Gemini, _) => &["gemini", "mcp", "remove", "--scope", scope.name(), NAME],
            (Client::Qwen, _) => &["qwen", "mcp", "remove", "--scope", scope.name(), NAME],
            _ => return None,
        };
        Some(line.iter().map(|&word| word.to_owned()).collect())
    }
}

fn user_files(client: Client) -> Option<Vec<PathBuf>> {
    let home = PathBuf::from(std::env::var_os("HOME").filter(|home| !home.is_empty())?);
    let from_env = |name, default: &str| match std::env::var_os(name).filter(|value| !value.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => home.join(default),
    };
    let config = from_env("XDG_CONFIG_HOME", ".config");
    // A program that is not a plain Unix one keeps its settings where the system wants them.
    let desktop =
        if cfg!(target_os = "macos") { home.join("Library/Application Support") } else { config.clone() };
    Some(match client {
        Client::Claude => match std::env::var_os("CLAUDE_CONFIG_DIR").filter(|value| !value.is_empty()) {
            Some(folder) => vec![PathBuf::from(folder).join(".claude.json")],
            None => vec![home.join(".claude.json")],
        },
        Client::Codex => vec![from_env("CODEX_HOME", ".codex").join("config.toml")],
        Client::Gemini => vec![home.join(".gemini/settings.json")],
        Client::Opencode => {
            let folder = config.join("opencode");
            vec![folder.join("opencode.json"), folder.join("opencode.jsonc")]
        }
        Client::Cursor => vec![home.join(".cursor/mcp.json")],
        Client::Vscode => vec![desktop.join("Code/User/mcp.json")],
        Client::Zed => vec![config.join("zed/settings.json")],
        Client::Windsurf => vec![home.join(".codeium/windsurf/mcp_config.json")],
        Client::Copilot => vec![from_env("COPILOT_HOME", ".copilot").join("mcp-config.json")],
        Client::Qwen => vec![home.join(".qwen/settings.json")],
        Client::Amp => vec![config.join("amp/settings.json")],
        Client::Crush => vec![config.join("crush/crush.json")],
        Client::ClaudeDesktop => vec![desktop.join("Claude/claude_desktop_config.json")],
    })
}

fn project_files(client: Client) -> &'static [&'static str] {
    match client {
        Client::Claude => &[".mcp.json"],
        Client::Codex => &[".codex/config.toml"],
        Client::Gemini => &[".gemini/settings.json"],
        Client::Opencode => &["opencode.json", "opencode.jsonc"],
        Client::Cursor => &[".cursor/mcp.json"],
        Client::Vscode => &[".vscode/mcp.json"],
        Client::Zed => &[".zed/settings.json"],
        Client::Qwen => &[".qwen/settings.json"],
        Client::Amp => &[".amp/settings.json"],
        Client::Crush => &["crush.json", ".crush.json"],
        Client::Windsurf | Client::Copilot | Client::ClaudeDesktop => &[],
    }
}
