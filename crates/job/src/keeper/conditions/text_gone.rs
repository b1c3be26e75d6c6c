//! Whether text has gone from the screen.

use regex_automata::meta::Regex;

use crate::failure::Failure;
use outlast_stream::compile_pattern;

/// A pattern of text that is to go from a screen.
pub(super) struct TextGone {
    pattern: Regex,
}

impl TextGone {
    /// # Errors
    /// A usage failure for a bad pattern.
    pub(super) fn new(pattern: &str) -> Result<Self, Failure> {
        Ok(Self { pattern: compile_pattern(pattern)? })
    }

    /// Whether it is nowhere on the screen.
    pub(super) fn is_gone(&self, rows: &[String]) -> bool {
        !rows.iter().any(|row| self.pattern.is_match(row))
    }
}
