//! The size of a terminal, clamped to what a grid may cost.
//!
//! A program or a viewer may ask for 65535×65535 cells. A grid that large would take gigabytes, and no real
//! screen has that size, so every size is clamped before anything is allocated for it.

/// Columns and rows of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Number of columns.
    pub cols: u16,
    /// Number of rows.
    pub rows: u16,
}

/// The most columns of a screen, more than any real terminal has. A grid of 1000×500 takes 12 MB.
const MAX_COLS: u16 = 1000;
/// The most rows of a screen, more than any real terminal has.
const MAX_ROWS: u16 = 500;

impl Size {
    /// The nearest size that a screen can have. A wide character needs two columns.
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
