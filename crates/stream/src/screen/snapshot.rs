//! The screen as plain text.

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::{Dimensions, Row};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::Term;
use alacritty_terminal::term::cell::{Cell, Flags};

use crate::modes::Modes;
use crate::size::Size;

/// Where the cursor is, from 0, and whether it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CursorPosition {
    /// Row, from the top.
    pub row: usize,
    /// Column, from the left.
    pub col: usize,
    /// Whether it is shown.
    pub visible: bool,
}

/// What a terminal shows at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Its size.
    pub size: Size,
    /// All rows from the top, without the blanks at their ends.
    pub rows: Vec<String>,
    /// The cursor.
    pub cursor: CursorPosition,
    /// The window title; empty if none was set.
    pub title: String,
    /// Whether this is the alternate screen of a full-screen program.
    pub alternate: bool,
    /// The modes in force.
    pub modes: Modes,
    /// How often the bell has rung so far.
    pub bells: u64,
    /// The cursor's line up to the cursor, with the rows that it wrapped from: the text of a prompt.
    pub text_before_cursor: String,
}

impl Snapshot {
    /// A screen on which nothing was printed.
    pub(super) fn empty(size: Size, modes: &Modes, title: &str, bells: u64) -> Self {
        Self {
            size,
            rows: vec![String::new(); size.lines()],
            cursor: CursorPosition { row: 0, col: 0, visible: modes.cursor_visible },
            title: title.to_owned(),
            alternate: modes.alternate_screen,
            modes: *modes,
            bells,
            text_before_cursor: String::new(),
        }
    }

    /// Shows these rows, with the cursor after the last one.
    pub(super) fn show_plain(&mut self, rows: &[&str]) {
        for (row, text) in self.rows.iter_mut().zip(rows) {
            row.push_str(text.trim_end_matches(' '));
        }
        if let Some(last) = rows.last() {
            (self.cursor.row, self.cursor.col) = (rows.len() - 1, last.len());
            self.text_before_cursor.push_str(last);
        }
    }

    /// Shows what the engine has drawn.
    pub(super) fn show(&mut self, term: &Term<VoidListener>) {
        let columns = self.size.columns();
        for (index, row) in self.rows.iter_mut().enumerate() {
            *row = row_text(term, line(index), columns);
            row.truncate(row.trim_end_matches(' ').len());
        }
        let cursor = &term.grid().cursor;
        self.cursor.row = usize::try_from(cursor.point.line.0).unwrap_or(0);
        self.cursor.col = cursor.point.column.0;
        let mut start = cursor.point.line;
        while start > term.topmost_line() && is_wrapped(term, start - 1) && cursor.point.line - start < 40 {
            start -= 1;
        }
        while start < cursor.point.line {
            self.text_before_cursor.push_str(&row_text(term, start, columns));
            start += 1;
        }
        let end = cursor.point.column.0 + usize::from(cursor.input_needs_wrap);
        self.text_before_cursor.push_str(&row_text(term, start, end));
    }
}

pub(super) fn scrollback(term: &Term<VoidListener>, lines: usize) -> Vec<String> {
    let count = lines.min(term.history_size());
    (1..=count)
        .rev()
        .map(|back| {
            let mut text = row_text(term, Line(0) - back, term.columns());
            text.truncate(text.trim_end_matches(' ').len());
            text
        })
        .collect()
}

fn line(index: usize) -> Line {
    Line(i32::try_from(index).unwrap_or(0))
}

fn is_wrapped(term: &Term<VoidListener>, line: Line) -> bool {
    term.grid()[line][term.last_column()].flags.contains(Flags::WRAPLINE)
}

/// What is drawn for a cell.
pub(super) enum Drawn {
    /// The cell itself.
    Cell,
    /// A blank: a wide character has lost its other half.
    Blank,
    /// Nothing: the cell belongs to the wide character beside it.
    Nothing,
}

/// What to draw for a cell. Half a wide character is drawn as a blank, as other terminals do: a screen that
/// was made narrower, or an inserted character, may have cut it in two.
pub(super) fn drawn(row: &Row<Cell>, col: usize, columns: usize) -> Drawn {
    let flags = |col: usize| row[Column(col)].flags;
    let whole = if flags(col).contains(Flags::WIDE_CHAR_SPACER) {
        return if col > 0 && flags(col - 1).contains(Flags::WIDE_CHAR) {
            Drawn::Nothing
        } else {
            Drawn::Blank
        };
    } else if flags(col).contains(Flags::LEADING_WIDE_CHAR_SPACER) {
        return if col + 1 == columns { Drawn::Nothing } else { Drawn::Blank };
    } else if flags(col).contains(Flags::WIDE_CHAR) {
        col + 1 < columns && flags(col + 1).contains(Flags::WIDE_CHAR_SPACER)
    } else {
        true
    };
    if whole { Drawn::Cell } else { Drawn::Blank }
}

/// The cells of a row up to a column, as text.
fn row_text(term: &Term<VoidListener>, line: Line, end: usize) -> String {
    let row = &term.grid()[line];
    let mut text = String::with_capacity(end);
    for col in 0..end {
        let cell = &row[Column(col)];
        match drawn(row, col, term.columns()) {
            Drawn::Nothing => continue,
            Drawn::Blank => {
                text.push(' ');
                continue;
            }
            Drawn::Cell => {}
        }
        // The engine records where a tab began; on the screen it is a blank.
        text.push(if cell.c == '\t' { ' ' } else { cell.c });
        if let Some(marks) = cell.zerowidth() {
            text.extend(marks);
        }
    }
    text
}
