//! Finds runs of plain lines. Nearly all output is plain lines, and they need no look at each character.

use super::find_control;

/// Complete lines with nothing in them but printable characters and tabs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    /// The bytes of all lines, line ends included.
    pub(crate) len: usize,
    /// The number of lines.
    pub(crate) count: usize,
}

/// The plain lines that `bytes` begins with. A line ends in CR LF. A bare line feed is enough where a line
/// feed also `returns` the carriage, or where the line is empty.
pub(crate) fn plain_lines(bytes: &[u8], returns: bool) -> Lines {
    let len = memchr::memrchr(b'\n', bytes).map_or(0, |last| last + 1);
    let plain = if returns { are_plain::<true>(&bytes[..len]) } else { are_plain::<false>(&bytes[..len]) };
    if plain {
        return Lines { len, count: memchr::memchr_iter(b'\n', &bytes[..len]).count() };
    }
    one_by_one(bytes, returns)
}

/// Whether these are ASCII lines and all of them are plain, as nearly all lines are. The loop treats every
/// byte and its successor alike and has no early exit, so that the compiler can vectorise it. Lines that fail
/// this test may still be plain: [`one_by_one`] checks those.
fn are_plain<const RETURNS: bool>(lines: &[u8]) -> bool {
    let odd = |byte: u8, next: u8| {
        let control = (byte < 0x20) & (byte != b'\t') & (byte != b'\r') & (byte != b'\n');
        let no_end = (byte == b'\r') & (next != b'\n') | !RETURNS & (byte != b'\r') & (next == b'\n');
        control | no_end | (byte >= 0x7f)
    };
    let pairs = lines.iter().zip(lines.get(1..).unwrap_or_default());
    pairs.fold(0, |any, (byte, next)| any | u8::from(odd(*byte, *next))) == 0
}

fn one_by_one(bytes: &[u8], returns: bool) -> Lines {
    let mut lines = Lines::default();
    let mut at = 0;
    let mut ascii = true;
    loop {
        let (length, is_ascii) = find_control(&bytes[at..]);
        at += length;
        ascii &= is_ascii;
        let text = &bytes[lines.len..at];
        let end = match bytes.get(at) {
            Some(b'\t') => {
                at += 1;
                continue;
            }
            Some(b'\n') if returns || text.is_empty() => at + 1,
            Some(b'\r') if bytes.get(at + 1) == Some(&b'\n') => at + 2,
            _ => return lines,
        };
        if !ascii && !is_text(text) {
            return lines;
        }
        lines.len = end;
        lines.count += 1;
        at = end;
        ascii = true;
    }
}

/// Appends plain lines, each with another line end.
pub(crate) fn push_lines(lines: &[u8], end: &[u8], into: &mut Vec<u8>) {
    if end == b"\n" && memchr::memchr(b'\r', lines).is_none() {
        return into.extend_from_slice(lines);
    }
    into.reserve(lines.len() + lines.len() / 16);
    let mut start = 0;
    for feed in memchr::memchr_iter(b'\n', lines) {
        let line = &lines[start..feed];
        into.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
        into.extend_from_slice(end);
        start = feed + 1;
    }
}

/// Whether this is UTF-8 without C1 controls.
fn is_text(bytes: &[u8]) -> bool {
    let c1 = |at: usize| bytes.get(at + 1).is_some_and(|byte| *byte < 0xa0);
    std::str::from_utf8(bytes).is_ok() && !memchr::memchr_iter(0xc2, bytes).any(c1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn many_at_once_are_the_same_as_one_by_one(
            pieces in proptest::collection::vec("[a-c]{0,40}|\r\n|\n|\r|\t|\x1b|\x7f|é", 0..12),
            returns in any::<bool>(),
        ) {
            let bytes = pieces.concat().into_bytes();
            prop_assert_eq!(plain_lines(&bytes, returns), one_by_one(&bytes, returns));
        }

        #[test]
        fn so_are_mostly_plain_ones(
            lines in proptest::collection::vec("[ -~]{0,40}", 0..12),
            (end, returns) in prop_oneof![Just(("\r\n", false)), Just(("\n", true)), Just(("\r\n", true))],
        ) {
            let bytes = lines.join(end).into_bytes();
            prop_assert_eq!(plain_lines(&bytes, returns), one_by_one(&bytes, returns));
        }
    }

    #[test]
    fn whole_lines_of_text_are_counted_up_to_the_first_that_is_not() {
        let lines = |bytes: &[u8], returns| {
            let lines = plain_lines(bytes, returns);
            (lines.len, lines.count)
        };
        assert_eq!(lines(b"one\r\ntw\to\r\nthree", false), (11, 2));
        assert_eq!(lines(b"one\ntwo\r\nthree\r", true), (9, 2));
        assert_eq!(lines(b"one\n", false), (0, 0), "the cursor stays in its column");
        assert_eq!(lines(b"\n\nx\n", false), (2, 2));
        assert_eq!(lines("é – 🙂\r\n\x1b[1mx\r\n".as_bytes(), false), (13, 1));
        assert_eq!(lines(b"a\r\n\xc2\x85\r\n", false), (3, 1), "a C1 control");
        assert_eq!(lines(b"a\r\n\xff\r\n", false), (3, 1), "no UTF-8");
        assert_eq!(lines(b"10%\r20%\r\n", false), (0, 0));
        assert_eq!(lines(b"", true), (0, 0));
    }
}
