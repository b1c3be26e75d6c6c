//! Gathers lines into bounded batches: a flood becomes a head, a tail, and a note of what is missing between
//! them.
//!
//! It is pure, like the rest of this crate: the caller feeds bytes as they come, and takes a batch when its
//! clock says so. Below the bound, the batches together are exactly the lines of the output, whatever pieces
//! they came in.

use std::collections::VecDeque;

use crate::line_stream::{CUT_MARK, LineStream};
use crate::plain::plain;

/// The lines at the start of a batch may fill one part in this many; the lines at its end get the rest.
const HEAD_DIVISOR: usize = 4;
/// A long line is cut to an even share of the batch, but never to less than one part in this many.
const MIN_SHARE_DIVISOR: usize = 128;

/// A line, and where it is in the log, line end included.
#[derive(Debug)]
struct Line {
    text: String,
    from: u64,
    to: u64,
}

/// What a batch leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// How many lines, as far as they were counted: skipped bytes are not.
    pub lines: u64,
    /// The first byte that is left out.
    pub from: u64,
    /// Just after the last one.
    pub to: u64,
}

/// Lines that are sent together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineBatch {
    /// The lines, joined by line feeds; if some are missing, those before the gap.
    pub head: String,
    /// The lines after the gap.
    pub tail: String,
    /// What is missing.
    pub left_out: Option<LeftOut>,
    /// How many lines the batch has.
    pub lines: u64,
    /// Where its first line begins in the log.
    pub from: u64,
    /// Where its last line ends.
    pub to: u64,
}

impl LineBatch {
    /// The whole batch as text. `mark` words what is missing.
    #[must_use]
    pub fn text(&self, mark: impl FnOnce(LeftOut) -> String) -> String {
        let Some(left_out) = self.left_out else { return self.head.clone() };
        let parts = [self.head.as_str(), &mark(left_out), &self.tail];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

/// Gathers lines of one stream of output.
#[derive(Debug)]
pub struct LineBatches {
    stream: LineStream,
    /// Where the next byte is in the log.
    at: u64,
    /// Where the unfinished line began.
    line_from: u64,
    /// After a gap: the rest of a line whose start was skipped does not count as a line.
    in_torn_line: bool,
    max_bytes: usize,
    head: Vec<Line>,
    head_bytes: usize,
    tail: VecDeque<Line>,
    tail_bytes: usize,
    /// No line of the tail is longer than this. It saves a scan of all of them for each new line.
    tail_longest: usize,
    left_out: Option<LeftOut>,
}

impl LineBatches {
    /// Starts at an offset. A batch holds about `max_bytes` of text, and always at least one line.
    #[must_use]
    pub fn new(offset: u64, max_bytes: usize) -> Self {
        Self {
            stream: LineStream::new(),
            at: offset,
            line_from: offset,
            in_torn_line: false,
            max_bytes,
            head: Vec::new(),
            head_bytes: 0,
            tail: VecDeque::new(),
            tail_bytes: 0,
            tail_longest: 0,
            left_out: None,
        }
    }

    /// Where the next byte is expected.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// Takes the bytes that come next.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        let mut lines = Vec::with_capacity(1);
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end + 1);
            self.at += line.len() as u64;
            self.stream.feed(line, &mut lines);
            for text in lines.drain(..) {
                self.add(&text);
            }
            self.line_from = self.at;
            self.in_torn_line = false;
            bytes = rest;
        }
        self.at += bytes.len() as u64;
        if self.in_torn_line {
            self.miss(self.at - bytes.len() as u64, self.at);
        } else {
            self.stream.feed(bytes, &mut lines);
        }
    }

    /// Skips to an offset: what lies before it is lost, or too much to read.
    pub fn skip_to(&mut self, offset: u64) {
        if offset <= self.at {
            return;
        }
        self.miss(self.line_from, offset);
        self.stream = LineStream::new();
        (self.at, self.line_from) = (offset, offset);
        self.in_torn_line = true;
    }

    /// The end of output: an unfinished line counts as one.
    pub fn finish(&mut self) {
        let mut lines = Vec::new();
        self.stream.finish(&mut lines);
        for text in lines {
            self.add(&text);
        }
        self.line_from = self.at;
    }

    /// Whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.tail.is_empty() && self.left_out.is_none()
    }

    /// What was gathered. It stays until [`clear`](Self::clear).
    #[must_use]
    pub fn batch(&self) -> LineBatch {
        let joined = |lines: Vec<&Line>| {
            lines.into_iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n")
        };
        let (mut head, mut tail) =
            (self.head.iter().collect::<Vec<_>>(), self.tail.iter().collect::<Vec<_>>());
        if self.left_out.is_none() {
            head.append(&mut tail);
        }
        let gap = self.left_out.map(|left_out| (left_out.from, left_out.to));
        let starts = self.head.first().or(self.tail.front()).map(|line| line.from);
        let ends = self.tail.back().or(self.head.last()).map(|line| line.to);
        LineBatch {
            lines: (head.len() + tail.len()) as u64,
            from: starts.into_iter().chain(gap.map(|gap| gap.0)).min().unwrap_or(self.at),
            to: ends.into_iter().chain(gap.map(|gap| gap.1)).max().unwrap_or(self.at),
            head: joined(head),
            tail: joined(tail),
            left_out: self.left_out,
        }
    }

    /// The batch has been sent.
    pub fn clear(&mut self) {
        self.head.clear();
        self.tail.clear();
        (self.head_bytes, self.tail_bytes, self.tail_longest, self.left_out) = (0, 0, 0, None);
    }

    fn add(&mut self, text: &str) {
        if self.in_torn_line {
            return self.miss(self.line_from, self.at);
        }
        let line = Line { text: plain(text), from: self.line_from, to: self.at };
        let size = line.text.len() + 1;
        if self.left_out.is_none()
            && self.tail.is_empty()
            && self.head_bytes + size <= self.max_bytes / HEAD_DIVISOR
        {
            self.head_bytes += size;
            self.head.push(line);
            return;
        }
        self.tail_bytes += size;
        self.tail_longest = self.tail_longest.max(line.text.len());
        self.tail.push_back(line);
        self.keep_bound();
    }

    /// Brings the tail back within its bound. Long lines are cut before short ones are left out.
    fn keep_bound(&mut self) {
        let max_tail = self.max_bytes - self.max_bytes / HEAD_DIVISOR;
        if self.tail_bytes <= max_tail || self.tail.len() == 1 {
            return;
        }
        let share = (max_tail / self.tail.len())
            .saturating_sub(1)
            .max(max_tail / MIN_SHARE_DIVISOR)
            .max(2 * CUT_MARK.len());
        if self.tail_longest > share {
            self.tail_longest = share;
            for line in self.tail.iter_mut().filter(|line| line.text.len() > share) {
                let before = line.text.len();
                line.text.truncate(line.text.floor_char_boundary(share - CUT_MARK.len()));
                line.text.push_str(CUT_MARK);
                self.tail_bytes -= before - line.text.len();
            }
        }
        while self.tail_bytes > max_tail && self.tail.len() > 1 {
            if let Some(old) = self.tail.pop_front() {
                self.tail_bytes -= old.text.len() + 1;
                self.leave_out(LeftOut { lines: 1, from: old.from, to: old.to });
            }
        }
    }

    /// Bytes are missing. Everything gathered after the head is dropped with them, so that there is only one
    /// gap.
    fn miss(&mut self, from: u64, to: u64) {
        let lines = self.tail.len() as u64;
        let from = self.tail.front().map_or(from, |line| line.from);
        self.tail.clear();
        (self.tail_bytes, self.tail_longest) = (0, 0);
        self.leave_out(LeftOut { lines, from, to });
    }

    fn leave_out(&mut self, more: LeftOut) {
        let known = self.left_out.unwrap_or(LeftOut { lines: 0, ..more });
        self.left_out =
            Some(LeftOut { lines: known.lines + more.lines, from: known.from.min(more.from), to: more.to });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The lines of all batches, when one is taken after each piece that `take` says.
    fn gathered(pieces: &[&[u8]], take: impl Fn(usize) -> bool) -> Vec<String> {
        let mut batches = LineBatches::new(0, 1 << 20);
        let mut lines = Vec::new();
        let mut collect = |batches: &mut LineBatches| {
            if !batches.is_empty() {
                let batch = batches.batch();
                assert_eq!(batch.left_out, None);
                lines.extend(batch.head.split('\n').map(ToOwned::to_owned));
                batches.clear();
            }
        };
        for (i, piece) in pieces.iter().enumerate() {
            batches.feed(piece);
            if take(i) {
                collect(&mut batches);
            }
        }
        batches.finish();
        collect(&mut batches);
        lines
    }

    #[test]
    fn a_flood_becomes_a_head_a_tail_and_what_is_missing() {
        let mut batches = LineBatches::new(0, 1000);
        let output: String = (0..10_000).map(|i| format!("line {i}\r\n")).collect();
        batches.feed(output.as_bytes());
        let batch = batches.batch();
        let left_out = batch.left_out.unwrap();
        assert!(batch.head.starts_with("line 0\nline 1\n") && batch.tail.ends_with("\nline 9999"));
        assert!(batch.head.len() + batch.tail.len() <= 1000);
        assert_eq!(batch.lines + left_out.lines, 10_000);
        assert_eq!((batch.from, batch.to), (0, output.len() as u64));
        // The gap is exactly what lies between the two.
        let at = |offset: u64| usize::try_from(offset).unwrap();
        let missing = &output[at(left_out.from)..at(left_out.to)];
        assert_eq!(
            format!("{}\n{}{}\n", batch.head, missing.replace('\r', ""), batch.tail),
            output.replace('\r', "")
        );
        batches.clear();
        batches.feed(b"after\n");
        assert_eq!(batches.batch().text(|_| String::new()), "after");
    }

    #[test]
    fn a_long_line_is_cut_and_marked_whatever_comes_with_it() {
        for long in ["x".repeat(5000), "🙂".repeat(2000)] {
            let mut batches = LineBatches::new(0, 1000);
            batches.feed(format!("first\n{long}\r\n{long}\nlast\n").as_bytes());
            let batch = batches.batch();
            assert_eq!((batch.left_out, batch.lines), (None, 4), "{batch:?}");
            let lines: Vec<&str> = batch.head.split('\n').collect();
            assert_eq!((lines[0], lines[3]), ("first", "last"));
            for cut in &lines[1..3] {
                let text = cut.strip_suffix(CUT_MARK).unwrap();
                assert!(text.len() > 100 && long.starts_with(text), "{cut}");
            }
            assert!(batch.head.len() <= 1000);
        }
    }

    #[test]
    fn a_flood_of_short_lines_does_not_scan_all_of_them_for_each() {
        let mut batches = LineBatches::new(0, 256 << 10);
        batches.feed("y\n".repeat(500_000).as_bytes());
        let batch = batches.batch();
        assert_eq!(batch.lines, 128 << 10);
        assert_eq!(batch.left_out.map(|left_out| left_out.lines), Some(500_000 - (128 << 10)));
        // A long line is still cut before many short ones are left out.
        batches.feed(format!("{}\n", "x".repeat(50_000)).as_bytes());
        let last = batches.batch().tail;
        let last = last.rsplit('\n').next().unwrap();
        assert!(last.ends_with(CUT_MARK) && last.len() < 2000, "{}", last.len());
    }

    #[test]
    fn skipped_bytes_are_reported_with_the_torn_line() {
        let mut batches = LineBatches::new(10, 1000);
        batches.feed(b"one\ntw");
        batches.skip_to(500);
        batches.feed(b"rn end\nthree\n");
        let batch = batches.batch();
        assert_eq!(batch.left_out, Some(LeftOut { lines: 0, from: 14, to: 507 }));
        assert_eq!(batch.text(|gap| format!("[{} bytes]", gap.to - gap.from)), "one\n[493 bytes]\nthree");
        assert_eq!((batch.from, batch.to), (10, 513));
    }

    proptest! {
        #[test]
        fn any_pieces_and_batches_give_the_same_lines(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(0x1b), any::<u8>()], 0..300),
            step in 1usize..20, every in 1usize..5,
        ) {
            let whole = gathered(&[&bytes], |_| false);
            let pieces: Vec<&[u8]> = bytes.chunks(step).collect();
            prop_assert_eq!(gathered(&pieces, |i| i % every == 0), whole);
        }

        #[test]
        fn a_batch_keeps_its_bound_and_covers_every_byte(
            lines in proptest::collection::vec(0usize..200, 1..200), step in 1usize..2000, most in 64usize..2000,
        ) {
            let output: String = lines.iter().map(|length| format!("{}\n", "x".repeat(*length))).collect();
            let mut batches = LineBatches::new(0, most);
            for piece in output.as_bytes().chunks(step) {
                batches.feed(piece);
            }
            let batch = batches.batch();
            prop_assert!(batch.head.len() + batch.tail.len() <= most.max(most / 4 + 200));
            prop_assert_eq!((batch.from, batch.to), (0, output.len() as u64));
            prop_assert_eq!(batch.lines + batch.left_out.map_or(0, |gap| gap.lines), lines.len() as u64);
        }
    }
}
