//! Pattern matches in what is printed, while it is printed.
//!
//! What patterns see is the *print stream*: text in the order in which it is printed, escape sequences cut out. A line
//! feed ends a line, with or without a carriage return. A carriage return alone, or a cursor that goes elsewhere,
//! begins the line anew. A backspace takes the last character back. A small step to the right is as many blanks.
//!
//! Each pattern reports once in each line. It is reported when the line ends, is begun anew, or at a
//! [`peek`](Watches::peek): so that `port (\d+)` says `8080` and not `8`. No byte is run through the automaton
//! twice, except for a short line's after a backspace.

mod watch;

use crate::pattern::PatternSet;
use watch::Watch;

/// What is kept of the current and the lines before, to say what matched.
const KEPT: usize = 64 * 1024;
/// A line up to this length is looked at again after a backspace; a longer one is only taken up from there.
const RESCAN: usize = 128;
/// Steps to the right that read as blanks; further away is another place.
const SMALL_GAP: usize = 16;

/// A pattern that matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The watch, as named by whoever registered it.
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

/// A stretch of the buffer and where in the log it came from.
#[derive(Debug, Clone, Copy)]
struct Run {
    at: usize,
    len: usize,
    log_end: u64,
}

/// What has been printed lately. Kept only while someone watches.
#[derive(Debug, Default)]
struct Printed {
    bytes: Vec<u8>,
    line_start: usize,
    runs: Vec<Run>,
}

/// What happened last, whose meaning depends on what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pending {
    Nothing,
    Return,
    Back(usize),
}

/// All watches on one job's output.
#[derive(Debug)]
pub(crate) struct Watches {
    printed: Printed,
    watches: Vec<Watch>,
    pending: Pending,
}

impl Printed {
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

    fn take_back(&mut self, characters: usize) {
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

    /// Forgets the oldest once there is twice what is kept; returns by how much positions moved.
    fn trim(&mut self) -> usize {
        if self.bytes.len() <= 2 * KEPT {
            return 0;
        }
        let mut cut = self.bytes.len() - KEPT;
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

impl Watches {
    pub(crate) fn new() -> Self {
        Self { printed: Printed::default(), watches: Vec::new(), pending: Pending::Nothing }
    }

    /// Whether nobody watches: then nothing here costs anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.watches.is_empty()
    }

    /// Watches from here on. `unfinished` is the line so far: it is no match, but the rest of it is no line start.
    pub(crate) fn add(&mut self, id: u64, patterns: PatternSet, unfinished: &str, offset: u64) {
        self.remove(id);
        if self.watches.is_empty() {
            *self = Self::new();
            self.printed.push(unfinished.as_bytes(), offset);
        }
        let before = self.printed.line().last().copied();
        self.watches.push(Watch::new(id, patterns, self.printed.bytes.len(), before));
    }

    pub(crate) fn remove(&mut self, id: u64) {
        self.watches.retain(|watch| watch.id != id);
        if self.watches.is_empty() {
            self.printed = Printed::default();
        }
    }

    pub(crate) fn text(&mut self, text: &[u8], log_end: u64, hits: &mut Vec<Hit>) {
        self.take_pending(hits);
        let mut rest = text;
        while !rest.is_empty() {
            // A very long line is cut where the buffer is full, not where a read happened to end.
            let room = (2 * KEPT + 1).saturating_sub(self.printed.bytes.len()).max(1);
            let (piece, after) = rest.split_at(rest.len().min(room));
            self.printed.push(piece, log_end.saturating_sub(after.len() as u64));
            for watch in &mut self.watches {
                watch.advance(&self.printed);
            }
            if self.printed.bytes.len() > 2 * KEPT {
                self.report(hits);
                self.trim();
            }
            rest = after;
        }
    }

    /// Whether what comes next need only be looked through for where a match may begin.
    pub(crate) fn are_idle(&self) -> bool {
        let at_start =
            self.printed.bytes.len() == self.printed.line_start && self.pending == Pending::Nothing;
        match self.watches.as_slice() {
            [] => true,
            // More are not worth it: each would look through what another then refuses.
            [watch] => at_start && watch.is_idle(),
            _ => false,
        }
    }

    /// Passes over whole lines, while they [are idle](Self::are_idle), up to the first in which a match may begin. Says how
    /// many bytes that are.
    pub(crate) fn pass_over(&mut self, lines: &[u8]) -> usize {
        let [watch] = self.watches.as_mut_slice() else { return lines.len() };
        let passed = match watch.may_begin(lines) {
            Some(at) => memchr::memrchr(b'\n', &lines[..at]).map_or(0, |feed| feed + 1),
            None => lines.len(),
        };
        if passed > 0 {
            // No match can reach back to what was printed before.
            self.printed.forget();
            watch.begin_at_start();
        }
        passed
    }

    pub(crate) fn line_feed(&mut self, log_end: u64, hits: &mut Vec<Hit>) {
        if self.pending != Pending::Return {
            self.take_pending(hits);
        }
        self.pending = Pending::Nothing;
        self.watches.iter_mut().for_each(Watch::end_line);
        self.report(hits);
        self.printed.push(b"\n", log_end);
        self.printed.line_start = self.printed.bytes.len();
        for watch in &mut self.watches {
            watch.next_line(self.printed.line_start);
        }
        self.trim();
    }

    pub(crate) fn carriage_return(&mut self) {
        self.pending = Pending::Return;
    }

    pub(crate) fn back(&mut self, columns: usize) {
        self.pending = match self.pending {
            Pending::Nothing => Pending::Back(columns),
            Pending::Back(before) => Pending::Back(before.saturating_add(columns)),
            Pending::Return => Pending::Return,
        };
    }

    /// A step to the right.
    pub(crate) fn forward(&mut self, columns: usize, log_end: u64, hits: &mut Vec<Hit>) {
        if columns <= SMALL_GAP {
            self.text(&b"                "[..columns], log_end, hits);
        } else {
            self.begin_anew(hits);
        }
    }

    /// The cursor goes somewhere else in its line.
    pub(crate) fn begin_anew(&mut self, hits: &mut Vec<Hit>) {
        self.pending = Pending::Nothing;
        self.peek(hits);
        self.printed.bytes.push(b'\n');
        self.printed.line_start = self.printed.bytes.len();
        for watch in &mut self.watches {
            watch.start(Some(b'\n'), self.printed.line_start);
            // What matches from here on did not begin before.
            watch.since = self.printed.line_start;
        }
        self.trim();
    }

    /// The cursor goes to another line.
    pub(crate) fn elsewhere(&mut self, hits: &mut Vec<Hit>) {
        self.begin_anew(hits);
        for watch in &mut self.watches {
            watch.next_line(self.printed.line_start);
        }
    }

    /// Reports what would match if no more output came: the unfinished line counts.
    pub(crate) fn peek(&mut self, hits: &mut Vec<Hit>) {
        for watch in &mut self.watches {
            if watch.peek() {
                watch.rescan(&self.printed);
            }
        }
        self.report(hits);
    }

    fn take_pending(&mut self, hits: &mut Vec<Hit>) {
        match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Nothing => {}
            Pending::Return => self.begin_anew(hits),
            Pending::Back(columns) => {
                self.report(hits);
                self.printed.take_back(columns);
                for watch in &mut self.watches {
                    watch.since = watch.since.min(self.printed.bytes.len());
                    if self.printed.line().len() <= RESCAN {
                        watch.rescan(&self.printed);
                    } else {
                        watch.start(self.printed.line().last().copied(), self.printed.bytes.len());
                        watch.since = self.printed.bytes.len();
                    }
                }
            }
        }
    }

    fn report(&mut self, hits: &mut Vec<Hit>) {
        for watch in &mut self.watches {
            watch.report(&self.printed, hits);
        }
    }

    fn trim(&mut self) {
        let cut = self.printed.trim();
        if cut > 0 {
            for watch in &mut self.watches {
                watch.since = watch.since.saturating_sub(cut);
                watch.at = watch.at.saturating_sub(cut);
            }
        }
    }
}

#[cfg(test)]
#[path = "matching_tests.rs"]
mod tests;
