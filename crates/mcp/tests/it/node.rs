//! Another language's client: plain Node, without a package of anybody's. The public SDKs are run by `clients/run`.

use std::process::{Command, Stdio};

use crate::client::Sandbox;
use crate::http::Server;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/node/quick.mjs");

/// Runs the script; none where there is no Node that can.
fn quick(sandbox: &Sandbox, arguments: &[&str]) -> Option<String> {
    let version = Command::new("node").arg("--version").output().ok()?;
    let version = String::from_utf8_lossy(&version.stdout).trim().trim_start_matches('v').to_owned();
    if version.split('.').next()?.parse::<u32>().ok()? < 20 {
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
    match quick(&sandbox, &["stdio", env!("CARGO_BIN_EXE_outlast-mcp-testserver")]) {
        Some(said) => assert_eq!(said, "ok stdio older\nok stdio newer\n"),
        None => eprintln!("skipped: there is no node 20 here"),
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
        None => eprintln!("skipped: there is no node 20 here"),
    }
}
