//! The output as a person would have read it: lines, without colours and redraws.
//!
//! It works in two modes that give the same result:
//! - *Plain*: text is added to the last line, and a line feed emits the line. Nothing is measured or laid
//!   out. Nearly all output is like this, and it runs at memory speed.
//! - *Page*: as soon as the cursor is anywhere but at the end of the last line, the rows it touches are laid
//!   out in a [`Page`] and edited there. Emitted lines are retracted when the cursor moves up to them. When
//!   the cursor comes to rest on a fresh row below all text, the page is emitted and plain mode continues.
//!
//! Rules beyond what a terminal does:
//! - A cleared screen is kept as it was, once. What was on the screen before the first clear stays for good.
//!   After that, a page that was drawn between two clears and never scrolled is replaced by the next such
//!   page. So `clear` in a shell loses nothing, and a program that clears and redraws for hours leaves its
//!   last page. Clearing means ED 2, RIS, and ED 0 right after the cursor was sent home.
//! - A line longer than 64 KiB is emitted as it grows. What has scrolled off the screen cannot be edited.
//! - A row that was filled up to the screen's edge with eight blanks or more is a line of its own: a padded progress bar.
//! - Tab stops are every eight columns.

mod emitted;
mod edit;

use std::collections::VecDeque;

use crate::fold_output::FoldOutput;
use crate::modes::Modes;
use crate::page::{Cursor, MIN_PADDING, Page, Row, lay_out, row_start_from_end};
use crate::scan::push_lines;
use crate::size::Size;
use emitted::Emitted;

/// An unfinished line longer than this is emitted in pieces.
const MAX_LINE: usize = 64 * 1024;

/// What a padded row ends in, at least.
const PADDING: [u8; MIN_PADDING] = [b' '; MIN_PADDING];

/// Where the transcript has the page that the last clear kept: at `from..to`.
#[derive(Debug, Clone, Copy)]
struct ClearedPage {
    from: u64,
    to: u64,
}

/// Folds output to lines.
#[derive(Debug)]
pub(crate) struct Transcript {
    size: Size,
    emitted: Emitted,
    /// The unfinished line, in plain mode. It begins at the start of a row. It is empty while there is a
    /// page.
    line: Vec<u8>,
    cursor: CursorState,
    /// The cursor as DECSC saved it.
    saved: Cursor,
    /// The cursor was sent to the top left corner, and nothing was printed since.
    sent_home: bool,
    /// The page that the last clear kept.
    cleared: Option<ClearedPage>,
    /// The cursor left its line since the last call of [`take_left_line`](Transcript::take_left_line).
    left_line: bool,
    /// Whether there is a screen at whose edge lines wrap. A pipe has none.
    has_edge: bool,
}

/// Where the cursor is.
#[derive(Debug)]
enum CursorState {
    /// At the end of the unfinished line.
    AtLineEnd,
    /// At the start of the unfinished line: a carriage return came, and nothing after it. Usually a line feed
    /// follows, and then the carriage return meant nothing.
    Returned,
    /// Anywhere else. The rows that it may touch are laid out here.
    OnPage(Box<Page>),
}

impl Transcript {
    /// An empty screen. The transcript already has `emitted` bytes.
    pub(crate) fn new(size: Size, emitted: u64, has_edge: bool) -> Self {
        Self {
            size,
            emitted: Emitted::new(emitted),
            line: Vec::new(),
            cursor: CursorState::AtLineEnd,
            saved: Cursor::default(),
            sent_home: false,
            cleared: None,
            left_line: false,
            has_edge,
        }
    }

    /// Length of the emitted transcript.
    pub(crate) fn len(&self) -> u64 {
        self.emitted.total
    }

    /// Whether the next byte starts a new line below all text, and nothing is unfinished.
    pub(crate) fn is_at_line_start(&self) -> bool {
        !self.has_page() && self.line.is_empty() && !self.emitted.is_mid_line()
    }

    fn page(&self) -> Option<&Page> {
        match &self.cursor {
            CursorState::OnPage(page) => Some(page),
            CursorState::AtLineEnd | CursorState::Returned => None,
        }
    }

    fn has_page(&self) -> bool {
        self.page().is_some()
    }

    fn is_at_line_end(&self) -> bool {
        matches!(self.cursor, CursorState::AtLineEnd)
    }

    /// Takes the page away, if there is one. The cursor is then at the end of an empty line.
    fn take_page(&mut self) -> Option<Box<Page>> {
        match std::mem::replace(&mut self.cursor, CursorState::AtLineEnd) {
            CursorState::OnPage(page) => Some(page),
            plain @ (CursorState::AtLineEnd | CursorState::Returned) => {
                self.cursor = plain;
                None
            }
        }
    }

    /// On an empty line, a carriage return changes nothing.
    fn ignore_return_on_empty_line(&mut self) {
        if self.line.is_empty() && matches!(self.cursor, CursorState::Returned) {
            self.cursor = CursorState::AtLineEnd;
        }
    }

    /// Whether the cursor left its line since the last call.
    pub(crate) fn take_left_line(&mut self) -> bool {
        std::mem::take(&mut self.left_line)
    }

    /// The saved cursor, for a checkpoint.
    pub(crate) fn saved_cursor(&self) -> Cursor {
        self.saved
    }

    /// Printable text.
    pub(crate) fn text(&mut self, text: &str, modes: &Modes, out: &mut FoldOutput) {
        self.sent_home = false;
        self.ignore_return_on_empty_line();
        if self.is_at_line_end() && !modes.insert && modes.autowrap {
            return self.add_to_line(text, out);
        }
        self.on_page(out, |page| page.print(text, modes));
    }

    /// Adds text at the end of the line. Pieces of a very long line are emitted at places that depend on the
    /// text alone, not on how much of it came at once.
    fn add_to_line(&mut self, mut text: &str, out: &mut FoldOutput) {
        loop {
            // A row that is nothing but combining marks can be longer than this. It is not measured again for
            // each mark.
            let room = MAX_LINE - self.line.len() % MAX_LINE;
            let (now, later) = text.split_at(text.ceil_char_boundary(room));
            self.line.extend_from_slice(now.as_bytes());
            if now.len() < room {
                return;
            }
            self.emit_full_rows(out);
            text = later;
        }
    }

    /// Emits an unfinished line that is about to end. What padding separates are lines of their own.
    fn emit_line(&mut self, line: &[u8], out: &mut FoldOutput) {
        let mut rest = line;
        for length in self.padded_lines(line) {
            let (now, later) = rest.split_at(length);
            self.emitted.emit(now.trim_ascii_end(), out);
            self.emitted.end_line(self.size, out);
            rest = later;
        }
        self.emitted.emit(rest, out);
    }

    /// The lengths of the lines that end in padding at the screen's edge, and that text follows.
    fn padded_lines(&self, line: &[u8]) -> Vec<usize> {
        let cols = self.size.columns();
        if !self.has_edge || line.len() <= cols || memchr::memmem::find(line, &PADDING).is_none() {
            return Vec::new();
        }
        let (laid, ..) = lay_out(line, cols);
        let mut begun = 0;
        let ends = laid.windows(2).filter(|two| two[0].row.is_wrapped(cols) && !two[0].row.continues(cols));
        ends.map(|two| two[1].start - std::mem::replace(&mut begun, two[1].start)).collect()
    }

    /// Emits all but the last row of a very long line.
    fn emit_full_rows(&mut self, out: &mut FoldOutput) {
        let (start, _) = row_start_from_end(&self.line, self.size.columns(), 1);
        self.emitted.emit(&self.line[..start], out);
        self.line.drain(..start);
        if self.emitted.is_long() {
            self.emitted.trim(self.size);
        }
    }

    /// Whole lines of text, at the start of a line: see [`is_at_line_start`](Self::is_at_line_start).
    pub(crate) fn lines(&mut self, bytes: &[u8], count: usize, out: &mut FoldOutput) {
        self.sent_home = false;
        self.cursor = CursorState::AtLineEnd;
        let from = out.text.len();
        push_lines(bytes, b"\n", &mut out.text);
        if self.has_padded_line(&out.text[from..]) {
            let text = out.text.split_off(from);
            return self.emit_lines(&text, out);
        }
        self.emitted.lines(&out.text[from..], count, self.size);
    }

    /// Whether padding separates lines within one of these.
    fn has_padded_line(&self, text: &[u8]) -> bool {
        let mut lines = text.split(|byte| *byte == b'\n');
        self.has_edge
            && memchr::memmem::find(text, &PADDING).is_some()
            && lines.any(|line| line.len() > self.size.columns() && !self.padded_lines(line).is_empty())
    }

    /// Emits whole lines, some of which may have padding in them.
    fn emit_lines(&mut self, text: &[u8], out: &mut FoldOutput) {
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            self.emit_line(line.strip_suffix(b"\n").unwrap_or(line), out);
            self.emitted.end_line(self.size, out);
        }
    }

    pub(crate) fn carriage_return(&mut self) {
        match &mut self.cursor {
            CursorState::OnPage(page) => page.carriage_return(),
            CursorState::AtLineEnd | CursorState::Returned => self.cursor = CursorState::Returned,
        }
    }

    pub(crate) fn tab(&mut self, modes: &Modes, out: &mut FoldOutput) {
        self.ignore_return_on_empty_line();
        if self.is_at_line_end() {
            self.line.push(b'\t');
        } else {
            self.on_page(out, |page| page.tab(modes));
        }
    }

    pub(crate) fn backspace(&mut self, out: &mut FoldOutput) {
        let can_move = match self.cursor {
            CursorState::AtLineEnd => !self.line.is_empty(),
            CursorState::Returned => false,
            CursorState::OnPage(_) => true,
        };
        if can_move {
            self.on_page(out, Page::backspace);
        }
    }

    /// Line feed. `returns` says that it also returns the carriage.
    pub(crate) fn line_feed(&mut self, returns: bool, out: &mut FoldOutput) {
        self.sent_home = false;
        let ends_line = match self.cursor {
            CursorState::AtLineEnd => returns || self.line.is_empty(),
            CursorState::Returned => true,
            CursorState::OnPage(_) => false,
        };
        if ends_line {
            self.cursor = CursorState::AtLineEnd;
            let line = std::mem::take(&mut self.line);
            self.emit_line(&line, out);
            self.emitted.end_line(self.size, out);
            self.line = line;
            self.line.clear();
            return;
        }
        self.on_page(out, |page| {
            page.line_feed();
            if returns {
                page.carriage_return();
            }
        });
        self.settle(out);
    }

    /// The end of output: unfinished text becomes lines.
    pub(crate) fn finish(&mut self, out: &mut FoldOutput) {
        if let Some(mut page) = self.take_page() {
            page.drop_blank_end();
            self.emit_rows(page.scrolled_off.drain(..), out);
            self.emit_rows(page.rows.drain(..), out);
        }
        let line = std::mem::take(&mut self.line);
        self.emit_line(&line, out);
        if self.emitted.is_mid_line() {
            self.emitted.end_line(self.size, out);
        }
        self.cursor = CursorState::AtLineEnd;
    }

    /// The unfinished line as it reads now: the line that the cursor is in.
    pub(crate) fn unfinished(&self) -> String {
        let mut bytes = Vec::new();
        let cols = self.size.columns();
        match &self.cursor {
            CursorState::AtLineEnd | CursorState::Returned => {
                let padded: usize = self.padded_lines(&self.line).iter().sum();
                if padded == 0 {
                    bytes.extend_from_slice(self.emitted.open_line(MAX_LINE));
                }
                bytes.extend_from_slice(&self.line[padded..]);
            }
            CursorState::OnPage(page) => {
                let index = page.cursor.row - page.first;
                let wraps = |at: usize| page.rows.get(at).is_some_and(|row: &Row| row.continues(cols));
                let start = (0..index).rev().take_while(|&at| wraps(at)).last().unwrap_or(index);
                if start == 0 {
                    bytes.extend_from_slice(self.emitted.open_line(MAX_LINE));
                }
                for at in start..page.rows.len() {
                    page.rows[at].push_text(cols, &mut bytes);
                    if !wraps(at) {
                        break;
                    }
                }
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Edits the page, and emits the rows that scrolled off.
    fn on_page<R>(&mut self, out: &mut FoldOutput, work: impl FnOnce(&mut Page) -> R) -> R {
        let mut page = match self.take_page() {
            Some(page) => page,
            None => self.open_page(out),
        };
        let result = work(&mut page);
        if !page.scrolled_off.is_empty() {
            let rows = std::mem::take(&mut page.scrolled_off);
            self.emit_rows(rows.into_iter(), out);
        }
        self.cursor = CursorState::OnPage(page);
        result
    }

    /// Lays the unfinished line out on the screen.
    fn open_page(&mut self, out: &mut FoldOutput) -> Box<Page> {
        let (cols, lines) = (self.size.columns(), self.size.lines());
        let (laid, col, pending) = lay_out(&self.line, cols);
        let mut above = self.emitted.rows_above(lines, cols);
        let scrolled = (above + laid.len()).saturating_sub(lines);
        let scrolled_off = scrolled.saturating_sub(above);
        above = above.saturating_sub(scrolled);
        if scrolled_off > 0 {
            self.emitted.emit(&self.line[..laid[scrolled_off].start], out);
        }
        let rows: VecDeque<Row> = laid.into_iter().skip(scrolled_off).map(|laid| laid.row).collect();
        let returned = matches!(self.cursor, CursorState::Returned);
        let cursor = Cursor {
            row: above + rows.len() - 1,
            col: if returned { 0 } else { col },
            pending: pending && !returned,
        };
        self.line.clear();
        self.cursor = CursorState::AtLineEnd;
        Box::new(Page::new(self.size, above, rows, cursor))
    }

    fn emit_rows(&mut self, rows: impl Iterator<Item = Row>, out: &mut FoldOutput) {
        let mut text = Vec::new();
        for row in rows {
            text.clear();
            row.push_text(self.size.columns(), &mut text);
            let continues = row.continues(self.size.columns());
            if !continues && row.is_wrapped(self.size.columns()) {
                text.truncate(text.trim_ascii_end().len());
            }
            self.emitted.emit(&text, out);
            if !continues {
                self.emitted.end_line(self.size, out);
            }
        }
    }

    /// Pulls rows back from the transcript until the page begins at `row` or above.
    fn reach(&mut self, row: usize, out: &mut FoldOutput) {
        self.on_page(out, |_| ());
        let Some(mut page) = self.take_page() else { return };
        let cols = self.size.columns();
        while page.first > row {
            let Some((line, ended)) = self.emitted.last_line() else {
                // The rows above are unknown: they are blank.
                page.rows.push_front(Row::default());
                page.first -= 1;
                continue;
            };
            let (mut laid, ..) = lay_out(line, cols);
            if !ended && let Some(last) = laid.last_mut() {
                if last.row.used() < cols {
                    last.row.set_filler(cols);
                }
                last.row.set_wrapped(cols);
            }
            let taken = laid.len().min(page.first);
            let start = laid[laid.len() - taken].start;
            let back = line.len() - start + usize::from(ended);
            self.emitted.retract(back as u64, out);
            page.first -= taken;
            for laid in laid.into_iter().rev().take(taken) {
                page.rows.push_front(laid.row);
            }
        }
        self.cursor = CursorState::OnPage(page);
    }

    /// Returns to plain mode if the cursor is on a fresh row below all text.
    fn settle(&mut self, out: &mut FoldOutput) {
        let open = self.emitted.open_line(MAX_LINE);
        if !self.page().is_some_and(|page| page.is_settled(open)) {
            return;
        }
        if let Some(mut page) = self.take_page() {
            let above = page.cursor.row - page.first;
            page.rows.resize(above, Row::default());
            self.emit_rows(page.rows.drain(..), out);
            self.emitted.set_floor(page.cursor.row, self.size.columns());
        }
    }

    /// Clears the screen; the module's rules say what is kept of it.
    fn clear(&mut self, out: &mut FoldOutput) {
        self.reach(0, out);
        let Some(mut page) = self.take_page() else { return };
        let start = self.emitted.total;
        page.drop_blank_end();
        let rows = std::mem::take(&mut page.rows);
        match self.cleared {
            Some(cleared) if cleared.to == start => {
                if !rows.is_empty() {
                    self.emitted.retract(start - cleared.from, out);
                    self.emit_rows(rows.into_iter(), out);
                    self.cleared = Some(ClearedPage { from: cleared.from, to: self.emitted.total });
                }
            }
            _ => {
                self.emit_rows(rows.into_iter(), out);
                self.cleared = Some(ClearedPage { from: self.emitted.total, to: self.emitted.total });
            }
        }
        self.emitted.set_floor(0, self.size.columns());
        self.cursor = CursorState::OnPage(page);
    }

    /// The terminal has a new size: the page is laid out again.
    pub(crate) fn resize(&mut self, size: Size, out: &mut FoldOutput) {
        let (old_cols, old_lines) = (self.size.columns(), self.size.lines());
        self.emitted.anchor(self.page().map_or(old_lines, |page| page.first), old_cols);
        self.size = size;
        let Some(page) = self.take_page() else { return };
        let (cols, lines) = (size.columns(), size.lines());
        let index = page.cursor.row - page.first;
        let mut rows: VecDeque<Row> = VecDeque::new();
        let mut cursor = Cursor::default();
        let mut line = Vec::new();
        let mut line_start = 0;
        for (at, row) in page.rows.iter().enumerate() {
            row.push_text(old_cols, &mut line);
            if row.continues(old_cols) && at + 1 < page.rows.len() {
                continue;
            }
            if (line_start..=at).contains(&index) {
                let cells = (index - line_start) * old_cols + page.cursor.col;
                cursor = Cursor { row: rows.len() + cells / cols, col: cells % cols, pending: false };
            }
            rows.extend(lay_out(&line, cols).0.into_iter().map(|laid| laid.row));
            line.clear();
            line_start = at + 1;
        }
        if index >= line_start {
            cursor = Cursor {
                row: rows.len() + index - line_start,
                col: page.cursor.col.min(cols - 1),
                pending: false,
            };
        }
        // New rows appear at the top, from what scrolled off there before. Rows below the cursor stay below
        // it.
        let room = page.first + lines.saturating_sub(old_lines) + page.rows.len();
        let above = self.emitted.rows_above(room.saturating_sub(rows.len()), cols);
        let scrolled = (above + cursor.row + 1).saturating_sub(lines);
        let scrolled_off = scrolled.saturating_sub(above).min(rows.len());
        let first = above.saturating_sub(scrolled);
        let mut rest = rows.split_off(scrolled_off);
        self.emit_rows(rows.into_iter(), out);
        rest.truncate(lines - first);
        cursor.row = (first + cursor.row - scrolled_off).min(lines - 1);
        self.cursor = CursorState::OnPage(Box::new(Page::new(size, first, rest, cursor)));
    }
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
