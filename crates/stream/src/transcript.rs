//! The output as a person would have read it: lines, without colours and redraws.
//!
//! Two ways of working, which mean the same:
//! - *Plain*: text is added to the last line, a line feed gives it out. Nothing is measured or laid out. This is what
//!   nearly all output is, and it runs at memory speed.
//! - *Page*: as soon as the cursor is anywhere else than at the end of the last line, the rows it touches are laid out
//!   in a [`Page`] and edited there. Lines given out before are taken back when the cursor moves up to them. When the
//!   cursor comes to rest on a fresh row below all text, the page is given out and work goes on plainly.
//!
//! Rules beyond what a terminal does:
//! - A cleared screen is kept as it stood, once: what was on the screen before the first clear stays for good; after
//!   that, a page that was drawn between two clears and never scrolled is replaced by the next such page. So
//!   `clear` in a shell loses nothing, and a program that clears and redraws for hours leaves its last page.
//!   Clearing is ED 2, RIS, and ED 0 right after the cursor was sent home.
//! - A line longer than 64 KiB is given out as it grows; what has left the screen cannot be edited.
//! - Tab stops are every eight columns.

mod given;
mod edit;

use std::collections::VecDeque;

use crate::modes::Modes;
use crate::outcome::Outcome;
use crate::page::{Cursor, Page, Row, lay_out, row_start_from_end};
use crate::scan::push_lines;
use crate::size::Size;
use given::Given;

/// An unfinished line longer than this is given out in pieces.
const MAX_LINE: usize = 64 * 1024;

/// Where the transcript keeps the last page that a clear replaced: `from..to` of it.
#[derive(Debug, Clone, Copy)]
struct KeptPage {
    from: u64,
    to: u64,
}

/// Folds output to lines.
#[derive(Debug)]
pub(crate) struct Transcript {
    size: Size,
    given: Given,
    /// The unfinished line, while working plainly. It begins at the start of a row.
    line: Vec<u8>,
    /// A carriage return came, and nothing after it: mostly a line feed follows and it meant nothing.
    returned: bool,
    page: Option<Page>,
    saved: Cursor,
    /// The cursor was sent to the top left corner, and nothing was printed since.
    homed: bool,
    kept: Option<KeptPage>,
    /// The cursor left its line since the last time someone asked.
    strayed: bool,
}

impl Transcript {
    /// An empty screen; `given` bytes of transcript exist already.
    pub(crate) fn new(size: Size, given: u64) -> Self {
        Self {
            size,
            given: Given::new(given),
            line: Vec::new(),
            returned: false,
            page: None,
            saved: Cursor::default(),
            homed: false,
            kept: None,
            strayed: false,
        }
    }

    /// Length of the transcript given out.
    pub(crate) fn len(&self) -> u64 {
        self.given.total
    }

    /// Whether the next byte starts a new line below everything, with nothing unfinished.
    pub(crate) fn is_at_line_start(&self) -> bool {
        self.page.is_none() && self.line.is_empty() && !self.given.is_mid_line()
    }

    /// Whether the cursor left its line since the last call.
    pub(crate) fn take_strayed(&mut self) -> bool {
        std::mem::take(&mut self.strayed)
    }

    /// The saved cursor, for a checkpoint.
    pub(crate) fn saved_cursor(&self) -> Cursor {
        self.saved
    }

    /// Printable text.
    pub(crate) fn text(&mut self, text: &str, modes: &Modes, out: &mut Outcome) {
        self.homed = false;
        if self.page.is_none() && self.line.is_empty() {
            self.returned = false;
        }
        if self.page.is_none() && !self.returned && !modes.insert && modes.autowrap {
            return self.add_to_line(text, out);
        }
        self.on_page(out, |page| page.print(text, modes));
    }

    /// Adds text at the end of the line. When a piece of a very long line is given out depends on the text alone, not on
    /// how much of it came at once.
    fn add_to_line(&mut self, mut text: &str, out: &mut Outcome) {
        loop {
            // A row of nothing but marks can be longer than that, and is not looked at again for each of them.
            let room = MAX_LINE - self.line.len() % MAX_LINE;
            let (now, later) = text.split_at(text.ceil_char_boundary(room));
            self.line.extend_from_slice(now.as_bytes());
            if now.len() < room {
                return;
            }
            self.give_out_full_rows(out);
            text = later;
        }
    }

    /// All but the last row of a very long line.
    fn give_out_full_rows(&mut self, out: &mut Outcome) {
        let (start, _) = row_start_from_end(&self.line, self.size.columns(), 1);
        self.given.give(&self.line[..start], out);
        self.line.drain(..start);
        if self.given.is_long() {
            self.given.trim(self.size);
        }
    }

    /// Whole lines of text that begin where a line begins: see [`is_at_line_start`](Self::is_at_line_start).
    pub(crate) fn lines(&mut self, bytes: &[u8], count: usize, out: &mut Outcome) {
        (self.homed, self.returned) = (false, false);
        let from = out.text.len();
        push_lines(bytes, b"\n", &mut out.text);
        self.given.lines(&out.text[from..], count, self.size);
    }

    pub(crate) fn carriage_return(&mut self) {
        match &mut self.page {
            Some(page) => page.carriage_return(),
            None => self.returned = true,
        }
    }

    pub(crate) fn tab(&mut self, modes: &Modes, out: &mut Outcome) {
        if self.page.is_none() && self.line.is_empty() {
            self.returned = false;
        }
        if self.page.is_none() && !self.returned {
            self.line.push(b'\t');
        } else {
            self.on_page(out, |page| page.tab(modes));
        }
    }

    pub(crate) fn backspace(&mut self, out: &mut Outcome) {
        if self.page.is_some() || !(self.returned || self.line.is_empty()) {
            self.on_page(out, Page::backspace);
        }
    }

    /// Line feed. `returns` says that it also returns the carriage.
    pub(crate) fn line_feed(&mut self, returns: bool, out: &mut Outcome) {
        self.homed = false;
        if self.page.is_none() && (self.returned || returns || self.line.is_empty()) {
            self.returned = false;
            self.given.give(&self.line, out);
            self.given.end_line(self.size, out);
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

    /// The end of output: what is unfinished becomes lines.
    pub(crate) fn finish(&mut self, out: &mut Outcome) {
        if let Some(mut page) = self.page.take() {
            page.drop_blank_end();
            self.give_rows(page.gone.drain(..), out);
            self.give_rows(page.rows.drain(..), out);
        }
        let line = std::mem::take(&mut self.line);
        self.given.give(&line, out);
        if self.given.is_mid_line() {
            self.given.end_line(self.size, out);
        }
        self.returned = false;
    }

    /// The unfinished line as it reads now: the line that the cursor is in.
    pub(crate) fn unfinished(&self) -> String {
        let mut bytes = Vec::new();
        let cols = self.size.columns();
        match &self.page {
            None => {
                bytes.extend_from_slice(self.given.open_line(MAX_LINE));
                bytes.extend_from_slice(&self.line);
            }
            Some(page) => {
                let index = page.cursor.row - page.first;
                let wraps = |at: usize| page.rows.get(at).is_some_and(|row: &Row| row.is_wrapped(cols));
                let start = (0..index).rev().take_while(|&at| wraps(at)).last().unwrap_or(index);
                if start == 0 {
                    bytes.extend_from_slice(self.given.open_line(MAX_LINE));
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

    /// Works on the page, and gives out what left it.
    fn on_page<R>(&mut self, out: &mut Outcome, work: impl FnOnce(&mut Page) -> R) -> R {
        let mut page = match self.page.take() {
            Some(page) => page,
            None => self.open_page(out),
        };
        let result = work(&mut page);
        if !page.gone.is_empty() {
            let gone = std::mem::take(&mut page.gone);
            self.give_rows(gone.into_iter(), out);
        }
        self.page = Some(page);
        result
    }

    /// Lays the unfinished line out on the screen.
    fn open_page(&mut self, out: &mut Outcome) -> Page {
        let (cols, lines) = (self.size.columns(), self.size.lines());
        let (laid, col, pending) = lay_out(&self.line, cols);
        let mut above = self.given.rows_above(lines, cols);
        let scrolled = (above + laid.len()).saturating_sub(lines);
        let gone = scrolled.saturating_sub(above);
        above = above.saturating_sub(scrolled);
        if gone > 0 {
            self.given.give(&self.line[..laid[gone].start], out);
        }
        let rows: VecDeque<Row> = laid.into_iter().skip(gone).map(|laid| laid.row).collect();
        let cursor = Cursor {
            row: above + rows.len() - 1,
            col: if self.returned { 0 } else { col },
            pending: pending && !self.returned,
        };
        self.line.clear();
        self.returned = false;
        Page::new(self.size, above, rows, cursor)
    }

    fn give_rows(&mut self, rows: impl Iterator<Item = Row>, out: &mut Outcome) {
        let mut text = Vec::new();
        for row in rows {
            text.clear();
            row.push_text(self.size.columns(), &mut text);
            self.given.give(&text, out);
            if !row.is_wrapped(self.size.columns()) {
                self.given.end_line(self.size, out);
            }
        }
    }

    /// Pulls rows back from the transcript until the page begins at `row` or above.
    fn reach(&mut self, row: usize, out: &mut Outcome) {
        self.on_page(out, |_| ());
        let Some(mut page) = self.page.take() else { return };
        let cols = self.size.columns();
        while page.first > row {
            let Some((line, ended)) = self.given.last_line() else {
                // Nothing is known of the rows above: they are blank.
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
            self.given.take_back(back as u64, out);
            page.first -= taken;
            for laid in laid.into_iter().rev().take(taken) {
                page.rows.push_front(laid.row);
            }
        }
        self.page = Some(page);
    }

    /// Goes back to working plainly if the cursor stands on a fresh row below all text.
    fn settle(&mut self, out: &mut Outcome) {
        let open = self.given.open_line(MAX_LINE);
        if !self.page.as_ref().is_some_and(|page| page.is_settled(open)) {
            return;
        }
        if let Some(mut page) = self.page.take() {
            let above = page.cursor.row - page.first;
            page.rows.resize(above, Row::default());
            self.give_rows(page.rows.drain(..), out);
            self.given.set_floor(page.cursor.row, self.size.columns());
        }
    }

    /// The screen is wiped: see the module's rules for what is kept.
    fn clear(&mut self, out: &mut Outcome) {
        self.reach(0, out);
        let Some(mut page) = self.page.take() else { return };
        let start = self.given.total;
        page.drop_blank_end();
        let rows = std::mem::take(&mut page.rows);
        match self.kept {
            Some(kept) if kept.to == start => {
                if !rows.is_empty() {
                    self.given.take_back(start - kept.from, out);
                    self.give_rows(rows.into_iter(), out);
                    self.kept = Some(KeptPage { from: kept.from, to: self.given.total });
                }
            }
            _ => {
                self.give_rows(rows.into_iter(), out);
                self.kept = Some(KeptPage { from: self.given.total, to: self.given.total });
            }
        }
        self.given.set_floor(0, self.size.columns());
        self.page = Some(page);
    }

    /// The terminal has a new size: what is on the page is laid out anew.
    pub(crate) fn resize(&mut self, size: Size, out: &mut Outcome) {
        let (old_cols, old_lines) = (self.size.columns(), self.size.lines());
        self.given.anchor(self.page.as_ref().map_or(old_lines, |page| page.first), old_cols);
        self.size = size;
        let Some(page) = self.page.take() else { return };
        let (cols, lines) = (size.columns(), size.lines());
        let index = page.cursor.row - page.first;
        let mut rows: VecDeque<Row> = VecDeque::new();
        let mut cursor = Cursor::default();
        let mut line = Vec::new();
        let mut line_start = 0;
        for (at, row) in page.rows.iter().enumerate() {
            row.push_text(old_cols, &mut line);
            if row.is_wrapped(old_cols) && at + 1 < page.rows.len() {
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
        // New rows come at the top, from what has left there before; what is below stays below.
        let room = page.first + lines.saturating_sub(old_lines) + page.rows.len();
        let above = self.given.rows_above(room.saturating_sub(rows.len()), cols);
        let scrolled = (above + cursor.row + 1).saturating_sub(lines);
        let gone = scrolled.saturating_sub(above).min(rows.len());
        let first = above.saturating_sub(scrolled);
        let mut rest = rows.split_off(gone);
        self.give_rows(rows.into_iter(), out);
        rest.truncate(lines - first);
        cursor.row = (first + cursor.row - gone).min(lines - 1);
        self.page = Some(Page::new(size, first, rest, cursor));
    }
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
