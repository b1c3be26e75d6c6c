//! What a pane shows, cell by cell, with as much of its style as tells what was typed from what is only suggested.

/// A colour as tmux writes it: one of 256, or 24 bits with a mark above them.
type Colour = u32;
const TRUE_COLOUR: Colour = 1 << 24;

/// One character of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) c: char,
    /// Dim or grey: how programs show hints and suggestions.
    pub(super) faint: bool,
    /// How programs draw a cursor of their own.
    pub(super) inverse: bool,
    background: Option<Colour>,
}

impl Cell {
    pub(super) fn is_blank(self) -> bool {
        self.c.is_whitespace()
    }

    /// The colour behind it.
    pub(super) fn background(self) -> Option<u32> {
        self.background
    }
}

/// One row, without the blanks at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) cells: Vec<Cell>,
    last: Option<Colour>,
}

impl Row {
    pub(super) fn is_blank(&self) -> bool {
        self.cells.iter().all(|cell| cell.is_blank())
    }

    /// The colour behind its first cell; a row without cells has the colour that was set in it.
    pub(super) fn background(&self) -> Option<Colour> {
        self.cells.first().map_or(self.last, |cell| cell.background)
    }

    pub(super) fn text(&self) -> String {
        let text: String = self.cells.iter().map(|cell| cell.c).collect();
        text.trim_end().to_owned()
    }
}

#[derive(Clone, Copy, Default)]
struct Style {
    dim: bool,
    inverse: bool,
    foreground: Option<Colour>,
    background: Option<Colour>,
}

impl Style {
    fn cell(self, c: char) -> Cell {
        let faint = self.dim || self.foreground.is_some_and(is_grey);
        Cell { c, faint, inverse: self.inverse, background: self.background }
    }

    /// Takes the numbers of one "select graphic rendition".
    fn select(&mut self, numbers: &str) {
        // `4:3` is a kind of underline: only the first number counts.
        let mut numbers =
            numbers.split(';').map(|n| n.split(':').next().unwrap_or_default().parse::<u32>().unwrap_or(0));
        while let Some(number) = numbers.next() {
            match number {
                0 => *self = Self::default(),
                2 => self.dim = true,
                22 => self.dim = false,
                7 => self.inverse = true,
                27 => self.inverse = false,
                30..=37 => self.foreground = Some(number - 30),
                39 => self.foreground = None,
                40..=47 => self.background = Some(number - 40),
                49 => self.background = None,
                90..=97 => self.foreground = Some(number - 82),
                100..=107 => self.background = Some(number - 92),
                38 => self.foreground = colour(&mut numbers),
                48 => self.background = colour(&mut numbers),
                58 => drop(colour(&mut numbers)),
                _ => {}
            }
        }
    }
}

fn colour(numbers: &mut impl Iterator<Item = u32>) -> Option<Colour> {
    match numbers.next()? {
        5 => numbers.next(),
        2 => {
            let (red, green, blue) = (numbers.next()?, numbers.next()?, numbers.next()?);
            Some(TRUE_COLOUR | (red & 255) << 16 | (green & 255) << 8 | (blue & 255))
        }
        _ => None,
    }
}

/// Whether a colour is a grey that is neither black nor nearly white.
fn is_grey(colour: Colour) -> bool {
    const CUBE: [u32; 6] = [0, 95, 135, 175, 215, 255];
    let cube = |n: u32| CUBE[(n % 6) as usize];
    let (red, green, blue) = match colour {
        8 => return true,
        16..=231 => (cube((colour - 16) / 36), cube((colour - 16) / 6), cube(colour - 16)),
        232..=255 => (8 + (colour - 232) * 10, 8 + (colour - 232) * 10, 8 + (colour - 232) * 10),
        TRUE_COLOUR.. => (colour >> 16 & 255, colour >> 8 & 255, colour & 255),
        _ => return false,
    };
    let (most, least) = (red.max(green).max(blue), red.min(green).min(blue));
    most - least <= 24 && (40..=190).contains(&most)
}

/// Reads what `capture-pane -e` prints.
pub(super) fn read(text: &str) -> Vec<Row> {
    let mut style = Style::default();
    let mut drawing = false;
    let mut rows = Vec::new();
    for line in text.lines() {
        let mut row = Row::default();
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            match c {
                '\x0e' => drawing = true,
                '\x0f' => drawing = false,
                '\x1b' => match chars.next() {
                    Some('[') => {
                        let rest = chars.as_str();
                        let end = rest.find(|c| ('@'..='~').contains(&c)).unwrap_or(rest.len());
                        if rest[end..].starts_with('m') {
                            style.select(&rest[..end]);
                        }
                        chars = rest.get(end + 1..).unwrap_or_default().chars();
                    }
                    // A link: up to its end, which is a bell or ESC \.
                    Some(']') => {
                        let rest = chars.as_str();
                        let end = rest.find(['\x07', '\x1b']).unwrap_or(rest.len());
                        let skip = if rest[end..].starts_with('\x1b') { 2 } else { 1 };
                        chars = rest.get(end + skip..).unwrap_or_default().chars();
                    }
                    _ => {}
                },
                // Line drawing characters of old: all that matters is that they are lines.
                'q' | 'j'..='n' | 't'..='w' if drawing => row.cells.push(style.cell('─')),
                'x' if drawing => row.cells.push(style.cell('│')),
                c => row.cells.push(style.cell(c)),
            }
        }
        while row.cells.last().is_some_and(|cell| cell.c == ' ') {
            row.cells.pop();
        }
        // A row of shaded blanks keeps its colour.
        row.last = style.background;
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_read() {
        let rows = read(
            "\x1b[48;5;240m\n\x1b[38;5;183m> \x1b[7m\x1b[39mT\x1b[0m\x1b[38;5;248mype\x1b[39m\nx\x1b[2my",
        );
        assert_eq!(rows[0].background(), Some(240));
        assert_eq!(rows[1].text(), "> Type");
        let faint: Vec<bool> = rows[1].cells.iter().map(|cell| cell.faint).collect();
        assert_eq!(faint, [false, false, false, true, true, true]);
        assert!(rows[1].cells[2].inverse && rows[1].background() == Some(240));
        assert!(!rows[2].cells[0].faint && rows[2].cells[1].faint);
    }
}
