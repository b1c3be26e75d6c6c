//! Matches patterns in output while it is printed.
//!
//! Patterns see the *print stream*: text in the order in which it is printed, without escape sequences. A
//! line feed ends a line, with or without a carriage return. A carriage return alone, or a cursor move,
//! restarts the line. A backspace removes the last character. A small step to the right counts as blanks.
//!
//! Each pattern reports once per line: when the line ends or restarts, or at a [`peek`](Matchers::peek). So
//! `port (\d+)` reports `8080` and not `8`. No byte goes through the DFA twice, except in a short line after
//! a backspace.

mod matcher;

use crate::pattern::PatternSet;
use matcher::Matcher;

/// How much of the current and previous lines is kept, to report what matched.
const BUFFER_BYTES: usize = 64 * 1024;
/// A line of up to this length is scanned again after a backspace. In a longer one, matching restarts at the
/// cursor.
const MAX_RESCAN_BYTES: usize = 128;
/// Steps to the right of up to this many columns count as blanks. A longer step restarts the line.
const MAX_GAP_COLUMNS: usize = 16;

/// A pattern that matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The id of the watch that matched, as the caller registered it.
    pub watch: u64,
    /// Which pattern of its set.
    pub pattern: usize,
    /// Log offset just after the match's last byte.
    pub offset: u64,
    /// What matched, at most 4 KiB.
    pub text: String,
    /// Groups 1 and up, each at most 4 KiB.
    pub captures: Vec<Option<String>>,
    /// Groups that have a name, where they took part in the match.
    pub names: Vec<(String, String)>,
}

/// A run of bytes in the buffer, and where in the log it came from.
#[derive(Debug, Clone, Copy)]
struct Run {
    at: usize,
    len: usize,
    log_end: u64,
}

/// What was printed lately. Kept only while there are patterns.
#[derive(Debug, Default)]
struct PrintBuffer {
    bytes: Vec<u8>,
    line_start: usize,
    runs: Vec<Run>,
}

/// The last cursor move; what it means depends on what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingMove {
    Nothing,
    Return,
    Back(usize),
}

/// All patterns that are being matched on one job's output.
#[derive(Debug)]
pub(crate) struct Matchers {
    printed: PrintBuffer,
    matchers: Vec<Matcher>,
    pending: PendingMove,
}

impl PrintBuffer {
    fn push(&mut self, text: &[u8], log_end: u64) {
        let run = Run { at: self.bytes.len(), len: text.len(), log_end };
        self.bytes.extend_from_slice(text);
        match self.runs.last_mut() {
            Some(last) if last.at + last.len == run.at && last.log_end + text.len() as u64 == log_end => {
                last.len += text.len();
                last.log_end = log_end;
            }
            _ => self.runs.push(run),
        }
    }

    fn forget(&mut self) {
        self.bytes.clear();
        self.runs.clear();
        self.line_start = 0;
    }

    fn line(&self) -> &[u8] {
        &self.bytes[self.line_start..]
    }

    /// The log offset just after position `end` of the buffer.
    fn log_offset(&self, end: usize) -> u64 {
        let index = self.runs.partition_point(|run| run.at < end);
        match index.checked_sub(1).map(|before| self.runs[before]) {
            Some(run) => run.log_end.saturating_sub((run.at + run.len).saturating_sub(end) as u64),
            None => self.runs.first().map_or(0, |run| run.log_end.saturating_sub(run.len as u64)),
        }
    }

    fn erase_back(&mut self, characters: usize) {
        for _ in 0..characters {
            if self.bytes.len() <= self.line_start {
                break;
            }
            while let Some(byte) = self.bytes.pop() {
                if byte & 0xc0 != 0x80 {
                    break;
                }
            }
        }
        let len = self.bytes.len();
        while let Some(last) = self.runs.last_mut() {
            if last.at < len {
                let cut = (last.at + last.len).saturating_sub(len);
                last.len -= cut;
                last.log_end = last.log_end.saturating_sub(cut as u64);
                break;
            }
            self.runs.pop();
        }
    }

    /// Drops the oldest bytes once the buffer has twice its size. Returns by how much positions moved.
    fn trim(&mut self) -> usize {
        if self.bytes.len() <= 2 * BUFFER_BYTES {
            return 0;
        }
        let mut cut = self.bytes.len() - BUFFER_BYTES;
        while cut < self.bytes.len() && self.bytes[cut] & 0xc0 == 0x80 {
            cut += 1;
        }
        self.bytes.drain(..cut);
        self.line_start = self.line_start.saturating_sub(cut);
        self.runs.retain_mut(|run| {
            let gone = cut.saturating_sub(run.at).min(run.len);
            run.len -= gone;
            run.at = (run.at + gone).saturating_sub(cut);
            run.len > 0
        });
        cut
    }
}

impl Matchers {
    pub(crate) fn new() -> Self {
        Self { printed: PrintBuffer::default(), matchers: Vec::new(), pending: PendingMove::Nothing }
    }

    /// Whether there are no patterns: then nothing here costs anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.matchers.is_empty()
    }

    /// Matches from here on. `unfinished` is the line so far: it cannot match, but `^` does not match after
    /// it.
    pub(crate) fn add(&mut self, id: u64, patterns: PatternSet, unfinished: &str, offset: u64) {
        self.remove(id);
        if self.matchers.is_empty() {
            *self = Self::new();
            self.printed.push(unfinished.as_bytes(), offset);
        }
        let before = self.printed.line().last().copied();
        self.matchers.push(Matcher::new(id, patterns, self.printed.bytes.len(), before));
    }

    pub(crate) fn remove(&mut self, id: u64) {
        self.matchers.retain(|matcher| matcher.id != id);
        if self.matchers.is_empty() {
            self.printed = PrintBuffer::default();
        }
    }

    pub(crate) fn text(&mut self, text: &[u8], log_end: u64, hits: &mut Vec<Hit>) {
        self.take_pending(hits);
        let mut rest = text;
        while !rest.is_empty() {
            // A very long line is cut where the buffer is full, wherever the reads ended.
            let room = (2 * BUFFER_BYTES + 1).saturating_sub(self.printed.bytes.len()).max(1);
            let (piece, after) = rest.split_at(rest.len().min(room));
            self.printed.push(piece, log_end.saturating_sub(after.len() as u64));
            for matcher in &mut self.matchers {
                matcher.advance(&self.printed);
            }
            if self.printed.bytes.len() > 2 * BUFFER_BYTES {
                self.report(hits);
                self.trim();
            }
            rest = after;
        }
    }

    /// Whether the next lines need only be searched for where a match may start.
    pub(crate) fn are_idle(&self) -> bool {
        let at_start =
            self.printed.bytes.len() == self.printed.line_start && self.pending == PendingMove::Nothing;
        match self.matchers.as_slice() {
            [] => true,
            // It does not pay for more: each would scan lines that another one then refuses.
            [matcher] => at_start && matcher.is_idle(),
            _ => false,
        }
    }

    /// Skips whole lines, while [idle](Self::are_idle), up to the first one in which a match may start.
    /// Returns how many bytes that is.
    pub(crate) fn pass_over(&mut self, lines: &[u8]) -> usize {
        let [matcher] = self.matchers.as_mut_slice() else { return lines.len() };
        let passed = match matcher.may_begin(lines) {
            Some(at) => memchr::memrchr(b'\n', &lines[..at]).map_or(0, |feed| feed + 1),
            None => lines.len(),
        };
        if passed > 0 {
            // No match can reach back to what was printed before.
            self.printed.forget();
            matcher.start_at_line_start();
        }
        passed
    }

    pub(crate) fn line_feed(&mut self, log_end: u64, hits: &mut Vec<Hit>) {
        if self.pending != PendingMove::Return {
            self.take_pending(hits);
        }
        self.pending = PendingMove::Nothing;
        self.matchers.iter_mut().for_each(Matcher::end_line);
        self.report(hits);
        self.printed.push(b"\n", log_end);
        self.printed.line_start = self.printed.bytes.len();
        for matcher in &mut self.matchers {
            matcher.next_line(self.printed.line_start);
        }
        self.trim();
    }

    pub(crate) fn carriage_return(&mut self) {
        self.pending = PendingMove::Return;
    }

    pub(crate) fn back(&mut self, columns: usize) {
        self.pending = match self.pending {
            PendingMove::Nothing => PendingMove::Back(columns),
            PendingMove::Back(before) => PendingMove::Back(before.saturating_add(columns)),
            PendingMove::Return => PendingMove::Return,
        };
    }

    /// A step to the right.
    pub(crate) fn forward(&mut self, columns: usize, log_end: u64, hits: &mut Vec<Hit>) {
        if columns <= MAX_GAP_COLUMNS {
            self.text(&b"                "[..columns], log_end, hits);
        } else {
            self.restart_line(hits);
        }
    }

    /// The cursor moves elsewhere in its line.
    pub(crate) fn restart_line(&mut self, hits: &mut Vec<Hit>) {
        self.pending = PendingMove::Nothing;
        self.peek(hits);
        self.printed.bytes.push(b'\n');
        self.printed.line_start = self.printed.bytes.len();
        for matcher in &mut self.matchers {
            matcher.start(Some(b'\n'), self.printed.line_start);
            // A match must not start before this point.
            matcher.since = self.printed.line_start;
        }
        self.trim();
    }

    /// The cursor moves to another line.
    pub(crate) fn leave_line(&mut self, hits: &mut Vec<Hit>) {
        self.restart_line(hits);
        for matcher in &mut self.matchers {
            matcher.next_line(self.printed.line_start);
        }
    }

    /// Reports what would match if no more output came: the unfinished line counts.
    pub(crate) fn peek(&mut self, hits: &mut Vec<Hit>) {
        for matcher in &mut self.matchers {
            if matcher.peek() {
                matcher.rescan(&self.printed);
            }
        }
        self.report(hits);
    }

    fn take_pending(&mut self, hits: &mut Vec<Hit>) {
        match std::mem::replace(&mut self.pending, PendingMove::Nothing) {
            PendingMove::Nothing => {}
            PendingMove::Return => self.restart_line(hits),
            PendingMove::Back(columns) => {
                self.report(hits);
                self.printed.erase_back(columns);
                for matcher in &mut self.matchers {
                    matcher.since = matcher.since.min(self.printed.bytes.len());
                    if self.printed.line().len() <= MAX_RESCAN_BYTES {
                        matcher.rescan(&self.printed);
                    } else {
                        matcher.start(self.printed.line().last().copied(), self.printed.bytes.len());
                        matcher.since = self.printed.bytes.len();
                    }
                }
            }
        }
    }

    fn report(&mut self, hits: &mut Vec<Hit>) {
        for matcher in &mut self.matchers {
            matcher.report(&self.printed, hits);
        }
    }

    fn trim(&mut self) {
        let cut = self.printed.trim();
        if cut > 0 {
            for matcher in &mut self.matchers {
                matcher.since = matcher.since.saturating_sub(cut);
                matcher.at = matcher.at.saturating_sub(cut);
            }
        }
    }
}

#[cfg(test)]
#[path = "matching_tests.rs"]
mod tests;
