//! What control sequences do to the transcript.

use super::{CursorState, Transcript};
use crate::fold_output::FoldOutput;
use crate::modes::Modes;
use crate::page::{Cursor, Page};
use crate::scan::Params;

impl Transcript {
    /// A control sequence without prefix or intermediate.
    pub(crate) fn csi(&mut self, params: &Params, last: u8, modes: &Modes, out: &mut FoldOutput) {
        let count = params.get(0, 1);
        let at_end = self.is_at_line_end();
        match last {
            // There is nothing to erase to the right of the text's end, or below it.
            b'K' if params.get(0, 0) == 0 && at_end => {}
            b'J' if params.get(0, 0) == 0 && at_end => {}
            b'G' | b'`' if count == 1 && !self.has_page() => self.cursor = CursorState::Returned,
            b'K' => self.on_page(out, |page| page.erase_line(params.get(0, 0))),
            b'C' | b'a' => self.on_page(out, |page| page.move_to_col(page.cursor.col + count)),
            b'D' => self.on_page(out, |page| page.move_to_col(page.cursor.col.saturating_sub(count))),
            b'G' | b'`' => self.on_page(out, |page| page.move_to_col(count - 1)),
            b'@' => self.on_page(out, |page| page.insert_chars(count)),
            b'P' => self.on_page(out, |page| page.delete_chars(count)),
            b'X' => self.on_page(out, |page| page.erase_chars(count)),
            b'I' => self.on_page(out, |page| tabs_forward(page, count)),
            b'Z' => self.on_page(out, |page| tabs_back(page, count)),
            b'A' | b'B' | b'e' | b'E' | b'F' | b'H' | b'f' | b'd' | b'J' | b'L' | b'M' | b'S' | b'T'
            | b'r' | b's' | b'u' => {
                self.left_line = true;
                self.beyond_line(params, last, modes, out);
            }
            _ => {}
        }
    }

    /// Sequences that reach beyond the cursor's line.
    fn beyond_line(&mut self, params: &Params, last: u8, modes: &Modes, out: &mut FoldOutput) {
        let count = params.get(0, 1);
        let Cursor { row, col, .. } = self.on_page(out, |page| page.cursor);
        match last {
            b'A' | b'B' | b'E' | b'F' => {
                let up = matches!(last, b'A' | b'F');
                let target = self.on_page(out, |page| page.step(up, count));
                self.go(target, if matches!(last, b'E' | b'F') { 0 } else { col }, out);
            }
            b'e' => self.go(row + count, col, out),
            b'H' | b'f' => {
                self.address(count - 1, params.get(1, 1) - 1, modes, out);
                self.sent_home = count == 1 && params.get(1, 1) == 1;
            }
            b'd' => self.address(count - 1, col, modes, out),
            b'J' => self.erase_display(params.get(0, 0), out),
            b'L' => self.on_page(out, |page| page.insert_lines(count)),
            b'M' => self.on_page(out, |page| page.delete_lines(count)),
            b'S' | b'T' => {
                self.reach(0, out);
                self.on_page(out, |page| page.scroll(last == b'S', count));
            }
            b'r' => {
                let bottom = params.get(1, self.size.rows).min(self.size.lines());
                if count - 1 < bottom {
                    self.reach(0, out);
                    self.on_page(out, |page| page.set_region((count - 1).min(bottom - 1), bottom));
                    self.address(0, 0, modes, out);
                }
            }
            b's' => self.save_cursor(out),
            b'u' => self.restore_cursor(out),
            _ => {}
        }
        if self.page().is_some_and(Page::follows_text) {
            self.settle(out);
        }
    }

    /// Moves the cursor, pulling in the rows down to where it goes.
    fn go(&mut self, row: usize, col: usize, out: &mut FoldOutput) {
        self.sent_home = false;
        self.reach(row, out);
        self.on_page(out, |page| page.move_to(row, col));
    }

    /// Moves the cursor to an absolute position, which may count from the scroll region.
    fn address(&mut self, row: usize, col: usize, modes: &Modes, out: &mut FoldOutput) {
        let (top, bottom) = self.on_page(out, |page| page.bounds(modes));
        self.go((top + row).min(bottom), col, out);
    }

    fn erase_display(&mut self, how: usize, out: &mut FoldOutput) {
        let at_home = self.sent_home && self.on_page(out, |page| page.cursor) == Cursor::default();
        match how {
            0 if at_home => self.clear(out),
            0 => self.on_page(out, Page::erase_below),
            1 => {
                self.reach(0, out);
                self.on_page(out, Page::erase_above);
            }
            2 => self.clear(out),
            _ => {}
        }
    }

    /// DECSC.
    pub(crate) fn save_cursor(&mut self, out: &mut FoldOutput) {
        self.left_line = true;
        self.saved = self.on_page(out, |page| page.cursor);
        self.settle(out);
    }

    /// DECRC.
    pub(crate) fn restore_cursor(&mut self, out: &mut FoldOutput) {
        let saved = self.saved;
        self.left_line = true;
        self.go(saved.row, saved.col, out);
        self.on_page(out, |page| page.cursor.pending = saved.pending && page.cursor.col == saved.col);
    }

    /// IND, RI, DECALN.
    pub(crate) fn escape(&mut self, intermediates: &[u8], last: u8, out: &mut FoldOutput) {
        match (intermediates, last) {
            ([], b'D') => self.line_feed(false, out),
            ([], b'E') => self.line_feed(true, out),
            ([], b'M') => {
                self.left_line = true;
                let row = self.on_page(out, |page| page.cursor.row);
                let top = self.on_page(out, |page| page.top());
                self.reach(if row == top { 0 } else { row.saturating_sub(1) }, out);
                self.on_page(out, Page::reverse_index);
            }
            (b"#", b'8') => {
                self.left_line = true;
                self.reach(0, out);
                self.on_page(out, Page::fill_with_e);
            }
            _ => {}
        }
    }

    /// The cursor goes to where rows are counted from.
    pub(crate) fn home(&mut self, modes: &Modes, out: &mut FoldOutput) {
        self.left_line = true;
        self.address(0, 0, modes, out);
    }

    /// RIS, and what changes the width: the screen is wiped and the cursor goes home.
    pub(crate) fn reset(&mut self, out: &mut FoldOutput) {
        self.left_line = true;
        self.clear(out);
        self.cursor = CursorState::AtLineEnd;
        self.saved = Cursor::default();
        self.sent_home = false;
    }
}

fn tabs_forward(page: &mut Page, count: usize) {
    let target = (page.cursor.col / 8).saturating_add(count).saturating_mul(8);
    page.set_col_keeping_wrap(target);
}

fn tabs_back(page: &mut Page, count: usize) {
    let target = page.cursor.col.div_ceil(8).saturating_sub(count) * 8;
    page.set_col_keeping_wrap(target);
}
