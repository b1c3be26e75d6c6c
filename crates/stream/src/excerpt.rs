//! Long text cut to what fits an answer: its beginning, its end, and one line that says what is missing.
//!
//! A quarter goes to the beginning (what was run, what it said first), the rest to the end (how it came out). Cuts are
//! made at line borders where a line is near, else at characters.

use std::ops::Range;

/// A text cut to size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt<'a> {
    /// The beginning.
    pub head: &'a str,
    /// The end; empty if nothing is missing.
    pub tail: &'a str,
    /// How many bytes are missing between them.
    pub omitted_bytes: usize,
    /// Head, marker line and tail; the text itself if nothing is missing.
    pub text: String,
}

/// How far back (or on) from the ideal cut a line border may be.
const REACH: usize = 4;

/// Cuts `text` to `max_bytes`, the marker line included. `marker` is given the range of bytes that are missing, and says
/// so in one line.
pub fn excerpt(text: &str, max_bytes: usize, marker: impl Fn(Range<usize>) -> String) -> Excerpt<'_> {
    if text.len() <= max_bytes {
        return Excerpt { head: text, tail: "", omitted_bytes: 0, text: text.to_owned() };
    }
    // The numbers in the real marker are never longer than these; where it begins may need a few digits more.
    let digits = text.len().to_string().len();
    let room = max_bytes.saturating_sub(marker(0..text.len()).len() + digits + 2);
    let head = &text[..cut_before(text, room / 4)];
    let tail_start = cut_after(text, text.len() - (room - head.len()));
    let missing = head.len()..tail_start.max(head.len());
    let tail = &text[missing.end..];
    let line = marker(missing.clone());
    let mut whole = String::with_capacity(max_bytes);
    whole.push_str(head);
    if !head.is_empty() && !head.ends_with('\n') {
        whole.push('\n');
    }
    whole.push_str(line.trim_end_matches('\n'));
    whole.push('\n');
    whole.push_str(tail);
    Excerpt { head, tail, omitted_bytes: missing.len(), text: whole }
}

/// The last good place to cut at or before `at`.
fn cut_before(text: &str, at: usize) -> usize {
    let at = text.floor_char_boundary(at);
    match memchr::memrchr(b'\n', &text.as_bytes()[..at]) {
        Some(line_end) if line_end + 1 >= at - at / REACH => line_end + 1,
        _ => at,
    }
}

/// The first good place to cut at or after `at`.
fn cut_after(text: &str, at: usize) -> usize {
    let at = text.ceil_char_boundary(at);
    let reach = (text.len() - at) / REACH;
    if at > 0 && text.as_bytes()[at - 1] == b'\n' {
        return at;
    }
    match memchr::memchr(b'\n', &text.as_bytes()[at..]) {
        Some(line_end) if line_end < reach => at + line_end + 1,
        _ => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mark(missing: Range<usize>) -> String {
        format!("[… {} bytes missing: read {}..{} …]", missing.len(), missing.start, missing.end)
    }

    #[test]
    fn a_short_text_is_itself() {
        let whole = excerpt("hello\n", 6, mark);
        assert_eq!((whole.text.as_str(), whole.omitted_bytes), ("hello\n", 0));
    }

    #[test]
    fn a_long_text_keeps_whole_lines_at_both_ends() {
        let text: String = (0..1000).map(|n| format!("line {n}\n")).collect();
        let cut = excerpt(&text, 400, mark);
        assert!(cut.text.len() <= 400);
        assert!(cut.head.starts_with("line 0\n") && cut.head.ends_with('\n'));
        assert!(cut.tail.starts_with("line ") && cut.tail.ends_with("line 999\n"));
        assert!(cut.tail.len() > 2 * cut.head.len());
        assert_eq!(cut.text.lines().filter(|line| line.contains("missing")).count(), 1);
    }

    proptest! {
        #[test]
        fn it_always_fits_and_nothing_is_lost_unsaid(text in "(\\PC|\n){0,400}", max in 60usize..600) {
            let cut = excerpt(&text, max, mark);
            prop_assert!(cut.text.len() <= max);
            prop_assert_eq!(cut.head.len() + cut.omitted_bytes + cut.tail.len(), text.len());
            prop_assert!(text.starts_with(cut.head) && text.ends_with(cut.tail));
        }
    }
}
