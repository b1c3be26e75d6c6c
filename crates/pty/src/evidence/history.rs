//! What must be remembered from one look to the next: who slept where, and who used the processor how much.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::threads::{Looker, Seen};

/// Two looks closer together than this are one: nothing could have happened in between.
const APART: Duration = Duration::from_millis(10);
/// At a prompt that is known, this is enough: the program has its answer out, and either reads on or sleeps; and one that has
/// not been on a processor in between has slept.
const APART_WHEN_KNOWN: Duration = Duration::from_micros(70);

/// How a thread has slept between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sleep {
    /// It was a candidate the last time, too.
    pub(super) seen_before: bool,
    /// And it has not been on a processor since.
    pub(super) unbroken: bool,
}

/// The candidates of the last look and of this one.
#[derive(Debug, Default)]
pub(super) struct Looks {
    previous: Vec<(Pid, u64)>,
    previous_at: Option<Instant>,
    current: Vec<(Pid, u64)>,
    at_known_prompt: bool,
}

impl Looks {
    /// Begins a look.
    pub(super) fn begin(&mut self, at_known_prompt: bool) {
        self.at_known_prompt = at_known_prompt;
    }

    fn apart(&self) -> Duration {
        if self.at_known_prompt { APART_WHEN_KNOWN } else { APART }
    }

    /// Ends a look that was begun at `now`.
    pub(super) fn turn(&mut self, now: Instant) {
        if self.previous_at.is_none_or(|at| now.duration_since(at) >= self.apart()) {
            std::mem::swap(&mut self.previous, &mut self.current);
            self.previous_at = Some(now);
        }
        self.current.clear();
    }

    /// Notes a candidate and says how it slept since the last look.
    pub(super) fn compare(&mut self, looker: &mut Looker, pid: Pid, tid: Pid) -> Sleep {
        let Some(runs) = looker.run_count(pid, tid) else {
            return Sleep { seen_before: false, unbroken: false };
        };
        self.current.push((tid, runs));
        let ripe = self.previous_at.is_some_and(|at| at.elapsed() >= self.apart());
        let before = self.previous.iter().find(|(before, _)| *before == tid).filter(|_| ripe);
        Sleep { seen_before: before.is_some(), unbroken: before.is_some_and(|(_, count)| *count == runs) }
    }
}

/// Which threads have woken up since the last byte in either direction.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    /// When that byte went.
    since: Option<Instant>,
    /// How often each thread had run when it was first looked at after that.
    first: Vec<(Pid, u64)>,
}

/// Two reckonings of when the last byte went are the same if they differ by less.
const SAME_BYTE: Duration = Duration::from_millis(2);

impl Wakes {
    /// Begins a look, `quiet` after the last byte.
    pub(super) fn begin(&mut self, now: Instant, quiet: Duration) {
        let since = now.checked_sub(quiet);
        let same = self.since.zip(since).is_some_and(|(before, since)| since <= before + SAME_BYTE);
        if !same {
            self.since = since;
            self.first.clear();
        }
    }

    /// Whether a thread has been on a processor since it was first asked about after the last byte.
    pub(super) fn has_run(&mut self, looker: &mut Looker, pid: Pid, tid: Pid) -> bool {
        let Some(runs) = looker.run_count(pid, tid) else { return false };
        match self.first.iter().find(|(first, _)| *first == tid) {
            Some((_, first)) => *first != runs,
            None => {
                self.first.push((tid, runs));
                false
            }
        }
    }
}

/// How much of a processor the foreground used of late.
#[derive(Debug, Default)]
pub(super) struct ProcessorUse {
    readings: VecDeque<(Instant, u64)>,
    /// Whether this look has taken its reading: several candidates may ask.
    taken: bool,
}

/// Shares are taken over a span between these two.
const SHORTEST_SPAN: Duration = Duration::from_millis(15);
const LONGEST_SPAN: Duration = Duration::from_millis(600);
/// More are not kept, however often somebody looks.
const MOST_READINGS: usize = 32;

impl ProcessorUse {
    /// Begins a look.
    pub(super) fn turn(&mut self) {
        self.taken = false;
    }

    /// The share of one processor; `None` while there is only one reading.
    pub(super) fn share<'s>(
        &mut self,
        looker: &mut Looker,
        processes: impl Iterator<Item = &'s Seen>,
    ) -> Option<f64> {
        let now = Instant::now();
        if !self.taken {
            self.taken = true;
            let threads =
                processes.flat_map(|seen| seen.threads.iter().map(|thread| (seen.process.pid, thread)));
            let total = threads
                .filter_map(|(pid, thread)| {
                    thread.processor_time.or_else(|| Some(looker.schedstat(pid, thread.tid)?.0))
                })
                .sum();
            self.readings.push_back((now, total));
        }
        let too_old = |at: &Instant| now.duration_since(*at) > LONGEST_SPAN;
        while self.readings.len() > 2 && (self.readings.len() > MOST_READINGS || too_old(&self.readings[1].0))
        {
            self.readings.pop_front();
        }
        let (first, last) = (self.readings.front()?, self.readings.back()?);
        let span = last.0.duration_since(first.0);
        (span >= SHORTEST_SPAN).then(|| last.1.saturating_sub(first.1) as f64 / span.as_nanos() as f64)
    }
}
