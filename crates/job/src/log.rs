//! A job's output on the disk: exact bytes in order, at offsets that never change.
//!
//! The keeper [writes](writer), and any process of the same user reads. Ranges that are lost (freed at the
//! size cap, or not written because of a full disk) are recorded exactly.

pub use outlast_protocol::gone;

pub(crate) mod mark;
pub(crate) mod redacted;
pub mod timing;
pub mod transcript;
pub mod writer;
