//! The web view: who gets in and who does not, a person who takes a job over, and the page in a real browser.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod attacks;
mod browser;
mod client;
mod hold;
mod serving;
mod shares;

use outlast_testkit::Sandbox;

/// A fresh home for the program under test.
fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_outlast"))
}
