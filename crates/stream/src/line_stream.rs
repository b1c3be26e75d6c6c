//! Output as a stream of lines for a client that wants each one once, as it comes.
//!
//! Unlike the transcript this never looks back: a line is sent when it ends. LF and CRLF end a line; a carriage return
//! alone belongs to a redraw and stays in it. A line is at most 64 KiB: what is longer is cut at a character and
//! marked, and its rest is dropped. When to send lines together is the caller's business, which has the clock.

/// Longest line that is sent.
pub const MAX_LINE_BYTES: usize = 64 * 1024;
/// What is put at the end of a line that was cut.
pub const CUT_MARK: &str = "… [line cut]";

/// Collects lines across pieces of output.
#[derive(Debug, Default)]
pub struct LineStream {
    partial: Vec<u8>,
    /// The line is full: what comes until its end is dropped.
    cut: bool,
    /// The last byte was a carriage return that may belong to a line end.
    returned: bool,
}

impl LineStream {
    /// A stream at its start.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes output; finished lines, without their ends, are added to `lines`.
    pub fn feed(&mut self, bytes: &[u8], lines: &mut Vec<String>) {
        let mut rest = bytes;
        while let Some(at) = memchr::memchr(b'\n', rest) {
            self.add(&rest[..at]);
            self.returned = false;
            lines.push(self.take());
            rest = &rest[at + 1..];
        }
        self.add(rest);
    }

    /// The end of output: an unfinished line counts as one.
    pub fn finish(&mut self, lines: &mut Vec<String>) {
        self.keep_return();
        if !self.partial.is_empty() || self.cut {
            lines.push(self.take());
        }
    }

    /// How many bytes of an unfinished line are held.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.partial.len() + usize::from(self.returned)
    }

    fn add(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.keep_return();
        let body = match bytes.split_last() {
            Some((b'\r', body)) => {
                self.returned = true;
                body
            }
            _ => bytes,
        };
        self.push(body);
    }

    /// A carriage return that no line feed followed is part of the line.
    fn keep_return(&mut self) {
        if std::mem::take(&mut self.returned) {
            self.push(b"\r");
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.cut {
            return;
        }
        let room = MAX_LINE_BYTES - self.partial.len();
        if bytes.len() <= room {
            self.partial.extend_from_slice(bytes);
            return;
        }
        self.cut = true;
        self.partial.extend_from_slice(&bytes[..room]);
        // The last character may be cut in two: leave it out. Bytes that are no character at all stay.
        for back in 1..=3.min(self.partial.len()) {
            let at = self.partial.len() - back;
            let needed = match self.partial[at] {
                0x80..=0xbf => continue,
                0xc0..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0.. => 4,
                _ => 1,
            };
            if needed > back {
                self.partial.truncate(at);
            }
            break;
        }
    }

    fn take(&mut self) -> String {
        let mut line = String::from_utf8_lossy(&self.partial).into_owned();
        if std::mem::take(&mut self.cut) {
            line.push_str(CUT_MARK);
        }
        self.partial.clear();
        if self.partial.capacity() > MAX_LINE_BYTES / 2 {
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
            ["a", "b", "10%\r20%", "c\rd\r", "last\r"]
        );
    }

    #[test]
    fn a_line_too_long_is_cut_at_a_character_and_its_rest_dropped() {
        let long = format!("x{}\r\nnext\n", "漢".repeat(50_000));
        let found = lines(&[long.as_bytes()]);
        assert_eq!(found.len(), 2);
        assert!(found[0].len() <= MAX_LINE_BYTES + CUT_MARK.len() && !found[0].contains('\u{FFFD}'));
        assert!(found[0].ends_with(CUT_MARK));
        assert_eq!(found[1], "next");
    }

    proptest! {
        #[test]
        fn every_way_of_cutting_gives_the_same_lines(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), any::<u8>()], 0..200), step in 1usize..10,
        ) {
            let whole = lines(&[&bytes]);
            prop_assert_eq!(lines(&bytes.chunks(step).collect::<Vec<_>>()), whole);
        }
    }
}
