//! Whether a rule applies to a command. It is pure: no I/O, no clock, no knowledge of jobs or of policy files.
//!
//! Two callers share it. The policy matches the words that it reads in a command line ([`matching`]); a keeper matches
//! what a program of its job really executes ([`exec`]), with rules that it was given as data.

mod word;
pub mod exec;
pub mod files;
pub mod loader;
pub mod matching;

pub use matching::{Strength, forbids};
pub use word::{Kind, Word, base, plain_words};
