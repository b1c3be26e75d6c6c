//! Output as a stream of lines for a client that wants each one once, as it comes.
//!
//! Unlike the transcript, this never looks back: a line is sent when it ends. A line feed ends a line,
//! together with all carriage returns right before it: a terminal turns a program's CR LF into CR CR LF. Any
//! other carriage return is part of a redraw and stays. A line has at most 65,536 characters: a longer one is
//! cut and marked, and the rest of it is dropped. The caller, which has the clock, decides when to send lines
//! together.

/// The most characters (code points, not bytes) of a line.
pub const MAX_LINE_CHARS: usize = 64 * 1024;
/// Appended to a line that was cut.
pub const CUT_MARK: &str = "… [line cut]";

/// Collects lines from pieces of output.
#[derive(Debug, Default)]
pub struct LineStream {
    partial: Vec<u8>,
    /// How many characters start in `partial`. A byte that is not part of a character counts as one.
    chars: usize,
    /// The line is full: the rest of it is dropped.
    cut: bool,
    /// How many carriage returns came last: they may be part of a line end.
    returns: usize,
}

impl LineStream {
    /// An empty stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes output, and appends finished lines, without their line ends, to `lines`.
    pub fn feed(&mut self, bytes: &[u8], lines: &mut Vec<String>) {
        let mut rest = bytes;
        while let Some(at) = memchr::memchr(b'\n', rest) {
            self.add(&rest[..at]);
            self.returns = 0;
            lines.push(self.take());
            rest = &rest[at + 1..];
        }
        self.add(rest);
    }

    /// The end of output: an unfinished line counts as one.
    pub fn finish(&mut self, lines: &mut Vec<String>) {
        self.keep_returns();
        if !self.partial.is_empty() || self.cut {
            lines.push(self.take());
        }
    }

    /// How many bytes of an unfinished line are held.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.partial.len() + self.returns
    }

    fn add(&mut self, bytes: &[u8]) {
        let body = bytes.len() - bytes.iter().rev().take_while(|byte| **byte == b'\r').count();
        if body > 0 {
            self.keep_returns();
            self.push(&bytes[..body]);
        }
        // A line cannot hold more than this.
        self.returns = (self.returns + bytes.len() - body).min(MAX_LINE_CHARS + 1);
    }

    /// Carriage returns without a line feed after them are part of the line.
    fn keep_returns(&mut self) {
        for _ in 0..std::mem::take(&mut self.returns) {
            self.push(b"\r");
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.cut {
            return;
        }
        for (at, byte) in bytes.iter().enumerate() {
            // A continuation byte does not start a character. A run of nothing else is not text, and is
            // bounded too.
            if byte & 0xc0 == 0x80 && self.partial.len() + at < 4 * MAX_LINE_CHARS {
                continue;
            }
            if self.chars == MAX_LINE_CHARS || self.partial.len() + at >= 4 * MAX_LINE_CHARS {
                self.partial.extend_from_slice(&bytes[..at]);
                self.cut = true;
                return;
            }
            self.chars += 1;
        }
        self.partial.extend_from_slice(bytes);
    }

    fn take(&mut self) -> String {
        let mut line = String::from_utf8_lossy(&self.partial).into_owned();
        if std::mem::take(&mut self.cut) {
            line.push_str(CUT_MARK);
        }
        self.chars = 0;
        self.partial.clear();
        if self.partial.capacity() > MAX_LINE_CHARS / 2 {
            self.partial = Vec::new();
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(chunks: &[&[u8]]) -> Vec<String> {
        let mut stream = LineStream::new();
        let mut lines = Vec::new();
        for chunk in chunks {
            stream.feed(chunk, &mut lines);
        }
        stream.finish(&mut lines);
        lines
    }

    #[test]
    fn both_line_ends_end_a_line_and_a_lone_return_does_not() {
        assert_eq!(
            lines(&[b"a\r\nb\n10%\r20%\r", b"\nc\r", b"d\r\r\n", b"last\r"]),
            ["a", "b", "10%\r20%", "c\rd", "last\r"]
        );
    }

    #[test]
    fn a_line_too_long_is_cut_by_its_characters_and_its_rest_dropped() {
        for character in ["x", "é", "漢", "🙂"] {
            let whole = character.repeat(MAX_LINE_CHARS);
            assert_eq!(lines(&[whole.as_bytes(), b"\r\r\nnext\n"]), [whole.as_str(), "next"]);
            let long = format!("{whole}{character}\r\nnext\n");
            let cut = format!("{whole}{CUT_MARK}");
            assert_eq!(lines(&[long.as_bytes()]), [cut.as_str(), "next"]);
            assert_eq!(lines(&long.as_bytes().chunks(4097).collect::<Vec<_>>()), [cut.as_str(), "next"]);
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_bounded_too() {
        let found = lines(&[&vec![0x80; 1 << 20], b"\n"]);
        assert_eq!(found.len(), 1);
        assert!(found[0].len() <= 3 * 4 * MAX_LINE_CHARS + CUT_MARK.len() && found[0].ends_with(CUT_MARK));
    }

    proptest! {
        #[test]
        fn every_cut_gives_the_same_lines(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), any::<u8>()], 0..200), step in 1usize..10,
        ) {
            let whole = lines(&[&bytes]);
            prop_assert_eq!(lines(&bytes.chunks(step).collect::<Vec<_>>()), whole);
        }
    }
}
