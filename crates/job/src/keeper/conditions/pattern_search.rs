//! Patterns and lines in what is printed: bytes of the log go in, each once and in order, and matches come out.
//!
//! Each subscription has a search of its own, because each begins at an offset of its own (decision 0003). All of its
//! patterns are one automaton.

use std::time::Instant;

use outlast_stream::PatternSet;

use super::Moment;
use super::batch::Batch;
use super::check::{Hit, Mode};
use crate::clock::earliest;
use crate::failure::Failure;
use crate::search::PatternSearch;
use crate::spec::Streams;
use crate::wire::Reason;

/// A finished line with something in it.
pub(crate) const LINE: &str = r".+\n";

/// How many sets of patterns stay compiled for the next subscription.
const MAX_CACHED: usize = 2;

/// The patterns of one subscription, and its lines.
pub(super) struct Patterns {
    search: PatternSearch,
    set: PatternSet,
    streams: Streams,
    /// Which pattern of the set stands for finished lines, if lines are wanted.
    line_pattern: Option<usize>,
    matches: Batch,
    lines: Option<Batch>,
}

impl Patterns {
    /// # Errors
    /// A usage failure that shows what is wrong with which pattern.
    pub(super) fn new(
        mut patterns: Vec<String>,
        lines: bool,
        (streams, from): (Streams, u64),
        cache: &mut PatternCache,
    ) -> Result<Self, Failure> {
        let line_pattern = lines.then_some(patterns.len());
        if lines {
            patterns.push(LINE.to_owned());
        }
        let set = cache.compiled(patterns)?;
        let search = PatternSearch::new(set.clone(), streams, from);
        let lines = lines.then(Batch::new);
        Ok(Self { search, set, streams, line_pattern, matches: Batch::new(), lines })
    }

    /// Makes what a match needs.
    pub(super) fn get_ready(&self) {
        self.set.get_ready();
    }

    /// Where in the log the next bytes must begin.
    pub(super) fn offset(&self) -> u64 {
        self.search.offset()
    }

    /// Whether the log holds more than was looked at.
    pub(super) fn is_behind(&self, end: u64) -> bool {
        self.search.is_behind(end)
    }

    /// Takes the next bytes of the log. The unfinished line counts once all of the log was seen, unless more is on its
    /// way (`more_comes`).
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        more_comes: bool,
        (mode, moment): (Mode, &Moment),
        hits: &mut Vec<Hit>,
    ) {
        self.search.feed(bytes);
        self.search.look_at_unfinished(moment.end, more_comes);
        self.sort_out(mode, moment.now, hits);
    }

    fn sort_out(&mut self, mode: Mode, now: Instant, hits: &mut Vec<Hit>) {
        let Self { search, line_pattern, matches, lines, .. } = self;
        search.take_found(|found, at| match (mode, lines.as_mut()) {
            // A wait and a watch that tells once end with the first; they are told nothing else.
            (Mode::Wait | Mode::Once, _) if !hits.is_empty() => {}
            (Mode::Each, Some(lines)) if Some(found.pattern) == *line_pattern => {
                lines.add_line(&found.text, at, now);
            }
            (Mode::Each, _) => matches.add_match(found, at, now),
            (Mode::Wait | Mode::Once, _) => {
                let is_line = Some(found.pattern) == *line_pattern;
                let reason = if is_line { Reason::Lines } else { Reason::Pattern };
                hits.push(Hit { found: Some(found), ..Hit::at(reason, at) });
            }
        });
    }

    /// Batches that are due.
    pub(super) fn take_due(&mut self, now: Instant, end: u64, hits: &mut Vec<Hit>) {
        let behind = self.is_behind(end);
        hits.extend(self.matches.take_due(now, behind));
        hits.extend(self.lines.as_mut().and_then(|lines| lines.take_due(now, behind)));
    }

    /// When the next batch is due.
    pub(super) fn due_at(&self) -> Option<Instant> {
        earliest(self.matches.due_at(), self.lines.as_ref().and_then(Batch::due_at))
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.matches.held_bytes() + self.lines.as_ref().map_or(0, Batch::held_bytes)
    }

    /// The end of output: an unfinished line counts as a line, and batches are told whatever the time.
    pub(super) fn drain(&mut self, mode: Mode, now: Instant, hits: &mut Vec<Hit>) {
        if self.line_pattern.is_some() {
            let end = self.search.offset();
            self.search.end_line();
            self.sort_out(mode, now, hits);
            // What a child that was left behind prints after it is another line.
            self.search = PatternSearch::new(self.set.clone(), self.streams, end);
        }
        hits.extend(self.matches.take());
        hits.extend(self.lines.as_mut().and_then(Batch::take));
    }
}

/// Sets of patterns that were used last: what was waited for a moment ago is mostly waited for again.
#[derive(Default)]
pub(super) struct PatternCache {
    /// The latest first.
    sets: Vec<(Vec<String>, PatternSet)>,
}

impl PatternCache {
    fn compiled(&mut self, patterns: Vec<String>) -> Result<PatternSet, Failure> {
        if let Some((_, set)) = self.sets.iter().find(|(known, _)| *known == patterns) {
            return Ok(set.clone());
        }
        let set = crate::search::compile(&patterns)?;
        self.sets.truncate(MAX_CACHED - 1);
        self.sets.insert(0, (patterns, set.clone()));
        Ok(set)
    }

    pub(super) fn clear(&mut self) {
        self.sets.clear();
    }
}
