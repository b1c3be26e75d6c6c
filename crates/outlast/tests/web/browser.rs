//! The page in a real browser, as a person uses it: `clients/web/page.mjs`, with Debian's Chromium.

use std::path::Path;
use std::time::Duration;

use outlast_testkit::{Sandbox, has, left_out};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/web/page.mjs");
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/web");

/// Whether there is a browser; otherwise the test says what is missing.
fn has_browser() -> bool {
    if !has("chromium") {
        left_out("there is no chromium", "apt-get install chromium");
        return false;
    }
    if !has("node") || !Path::new(TOOLS).join("node_modules/playwright-core").is_dir() {
        left_out(
            "playwright-core is not in target/tools/web",
            "run cargo xtask test, with node and npm installed",
        );
        return false;
    }
    true
}

/// Whether xterm.js is embedded; otherwise the test says how to get it.
fn has_xterm(sandbox: &Sandbox) -> bool {
    let is_there = sandbox.json(["--version"])["web_terminal"] == "xterm.js";
    if !is_there {
        left_out("xterm.js is not embedded", "run cargo xtask assets, and build again");
    }
    is_there
}

#[track_caller]
fn scenario(name: &str, needs_xterm: bool) {
    let sandbox = crate::sandbox();
    if !has_browser() || (needs_xterm && !has_xterm(&sandbox)) {
        return;
    }
    let node = sandbox.call_other(Path::new("node"), [SCRIPT, name]);
    let ran =
        node.env("PROGRAM", sandbox.program()).env("TOOLS", TOOLS).limit(Duration::from_secs(240)).run();
    assert!(ran.text().contains(&format!("ok {name}")), "{ran}");
}

#[test]
fn every_view_with_xterm() {
    scenario("views", true);
}

#[test]
fn every_view_with_rows() {
    scenario("views-rows", false);
}

#[test]
fn a_person_takes_a_repl_over() {
    scenario("typing", true);
}

#[test]
fn a_person_takes_a_repl_over_without_xterm() {
    scenario("typing-rows", false);
}

#[test]
fn much_output_an_editor_and_two_runs() {
    scenario("past", true);
}

#[test]
fn much_output_an_editor_and_two_runs_without_xterm() {
    scenario("past-rows", false);
}

#[test]
fn an_approval_and_a_password_on_a_phone() {
    scenario("answers", false);
}

#[test]
fn pages_outlast_their_server_and_guests_see_one_job() {
    scenario("restart", false);
}

#[test]
fn no_view_shuts_anybody_out() {
    scenario("accessible", false);
}
