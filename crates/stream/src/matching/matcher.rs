//! One set of patterns, matched on the print stream.

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::util::start;
use regex_automata::{Anchored, Input, Span, meta};

use super::{Hit, PrintBuffer};
use crate::pattern::PatternSet;

/// The most that is reported of a match, and of each of its groups.
const MAX_TEXT: usize = 4096;

/// A small set of pattern numbers.
#[derive(Debug, Clone)]
struct PatternBits {
    bits: Vec<u64>,
}

impl PatternBits {
    fn new(len: usize) -> Self {
        Self { bits: vec![0; len.div_ceil(64)] }
    }
    fn set(&mut self, index: usize) {
        self.bits[index / 64] |= 1 << (index % 64);
    }
    fn has(&self, index: usize) -> bool {
        self.bits[index / 64] & (1 << (index % 64)) != 0
    }
    fn clear(&mut self) {
        self.bits.fill(0);
    }
}

#[derive(Debug)]
pub(super) struct Matcher {
    pub(super) id: u64,
    patterns: PatternSet,
    cache: Cache,
    state: LazyStateID,
    /// How far in the buffer it has read.
    pub(super) at: usize,
    /// No match is in progress: none has started in what was read. The DFA state is then unused.
    idle: bool,
    /// The DFA state at the start of a line, with the number of cache clears at that time.
    home: Option<(LazyStateID, usize)>,
    /// Where in the buffer matching started.
    pub(super) since: usize,
    /// Patterns that matched in this line, and those of them that were reported.
    found: PatternBits,
    reported: PatternBits,
    news: bool,
}

impl Matcher {
    pub(super) fn new(id: u64, patterns: PatternSet, since: usize, before: Option<u8>) -> Self {
        let cache = Cache::new(patterns.dfa());
        let marks = PatternBits::new(patterns.len());
        let mut matcher = Self {
            id,
            cache,
            state: LazyStateID::default(),
            at: since,
            idle: false,
            home: None,
            since,
            found: marks.clone(),
            reported: marks,
            news: false,
            patterns,
        };
        matcher.start(before.or(Some(b'\n')), since);
        matcher
    }

    /// Restarts at a position in the buffer, after the byte `before`.
    pub(super) fn start(&mut self, before: Option<u8>, at: usize) {
        self.at = at;
        self.idle = self.patterns.prefilter().is_some();
        // While it is idle, the state is not used.
        if !self.idle {
            self.begin(before);
        }
    }

    /// The state of a search that starts after the byte `before`.
    fn begin(&mut self, before: Option<u8>) {
        if let Some(state) = start_state(self.patterns.dfa(), &mut self.cache, before) {
            self.state = state;
        }
    }

    /// Reads what was printed since the last call.
    pub(super) fn advance(&mut self, printed: &PrintBuffer) {
        if self.idle && !self.wake(printed) {
            self.at = printed.bytes.len();
            return;
        }
        self.run(&printed.bytes[self.at..]);
        self.at = printed.bytes.len();
    }

    /// Whether no match is in progress, and every match starts with a known literal.
    pub(super) fn is_idle(&self) -> bool {
        self.idle && !self.news
    }

    /// Where in some lines a match may start.
    pub(super) fn may_begin(&self, lines: &[u8]) -> Option<usize> {
        let prefilter = self.patterns.prefilter()?;
        prefilter.find(lines, Span { start: 0, end: lines.len() })
    }

    /// The buffer is empty, and a line begins.
    pub(super) fn start_at_line_start(&mut self) {
        (self.at, self.since) = (0, 0);
        self.reported.clear();
    }

    /// Moves to where a match may start, if there is such a place. A literal that was cut by a read counts.
    fn wake(&mut self, printed: &PrintBuffer) -> bool {
        let Some(prefilter) = self.patterns.prefilter() else { return true };
        let end = printed.bytes.len();
        let floor = self.since.max(printed.line_start).min(end);
        let from = (self.at + 1).saturating_sub(prefilter.longest()).clamp(floor, end);
        let Some(found) = prefilter.find(&printed.bytes, Span { start: from, end }) else { return false };
        let before =
            if found > printed.line_start { printed.bytes.get(found - 1).copied() } else { Some(b'\n') };
        let home = start_state(self.patterns.dfa(), &mut self.cache, Some(b'\n'));
        self.home = home.map(|state| (state, self.cache.clear_count()));
        (self.at, self.idle) = (found, false);
        self.begin(before);
        true
    }

    /// The line feed that ends a line.
    pub(super) fn end_line(&mut self) {
        if self.idle {
            return;
        }
        self.run(b"\n");
        // Nothing that started before goes on: this is the state of a search that starts here.
        self.idle = self.home == Some((self.state, self.cache.clear_count()));
    }

    fn run(&mut self, bytes: &[u8]) {
        let Self { patterns, cache, found, news, .. } = self;
        let dfa = patterns.dfa();
        let mut state = self.state;
        for &byte in bytes {
            state = match dfa.next_state(cache, state, byte) {
                Ok(next) if !next.is_dead() && !next.is_quit() => next,
                // Neither happens to an unanchored search; if it did, restart here.
                _ => start_state(dfa, cache, Some(byte)).unwrap_or(state),
            };
            if state.is_match() {
                note(dfa, cache, state, found, news);
            }
        }
        self.state = state;
    }

    /// Checks what would match if the stream ended here. Returns whether the DFA cleared its cache: then the
    /// state in the stream has to be found again.
    pub(super) fn peek(&mut self) -> bool {
        if self.idle {
            return false;
        }
        let before = self.cache.clear_count();
        let Self { patterns, cache, found, news, .. } = self;
        if let Ok(state) = patterns.dfa().next_eoi_state(cache, self.state)
            && state.is_match()
        {
            note(patterns.dfa(), cache, state, found, news);
        }
        self.cache.clear_count() != before
    }

    /// Scans the current line again.
    pub(super) fn rescan(&mut self, printed: &PrintBuffer) {
        let from = self.since.max(printed.line_start).min(printed.bytes.len());
        let before =
            if from > printed.line_start { printed.bytes.get(from - 1).copied() } else { Some(b'\n') };
        self.start(before, from);
        // A match must not start before this point.
        self.since = from;
        self.advance(printed);
    }

    /// Continues at the start of a line.
    pub(super) fn next_line(&mut self, at: usize) {
        self.at = at;
        self.reported.clear();
    }

    /// Reports the patterns that matched in the current line. A match that spans lines may start in an
    /// earlier one.
    pub(super) fn report(&mut self, printed: &PrintBuffer, hits: &mut Vec<Hit>) {
        if !self.news {
            return;
        }
        self.news = false;
        for pattern in 0..self.patterns.len() {
            if self.found.has(pattern) && !self.reported.has(pattern) {
                self.reported.set(pattern);
                hits.push(self.hit(pattern, printed));
            }
        }
        self.found.clear();
    }

    fn hit(&self, pattern: usize, printed: &PrintBuffer) -> Hit {
        let mut hit = Hit {
            watch: self.id,
            pattern,
            offset: printed.log_offset(printed.bytes.len()),
            text: String::new(),
            captures: Vec::new(),
            names: Vec::new(),
        };
        let Some(regex) = self.patterns.regex(pattern) else { return hit };
        let since = self.since.min(printed.bytes.len());
        let line = printed.line();
        let line_since = since.saturating_sub(printed.line_start);
        let mut captures = regex.create_captures();
        regex.captures(Input::new(line).range(line_since..), &mut captures);
        let mut base = printed.line_start;
        let mut haystack = line;
        if !captures.is_match() {
            // It spans lines, or ended with the line end before this line.
            base = 0;
            haystack = &printed.bytes;
            let mut at = since;
            while let Some(found) = search(regex, haystack, at) {
                let ends_here = found.end() >= printed.line_start;
                if ends_here {
                    regex.captures(Input::new(haystack).range(found.start()..), &mut captures);
                    break;
                }
                at = found.end().max(found.start() + 1);
            }
        }
        let Some(whole) = captures.get_match() else { return hit };
        hit.offset = printed.log_offset(base + whole.end());
        hit.text = bounded(&haystack[whole.range()]);
        let groups = captures.group_info().pattern_names(whole.pattern());
        for (index, name) in groups.enumerate().skip(1) {
            let text = captures.get_group(index).map(|span| bounded(&haystack[span.range()]));
            if let (Some(name), Some(text)) = (name, &text) {
                hit.names.push((name.to_owned(), text.clone()));
            }
            hit.captures.push(text);
        }
        hit
    }
}

/// The state before any byte. It only fails for a byte on which the DFA quits, and there is none.
fn start_state(dfa: &DFA, cache: &mut Cache, before: Option<u8>) -> Option<LazyStateID> {
    dfa.start_state(cache, &start::Config::new().anchored(Anchored::No).look_behind(before)).ok()
}

/// Records the patterns that match in a state.
fn note(dfa: &DFA, cache: &Cache, state: LazyStateID, found: &mut PatternBits, news: &mut bool) {
    for index in 0..dfa.match_len(cache, state) {
        let pattern = dfa.match_pattern(cache, state, index).as_usize();
        if !found.has(pattern) {
            found.set(pattern);
            *news = true;
        }
    }
}

fn search(regex: &meta::Regex, haystack: &[u8], at: usize) -> Option<regex_automata::Match> {
    if at > haystack.len() { None } else { regex.find(Input::new(haystack).range(at..)) }
}

/// At most [`MAX_TEXT`] bytes, cut at a character.
fn bounded(bytes: &[u8]) -> String {
    let mut end = bytes.len().min(MAX_TEXT);
    while end > 0 && end < bytes.len() && bytes[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
