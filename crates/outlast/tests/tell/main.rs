//! Telling an agent: the outbox and its readers, watches, wakes, and tmux panes, with the real program and real
//! tmux servers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agent;
mod flood;
mod hooks;
mod named_shell;
mod notices;
mod outbox;
mod panes;
mod random_moments;
mod spool;
mod stand_in;
mod submit;
mod wakes;
mod watches;

use outlast_testkit::Sandbox;

/// A fresh sandbox for the program under test.
fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_outlast"))
}

/// The entries of the session's outbox, by the program itself.
fn entries(sandbox: &Sandbox) -> Vec<serde_json::Value> {
    let ran = sandbox.call(["--json", "events"]).run().ok();
    ran.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits for an entry of a kind.
#[track_caller]
fn entry(sandbox: &Sandbox, event: &str) -> serde_json::Value {
    outlast_testkit::eventually(event, outlast_testkit::TEST_TIMEOUT, || {
        let all = entries(sandbox);
        all.iter().find(|entry| entry["event"] == event).cloned().ok_or(all)
    })
}
