//! The nouns of Outlast, each once: what a wait waits for and why it ended, what a job waits for, how it failed.
//!
//! Every word that users see is declared here, with its older spellings. Doors, keeper and docs take it from here, so
//! that they cannot drift apart. Nothing here does I/O, reads a clock or knows how a job is run.

mod words;

pub mod awaiting;
pub mod condition;
pub mod detach_key;
pub mod event;
pub mod failure;
pub mod gone;
pub mod hint;
pub mod host;
pub mod info;
pub mod interpreter;
pub mod job;
pub mod lifecycle;
pub mod order;
pub mod outcome;
pub mod limits;
pub mod near;
pub mod queue;
pub mod reason;
pub mod report;
pub mod request;
pub mod sandbox;
pub mod secret_text;
pub mod shell;
pub mod size;
pub mod units;
pub mod v1;
pub mod wake;
pub mod wire;

pub use awaiting::{Awaiting, AwaitingKind, Evidence, Level};
pub use condition::{Condition, Stable};
pub use detach_key::DetachKey;
pub use event::{AgentState, EntryKind, Event, EventKind};
pub use failure::{Failure, Kind};
pub use hint::{Call, Hint};
pub use host::{HostName, JobRef};
pub use interpreter::with_interpreter;
pub use job::{Handle, Input, Run, Streams};
pub use order::{Door, KILL_GRACE, Tool};
pub use outcome::{Count, Finding, JobOutcome, KnownTool, Repeated, ToolOutcome};
pub use queue::{After, Load, Queued, Slot, SlotLoad};
pub use reason::Reason;
pub use report::{JobIdentity, JobReport};
pub use shell::{Shell, ShellKind, ShellStatus, Step, StepOrder, StepState};
pub use size::Size;
pub use wake::WakeKind;
pub use words::UnknownWord;
