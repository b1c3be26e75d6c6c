//! What a flood draws over and over: kept in small cells until someone looks, and only the last of it reaches the engine.
//!
//! A bar, a block of rows or a whole screen that is drawn anew many times between two looks costs the engine as much each
//! time. Here a character is one store of four bytes. The canvas takes only what it can do exactly as the engine would:
//! narrow characters that do not wrap, moves, erasures, colours. Everything else closes it, and goes to the engine.
//!
//! Colours are not parsed here: the engine itself says once what a sequence does to a style, and that is remembered.

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::term::{Term, TermMode};
use alacritty_terminal::vte::ansi::{CharsetIndex, StandardCharset};
use unicode_width::UnicodeWidthChar;

use crate::scan::Csi;

/// Larger screens are left to the engine: a canvas must not need more memory than they do.
const MAX_CELLS: usize = 64 << 10;
/// How many styles there can be at once.
const MAX_STYLES: usize = 1 << (32 - CHARACTER_BITS);
/// A cell has a character in its lower bits and the number of a style above them.
const CHARACTER_BITS: u32 = 21;
/// Nothing was drawn here.
const UNTOUCHED: u32 = 0;
/// The character of a cell that was erased: its style says with which background.
const ERASED: u32 = 1;
/// How many changes of style are remembered.
const REMEMBERED: usize = 256;
/// The longest sequence whose effect is remembered.
const MAX_SGR: usize = 15;
/// Cells with one of these depend on their neighbours.
const WIDE: Flags = Flags::WIDE_CHAR.union(Flags::WIDE_CHAR_SPACER).union(Flags::LEADING_WIDE_CHAR_SPACER);

/// The cells that were drawn since the last look, over those of the engine.
#[derive(Debug)]
pub(super) struct Canvas {
    columns: usize,
    lines: usize,
    alternate: bool,
    cells: Vec<u32>,
    rows: Vec<Row>,
    row: usize,
    column: usize,
    /// The next character goes to the next row.
    wraps: bool,
    style: usize,
    styles: Vec<Cell>,
    changes: Vec<Change>,
}

/// Whether a row can be drawn on, and has been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Clean,
    Drawn,
    /// It has characters of two columns, which must be drawn in order.
    Wide,
}

/// What a sequence makes of a style.
#[derive(Clone, Copy, Debug)]
struct Change {
    from: usize,
    sgr: u128,
    to: usize,
}

impl Canvas {
    /// A canvas over what the engine shows; none if the screen is too large or in a mode that the canvas does not know.
    /// `slot` is that of the character set in use.
    pub(super) fn over(term: &Term<VoidListener>, slot: usize) -> Option<Self> {
        let (columns, lines) = (term.columns(), term.screen_lines());
        let mode = term.mode();
        let grid = term.grid();
        let slot = [CharsetIndex::G0, CharsetIndex::G1, CharsetIndex::G2, CharsetIndex::G3][slot];
        if columns * lines > MAX_CELLS
            || mode.intersects(TermMode::INSERT | TermMode::ORIGIN)
            || grid.cursor.charsets[slot] != StandardCharset::Ascii
        {
            return None;
        }
        let is_wide =
            |line: usize| grid[Line(line as i32)][..].iter().any(|cell| cell.flags.intersects(WIDE));
        let rows = (0..lines).map(|line| if is_wide(line) { Row::Wide } else { Row::Clean }).collect();
        Some(Self {
            columns,
            lines,
            alternate: mode.contains(TermMode::ALT_SCREEN),
            cells: vec![UNTOUCHED; columns * lines],
            rows,
            row: usize::try_from(grid.cursor.point.line.0).ok()?,
            column: grid.cursor.point.column.0,
            wraps: grid.cursor.input_needs_wrap,
            style: 0,
            styles: vec![grid.cursor.template.clone()],
            changes: vec![Change { from: usize::MAX, sgr: 0, to: 0 }; REMEMBERED],
        })
    }

    /// Row and column of the cursor.
    pub(super) fn cursor(&self) -> (usize, usize) {
        (self.row, self.column)
    }

    /// Puts what was drawn into the engine's cells. The canvas is then clean.
    pub(super) fn put_into(&mut self, term: &mut Term<VoidListener>) {
        let grid = term.grid_mut();
        for (line, row) in self.rows.iter_mut().enumerate().filter(|(_, row)| **row == Row::Drawn) {
            *row = Row::Clean;
            let cells = &mut self.cells[line * self.columns..][..self.columns];
            let into = &mut grid[Line(line as i32)];
            for (column, cell) in cells.iter_mut().enumerate() {
                let drawn = std::mem::replace(cell, UNTOUCHED);
                if drawn == UNTOUCHED {
                    continue;
                }
                let style = &self.styles[(drawn >> CHARACTER_BITS) as usize];
                into[Column(column)] = match drawn & ((1 << CHARACTER_BITS) - 1) {
                    ERASED => style.bg.into(),
                    character => Cell { c: char::from_u32(character).unwrap_or(' '), ..style.clone() },
                };
            }
        }
        grid.cursor.point.line = Line(self.row as i32);
        grid.cursor.point.column = Column(self.column);
        grid.cursor.input_needs_wrap = self.wraps;
        grid.cursor.template = self.styles[self.style].clone();
    }

    /// The cells from one column to another in a row, to be drawn on; none if that must be left to the engine.
    fn draw(&mut self, row: usize, from: usize, to: usize) -> Option<&mut [u32]> {
        if self.rows[row] == Row::Wide {
            return None;
        }
        self.rows[row] = Row::Drawn;
        Some(&mut self.cells[row * self.columns..][from..to])
    }

    /// Prints text; false if it is left to the engine.
    pub(super) fn text(&mut self, text: &str) -> bool {
        let ascii = text.is_ascii();
        let is_narrow = |character: char| character.width() == Some(1);
        let width = if ascii { text.len() } else { text.chars().count() };
        let end = self.column + width;
        if self.wraps || end > self.columns || !(ascii || text.chars().all(is_narrow)) {
            return false;
        }
        let style = (self.style as u32) << CHARACTER_BITS;
        let Some(cells) = self.draw(self.row, self.column, end) else { return false };
        if ascii {
            for (cell, byte) in cells.iter_mut().zip(text.bytes()) {
                *cell = style | u32::from(byte);
            }
        } else {
            for (cell, character) in cells.iter_mut().zip(text.chars()) {
                *cell = style | u32::from(character);
            }
        }
        self.wraps = end == self.columns;
        self.column = end.min(self.columns - 1);
        true
    }

    fn erase(&mut self, row: usize, from: usize, to: usize) -> bool {
        let erased = (self.style as u32) << CHARACTER_BITS | ERASED;
        self.draw(row, from, to).is_some_and(|cells| {
            cells.fill(erased);
            true
        })
    }

    pub(super) fn carriage_return(&mut self) {
        (self.column, self.wraps) = (0, false);
    }

    pub(super) fn backspace(&mut self) {
        if self.column > 0 {
            (self.column, self.wraps) = (self.column - 1, false);
        }
    }

    /// A line feed; false where it scrolls.
    pub(super) fn line_feed(&mut self) -> bool {
        let fits = self.row + 1 < self.lines;
        if fits {
            (self.row, self.wraps) = (self.row + 1, false);
        }
        fits
    }

    fn go(&mut self, row: usize, column: usize) -> bool {
        (self.row, self.column) = (row.min(self.lines - 1), column.min(self.columns - 1));
        self.wraps = false;
        true
    }

    /// A control sequence that is no colour; false if it is left to the engine.
    pub(super) fn csi(&mut self, csi: &Csi<'_>) -> bool {
        let Some((first, second)) = two_numbers(csi.body) else { return false };
        let (count, row, column) = (first.max(1), self.row, self.column);
        match csi.last {
            b'H' | b'f' => self.go(count - 1, second.max(1) - 1),
            b'A' => self.go(row.saturating_sub(count), column),
            b'B' | b'e' => self.go(row + count, column),
            b'C' | b'a' => self.go(row, column + count),
            b'D' => self.go(row, column.saturating_sub(count)),
            b'E' => self.go(row + count, 0),
            b'F' => self.go(row.saturating_sub(count), 0),
            b'G' | b'`' => self.go(row, count - 1),
            b'd' => self.go(count - 1, column),
            b'K' => match first {
                0 if self.wraps => true,
                0 => self.erase(row, column, self.columns),
                1 => self.erase(row, 0, column + 1),
                2 => self.erase(row, 0, self.columns),
                _ => false,
            },
            b'X' => {
                let erased = self.erase(row, column, (column + count).min(self.columns));
                self.wraps &= !erased;
                erased
            }
            b'J' => match first {
                0 => self.erase_rows(row, column),
                // On the other screen, what is cleared goes to the scrollback.
                2 if self.alternate => self.erase_rows(0, 0),
                _ => false,
            },
            _ => false,
        }
    }

    /// Erases from a position to the end of the screen.
    fn erase_rows(&mut self, row: usize, column: usize) -> bool {
        if self.rows[row..].contains(&Row::Wide) {
            return false;
        }
        self.wraps = false;
        self.erase(row, column, self.columns)
            && (row + 1..self.lines).all(|below| self.erase(below, 0, self.columns))
    }

    /// Colours and styles, if it is known what they change.
    pub(super) fn known_style(&mut self, csi: &Csi<'_>) -> bool {
        let Some(sgr) = packed(csi.body) else { return false };
        let known = self.changes[place(self.style, sgr)];
        let same = known.sgr == sgr && known.from == self.style;
        if same {
            self.style = known.to;
        }
        same
    }

    /// Colours and styles that are new: `apply` has the engine apply them. False if there are too many.
    pub(super) fn new_style(
        &mut self,
        csi: &Csi<'_>,
        term: &mut Term<VoidListener>,
        apply: impl FnOnce(&mut Term<VoidListener>),
    ) -> bool {
        let Some(sgr) = packed(csi.body) else { return false };
        term.grid_mut().cursor.template = self.styles[self.style].clone();
        apply(term);
        let style = &term.grid().cursor.template;
        let to = match self.styles.iter().position(|known| known == style) {
            Some(at) => at,
            None if self.styles.len() < MAX_STYLES => {
                self.styles.push(style.clone());
                self.styles.len() - 1
            }
            None => return false,
        };
        let from = std::mem::replace(&mut self.style, to);
        self.changes[place(from, sgr)] = Change { from, sgr, to };
        true
    }
}

/// The numbers of a sequence that has at most two, and nothing else; 0 for those that are missing.
fn two_numbers(body: &[u8]) -> Option<(usize, usize)> {
    let mut numbers = [0, 0];
    let mut at = 0;
    // More than four digits are for whoever knows the limits.
    if body.len() > 9 {
        return None;
    }
    for &byte in body {
        match byte {
            b'0'..=b'9' => numbers[at] = numbers[at] * 10 + usize::from(byte - b'0'),
            b';' if at == 0 => at = 1,
            _ => return None,
        }
    }
    numbers.iter().all(|number| *number < 10_000).then_some((numbers[0], numbers[1]))
}

/// A short sequence as one number.
fn packed(body: &[u8]) -> Option<u128> {
    let mut bytes = [0; MAX_SGR + 1];
    bytes.get_mut(..body.len()).filter(|_| body.len() <= MAX_SGR)?.copy_from_slice(body);
    // Its length is part of it, so that an empty one is not nothing.
    bytes[MAX_SGR] = body.len() as u8 + 1;
    Some(u128::from_le_bytes(bytes))
}

/// Where a change of style is remembered.
fn place(style: usize, sgr: u128) -> usize {
    let mixed = (sgr as u64) ^ ((sgr >> 64) as u64).rotate_left(23) ^ (style as u64).rotate_left(47);
    (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize % REMEMBERED
}
