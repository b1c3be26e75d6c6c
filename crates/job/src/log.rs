//! A job's output on the disk: exact bytes in order, with true offsets for ever.
//!
//! The keeper [writes](writer), anyone of the same user reads. What is gone (given back at the cap, or
//! lost to a full disk) is named exactly, never papered over.

pub mod gone;
pub(crate) mod redacted;
pub mod timing;
pub mod transcript;
pub mod writer;
