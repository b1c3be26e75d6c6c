//! Attacks, tried and counted: evasions of rules, escapes from the sandbox, leaks of secrets. What gets through is a
//! failure. `cargo xtask attack` runs all of them and writes the table of docs/attacks.md; otherwise a part is tried.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it skips"
)]

mod allowed;
#[expect(dead_code, reason = "shared with the tests of the MCP server, which need all of it")]
#[path = "../mcp/client.rs"]
mod client;
mod cost;
mod doors;
mod escapes;
mod evasions;
mod hosts;
mod leaks;
mod names;
mod paths;
mod reader;
#[expect(dead_code, reason = "shared with the tests of the web view, which need all of it")]
#[path = "../web/client.rs"]
mod web_client;

use std::io::Write;

/// Whether everything is tried, or a part.
fn is_full() -> bool {
    std::env::var_os("OUTLAST_ATTACK").is_some_and(|value| value == "full")
}

/// The part of a list of generated attacks that is tried: all, or every n-th.
fn chosen<T>(all: Vec<T>, every: usize) -> Vec<T> {
    let step = if is_full() { 1 } else { every };
    all.into_iter().step_by(step).collect()
}

/// What was tried of one kind, and what got through.
#[derive(Default)]
struct Tally {
    tried: usize,
    through: Vec<String>,
}

impl Tally {
    fn count(&mut self, attack: &str, is_through: bool) {
        self.tried += 1;
        if is_through {
            self.through.push(attack.to_owned());
        }
    }

    /// Writes it down where it was asked for, and insists that nothing got through.
    #[track_caller]
    fn nothing_got_through(self, kind: &str) {
        let line = serde_json::json!({"kind": kind, "tried": self.tried, "through": self.through});
        if let Some(file) = std::env::var_os("OUTLAST_ATTACK_FILE") {
            let mut file = std::fs::OpenOptions::new().append(true).create(true).open(file).unwrap();
            file.write_all(format!("{line}\n").as_bytes()).unwrap();
        }
        eprintln!("{kind}: {} tried, {} through", self.tried, self.through.len());
        assert!(self.tried > 0, "{kind}: nothing was tried");
        assert!(self.through.is_empty(), "{kind}: {:#?}", self.through);
    }
}
