//! What hardly any program asks for, and the engine has no sequence for: whole columns, protected text, and steps back over the left edge.

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::Term;
use alacritty_terminal::term::cell::{Cell, Flags};

use super::Screen;

/// Marks protected cells. The engine does not use this bit, and passes it on from the cursor to what is printed.
pub(super) const PROTECTED: Flags = Flags::from_bits_retain(1 << 15);

/// What is erased, as seen from the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Area {
    ScreenBelow,
    ScreenAbove,
    Screen,
    LineRight,
    LineLeft,
    Line,
    Characters(usize),
}

/// How far a step back goes on over the left edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReverseWrap {
    /// Into a row that was wrapped.
    Wrapped,
    /// Into the row above, and from the top to the bottom.
    Always,
}

/// First and last row of the scroll region.
type Region = (usize, usize);

impl Screen {
    /// What is printed from now on is protected, or not.
    pub(crate) fn protect(&mut self, on: bool) {
        self.change(|term| term.grid_mut().cursor.template.flags.set(PROTECTED, on));
    }

    /// Erases what is not protected.
    pub(crate) fn erase_unprotected(&mut self, area: Area) {
        self.change(|term| {
            let (columns, lines) = (term.columns(), term.screen_lines());
            let point = term.grid().cursor.point;
            let (row, column) = (point.line.0.max(0) as usize, point.column.0);
            let cells = match area {
                Area::ScreenBelow => row * columns + column..lines * columns,
                Area::ScreenAbove => 0..row * columns + column + 1,
                Area::Screen => 0..lines * columns,
                Area::LineRight => row * columns + column..(row + 1) * columns,
                Area::LineLeft => row * columns..row * columns + column + 1,
                Area::Line => row * columns..(row + 1) * columns,
                Area::Characters(count) => {
                    row * columns + column..row * columns + (column + count).min(columns)
                }
            };
            for index in cells {
                let cell = &mut term.grid_mut()[Line((index / columns) as i32)][Column(index % columns)];
                if !cell.flags.contains(PROTECTED) {
                    *cell = Cell::default();
                }
            }
            term.grid_mut().cursor.input_needs_wrap = false;
        });
    }

    /// Inserts blank columns, or removes some, from the cursor's on. Outside of the scroll region nothing happens.
    pub(crate) fn shift_columns(&mut self, count: isize, region: Region) {
        self.change(|term| {
            let column = term.grid().cursor.point.column.0;
            shift(term, column, count, region);
        });
    }

    /// The same from the first column on, wherever the cursor is in it.
    pub(crate) fn scroll_columns(&mut self, count: isize, region: Region) {
        self.change(|term| shift(term, 0, count, region));
    }

    /// One column to the left, or to the right; at the edge the rows of the scroll region move instead.
    pub(crate) fn index_column(&mut self, forward: bool, region: Region) {
        self.change(|term| {
            let last = term.columns() - 1;
            term.grid_mut().cursor.input_needs_wrap = false;
            let column = &mut term.grid_mut().cursor.point.column;
            match (forward, column.0) {
                (true, at) if at == last => shift(term, 0, -1, region),
                (true, at) => *column = Column(at + 1),
                (false, 0) => shift(term, 0, 1, region),
                (false, at) => *column = Column(at - 1),
            }
        });
    }

    /// Steps back, over the left edge if need be.
    pub(crate) fn back(&mut self, count: usize, wrap: ReverseWrap, region: Region) {
        self.change(|term| {
            let columns = term.columns();
            // More than all cells lead nowhere else.
            let mut left = count.min(columns * term.screen_lines());
            if std::mem::take(&mut term.grid_mut().cursor.input_needs_wrap) {
                left = left.saturating_sub(1);
            }
            while left > 0 {
                let point = term.grid().cursor.point;
                if point.column.0 > 0 {
                    let step = left.min(point.column.0);
                    term.grid_mut().cursor.point.column = Column(point.column.0 - step);
                    left -= step;
                    continue;
                }
                let Some(row) = row_above(term, point.line, wrap, region) else { return };
                term.grid_mut().cursor.point.line = row;
                term.grid_mut().cursor.point.column = Column(columns - 1);
                left -= 1;
            }
        });
    }

    /// Whether the next character goes to the next row.
    pub(crate) fn is_wrap_pending(&mut self) -> bool {
        self.sync();
        self.engine.as_ref().is_some_and(|engine| engine.term.grid().cursor.input_needs_wrap)
    }

    /// Draws what waits, and changes the engine's state.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut Term<VoidListener>)) {
        if !self.disabled {
            self.sync();
            change(&mut self.engine().term);
        }
    }
}

fn row_above(term: &Term<VoidListener>, row: Line, wrap: ReverseWrap, (top, bottom): Region) -> Option<Line> {
    let (top, bottom) = (Line(top as i32), Line(bottom as i32));
    match wrap {
        ReverseWrap::Wrapped if row == top || row.0 == 0 => None,
        ReverseWrap::Wrapped => {
            let last = &term.grid()[Line(row.0 - 1)][Column(term.columns() - 1)];
            last.flags.contains(Flags::WRAPLINE).then_some(Line(row.0 - 1))
        }
        ReverseWrap::Always if row == top => Some(bottom),
        ReverseWrap::Always if row.0 == 0 => Some(Line(term.screen_lines() as i32 - 1)),
        ReverseWrap::Always => Some(Line(row.0 - 1)),
    }
}

/// Moves what is right of `column` in the rows of the region, to the right or to the left.
fn shift(term: &mut Term<VoidListener>, column: usize, count: isize, (top, bottom): Region) {
    let row = term.grid().cursor.point.line.0.max(0) as usize;
    if row < top || row > bottom {
        return;
    }
    let columns = term.columns();
    let by = count.unsigned_abs().min(columns - column);
    for line in top..=bottom.min(term.screen_lines() - 1) {
        let row = &mut term.grid_mut()[Line(line as i32)];
        let mut cells: Vec<Cell> = (column..columns).map(|at| row[Column(at)].clone()).collect();
        if count > 0 {
            cells.rotate_right(by);
            cells[..by].fill(Cell::default());
        } else {
            cells.rotate_left(by);
            let kept = cells.len() - by;
            cells[kept..].fill(Cell::default());
        }
        for (at, cell) in cells.into_iter().enumerate() {
            row[Column(column + at)] = cell;
        }
    }
    term.grid_mut().cursor.input_needs_wrap = false;
}
