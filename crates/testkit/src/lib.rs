//! Help for tests that run the real program: a [`Sandbox`] is a sealed home of its own, a [`Call`] is one run of
//! the program with a hard limit of time, [`eventually()`] waits for what must come true, a [`Socket`] talks to a
//! keeper by hand, a [`Conversation`] to the program as an editor does, [`Dice`] are random and repeatable, and [`processes`] are found and ended without mistaking one
//! for another.
//!
//! Everything here panics when something is not as it should be: that is how a test fails.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![expect(clippy::missing_panics_doc, reason = "all of it panics, on purpose")]

mod call;
mod conversation;
mod dice;
mod eventually;
mod machine;
pub mod processes;
mod sandbox;
mod socket;

pub use call::{Call, Ran, Running};
pub use conversation::Conversation;
pub use dice::Dice;
pub use eventually::{PATIENCE, eventually};
pub use machine::{LEFT_OUT_FILE, NO_SKIPS, has, left_out};
pub use sandbox::Sandbox;
pub use socket::Socket;
