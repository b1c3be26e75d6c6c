//! Filters a job's raw output on its way to a person's real terminal.
//!
//! Text, colours and drawing pass. Everything that could make the terminal answer, open, copy, rename, print
//! or store something is dropped: strings of any kind, queries, window operations, key reports. What passes
//! is built anew from what was parsed; bytes that were not understood are never copied.

use crate::scan::{Csi, Scanner, Sink};

/// The filter. It may be fed in any pieces.
#[derive(Debug)]
pub struct Passthrough {
    scanner: Scanner,
    addressed_rows: bool,
}

impl Default for Passthrough {
    fn default() -> Self {
        Self::new()
    }
}

impl Passthrough {
    /// A filter at the start of output, or at a [`repaint`](crate::Pipeline::repaint).
    #[must_use]
    pub fn new() -> Self {
        Self { scanner: Scanner::new(), addressed_rows: false }
    }

    /// Whether anything that passed has moved the cursor to an absolute row. From then on the cursor is in
    /// the same row of the person's terminal and of the program's.
    #[must_use]
    pub fn has_addressed_rows(&self) -> bool {
        self.addressed_rows
    }

    /// Appends to `safe` the part of `bytes` that may pass.
    pub fn pass(&mut self, bytes: &[u8], safe: &mut Vec<u8>) {
        self.scanner.scan(bytes, 0, &mut Safe { safe, addressed_rows: &mut self.addressed_rows });
    }
}

struct Safe<'a> {
    safe: &'a mut Vec<u8>,
    addressed_rows: &'a mut bool,
}

/// Private modes that affect drawing, or how the person's terminal sends keys.
const MODES: [u16; 18] =
    [1, 3, 5, 6, 7, 12, 25, 47, 1000, 1002, 1003, 1004, 1006, 1007, 1047, 1049, 2004, 2026];

impl Sink for Safe<'_> {
    fn text(&mut self, text: &str, _end: u64) {
        self.safe.extend_from_slice(text.as_bytes());
    }

    fn control(&mut self, byte: u8, _end: u64) {
        // SO and SI select line drawing. ENQ and the rest could make a terminal answer.
        if matches!(byte, 0x07..=0x0f) {
            self.safe.push(byte);
        }
    }

    fn csi(&mut self, csi: &Csi<'_>, _end: u64) {
        if csi.is_sgr() {
            return self.write(csi.body, csi.last);
        }
        let Some(params) = csi.params() else { return };
        *self.addressed_rows |=
            matches!((params.prefix, params.intermediate, csi.last), (0, 0, b'H' | b'f' | b'd' | b'r'));
        match (params.prefix, params.intermediate, csi.last) {
            (
                0,
                0,
                b'@'..=b'M'
                | b'P'
                | b'S'
                | b'T'
                | b'X'
                | b'Z'
                | b'`'
                | b'a'
                | b'b'
                | b'd'..=b'h'
                | b'l'
                | b'r'
                | b's'
                | b'u',
            )
            | (0, b' ', b'q')
            | (0, b'!', b'p') => self.write(csi.body, csi.last),
            (b'?', 0, b'J' | b'K') => self.write(csi.body, csi.last),
            (b'?', 0, b'h' | b'l') => {
                for number in params.values().iter().filter(|number| MODES.contains(number)) {
                    self.write(format!("?{number}").as_bytes(), csi.last);
                }
            }
            _ => {}
        }
    }

    fn escape(&mut self, intermediates: &[u8], last: u8, _end: u64) {
        let passes = match intermediates {
            [] => matches!(last, b'7' | b'8' | b'D' | b'E' | b'H' | b'M' | b'c' | b'=' | b'>'),
            [b'(' | b')' | b'*' | b'+'] => matches!(last, b'0' | b'A' | b'B'),
            b"#" => last == b'8',
            _ => false,
        };
        if passes {
            // A reset sends the cursor home.
            *self.addressed_rows |= intermediates.is_empty() && last == b'c';
            self.safe.push(0x1b);
            self.safe.extend_from_slice(intermediates);
            self.safe.push(last);
        }
    }

    fn osc(&mut self, _body: &[u8], _ended_by_bell: bool, _end: u64) {}

    fn dcs(&mut self, _body: &[u8], _end: u64) {}
}

impl Safe<'_> {
    fn write(&mut self, body: &[u8], last: u8) {
        self.safe.extend_from_slice(b"\x1b[");
        self.safe.extend_from_slice(body);
        self.safe.push(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn passed(chunks: &[&[u8]]) -> Vec<u8> {
        let mut filter = Passthrough::new();
        let mut safe = Vec::new();
        for chunk in chunks {
            filter.pass(chunk, &mut safe);
        }
        safe
    }

    #[test]
    fn text_colour_and_drawing_pass() {
        let bytes = b"a\x1b[1;31mred\x1b[0m\r\n\x08\t\x07\x1b[2J\x1b[3;4H\x1b[K\
            \x1b[?25l\x1b[?1049h\x1b7\x1b8\x1b(0\x1b[1;5r";
        assert_eq!(passed(&[bytes]), bytes);
    }

    #[test]
    fn what_does_more_than_draw_is_dropped() {
        for bytes in [
            &b"\x1b]52;c;cm0=\x07"[..],
            b"\x1b]0;title\x1b\\",
            b"\x1b]8;;http://x\x07",
            b"\x1bPq#0\x1b\\",
            b"\x1b_Gf=100;\x1b\\",
            b"\x1b^x\x1b\\",
            b"\x1bXsos\x1b\\",
            b"\x1b[c\x1b[>c\x1b[=c\x1b[5n\x1b[6n\x1b[?6n\x1b[?2004$p\x1b[>q\x1b[?u\x1b[>1u\x1b[>4;2m",
            b"\x1b[21t\x1b[8;1;1t\x1b[3;0;0t\x1b[5i\x1b[x\x1b[?1;1;0S",
            b"\x05\x00\xc2\x9b6n\x1bZ\x1b[?2031h",
        ] {
            let left = passed(&[bytes]);
            let text = String::from_utf8_lossy(&left).into_owned();
            assert!(!left.contains(&0x1b), "{bytes:?} left {text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_cut_passes_the_same_bytes_and_no_string_or_query(
            bytes in proptest::collection::vec(prop_oneof![Just(0x1b), Just(b'['), Just(b']'), Just(b'P'), any::<u8>()], 0..200),
            step in 1usize..20,
        ) {
            let whole = passed(&[&bytes]);
            prop_assert_eq!(passed(&bytes.chunks(step).collect::<Vec<_>>()), whole.clone());
            for pair in whole.windows(2).filter(|pair| pair[0] == 0x1b) {
                prop_assert!(b"[78DEHMc=>()*+#".contains(&pair[1]), "{:?}", pair);
            }
        }
    }
}
