//! What a terminal's bytes mean.

mod size;
mod scan;

pub use size::Size;
