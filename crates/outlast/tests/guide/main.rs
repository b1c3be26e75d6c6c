//! The README and the pages of the guide do what they say: their commands are run, and their links lead somewhere.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod commands;
mod links;
mod page;
