//! Plugins: what an agent installs as one thing, the server, hooks and a skill. All of them come from `packages/plugin`, and the
//! same files are published and installed.

use std::path::{Path, PathBuf};

use outlast_cli::Client;
use outlast_job::Failure;
use serde_json::{Value, json};

use super::clients::{CommandLine, KnownClient, NAME, Server};
use super::hooks;

const SKILL: &str = include_str!("../../../../packages/plugin/SKILL.md");
const README: &str = include_str!("../../../../packages/plugin/README.md");

const ABOUT: &str = "Runs commands as jobs that outlast the call, and tells when they end, ask or listen";
const DEVELOPERS: &str = "The Outlast developers";
const SITE: &str = "https://outlast.dev";
const CATEGORY: &str = "Developer Tools";
/// The plugin in the marketplace, as agents name it. Both have our name.
const SELECTOR: &str = "outlast@outlast";

/// The agents that have plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Claude,
    Codex,
    Gemini,
}

/// The files of a plugin, and how the agent is told of it.
pub(crate) struct Plugin {
    kind: Kind,
    server: Server,
    /// The words by which hooks call us.
    program: Vec<String>,
}

impl Plugin {
    /// None for an agent that has no plugins that we know.
    pub(crate) fn of(client: Client, server: Server, program: Vec<String>) -> Option<Self> {
        let kind = match client {
            Client::Claude => Kind::Claude,
            Client::Codex => Kind::Codex,
            Client::Gemini => Kind::Gemini,
            Client::Opencode
            | Client::Cursor
            | Client::Vscode
            | Client::Zed
            | Client::Windsurf
            | Client::Copilot
            | Client::Qwen
            | Client::Amp
            | Client::Crush
            | Client::ClaudeDesktop => return None,
        };
        Some(Self { kind, server, program })
    }

    fn client(&self) -> Client {
        match self.kind {
            Kind::Claude => Client::Claude,
            Kind::Codex => Client::Codex,
            Kind::Gemini => Client::Gemini,
        }
    }

    /// Where the installed copy is.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let data = set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local/share")))?;
        Some(data.join("outlast/plugins").join(self.client().name()))
    }

    /// All files, by their paths in the folder: a marketplace with one plugin, or an extension.
    pub(crate) fn files(&self) -> Vec<(&'static str, String)> {
        let text = |value: &Value| format!("{value:#}\n");
        let servers = json!({ "mcpServers": { NAME: self.client().entry(&self.server) } });
        let mut files = vec![
            ("outlast/README.md", README.to_owned()),
            ("outlast/skills/outlast/SKILL.md", SKILL.to_owned()),
            ("outlast/hooks/hooks.json", text(&hooks::all(self.client(), &self.program))),
        ];
        match self.kind {
            Kind::Claude => files.extend([
                ("outlast/.mcp.json", text(&servers)),
                ("outlast/.claude-plugin/plugin.json", text(&manifest())),
                (".claude-plugin/marketplace.json", text(&claude_marketplace())),
            ]),
            Kind::Codex => files.extend([
                ("outlast/.mcp.json", text(&servers)),
                ("outlast/.codex-plugin/plugin.json", text(&codex_manifest())),
                (".agents/plugins/marketplace.json", text(&codex_marketplace())),
            ]),
            Kind::Gemini => {
                let mut extension = json!({
                    "name": NAME,
                    "version": env!("CARGO_PKG_VERSION"),
                    "description": ABOUT,
                });
                extension["mcpServers"] = servers["mcpServers"].clone();
                files.push(("outlast/gemini-extension.json", text(&extension)));
            }
        }
        files
    }

    /// Writes it into a folder; whatever was there of an earlier version goes.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Failure> {
        let broken = |error| Failure::system(format!("{} cannot be written", folder.display()), error);
        let old = folder.join("outlast");
        if old.exists() {
            std::fs::remove_dir_all(&old).map_err(broken)?;
        }
        for (name, text) in self.files() {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(broken)?;
            std::fs::write(&path, text).map_err(broken)?;
        }
        Ok(())
    }

    /// The agent's own commands that add it.
    pub(crate) fn adds(&self, folder: &Path) -> Vec<CommandLine> {
        let path = folder.to_string_lossy();
        let inside = folder.join("outlast");
        match self.kind {
            Kind::Claude => vec![
                words(&["claude", "plugin", "marketplace", "add", &path]),
                words(&["claude", "plugin", "install", SELECTOR]),
            ],
            Kind::Codex => vec![
                words(&["codex", "plugin", "marketplace", "add", &path]),
                words(&["codex", "plugin", "add", SELECTOR]),
            ],
            // Who asks for it has consented.
            Kind::Gemini => {
                vec![words(&["gemini", "extensions", "link", &inside.to_string_lossy(), "--consent"])]
            }
        }
    }

    /// The agent's own commands that take it out again.
    pub(crate) fn removes(&self) -> Vec<CommandLine> {
        match self.kind {
            Kind::Claude => vec![
                words(&["claude", "plugin", "uninstall", SELECTOR]),
                words(&["claude", "plugin", "marketplace", "remove", NAME]),
            ],
            Kind::Codex => vec![
                words(&["codex", "plugin", "remove", SELECTOR]),
                words(&["codex", "plugin", "marketplace", "remove", NAME]),
            ],
            Kind::Gemini => vec![words(&["gemini", "extensions", "uninstall", NAME])],
        }
    }
}

fn words(words: &[&str]) -> CommandLine {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// What the manifests of Claude Code and Codex have in common.
fn manifest() -> Value {
    json!({
        "name": NAME,
        "version": env!("CARGO_PKG_VERSION"),
        "description": ABOUT,
        "author": { "name": DEVELOPERS, "url": SITE },
        "homepage": SITE,
        "license": "MIT OR Apache-2.0",
        "keywords": ["shell", "terminal", "jobs", "background"],
    })
}

fn claude_marketplace() -> Value {
    json!({
        "name": NAME,
        "owner": { "name": DEVELOPERS, "url": SITE },
        "description": ABOUT,
        "plugins": [{
            "name": NAME,
            "source": "./outlast",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "category": "development",
        }],
    })
}

fn codex_manifest() -> Value {
    let mut manifest = manifest();
    manifest["skills"] = json!("./skills/");
    manifest["mcpServers"] = json!("./.mcp.json");
    manifest["hooks"] = json!("./hooks/hooks.json");
    manifest["interface"] = json!({
        "displayName": "Outlast",
        "shortDescription": "Jobs that outlast the call",
        "longDescription": ABOUT,
        "developerName": DEVELOPERS,
        "category": CATEGORY,
        "capabilities": ["Interactive", "Write"],
        "websiteURL": SITE,
    });
    manifest
}

fn codex_marketplace() -> Value {
    json!({
        "name": NAME,
        "interface": { "displayName": "Outlast" },
        "plugins": [{
            "name": NAME,
            "source": { "source": "local", "path": "./outlast" },
            "policy": { "installation": "AVAILABLE", "authentication": "ON_INSTALL" },
            "category": CATEGORY,
        }],
    })
}
