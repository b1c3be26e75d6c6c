//! `outlast --version --json`: what this program is, for programs that must know before they use it.

use clap::CommandFactory;
use serde_json::{Value, json};

/// Whether nothing but the version is asked for, as JSON. Plain `--version` is clap's.
pub(crate) fn is_asked_as_json() -> bool {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let version = words.iter().any(|word| word == "--version" || word == "-V");
    version && words.len() == 2 && words.iter().any(|word| word == "--json")
}

/// Version, commit, the formats that it writes and speaks, and what it can do.
pub(crate) fn about() -> Value {
    let grammar = outlast_cli::Cli::command();
    let verbs: Vec<&str> =
        grammar.get_subcommands().filter(|verb| !verb.is_hide_set()).map(clap::Command::get_name).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        // Set by the release build.
        "commit": option_env!("OUTLAST_COMMIT"),
        "formats": {
            "job": outlast_protocol::info::FORMAT,
            "keeper": outlast_protocol::wire::PROTOCOL,
            "relay": outlast_remote::message::FRAMES,
        },
        "target": format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        "static": cfg!(target_feature = "crt-static"),
        "features": verbs,
        // What draws the open terminal of the web view.
        "web_terminal": outlast_web::terminal_engine(),
    })
}
