//! The page `ui://outlast/job` in a real browser, behind the bridge of the extension's own package: see `clients/app`.

use std::path::Path;
use std::process::Stdio;

use outlast_testkit::{has, left_out};

use crate::client::{PROGRAM, Sandbox};

const JUDGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/app/judge.mjs");
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/app");

#[test]
fn a_chat_shows_a_job_and_its_keys_reach_it() {
    if !has("node") || !has("chromium") {
        return;
    }
    if !Path::new(TOOLS).join("node_modules/@modelcontextprotocol/ext-apps").is_dir() {
        left_out("the extension's package is not installed", "cargo xtask test fetches it");
        return;
    }
    // With facts, and with words alone.
    for profile in ["plain", "codex"] {
        let sandbox = Sandbox::new();
        let mut node = sandbox.of_environment("node");
        let ran = node.args([JUDGE, TOOLS, PROGRAM, profile]).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success(), "{profile}: {said}{}", String::from_utf8_lossy(&ran.stderr));
        assert!(said.starts_with("ok "), "{profile}: {said}");
    }
}
