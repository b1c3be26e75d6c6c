//! How large a terminal is, kept within what a grid may cost.
//!
//! A program or a viewer may ask for 65535×65535 cells. No screen is that large, and a grid of it would take
//! gigabytes, so every size is brought into bounds before anything is built from it.

/// Columns and rows of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Number of columns.
    pub cols: u16,
    /// Number of rows.
    pub rows: u16,
}

/// More columns than any real terminal has; a grid of 1000×500 is 12 MB.
const MAX_COLS: u16 = 1000;
/// More rows than any real terminal has.
const MAX_ROWS: u16 = 500;

impl Size {
    /// The nearest size that a screen can have: a wide character needs two columns.
    #[must_use]
    pub fn clamped(self) -> Self {
        Self { cols: self.cols.clamp(2, MAX_COLS), rows: self.rows.clamp(1, MAX_ROWS) }
    }

    pub(crate) fn columns(self) -> usize {
        usize::from(self.cols)
    }

    pub(crate) fn lines(self) -> usize {
        usize::from(self.rows)
    }
}

impl Default for Size {
    fn default() -> Self {
        Self { cols: 120, rows: 40 }
    }
}
