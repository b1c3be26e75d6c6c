//! Jobs that outlast the program that started them: start a command, look at it, type into it, wait for it.
//!
//! ```
//! use outlast_job::{Outlast, JobSpec, Wait};
//! use std::time::Duration;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // Jobs are kept by this same program, run again: so it must say so first.
//!     outlast_job::keep_if_asked();
//!
//!     let folder = tempfile::tempdir()?;
//!     let outlast = Outlast::at(folder.path())?;
//!     let job = outlast.start(JobSpec::shell("echo hello; read name; echo bye $name"))?;
//!
//!     let waited = job.wait(&Wait::for_pattern("hello"), Some(Duration::from_secs(10)))?;
//!     assert_eq!(waited.reason.name(), "pattern");
//!
//!     job.type_line("world")?;
//!     job.wait(&Wait::for_exit(), Some(Duration::from_secs(10)))?;
//!     assert!(job.read_text(0, 1 << 14)?.head.ends_with("bye world\n"));
//!     assert_eq!(job.info()?.state.name(), "completed");
//!     Ok(())
//! }
//! ```
//!
//! [`Outlast`] is a home of jobs, [`Job`] is one of them. A [`Wait`] says what to wait for and [`Waited`] what came;
//! a [`Follower`] gives raw output as it comes, [`Lines`] gives text; an [`Outbox`] tells a session what happened to
//! its jobs. Everything that can go wrong is a [`Failure`]: kind, message, hint.
//!
//! Those names are the interface. The modules below are open to the other crates of this workspace only, and change
//! without notice. There is no daemon: a keeper, a process of its own, owns a job's terminal, log and waits. Clients
//! find jobs in the registry on the file system, talk to keepers over a socket, and read logs themselves. This crate
//! prints nothing and parses no arguments.

#[doc(hidden)]
pub mod spec;
#[doc(hidden)]
pub mod session;
#[doc(hidden)]
pub mod call_tag;
#[doc(hidden)]
pub mod agents;
#[doc(hidden)]
pub mod lifecycle;
#[doc(hidden)]
pub mod settings;
#[doc(hidden)]
pub mod secrets;
#[doc(hidden)]
pub mod sandbox;
#[doc(hidden)]
pub mod limits;
#[doc(hidden)]
pub mod systemd;
#[doc(hidden)]
pub mod clock;
#[doc(hidden)]
pub mod calls;
#[doc(hidden)]
pub mod census;
#[doc(hidden)]
pub mod registry;
#[doc(hidden)]
pub mod log;
#[doc(hidden)]
pub mod outbox;
#[doc(hidden)]
pub mod keys;
#[doc(hidden)]
pub mod notify;
#[doc(hidden)]
pub mod wakes;
#[doc(hidden)]
pub mod wire;
mod search;
mod slots;
mod shells;
#[doc(hidden)]
pub mod wiped;
mod socket;
mod keeper;
mod local;
#[doc(hidden)]
pub mod elsewhere;
#[doc(hidden)]
pub mod client;
#[doc(hidden)]
pub mod process_tree;

#[doc(hidden)]
pub use outlast_protocol::{EntryKind, condition, failure, units};

pub use client::{
    Follower, Job, Lines, Link, Outlast, PendingWait, ShellPlace, StepBegun, Waiting, check_wait, wait_any,
};
pub use failure::{Failure, Kind};
pub use local::start::keep_if_asked;
pub use outbox::Outbox;
pub use outlast_protocol::{Condition, request, shell};
pub use outlast_pty::system;
pub use spec::{Handle, Input, JobSpec, Run, Size, Streams};
pub use wire::{Reason, Send, Wait, Waited};

/// All names of signals, without `SIG`.
#[must_use]
pub fn signal_names() -> Vec<&'static str> {
    outlast_pty::signal::names()
}

/// The number of a signal's name, with or without `SIG`.
#[must_use]
pub fn signal_number(name: &str) -> Option<i32> {
    outlast_pty::signal::parse(name).map(rustix::process::Signal::as_raw)
}
