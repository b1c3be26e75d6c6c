//! Bytes on their way to the engine, and those that need not go there.
//!
//! As long as output is only lines, rows that lie further back than screen and scrollback together cannot be seen any
//! more. The queue keeps two stretches of lines: once the newer holds enough rows to fill both, the older is dropped.

use crate::scan::push_lines;

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
        if at_column_zero { self.drop_oldest(enough) } else { None }
    }

    /// Adds whole lines; returns what has to be drawn now, as above. Those of a pipe have no carriage returns yet.
    pub(super) fn lines(
        &mut self,
        (bytes, count): (&[u8], usize),
        terminal: bool,
        (cols, enough): (usize, usize),
    ) -> Option<Vec<u8>> {
        if terminal {
            self.newer.extend_from_slice(bytes);
        } else {
            push_lines(bytes, b"\r\n", &mut self.newer);
        }
        self.line_columns = 0;
        self.newer_rows += count;
        if bytes.len() / count.max(1) > cols {
            // Long lines fill several rows; only those of ASCII are sure to.
            let rows = |line: &[u8]| if line.is_ascii() { (line.len() / cols).saturating_sub(1) } else { 0 };
            self.newer_rows += bytes.split(|byte| *byte == b'\n').map(rows).sum::<usize>();
        }
        self.drop_oldest(enough)
    }

    fn drop_oldest(&mut self, enough: usize) -> Option<Vec<u8>> {
        if self.newer_rows < enough {
            return None;
        }
        let mut first = std::mem::take(&mut self.first);
        if !self.older.is_empty() {
            // What is kept begins at the left edge; what is dropped would have brought the cursor there.
            first.push(b'\r');
        }
        std::mem::swap(&mut self.older, &mut self.newer);
        self.newer.clear();
        self.newer_rows = 0;
        (!first.is_empty()).then_some(first)
    }

    pub(super) fn far_reaching(&mut self, bytes: &[u8]) {
        self.first.append(&mut self.older);
        self.first.append(&mut self.newer);
        self.first.extend_from_slice(bytes);
        (self.newer_rows, self.line_columns) = (0, 0);
    }

    /// Everything that waits, if that is not much and only lines.
    pub(super) fn only_lines(&self) -> Option<&[u8]> {
        (self.first.is_empty() && self.older.is_empty()).then_some(&self.newer)
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
