//! A small editable screen, for output that is more than lines.
//!
//! Most output only ever adds to its last line. When it does more (a progress bar, a block redrawn by moving
//! up, a cleared screen), the rows in question are laid out here and edited as a terminal would. They are
//! emitted as lines once they scroll off the top, or once the cursor comes to rest below them. The engine
//! could do this too, but it keeps neither tabs nor the difference between a printed and an erased blank, and
//! it would have to be fed at once.
//!
//! The page holds only the rows that were touched: rows `first..` of the screen. Those above are in the
//! transcript; [`crate::transcript`] pulls them in when the cursor moves there.

mod row;
mod layout;

use std::collections::VecDeque;

use crate::{modes::Modes, size::Size};
pub(crate) use layout::{lay_out, row_start_from_end, rows_of};
use row::width;
pub(crate) use row::{MIN_PADDING, Row};

/// A position of the cursor. `pending` means that the next character starts a new row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) row: usize,
    pub(crate) col: usize,
    pub(crate) pending: bool,
}

/// The touched rows of the primary screen.
#[derive(Debug)]
pub(crate) struct Page {
    cols: usize,
    screen_rows: usize,
    /// The screen row of `rows[0]`.
    pub(crate) first: usize,
    pub(crate) rows: VecDeque<Row>,
    pub(crate) cursor: Cursor,
    /// The scroll region, its end exclusive.
    region: (usize, usize),
    /// Rows that scrolled off the top and are now final.
    pub(crate) scrolled_off: Vec<Row>,
}

impl Page {
    /// A page with these rows, the first at screen row `first`.
    pub(crate) fn new(size: Size, first: usize, rows: VecDeque<Row>, cursor: Cursor) -> Self {
        let (cols, screen_rows) = (size.columns(), size.lines());
        let region = (0, screen_rows);
        Self { cols, screen_rows, first, rows, cursor, region, scrolled_off: Vec::new() }
    }

    /// Whether the scroll region is the whole screen.
    pub(crate) fn scrolls_whole(&self) -> bool {
        self.region == (0, self.screen_rows)
    }

    /// Whether the cursor is at the start of a fresh row below all text, so that the rows above can be
    /// emitted. `open` is the emitted part of the line that continues in the page's first row.
    pub(crate) fn is_settled(&self, open: &[u8]) -> bool {
        let index = self.cursor.row - self.first;
        self.cursor.col == 0
            && !self.cursor.pending
            && self.scrolls_whole()
            && self.rows.iter().skip(index).all(Row::is_blank)
            && self.reads_back(index, open)
    }

    /// Whether the first `count` rows, emitted as lines, would lie on the screen as they do now. Erasing and
    /// scrolling can leave rows that no text would produce. Those stay here until they have scrolled off.
    fn reads_back(&self, count: usize, open: &[u8]) -> bool {
        let mut text = open[row_start_from_end(open, self.cols, 1).0..].to_vec();
        let mut rows = usize::from(!open.is_empty());
        for index in 0..count {
            let Some(row) = self.rows.get(index) else { return rows == 0 };
            let start = text.len();
            row.push_text(self.cols, &mut text);
            rows += 1;
            if row.continues(self.cols) {
                if row_start_from_end(&text, self.cols, 1).0 != start {
                    return false;
                }
                continue;
            }
            if rows_of(&text, self.cols) != rows || (rows > 1 && text.len() == start) {
                return false;
            }
            text.clear();
            rows = 0;
        }
        rows == 0
    }

    /// Whether the row above the cursor has text, so that the cursor did not just jump to an empty place.
    pub(crate) fn follows_text(&self) -> bool {
        let index = self.cursor.row - self.first;
        index == 0 || self.rows.get(index - 1).is_some_and(|row| !row.is_blank())
    }

    /// The row at a screen position, which is not above the page.
    fn row_mut(&mut self, row: usize) -> &mut Row {
        let index = row - self.first;
        while self.rows.len() <= index {
            self.rows.push_back(Row::default());
        }
        &mut self.rows[index]
    }

    fn cursor_row(&mut self) -> &mut Row {
        self.row_mut(self.cursor.row)
    }

    /// Prints text at the cursor.
    pub(crate) fn print(&mut self, text: &str, modes: &Modes) {
        let mut rest = text;
        while !rest.is_empty() {
            let ascii = rest.bytes().take_while(u8::is_ascii).count();
            let room = self.cols - self.cursor.col;
            if ascii > 1 && room > 1 && !self.cursor.pending && !modes.insert {
                // The last column is left to `print_char`, which knows about wrapping.
                let count = ascii.min(room - 1);
                let (run, after) = rest.split_at(count);
                let col = self.cursor.col;
                self.cursor_row().put_ascii(col, run.as_bytes());
                self.cursor.col += count;
                rest = after;
                continue;
            }
            let Some(character) = rest.chars().next() else { return };
            self.print_char(character, modes);
            rest = &rest[character.len_utf8()..];
        }
    }

    fn print_char(&mut self, character: char, modes: &Modes) {
        let Some(width) = width(character) else { return };
        if width == 0 {
            let col = if self.cursor.pending { self.cursor.col } else { self.cursor.col.saturating_sub(1) };
            self.cursor_row().add_mark(col, character);
            return;
        }
        let cols = self.cols;
        if self.cursor.pending {
            self.wrap(modes);
        }
        if modes.insert && self.cursor.col + width < cols {
            let col = self.cursor.col;
            self.cursor_row().insert(col, width, cols);
        }
        if width == 2 && self.cursor.col + 1 >= cols {
            if !modes.autowrap {
                self.cursor.pending = true;
                return;
            }
            self.cursor_row().set_filler(cols);
            self.wrap(modes);
        }
        let col = self.cursor.col;
        self.cursor_row().put(col, character, width);
        if col + width < cols {
            self.cursor.col = col + width;
        } else {
            self.cursor.col = cols - 1;
            self.cursor.pending = true;
        }
    }

    /// Continues in the next row, and marks this one as wrapped.
    fn wrap(&mut self, modes: &Modes) {
        if !modes.autowrap {
            return;
        }
        let cols = self.cols;
        if self.cursor.col == cols - 1 {
            self.cursor_row().set_wrapped(cols);
        }
        if self.cursor.row + 1 >= self.region.1 {
            self.line_feed();
        } else {
            self.cursor.row += 1;
        }
        self.cursor.col = 0;
        self.cursor.pending = false;
    }

    pub(crate) fn tab(&mut self, modes: &Modes) {
        if self.cursor.pending {
            return self.wrap(modes);
        }
        let col = self.cursor.col;
        self.cursor_row().put_tab(col);
        self.cursor.col = ((col / 8 + 1) * 8).min(self.cols - 1);
    }

    pub(crate) fn carriage_return(&mut self) {
        self.cursor.col = 0;
        self.cursor.pending = false;
    }

    pub(crate) fn backspace(&mut self) {
        if self.cursor.col > 0 {
            self.cursor.col -= 1;
            self.cursor.pending = false;
        }
    }

    pub(crate) fn line_feed(&mut self) {
        let next = self.cursor.row + 1;
        if next == self.region.1 {
            self.scroll_up(self.region.0, 1);
        } else if next < self.screen_rows {
            self.cursor.row = next;
        }
    }

    /// Moves within the row.
    pub(crate) fn move_to_col(&mut self, col: usize) {
        self.cursor.col = col.min(self.cols - 1);
        self.cursor.pending = false;
    }

    /// The engine's tab moves keep a pending wrap.
    pub(crate) fn set_col_keeping_wrap(&mut self, col: usize) {
        self.cursor.col = col.min(self.cols - 1);
    }

    /// The row that is `count` steps up or down. Steps that start inside the region stop at its edge.
    pub(crate) fn step(&self, up: bool, count: usize) -> usize {
        let row = self.cursor.row;
        let (top, end) = self.region;
        match up {
            true if row >= top => row.saturating_sub(count).max(top),
            true => row.saturating_sub(count),
            false if row < end => (row + count).min(end - 1),
            false => row + count,
        }
    }

    /// The first row of the scroll region.
    pub(crate) fn top(&self) -> usize {
        self.region.0
    }

    /// Moves anywhere. The caller has pulled in the rows down to `row`.
    pub(crate) fn move_to(&mut self, row: usize, col: usize) {
        self.cursor.row = row.min(self.screen_rows - 1);
        self.move_to_col(col);
    }

    /// The first and last row that the cursor can be sent to, which depends on origin mode.
    pub(crate) fn bounds(&self, modes: &Modes) -> (usize, usize) {
        if modes.origin { (self.region.0, self.region.1 - 1) } else { (0, self.screen_rows - 1) }
    }

    pub(crate) fn set_region(&mut self, top: usize, bottom: usize) {
        self.region = (top, bottom);
    }

    pub(crate) fn erase_chars(&mut self, count: usize) {
        let (col, cols) = (self.cursor.col, self.cols);
        self.cursor_row().erase(col, (col + count).min(cols));
    }

    pub(crate) fn insert_chars(&mut self, count: usize) {
        let (col, cols) = (self.cursor.col, self.cols);
        self.cursor_row().insert(col, count, cols);
    }

    pub(crate) fn delete_chars(&mut self, count: usize) {
        let (col, cols) = (self.cursor.col, self.cols);
        self.cursor_row().delete(col, count, cols);
    }

    /// EL: 0 to the right, 1 to the left, 2 all.
    pub(crate) fn erase_line(&mut self, how: usize) {
        let (col, cols) = (self.cursor.col, self.cols);
        match how {
            0 if self.cursor.pending => {}
            0 => self.cursor_row().erase(col, cols),
            1 => self.cursor_row().erase(0, col + 1),
            2 => self.cursor_row().erase(0, cols),
            _ => {}
        }
    }

    /// ED 0: from the cursor to the end of the screen.
    pub(crate) fn erase_below(&mut self) {
        let (col, cols) = (self.cursor.col, self.cols);
        self.cursor_row().erase(col, cols);
        let keep = self.cursor.row - self.first + 1;
        self.rows.truncate(keep);
    }

    /// ED 1: from the start of the screen to the cursor.
    pub(crate) fn erase_above(&mut self) {
        // The engine leaves row 0 alone when the cursor is in row 1, and the transcript must agree with the
        // screen.
        if self.cursor.row > 1 {
            let count = self.cursor.row - self.first;
            for row in self.rows.iter_mut().take(count) {
                *row = Row::default();
            }
        }
        let col = self.cursor.col;
        self.cursor_row().erase(0, col + 1);
    }

    /// Scrolls rows `top..` of the region up. At the top of the screen they scroll off for good.
    pub(crate) fn scroll_up(&mut self, top: usize, count: usize) {
        let bottom = self.region.1;
        let count = count.min(bottom - top.min(bottom)).min(bottom - self.region.0);
        for _ in 0..count {
            if top == 0 && self.first > 0 {
                // The row that scrolls off is already in the transcript; all others move up with the page.
                self.first -= 1;
            } else if top == 0 {
                let row = self.rows.pop_front().unwrap_or_default();
                self.scrolled_off.push(row);
            } else if top - self.first < self.rows.len() {
                self.rows.remove(top - self.first);
            } else {
                continue;
            }
            if bottom < self.screen_rows && self.rows.len() > bottom - 1 - self.first {
                self.rows.insert(bottom - 1 - self.first, Row::default());
            }
        }
    }

    /// Scrolls rows `top..` of the region down: new rows come in at the top, the lowest are lost.
    pub(crate) fn scroll_down(&mut self, top: usize, count: usize) {
        let bottom = self.region.1;
        let count = count.min(bottom - top.min(bottom));
        for _ in 0..count {
            if top - self.first >= self.rows.len() {
                return;
            }
            if self.rows.len() > bottom - 1 - self.first {
                self.rows.remove(bottom - 1 - self.first);
            }
            self.rows.insert(top - self.first, Row::default());
        }
    }

    pub(crate) fn insert_lines(&mut self, count: usize) {
        if self.in_region() {
            self.scroll_down(self.cursor.row, count);
            self.carriage_return();
        }
    }

    pub(crate) fn delete_lines(&mut self, count: usize) {
        if self.in_region() {
            self.scroll_up(self.cursor.row, count);
            self.carriage_return();
        }
    }

    fn in_region(&self) -> bool {
        (self.region.0..self.region.1).contains(&self.cursor.row)
    }

    /// SU and SD.
    pub(crate) fn scroll(&mut self, up: bool, count: usize) {
        if up { self.scroll_up(self.region.0, count) } else { self.scroll_down(self.region.0, count) }
    }

    /// RI: up one row, scrolling at the top of the region.
    pub(crate) fn reverse_index(&mut self) {
        if self.cursor.row == self.region.0 {
            self.scroll_down(self.region.0, 1);
        } else {
            self.cursor.row = self.cursor.row.saturating_sub(1);
        }
    }

    /// DECALN: the screen full of E.
    pub(crate) fn fill_with_e(&mut self) {
        let cols = self.cols;
        self.rows = std::iter::repeat_n(Row::default(), self.screen_rows).collect();
        for row in &mut self.rows {
            row.fill('E', cols);
        }
    }

    /// Drops the blank rows at the end.
    pub(crate) fn drop_blank_end(&mut self) {
        while self.rows.back().is_some_and(Row::is_blank) {
            self.rows.pop_back();
        }
    }
}
