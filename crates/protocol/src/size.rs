//! How large a terminal is.

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// A terminal's size in character cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Width of a row.
    pub cols: u16,
    /// Number of rows.
    pub rows: u16,
}

impl Default for Size {
    fn default() -> Self {
        Self { cols: 120, rows: 40 }
    }
}

impl Size {
    /// The largest side that can be asked for: past it a screen would spend its memory on blanks.
    pub const MAX: u16 = 2000;

    /// Checks that a terminal of this size makes sense.
    ///
    /// # Errors
    /// A usage failure that names the limits.
    pub fn checked(self) -> Result<Self, Failure> {
        if (1..=Self::MAX).contains(&self.cols) && (1..=Self::MAX).contains(&self.rows) {
            return Ok(self);
        }
        let (cols, rows, max) = (self.cols, self.rows, Self::MAX);
        Err(Failure::usage(format!("a terminal can't be {cols}x{rows}"))
            .hint(format!("give columns x rows, each from 1 to {max}, for example --size 120x40")))
    }
}
