//! The older ways to the alternate screen, 47 and 1047. The engine knows only 1049, which has a cursor of its own and begins
//! with an empty screen.

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::{Cursor, Dimensions};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::term::{Term, TermMode};

use super::Screen;

/// Which mode switches. They differ in what becomes of the cursor and of what was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    /// 47: both screens share the cursor, and the alternate one stays as it is.
    Plain,
    /// 1047: likewise, but it is erased when it is left.
    Erasing,
    /// 1049: the cursor is saved and restored, and the alternate screen begins empty.
    Saving,
}

impl Switch {
    /// The mode of this number, if it is one of them.
    pub(crate) fn of(number: u16) -> Option<Self> {
        match number {
            47 => Some(Self::Plain),
            1047 => Some(Self::Erasing),
            1049 => Some(Self::Saving),
            _ => None,
        }
    }
}

/// What is kept from one switch to the next.
#[derive(Default)]
pub(super) struct Left {
    /// The alternate screen, row by row, as mode 47 left it.
    rows: Vec<Vec<Cell>>,
    /// The cursor that was saved (DECSC) on the main screen.
    saved: Option<Cursor<Cell>>,
}

impl Screen {
    /// Switches to the alternate screen or back.
    pub(crate) fn switch(&mut self, switch: Switch, on: bool) {
        if switch == Switch::Saving {
            self.left = Left::default();
            return self.feed_cursor_move(if on { b"\x1b[?1049h" } else { b"\x1b[?1049l" });
        }
        let mut left = std::mem::take(&mut self.left);
        self.change(|term| {
            if term.mode().contains(TermMode::ALT_SCREEN) == on {
                return;
            }
            let cursor = term.grid().cursor.clone();
            if on {
                left.saved = Some(term.grid().saved_cursor.clone());
                term.swap_alt();
                put_back(term, &left.rows);
                left.rows.clear();
            } else {
                if switch == Switch::Plain {
                    left.rows = rows(term);
                }
                term.swap_alt();
                if let Some(saved) = left.saved.take() {
                    term.grid_mut().saved_cursor = saved;
                }
            }
            term.grid_mut().cursor = cursor;
        });
        self.left = left;
    }
}

fn rows(term: &Term<VoidListener>) -> Vec<Vec<Cell>> {
    let row = |line: usize| {
        let row = &term.grid()[Line(line as i32)];
        (0..term.columns()).map(|column| row[Column(column)].clone()).collect()
    };
    (0..term.screen_lines()).map(row).collect()
}

/// Draws rows again, unless the screen has another size by now.
fn put_back(term: &mut Term<VoidListener>, rows: &[Vec<Cell>]) {
    if rows.len() != term.screen_lines() || rows.first().is_none_or(|row| row.len() != term.columns()) {
        return;
    }
    for (line, row) in rows.iter().enumerate() {
        for (column, cell) in row.iter().enumerate() {
            term.grid_mut()[Line(line as i32)][Column(column)] = cell.clone();
        }
    }
}
