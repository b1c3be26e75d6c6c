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
    /// The most columns that can be asked for: past it a screen would spend its memory on blanks.
    pub const MAX_COLS: u16 = 1000;
    /// The most rows.
    pub const MAX_ROWS: u16 = 500;

    /// Checks that a terminal of this size makes sense.
    ///
    /// # Errors
    /// A usage failure that names the limits.
    pub fn checked(self) -> Result<Self, Failure> {
        if (1..=Self::MAX_COLS).contains(&self.cols) && (1..=Self::MAX_ROWS).contains(&self.rows) {
            return Ok(self);
        }
        let (cols, rows) = (self.cols, self.rows);
        let (max_cols, max_rows) = (Self::MAX_COLS, Self::MAX_ROWS);
        Err(Failure::usage(format!("a terminal can't be {cols}x{rows}"))
            .hint(format!("give 1 to {max_cols} columns and 1 to {max_rows} rows, for example 120x40")))
    }
}
