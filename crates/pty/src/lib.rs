//! Talks to the kernel: terminals, processes and signals.
//!
//! This crate knows nothing of jobs, logs or clients, and it is the only one with `unsafe`. What only Linux has is behind
//! [`system`], [`procfs`], [`evidence`], [`ports`] and [`watched`], each with a portable twin; a sandbox and an exec guard have none.
//!
//! In reading order: a terminal is [opened](open), a command is [spawned](spawn) on it, and the keeper of
//! both [detaches](detach) from the process that started it. From then on [`procfs`] knows the job's
//! processes, [`evidence`] whether they wait for input, and [`ports`] which ports they listen on.

pub mod detach;
pub mod heritage;
pub mod init;
pub mod open;
pub mod spawn;
pub mod bounded;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
pub mod confine;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
pub mod exec_guard;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
pub mod fd_line;
pub mod limits;
pub mod signals;
pub mod reap;
pub mod shared;
pub mod reader_position;
pub mod memory;
pub mod procfs;
pub mod signal;
pub mod stdin_peer;
pub mod usage;
pub mod watched;
pub mod evidence;
pub mod ports;
pub mod reading;
mod sockdiag;
pub mod system;

pub use open::{Pty, Size};
pub use spawn::{Command, SessionLeader, SpawnError, Stdio};
