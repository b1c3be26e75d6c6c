//! Who may do what: rules for commands and tools, questions to a person, and the audit log.
//!
//! [`Policy`] is what the files say; it reads a command as the shell would (`reading`, `unwrap`)
//! and gives a [`Verdict`] with its reasons. It does no I/O but loading its files. [`Gate`] is what front doors use:
//! it knows whose job it is and who reads what is typed, makes [`Question`]s, and notes their [`Answer`]s in the
//! [`Audit`] log.

mod decision;
mod word;
mod rule;
mod unwrap;
mod lines;
mod reading;
mod judge;
mod file;
mod policy;
mod typed;
mod question;
mod audit;
mod gate;

pub use audit::Audit;
pub use decision::{Decision, Tool};
pub use file::LoadError;
pub use gate::{Gate, Judged, Wanted};
pub use judge::{Finding, Verdict};
pub use policy::{ForAgents, Policy};
pub use question::{Answer, Door, Question, Topic};
pub use rule::{Place, Rule};
pub use typed::Reader;
