//! The end of the emitted transcript, as far as the cursor can still reach it.
//!
//! A line is emitted as soon as it ends, so that readers see it. A program may still move up and draw over
//! it: then it is retracted. Lines further up than the height of the screen can no longer change, and are
//! forgotten here.

use crate::fold_output::FoldOutput;
use crate::page::{row_start_from_end, rows_of};
use crate::size::Size;

/// Once the tail is larger than this, the part that the cursor cannot reach is dropped.
const TRIM_BYTES: usize = 256 * 1024;
/// Rows above the screen that are kept too: a screen that grows shows them again.
const SPARE_ROWS: usize = 100;

/// The rows that are always kept, if there are that many. How many more there are depends on how the bytes
/// were cut into reads, so nothing may depend on those.
fn reach(size: Size) -> usize {
    size.lines() + SPARE_ROWS
}

/// The transcript that was emitted.
#[derive(Debug)]
pub(super) struct Emitted {
    tail: Vec<u8>,
    /// Line ends in `tail`.
    newlines: usize,
    /// Where in `tail` the screen begins, unless it has scrolled since.
    floor: usize,
    /// Length of the whole transcript.
    pub(super) total: u64,
}

impl Emitted {
    pub(super) fn new(total: u64) -> Self {
        Self { tail: Vec::new(), newlines: 0, floor: 0, total }
    }

    /// Whether the last emitted line has not ended.
    pub(super) fn is_mid_line(&self) -> bool {
        self.tail.last().is_some_and(|&byte| byte != b'\n')
    }

    /// Emits text without line ends.
    pub(super) fn emit(&mut self, text: &[u8], out: &mut FoldOutput) {
        out.text.extend_from_slice(text);
        self.tail.extend_from_slice(text);
        self.total += text.len() as u64;
    }

    /// Ends the line.
    pub(super) fn end_line(&mut self, size: Size, out: &mut FoldOutput) {
        out.text.push(b'\n');
        self.tail.push(b'\n');
        self.total += 1;
        self.newlines += 1;
        self.trim_if_long(size);
    }

    /// Records whole lines that were emitted.
    pub(super) fn lines(&mut self, text: &[u8], count: usize, size: Size) {
        self.total += text.len() as u64;
        let reach = reach(size);
        if count < reach {
            self.tail.extend_from_slice(text);
            self.newlines += count;
            return self.trim_if_long(size);
        }
        // These lines alone fill everything that is kept.
        let start = memchr::memrchr_iter(b'\n', text).nth(reach).map_or(0, |before| before + 1);
        self.tail.clear();
        self.tail.extend_from_slice(&text[start..]);
        (self.newlines, self.floor) = (reach, 0);
    }

    fn trim_if_long(&mut self, size: Size) {
        let reach = reach(size);
        if self.newlines > 2 * reach {
            // A line is at least one row.
            let before = memchr::memrchr_iter(b'\n', &self.tail).nth(reach);
            self.forget(before.map_or(0, |end| end + 1));
        }
        if self.tail.len() > TRIM_BYTES {
            self.trim(size);
        }
    }

    /// Drops what the cursor can no longer reach. Runs so rarely that its cost does not matter.
    pub(super) fn trim(&mut self, size: Size) {
        let cut = self.rows_back(reach(size), size.columns());
        if cut >= self.tail.len() / 4 {
            self.forget(cut);
        }
    }

    /// Call before the width or height changes: what is kept from here on does not depend on how the bytes
    /// were cut into reads. `above` rows of the screen are kept here.
    pub(super) fn anchor(&mut self, above: usize, cols: usize) {
        self.forget(self.rows_back(above + SPARE_ROWS, cols));
    }

    fn forget(&mut self, cut: usize) {
        self.newlines -= memchr::memchr_iter(b'\n', &self.tail[..cut]).count();
        self.tail.drain(..cut);
        self.floor = self.floor.saturating_sub(cut);
    }

    pub(super) fn is_long(&self) -> bool {
        self.tail.len() > TRIM_BYTES
    }

    /// Removes text from the end.
    pub(super) fn retract(&mut self, count: u64, out: &mut FoldOutput) {
        let here = usize::try_from(count).unwrap_or(usize::MAX);
        let from_tail = here.min(self.tail.len());
        let keep = self.tail.len() - from_tail;
        self.newlines -= memchr::memchr_iter(b'\n', &self.tail[keep..]).count();
        self.tail.truncate(keep);
        self.floor = self.floor.min(keep);
        self.total -= count;
        let from_text = here.min(out.text.len());
        out.text.truncate(out.text.len() - from_text);
        out.retract += count - from_text as u64;
    }

    /// The last line that is still on the screen, without its end, and whether it has ended.
    pub(super) fn last_line(&self) -> Option<(&[u8], bool)> {
        let reach = &self.tail[self.floor..];
        let ended = *reach.last()? == b'\n';
        let body = &reach[..reach.len() - usize::from(ended)];
        let start = memchr::memrchr(b'\n', body).map_or(0, |at| at + 1);
        Some((&body[start..], ended))
    }

    /// How many rows of the screen lie above the next output, at most `limit`.
    pub(super) fn rows_above(&self, limit: usize, cols: usize) -> usize {
        let mut rows = 0;
        for line in self.lines_backwards(self.floor) {
            rows += rows_of(line, cols);
            if rows >= limit {
                return limit;
            }
        }
        rows
    }

    fn lines_backwards(&self, from: usize) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.tail[from..];
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let body = rest.strip_suffix(b"\n").unwrap_or(rest);
            let start = memchr::memrchr(b'\n', body).map_or(0, |at| at + 1);
            rest = &rest[..start];
            Some(&body[start..])
        })
    }

    /// Where in the tail the last `count` rows start.
    fn rows_back(&self, mut count: usize, cols: usize) -> usize {
        let mut end = self.tail.len();
        for line in self.lines_backwards(0) {
            if count == 0 {
                break;
            }
            let ended = usize::from(self.tail[..end].last() == Some(&b'\n'));
            let line_start = end - ended - line.len();
            let (start, rows) = row_start_from_end(line, cols, count);
            count -= rows;
            end = line_start + start;
        }
        end
    }

    /// Sets the start of the screen to `count` rows above the next output.
    pub(super) fn set_floor(&mut self, count: usize, cols: usize) {
        self.floor = self.rows_back(count, cols);
    }

    /// What was printed since the last line end, at most `limit` bytes.
    pub(super) fn open_line(&self, limit: usize) -> &[u8] {
        let start = memchr::memrchr(b'\n', &self.tail).map_or(0, |at| at + 1);
        let open = &self.tail[start..];
        let mut cut = open.len().saturating_sub(limit);
        while cut < open.len() && open[cut] & 0xc0 == 0x80 {
            cut += 1;
        }
        &open[cut..]
    }
}
