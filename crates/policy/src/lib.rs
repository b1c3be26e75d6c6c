//! Who may do what: rules for commands and tools, questions to a person, and the audit log.
//!
//! [`Policy`] is what the files say. It reads a command as the shell would (`reading`, `unwrap`) and gives a
//! [`Verdict`] with its reasons. Its only I/O is loading its files. [`Gate`] is what front doors use: it
//! judges an [`Order`], knows who owns a job and what reads its input, asks [`Question`]s, and records their
//! [`Answer`]s in the [`Audit`] log. What it lets through gets a [`Pass`].

mod decision;
mod word;
mod rule;
mod unwrap;
mod lines;
mod grammar;
mod reading;
mod judge;
mod file;
mod policy;
mod typed;
mod order;
mod question;
mod audit;
mod gate;

pub use audit::{Audit, Entries};
pub use decision::{Decision, Tool, Unattended};
pub use file::LoadError;
pub use gate::{Gate, Judged};
pub use judge::{Finding, Verdict};
pub use order::{Order, OrderKind, Pass, Start, StepCommand, TypedInput};
pub use outlast_protocol::Door;
pub use policy::{ForAgents, Policy};
pub use question::{Answer, Question, Topic, visible};
pub use rule::{Place, Rule};
pub use typed::Reader;
