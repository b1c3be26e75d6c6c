//! One row of cells, and how it becomes text again.

use unicode_width::UnicodeWidthChar;

/// How many combining marks one character keeps. Text that piles up more is an attack, not a language.
const MAX_MARKS: usize = 32;

/// As many blanks at the edge of the screen are padding. Fewer may be a gap in a table, or between two words.
pub(crate) const MIN_PADDING: usize = 8;

/// The text continues in the next row: the row ended at the screen's edge.
const WRAPPED: u8 = 1;
/// First half of a wide character.
const WIDE: u8 = 2;
/// Second half of a wide character.
const WIDE_REST: u8 = 4;
/// Left empty because a wide character did not fit.
const FILLER: u8 = 8;

/// One cell. A blank cell was never printed on, or was erased; at the end of a row it is not text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    character: char,
    flags: u8,
    marks: Option<Box<str>>,
}

const BLANK: char = '\0';

impl Cell {
    fn is_blank(&self) -> bool {
        self.character == BLANK && self.flags & !WRAPPED == 0 && self.marks.is_none()
    }
}

/// Columns that a character takes; `None` for characters that a terminal does not draw.
pub(crate) fn width(character: char) -> Option<usize> {
    if (' '..='~').contains(&character) { Some(1) } else { character.width() }
}

/// A row, as long as it has been written to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Row {
    cells: Vec<Cell>,
}

impl Row {
    pub(crate) fn is_blank(&self) -> bool {
        self.cells.iter().all(|cell| cell.is_blank() && cell.flags == 0)
    }

    /// Whether the text goes on in the next row.
    pub(crate) fn is_wrapped(&self, cols: usize) -> bool {
        self.cells.get(cols - 1).is_some_and(|cell| cell.flags & WRAPPED != 0)
    }

    /// Whether the line goes on in the next row. A row that the program filled up to the edge with blanks is a line of its
    /// own: progress bars do that, and what follows them only happens to be printed behind the edge.
    pub(crate) fn continues(&self, cols: usize) -> bool {
        self.is_wrapped(cols) && !self.ends_in_padding(cols)
    }

    /// Whether the row has text, and ends in printed blanks at the screen's edge.
    fn ends_in_padding(&self, cols: usize) -> bool {
        let is_blank =
            |cell: &Cell| cell.character == ' ' && cell.flags & !WRAPPED == 0 && cell.marks.is_none();
        match cols.checked_sub(MIN_PADDING).and_then(|from| self.cells.get(from..cols)) {
            Some(end) => {
                end.iter().all(is_blank) && self.cells.iter().any(|cell| !is_blank(cell) && !cell.is_blank())
            }
            None => false,
        }
    }

    pub(crate) fn set_wrapped(&mut self, cols: usize) {
        self.extend_to(cols);
        self.cells[cols - 1].flags |= WRAPPED;
    }

    /// Leaves the last column empty for a wide character that starts the next row.
    pub(crate) fn set_filler(&mut self, cols: usize) {
        self.extend_to(cols);
        self.detach_wide(cols - 1);
        self.cells[cols - 1] = Cell { character: ' ', flags: FILLER, marks: None };
    }

    /// Number of cells up to the last one that is not blank.
    pub(crate) fn used(&self) -> usize {
        self.cells.iter().rposition(|cell| !cell.is_blank()).map_or(0, |last| last + 1)
    }

    fn extend_to(&mut self, length: usize) {
        if self.cells.len() < length {
            self.cells.resize(length, Cell::default());
        }
    }

    /// Call before a cell changes: erases the other half of a wide character.
    fn detach_wide(&mut self, col: usize) {
        let flags = self.cells[col].flags;
        if flags & WIDE != 0 {
            if let Some(rest) = self.cells.get_mut(col + 1) {
                rest.flags &= !WIDE_REST;
            }
        } else if flags & WIDE_REST != 0 && col > 0 {
            let lead = &mut self.cells[col - 1];
            lead.flags &= !WIDE;
            lead.character = ' ';
            lead.marks = None;
        }
    }

    /// Prints a character at a column; the caller has checked that it fits.
    pub(crate) fn put(&mut self, col: usize, character: char, width: usize) {
        self.extend_to(col + width);
        self.detach_wide(col);
        self.cells[col] = Cell { character, flags: if width == 2 { WIDE } else { 0 }, marks: None };
        if width == 2 {
            self.detach_wide(col + 1);
            self.cells[col + 1] = Cell { character: ' ', flags: WIDE_REST, marks: None };
        }
    }

    /// Prints a run of narrow ASCII at once.
    pub(crate) fn put_ascii(&mut self, col: usize, text: &[u8]) {
        let end = col + text.len();
        if self.cells.len() > col {
            self.extend_to(end);
            for at in col..end {
                if self.cells[at].flags & (WIDE | WIDE_REST) != 0 {
                    self.detach_wide(at);
                }
            }
            for (cell, &byte) in self.cells[col..end].iter_mut().zip(text) {
                cell.character = char::from(byte);
                cell.flags = 0;
                cell.marks = None;
            }
        } else {
            self.extend_to(col);
            self.cells.extend(text.iter().map(|&byte| Cell {
                character: char::from(byte),
                flags: 0,
                marks: None,
            }));
        }
    }

    /// Attaches a zero-width mark to the character before it.
    pub(crate) fn add_mark(&mut self, mut col: usize, mark: char) {
        self.extend_to(col + 1);
        if self.cells[col].flags & WIDE_REST != 0 {
            col = col.saturating_sub(1);
        }
        let cell = &mut self.cells[col];
        if cell.character == BLANK {
            cell.character = ' ';
        }
        let before = cell.marks.as_deref().unwrap_or_default();
        if before.chars().count() < MAX_MARKS {
            cell.marks = Some(format!("{before}{mark}").into());
        }
    }

    /// A tab is recorded where the row was empty, so that it can stay a tab in the text.
    pub(crate) fn put_tab(&mut self, col: usize) {
        self.extend_to(col + 1);
        let cell = &mut self.cells[col];
        if matches!(cell.character, BLANK | ' ') {
            cell.character = '\t';
        }
    }

    pub(crate) fn erase(&mut self, from: usize, to: usize) {
        if to >= self.cells.len() {
            self.cells.truncate(from);
        } else if from < to {
            self.cells[from..to].fill(Cell::default());
        }
    }

    /// Inserts `count` blank cells; what passes the right edge is lost.
    pub(crate) fn insert(&mut self, col: usize, count: usize, cols: usize) {
        if col >= self.cells.len() {
            return;
        }
        let count = count.min(cols - col);
        self.cells.splice(col..col, std::iter::repeat_n(Cell::default(), count));
        self.cells.truncate(cols);
    }

    /// Deletes `count` cells; the rest moves left.
    pub(crate) fn delete(&mut self, col: usize, count: usize, cols: usize) {
        // The engine keeps the cell at the right edge in place when more cells are deleted than there are.
        let count = count.min(cols);
        let end = (col + count).min(cols - 1);
        self.extend_to(cols);
        for offset in 0..cols - end {
            self.cells.swap(col + offset, end + offset);
        }
        let from = cols - count;
        self.cells[from..].fill(Cell::default());
        let used = self.used();
        let wrapped = self.is_wrapped(cols);
        if !wrapped {
            self.cells.truncate(used);
        }
    }

    pub(crate) fn fill(&mut self, character: char, cols: usize) {
        self.cells = vec![Cell { character, flags: 0, marks: None }; cols];
    }

    /// Appends the row as text: blanks inside become spaces, blanks at the end are dropped.
    pub(crate) fn push_text(&self, cols: usize, into: &mut Vec<u8>) {
        let end = if self.is_wrapped(cols) { cols } else { self.used() };
        let mut utf8 = [0; 4];
        let mut col = 0;
        while col < end {
            let cell = &self.cells[col];
            col += 1;
            if cell.flags & (WIDE_REST | FILLER) != 0 {
                continue;
            }
            let shown = match cell.character {
                BLANK => ' ',
                '\t' => {
                    let stop = (col.div_ceil(8) * 8).min(cols - 1).max(col);
                    let gap = &self.cells[col..stop.min(self.cells.len())];
                    if cell.marks.is_none() && gap.iter().all(|c| c.is_blank() && c.flags == 0) {
                        into.push(b'\t');
                        col = stop;
                        continue;
                    }
                    ' '
                }
                other => other,
            };
            into.extend_from_slice(shown.encode_utf8(&mut utf8).as_bytes());
            if let Some(marks) = &cell.marks {
                into.extend_from_slice(marks.as_bytes());
            }
        }
    }
}
