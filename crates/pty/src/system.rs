//! Calls that only Linux has, each with a twin that any Unix can do. What a twin does less well is said at it, and listed in
//! `docs/internals/portable.md`.
//!
//! A build with `--cfg outlast_portable` takes the twins on Linux too, which is how they are tested.

#[cfg(all(target_os = "linux", not(outlast_portable)))]
mod linux;
#[cfg(any(not(target_os = "linux"), outlast_portable))]
#[path = "system/portable.rs"]
mod linux;
mod bell;

pub use bell::Bell;
pub use linux::*;
