//! Support for tests that run the real program.
//!
//! - [`Sandbox`]: a sealed home of its own
//! - [`Call`]: one run of the program with a hard timeout
//! - [`eventually()`]: waits for a condition
//! - [`Socket`]: talks to a keeper directly
//! - [`Conversation`]: talks to the program as an editor does
//! - [`recorded`]: conversations of old versions
//! - [`outcomes`]: recorded runs of real tools
//! - [`Dice`]: random numbers that can be repeated
//! - [`processes`]: finds and ends processes without mistaking one for another
//!
//! Everything here panics if something is not as it should be: that is how a test fails.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![expect(clippy::missing_panics_doc, reason = "all of it panics, on purpose")]

mod call;
mod conversation;
mod dice;
mod eventually;
mod machine;
pub mod outcomes;
pub mod processes;
pub mod recorded;
mod sandbox;
mod socket;
mod stage;

pub use call::{Call, Ran, Running};
pub use conversation::Conversation;
pub use dice::Dice;
pub use eventually::{TEST_TIMEOUT, eventually};
pub use machine::{LEFT_OUT_FILE, NO_SKIPS, has, left_out, test_left_out};
pub use sandbox::Sandbox;
pub use socket::{Socket, stand_between};
pub use stage::Stage;
