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
#[derive(Debug, Clone)]
pub(crate) enum Row {
    /// Narrow ASCII without tabs, a byte a cell, as nearly all rows are; [`NO_BYTE`] for a blank one.
    Plain(Vec<u8>),
    Cells(Vec<Cell>),
}

/// A blank cell of a plain row.
const NO_BYTE: u8 = BLANK as u8;

impl Default for Row {
    fn default() -> Self {
        Self::Plain(Vec::new())
    }
}

impl Row {
    /// A row of narrow ASCII without tabs.
    pub(super) fn of_ascii(text: &[u8]) -> Self {
        Self::Plain(text.to_vec())
    }

    /// The cells, of which something is to become other than narrow ASCII.
    fn cells(&mut self) -> &mut Vec<Cell> {
        if let Self::Plain(bytes) = self {
            let cell = |byte: &u8| Cell { character: char::from(*byte), flags: 0, marks: None };
            *self = Self::Cells(bytes.iter().map(cell).collect());
        }
        match self {
            Self::Cells(cells) => cells,
            Self::Plain(_) => unreachable!("they were just made"),
        }
    }

    pub(crate) fn is_blank(&self) -> bool {
        match self {
            Self::Plain(bytes) => bytes.iter().all(|byte| *byte == NO_BYTE),
            Self::Cells(cells) => cells.iter().all(|cell| cell.is_blank() && cell.flags == 0),
        }
    }

    /// Whether the text goes on in the next row.
    pub(crate) fn is_wrapped(&self, cols: usize) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Cells(cells) => cells.get(cols - 1).is_some_and(|cell| cell.flags & WRAPPED != 0),
        }
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
        // Only a row that wraps is asked, and that is never a plain one.
        let Self::Cells(cells) = self else { return false };
        match cols.checked_sub(MIN_PADDING).and_then(|from| cells.get(from..cols)) {
            Some(end) => {
                end.iter().all(is_blank) && cells.iter().any(|cell| !is_blank(cell) && !cell.is_blank())
            }
            None => false,
        }
    }

    pub(crate) fn set_wrapped(&mut self, cols: usize) {
        let cells = self.cells();
        extend_to(cells, cols);
        cells[cols - 1].flags |= WRAPPED;
    }

    /// Leaves the last column empty for a wide character that starts the next row.
    pub(crate) fn set_filler(&mut self, cols: usize) {
        let cells = self.cells();
        extend_to(cells, cols);
        detach_wide(cells, cols - 1);
        cells[cols - 1] = Cell { character: ' ', flags: FILLER, marks: None };
    }

    /// Number of cells up to the last one that is not blank.
    pub(crate) fn used(&self) -> usize {
        let last = match self {
            Self::Plain(bytes) => bytes.iter().rposition(|byte| *byte != NO_BYTE),
            Self::Cells(cells) => cells.iter().rposition(|cell| !cell.is_blank()),
        };
        last.map_or(0, |last| last + 1)
    }

    /// Prints a character at a column; the caller has checked that it fits.
    pub(crate) fn put(&mut self, col: usize, character: char, width: usize) {
        if matches!(self, Self::Plain(_)) && (' '..='~').contains(&character) {
            return self.put_ascii(col, &[character as u8]);
        }
        let cells = self.cells();
        extend_to(cells, col + width);
        detach_wide(cells, col);
        cells[col] = Cell { character, flags: if width == 2 { WIDE } else { 0 }, marks: None };
        if width == 2 {
            detach_wide(cells, col + 1);
            cells[col + 1] = Cell { character: ' ', flags: WIDE_REST, marks: None };
        }
    }

    /// Prints a run of narrow ASCII at once.
    pub(crate) fn put_ascii(&mut self, col: usize, text: &[u8]) {
        let end = col + text.len();
        match self {
            Self::Plain(bytes) => {
                if bytes.len() < col {
                    bytes.resize(col, NO_BYTE);
                }
                let over = text.len().min(bytes.len() - col);
                bytes[col..col + over].copy_from_slice(&text[..over]);
                bytes.extend_from_slice(&text[over..]);
            }
            Self::Cells(cells) => {
                extend_to(cells, end);
                for at in col..end {
                    if cells[at].flags & (WIDE | WIDE_REST) != 0 {
                        detach_wide(cells, at);
                    }
                }
                for (cell, &byte) in cells[col..end].iter_mut().zip(text) {
                    *cell = Cell { character: char::from(byte), flags: 0, marks: None };
                }
            }
        }
    }

    /// Attaches a zero-width mark to the character before it.
    pub(crate) fn add_mark(&mut self, mut col: usize, mark: char) {
        let cells = self.cells();
        extend_to(cells, col + 1);
        if cells[col].flags & WIDE_REST != 0 {
            col = col.saturating_sub(1);
        }
        let cell = &mut cells[col];
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
        let cells = self.cells();
        extend_to(cells, col + 1);
        let cell = &mut cells[col];
        if matches!(cell.character, BLANK | ' ') {
            cell.character = '\t';
        }
    }

    pub(crate) fn erase(&mut self, from: usize, to: usize) {
        match self {
            Self::Plain(bytes) if to >= bytes.len() => bytes.truncate(from),
            Self::Cells(cells) if to >= cells.len() => cells.truncate(from),
            Self::Plain(bytes) if from < to => bytes[from..to].fill(NO_BYTE),
            Self::Cells(cells) if from < to => cells[from..to].fill(Cell::default()),
            Self::Plain(_) | Self::Cells(_) => {}
        }
    }

    /// Inserts `count` blank cells; what passes the right edge is lost.
    pub(crate) fn insert(&mut self, col: usize, count: usize, cols: usize) {
        let cells = self.cells();
        if col >= cells.len() {
            return;
        }
        let count = count.min(cols - col);
        cells.splice(col..col, std::iter::repeat_n(Cell::default(), count));
        cells.truncate(cols);
    }

    /// Deletes `count` cells; the rest moves left.
    pub(crate) fn delete(&mut self, col: usize, count: usize, cols: usize) {
        // The engine keeps the cell at the right edge in place when more cells are deleted than there are.
        let count = count.min(cols);
        let end = (col + count).min(cols - 1);
        let cells = self.cells();
        extend_to(cells, cols);
        for offset in 0..cols - end {
            cells.swap(col + offset, end + offset);
        }
        let from = cols - count;
        cells[from..].fill(Cell::default());
        let used = self.used();
        let wrapped = self.is_wrapped(cols);
        if !wrapped {
            self.cells().truncate(used);
        }
    }

    pub(crate) fn fill(&mut self, character: char, cols: usize) {
        *self = Self::Cells(vec![Cell { character, flags: 0, marks: None }; cols]);
    }

    /// Appends the row as text: blanks inside become spaces, blanks at the end are dropped.
    pub(crate) fn push_text(&self, cols: usize, into: &mut Vec<u8>) {
        match self {
            Self::Plain(bytes) => {
                let start = into.len();
                into.extend_from_slice(&bytes[..self.used()]);
                for byte in &mut into[start..] {
                    *byte = if *byte == NO_BYTE { b' ' } else { *byte };
                }
            }
            Self::Cells(cells) => {
                let end = if self.is_wrapped(cols) { cols } else { self.used() };
                push_cells(cells, end, cols, into);
            }
        }
    }
}

fn extend_to(cells: &mut Vec<Cell>, length: usize) {
    if cells.len() < length {
        cells.resize(length, Cell::default());
    }
}

/// Call before a cell changes: erases the other half of a wide character.
fn detach_wide(cells: &mut [Cell], col: usize) {
    let flags = cells[col].flags;
    if flags & WIDE != 0 {
        if let Some(rest) = cells.get_mut(col + 1) {
            rest.flags &= !WIDE_REST;
        }
    } else if flags & WIDE_REST != 0 && col > 0 {
        let lead = &mut cells[col - 1];
        lead.flags &= !WIDE;
        lead.character = ' ';
        lead.marks = None;
    }
}

/// Appends the first `end` cells of a row of `cols` columns as text.
fn push_cells(cells: &[Cell], end: usize, cols: usize, into: &mut Vec<u8>) {
    let mut utf8 = [0; 4];
    let mut col = 0;
    while col < end {
        let cell = &cells[col];
        col += 1;
        if cell.flags & (WIDE_REST | FILLER) != 0 {
            continue;
        }
        let shown = match cell.character {
            BLANK => ' ',
            '\t' => {
                let stop = (col.div_ceil(8) * 8).min(cols - 1).max(col);
                let gap = &cells[col..stop.min(cells.len())];
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
