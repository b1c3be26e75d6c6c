//! Talks to the kernel: terminals, processes and signals.
//!
//! This crate knows nothing of jobs, logs or clients, and it is the only one with `unsafe`. Linux-only code
//! is in [`procfs`], [`evidence`] and [`ports`], with a fallback for other systems.
//!
//! In reading order: a terminal is [opened](open), a command is [spawned](spawn) on it, and the keeper of
//! both [detaches](detach) from the process that started it. From then on [`procfs`] knows the job's
//! processes, [`evidence`] whether they wait for input, and [`ports`] which ports they listen on.

pub mod detach;
pub mod heritage;
pub mod init;
pub mod open;
pub mod spawn;
#[cfg(target_os = "linux")]
pub mod bounded;
pub mod confine;
#[cfg(target_os = "linux")]
pub mod exec_guard;
#[cfg(target_os = "linux")]
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
#[cfg(target_os = "linux")]
pub mod watched;
pub mod evidence;
pub mod ports;
pub mod reading;
mod sockdiag;

pub use open::{Pty, Size};
pub use spawn::{Command, SessionLeader, SpawnError, Stdio};
