//! Jobs on other machines: the relay by the real program, links that are cut, and a real sshd.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agents;
mod containers;
mod cuts;
mod dialogue;
mod fleet;
mod sshd;
mod verbs;
mod wire;

use outlast_testkit::Sandbox;

/// A fresh sandbox for the program under test.
fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_outlast"))
}
