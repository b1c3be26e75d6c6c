//! Clients in another language: plain Node, without a package of anybody's, and the TypeScript SDK where it
//! is installed. The other public SDKs are run by `clients/run`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::client::{PROGRAM, Sandbox};
use crate::http::Server;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/node/quick.mjs");
const PROFILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/node/profiles.mjs");
const TOKENS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/node/tokens.mjs");

/// What the list of tools may cost a model in every conversation.
const MOST_TOKENS: usize = 1600;
/// What it may cost a client, with everything that a model does not see.
const MOST_BYTES: usize = 10_240;

/// Node's major version; none where there is none.
fn node_version() -> Option<u32> {
    let version = Command::new("node").arg("--version").output().ok()?;
    let version = String::from_utf8_lossy(&version.stdout).trim().trim_start_matches('v').to_owned();
    version.split('.').next()?.parse().ok()
}

/// Runs the script; none where there is no Node that can.
fn quick(sandbox: &Sandbox, arguments: &[&str]) -> Option<String> {
    if node_version()? < 20 {
        return None;
    }
    let mut node = sandbox.of_environment("node");
    let ran = node.arg(SCRIPT).args(arguments).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    Some(said)
}

#[test]
fn node_speaks_with_it_over_stdio() {
    let sandbox = Sandbox::new();
    match quick(&sandbox, &["stdio", PROGRAM, "mcp"]) {
        Some(said) => assert_eq!(said, "ok stdio older\nok stdio newer\n"),
        None => outlast_testkit::left_out("there is no node 20", "apt-get install nodejs"),
    }
}

#[test]
fn node_speaks_with_it_over_http() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox);
    let token = std::fs::read_to_string(sandbox.path().join("home/mcp-token")).unwrap();
    let url = format!("http://{}/mcp", server.address);
    match quick(&sandbox, &["http", &url, token.trim()]) {
        Some(said) => assert_eq!(said, "ok http older\nok http newer\n"),
        None => outlast_testkit::left_out("there is no node 20", "apt-get install nodejs"),
    }
}

/// Where the TypeScript SDK is, for those who have it: `clients/node/package.json`, installed below the target
/// folder.
fn sdk() -> Option<PathBuf> {
    let target = Path::new(PROGRAM).parent()?.parent()?;
    let folder = std::env::var_os("CLIENTS_NODE").map_or_else(|| target.join("tools/node"), PathBuf::from);
    folder.join("node_modules/@modelcontextprotocol/sdk").is_dir().then_some(folder)
}

/// Symptom that this guards against: an answer that breaks its own schema, and a hint that names a tool of
/// another profile, so that what was left out can't be read.
#[test]
fn every_tool_of_every_profile_keeps_what_it_promises() {
    if node_version() < Some(20) {
        outlast_testkit::left_out("node 20 is not installed", "install node 20 or newer");
        return;
    }
    let Some(folder) = sdk() else {
        outlast_testkit::left_out(
            "the TypeScript SDK is not in target/tools/node",
            "copy clients/node/package*.json there and run npm ci in it, or run cargo xtask test",
        );
        return;
    };
    for profile in ["plain", "gemini", "codex", "claude"] {
        let sandbox = Sandbox::new();
        let mut node = sandbox.of_environment("node");
        node.arg(PROFILES).args([PROGRAM, profile]);
        let ran = node.env("CLIENTS_NODE", &folder).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(ran.status.success(), "{profile}: {said}{}", String::from_utf8_lossy(&ran.stderr));
        assert!(said.starts_with(&format!("ok {profile}")), "{said}");
    }
}

/// The tools of the default profile are read in every conversation, whether they are used or not.
#[test]
fn the_list_of_tools_costs_little() {
    let counter = sdk().filter(|folder| folder.join("node_modules/gpt-tokenizer").is_dir());
    let (Some(20..), Some(folder)) = (node_version(), counter) else {
        outlast_testkit::left_out(
            "node 20, or gpt-tokenizer in target/tools/node, is not there",
            "copy clients/node/package*.json there and run npm ci in it, or run cargo xtask test",
        );
        return;
    };
    let sandbox = Sandbox::new();
    let mut node = sandbox.of_environment("node");
    node.arg(TOKENS).args([PROGRAM, "plain"]);
    let ran = node.env("CLIENTS_NODE", &folder).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    // "7 tools: 1482 tokens, 9018 bytes"
    let numbers: Vec<usize> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [_, tokens, bytes] = numbers[..] else { panic!("{said}") };
    assert!(tokens <= MOST_TOKENS && bytes <= MOST_BYTES, "{said}");
}
