//! Bytes on their way to the engine, and those that need not go there.
//!
//! As long as output is only lines, rows that lie further back than screen and scrollback together cannot be seen any
//! more. The queue keeps two stretches of lines: once the newer holds enough rows to fill both, the older is dropped.

/// More than this does not wait.
const MAX_WAITING: usize = 512 * 1024;

#[derive(Debug)]
pub(super) struct Queue {
    /// Must be drawn: something in it reaches beyond its line.
    first: Vec<u8>,
    /// Lines that can be dropped once `newer` has enough rows.
    older: Vec<u8>,
    newer: Vec<u8>,
    /// Rows that `newer` surely fills.
    newer_rows: usize,
    /// Columns that the unfinished line surely fills.
    line_columns: usize,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self { first: Vec::new(), older: Vec::new(), newer: Vec::new(), newer_rows: 0, line_columns: 0 }
    }

    pub(super) fn is_full(&self) -> bool {
        self.first.len() + self.older.len() + self.newer.len() > MAX_WAITING
    }

    pub(super) fn line_local(&mut self, bytes: &[u8], cols: usize) {
        self.newer.extend_from_slice(bytes);
        // A long line fills several rows. Sequences and marks take no column, so only plain long runs are counted.
        if bytes.len() > cols && bytes.first() != Some(&0x1b) && bytes.is_ascii() {
            self.line_columns = self.line_columns.max(bytes.len() / cols - 1);
        }
    }

    /// Ends a line; returns what has to be drawn now because what follows it is dropped.
    pub(super) fn line_end(&mut self, bytes: &[u8], at_column_zero: bool, enough: usize) -> Option<Vec<u8>> {
        self.newer.extend_from_slice(bytes);
        self.newer_rows += 1 + std::mem::take(&mut self.line_columns);
        if self.newer_rows < enough || !at_column_zero {
            return None;
        }
        std::mem::swap(&mut self.older, &mut self.newer);
        self.newer.clear();
        self.newer_rows = 0;
        if self.first.is_empty() { None } else { Some(std::mem::take(&mut self.first)) }
    }

    pub(super) fn far_reaching(&mut self, bytes: &[u8]) {
        self.first.append(&mut self.older);
        self.first.append(&mut self.newer);
        self.first.extend_from_slice(bytes);
        (self.newer_rows, self.line_columns) = (0, 0);
    }

    /// Everything that waits, in order.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.first);
        all.append(&mut self.older);
        all.append(&mut self.newer);
        (self.newer_rows, self.line_columns) = (0, 0);
        all
    }
}
