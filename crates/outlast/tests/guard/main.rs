//! What guards: secrets that nobody sees, jobs in a sandbox, and their limits, with the real program on the real kernel.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it skips"
)]

mod limits;
mod names;
mod sandbox;
mod secrets;
mod walls;

use outlast_testkit::Sandbox;

/// A fresh home for the program under test.
fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_outlast"))
}
