//! One job's life: registry, log, keeper and client.
//!
//! A [job](spec) is one command and all that it started. Its keeper, a process of its own, owns its
//! terminal, [log], waits and [events](wire::event); there is no daemon. Clients find jobs in the
//! [registry] on the file system, talk to keepers over a [socket](wire), and read logs themselves.
//!
//! This crate prints nothing and parses no arguments; front ends build on [`Outlast`] and [`Job`].

pub mod failure;
pub mod spec;
pub mod session;
pub mod lifecycle;
pub mod settings;
pub mod secrets;
pub mod sandbox;
pub mod limits;
pub mod clock;
pub mod registry;
pub mod log;
pub mod outbox;
pub mod keys;
pub mod notify;
pub mod wakes;
pub mod tmux;
pub mod wire;
mod search;
pub mod wiped;
mod socket;
mod keeper;
pub mod client;
pub mod process_tree;

pub use client::start::keep_if_asked;
pub use client::wait::{Wait, wait_any};
pub use client::{Job, Outlast};
pub use failure::{Failure, Kind};
pub use spec::{Handle, Input, JobSpec, Run, Size, Streams};
pub use wire::{Reason, Send, Waited};

/// The number of a signal's name, with or without `SIG`.
#[must_use]
pub fn signal_number(name: &str) -> Option<i32> {
    outlast_pty::signal::parse(name).map(rustix::process::Signal::as_raw)
}
