//! Bytes that wait to be drawn by the engine, and those that never need to be drawn.
//!
//! While output is only lines, rows further back than screen and scrollback together can no longer be seen.
//! The queue keeps two runs of lines. Once the newer one has enough rows to fill both, the older one is
//! dropped.

use crate::scan::push_lines;

/// The most bytes that wait in the queue.
const MAX_QUEUED_BYTES: usize = 512 * 1024;

#[derive(Debug)]
pub(super) struct Queue {
    /// Must be drawn: it has a cursor move to another line.
    first: Vec<u8>,
    /// Lines that can be dropped once `newer` has enough rows.
    older: Vec<u8>,
    newer: Vec<u8>,
    /// How many rows `newer` fills at least.
    newer_rows: usize,
    /// How many further rows the unfinished line fills at least.
    line_columns: usize,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self { first: Vec::new(), older: Vec::new(), newer: Vec::new(), newer_rows: 0, line_columns: 0 }
    }

    pub(super) fn is_full(&self) -> bool {
        self.first.len() + self.older.len() + self.newer.len() > MAX_QUEUED_BYTES
    }

    pub(super) fn push_in_line(&mut self, bytes: &[u8], cols: usize) {
        self.newer.extend_from_slice(bytes);
        // A long line fills several rows. Sequences and combining marks take no column, so only long ASCII
        // runs count.
        if bytes.len() > cols && bytes.first() != Some(&0x1b) && bytes.is_ascii() {
            self.line_columns = self.line_columns.max(bytes.len() / cols - 1);
        }
    }

    /// Ends a line. Returns what must be drawn now because the lines after it are dropped.
    pub(super) fn line_end(
        &mut self,
        bytes: &[u8],
        at_column_zero: bool,
        rows_to_fill: usize,
    ) -> Option<Vec<u8>> {
        self.newer.extend_from_slice(bytes);
        self.newer_rows += 1 + std::mem::take(&mut self.line_columns);
        if at_column_zero { self.drop_oldest(rows_to_fill) } else { None }
    }

    /// Adds whole lines. Returns what must be drawn now, as above. Lines of a pipe have no carriage returns
    /// yet.
    pub(super) fn lines(
        &mut self,
        (bytes, count): (&[u8], usize),
        terminal: bool,
        (cols, rows_to_fill): (usize, usize),
    ) -> Option<Vec<u8>> {
        if terminal {
            self.newer.extend_from_slice(bytes);
        } else {
            push_lines(bytes, b"\r\n", &mut self.newer);
        }
        self.line_columns = 0;
        self.newer_rows += count;
        if bytes.len() / count.max(1) > cols {
            // Long lines fill several rows; only for ASCII the number is certain.
            let rows = |line: &[u8]| if line.is_ascii() { (line.len() / cols).saturating_sub(1) } else { 0 };
            self.newer_rows += bytes.split(|byte| *byte == b'\n').map(rows).sum::<usize>();
        }
        self.drop_oldest(rows_to_fill)
    }

    fn drop_oldest(&mut self, rows_to_fill: usize) -> Option<Vec<u8>> {
        if self.newer_rows < rows_to_fill {
            return None;
        }
        let mut first = std::mem::take(&mut self.first);
        if !self.older.is_empty() {
            // What is kept starts at the left edge; what is dropped would have moved the cursor there.
            first.push(b'\r');
        }
        std::mem::swap(&mut self.older, &mut self.newer);
        self.newer.clear();
        self.newer_rows = 0;
        (!first.is_empty()).then_some(first)
    }

    pub(super) fn push_cursor_move(&mut self, bytes: &[u8]) {
        self.first.append(&mut self.older);
        self.first.append(&mut self.newer);
        self.first.extend_from_slice(bytes);
        (self.newer_rows, self.line_columns) = (0, 0);
    }

    /// Everything that waits, if it is only lines and none were dropped.
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
