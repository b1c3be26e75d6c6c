//! A process that is not our child, watched by a descriptor: whether it has ended, and where the system tells, how.

#[cfg(any(not(target_os = "linux"), outlast_portable))]
mod elsewhere;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
mod linux;

#[cfg(any(not(target_os = "linux"), outlast_portable))]
pub use elsewhere::{Watched, can_tell_ends};
#[cfg(all(target_os = "linux", not(outlast_portable)))]
pub use linux::{Watched, can_tell_ends};
