//! Talks to the kernel: terminals, processes and signals. Bytes come from here.
//!
//! This crate knows nothing of jobs, logs or clients, and it is the only one with `unsafe` in it. What is
//! Linux-only lives in [`procfs`], [`evidence`] and [`ports`] behind a written fallback.
//!
//! In reading order: a terminal is [opened](open), a command is [spawned](spawn) in it, the keeper of both
//! has [detached](detach) itself from whoever started it. From then on [`procfs`] knows the job's processes,
//! [`evidence`] whether they wait for somebody to type, and [`ports`] where they can be reached.

pub mod detach;
pub mod init;
pub mod open;
pub mod spawn;
#[cfg(target_os = "linux")]
pub mod confine;
pub mod limits;
pub mod signals;
pub mod reap;
pub mod shared;
pub mod place;
pub mod memory;
pub mod procfs;
pub mod signal;
pub mod stdin_peer;
pub mod evidence;
pub mod ports;
pub mod reading;
mod sockdiag;

pub use open::{Pty, Size};
pub use spawn::{Command, Leads, SpawnError, Stdio};
