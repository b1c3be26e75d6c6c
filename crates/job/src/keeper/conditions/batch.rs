//! Batches: what a watch finds each time is gathered (debounced) and told at once, with a count and two offsets.
//!
//! A batch is told when nothing came for [`DEBOUNCE`], or when it is [`MAX_DELAY`] old. A flood that goes on is told less
//! and less often: the delay doubles up to [`LONGEST_DELAY`].

use std::time::{Duration, Instant};

use super::check::Hit;
use crate::wire::watch::LineTold;
use crate::wire::{Found, Reason};

/// A batch ends when nothing was added to it for this long.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// A batch ends when it is this old, even if more comes.
const MAX_DELAY: Duration = Duration::from_secs(5);
/// The longest that a batch may become in a flood.
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// Lines are told up to this many bytes of text; for the rest there is the offset at which it begins.
const MAX_LINES_BYTES: usize = 8 << 10;

/// What is gathered of one condition of a watch.
pub(super) struct Batch {
    open: Option<Box<Open>>,
    max_delay: Duration,
}

/// A batch with something in it.
struct Open {
    hit: Hit,
    lines_bytes: usize,
    first: Instant,
    last: Instant,
}

impl Batch {
    pub(super) fn new() -> Self {
        Self { open: None, max_delay: MAX_DELAY }
    }

    /// Adds a match that ends at an offset.
    pub(super) fn add_match(&mut self, found: Found, at: u64, now: Instant) {
        self.add(Hit { found: Some(found.shortened()), ..Hit::at(Reason::Pattern, at) }, now);
    }

    /// Adds a line that ends at an offset.
    pub(super) fn add_line(&mut self, text: &str, at: u64, now: Instant) {
        let open = self.add(Hit::at(Reason::Lines, at), now);
        // Once a line was left out, so is what comes after it.
        if open.hit.lines.len() as u64 + 1 != open.hit.count {
            return;
        }
        let mut text = text.trim_end_matches(['\r', '\n']).to_owned();
        if open.lines_bytes + text.len() > MAX_LINES_BYTES && !open.hit.lines.is_empty() {
            return;
        }
        if text.len() > MAX_LINES_BYTES {
            text.truncate(text.floor_char_boundary(MAX_LINES_BYTES));
            text.push_str(outlast_stream::CUT_MARK);
        }
        open.lines_bytes += text.len() + 1;
        open.hit.lines.push(LineTold { text, to: at });
    }

    /// Adds that something was printed up to an offset: however often, that is one thing.
    pub(super) fn add_output(&mut self, from: u64, to: u64, now: Instant) {
        let open = self.add(Hit { from, ..Hit::at(Reason::Output, to) }, now);
        open.hit.count = 1;
    }

    fn add(&mut self, hit: Hit, now: Instant) -> &mut Open {
        let to = hit.to;
        let open = self.open.get_or_insert_with(|| {
            Box::new(Open { hit: Hit { count: 0, ..hit }, lines_bytes: 0, first: now, last: now })
        });
        open.hit.count += 1;
        open.hit.to = open.hit.to.max(to);
        open.last = now;
        open
    }

    /// When the batch is told if nothing is added to it.
    pub(super) fn due_at(&self) -> Option<Instant> {
        let open = self.open.as_ref()?;
        Some((open.last + DEBOUNCE).min(open.first + self.max_delay))
    }

    /// The batch, if it is time to tell it. While more is known to come (`behind`), only its age counts.
    pub(super) fn take_due(&mut self, now: Instant, behind: bool) -> Option<Hit> {
        let open = self.open.as_ref()?;
        let too_old = now >= open.first + self.max_delay;
        if !too_old && (behind || now < open.last + DEBOUNCE) {
            return None;
        }
        self.max_delay = if too_old { (self.max_delay * 2).min(LONGEST_DELAY) } else { MAX_DELAY };
        self.take()
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        let found = |hit: &Hit| hit.found.as_ref().map_or(0, |found| found.text.len());
        self.open.as_ref().map_or(0, |open| found(&open.hit) + open.lines_bytes)
    }

    /// The batch, whatever the time.
    pub(super) fn take(&mut self) -> Option<Hit> {
        self.open.take().map(|open| open.hit)
    }
}
