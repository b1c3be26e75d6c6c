//! Who may do what: rules for commands and tools, questions to a person, and the audit log.
//!
//! [`Policy`] is what the files say; it reads a command as the shell would ([reading](reading), [unwrap](unwrap))
//! and gives a [`Verdict`] with its reasons. It does no I/O but loading its files.

mod decision;
mod word;
mod rule;
mod unwrap;
mod reading;
mod judge;
mod file;
mod policy;

pub use decision::{Decision, Tool};
pub use file::LoadError;
pub use judge::{Finding, Verdict};
pub use policy::{ForAgents, Policy};
pub use rule::{Place, Rule};
