//! DEC line drawing: programs that draw boxes the old way print letters that stand for line segments.

use std::borrow::Cow;

/// The character sets: which of the two slots is in use, and which of them is line drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Charsets {
    drawing: [bool; 4],
    active: usize,
}

impl Charsets {
    /// `ESC ( 0` and similar: puts the set called `name` into `slot`.
    pub(crate) fn designate(&mut self, slot: usize, name: u8) {
        self.drawing[slot] = name == b'0';
    }

    /// Shift out (1) or in (0).
    pub(crate) fn shift(&mut self, slot: usize) {
        self.active = slot;
    }

    /// What a restored cursor restores: the sets, but not which slot is in use.
    pub(crate) fn restore(&mut self, saved: Self) {
        self.drawing = saved.drawing;
    }

    /// Whether text is shown unchanged.
    pub(crate) fn are_plain(&self) -> bool {
        !self.drawing[self.active]
    }

    /// The slot in use.
    pub(crate) fn active(&self) -> usize {
        self.active
    }

    /// The text as the terminal shows it.
    pub(crate) fn map<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.drawing[self.active] { text.chars().map(line_drawing).collect() } else { Cow::Borrowed(text) }
    }

    /// Sequences that bring a fresh terminal to these sets.
    pub(crate) fn prelude(&self, into: &mut Vec<u8>) {
        for (slot, designator) in b"()*+".iter().enumerate() {
            if self.drawing[slot] {
                into.extend_from_slice(&[0x1b, *designator, b'0']);
            }
        }
        if self.active == 1 {
            into.push(0x0e);
        }
    }
}

fn line_drawing(character: char) -> char {
    const SHOWN: [char; 32] = [
        ' ', '◆', '▒', '\u{2409}', '\u{240c}', '\u{240d}', '\u{240a}', '°', '±', '\u{2424}', '\u{240b}', '┘',
        '┐', '┌', '└', '┼', '⎺', '⎻', '─', '⎼', '⎽', '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
    ];
    match u32::from(character) {
        code @ 0x5f..=0x7e => SHOWN[(code - 0x5f) as usize],
        _ => character,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_drawn_with_letters_reads_as_a_box() {
        let mut sets = Charsets::default();
        sets.designate(0, b'0');
        assert_eq!(sets.map("lqkxmj"), "┌─┐│└┘");
        sets.shift(1);
        assert_eq!(sets.map("lqk"), "lqk");
    }
}
