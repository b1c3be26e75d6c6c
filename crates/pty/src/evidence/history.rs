//! What is remembered from one sample to the next: which threads slept where, and how much CPU time they
//! used.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::MIN_SAMPLE_GAP_AT_PROMPT;
use super::threads::{Sample, ThreadScanner};

/// Two samples closer together than this count as one: nothing could have happened in between.
const MIN_SAMPLE_GAP: Duration = Duration::from_millis(10);

/// How a thread has slept between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sleep {
    /// It was a candidate the last time, too.
    pub(super) seen_before: bool,
    /// It has not run since.
    pub(super) unbroken: bool,
}

/// The candidates of the last sample and of this one.
#[derive(Debug, Default)]
pub(super) struct SampleHistory {
    previous: Vec<(Pid, u64)>,
    previous_at: Option<Instant>,
    current: Vec<(Pid, u64)>,
    at_known_prompt: bool,
}

impl SampleHistory {
    /// Begins a sample.
    pub(super) fn begin(&mut self, at_known_prompt: bool) {
        self.at_known_prompt = at_known_prompt;
    }

    fn apart(&self) -> Duration {
        if self.at_known_prompt { MIN_SAMPLE_GAP_AT_PROMPT } else { MIN_SAMPLE_GAP }
    }

    /// Ends a sample that began at `now`.
    pub(super) fn turn(&mut self, now: Instant) {
        if self.previous_at.is_none_or(|at| now.duration_since(at) >= self.apart()) {
            std::mem::swap(&mut self.previous, &mut self.current);
            self.previous_at = Some(now);
        }
        self.current.clear();
    }

    /// Records a candidate and returns how it slept since the last sample.
    pub(super) fn compare(&mut self, scanner: &mut ThreadScanner, pid: Pid, tid: Pid) -> Sleep {
        let Some(runs) = scanner.run_count(pid, tid) else {
            return Sleep { seen_before: false, unbroken: false };
        };
        self.current.push((tid, runs));
        let ripe = self.previous_at.is_some_and(|at| at.elapsed() >= self.apart());
        let before = self.previous.iter().find(|(before, _)| *before == tid).filter(|_| ripe);
        Sleep { seen_before: before.is_some(), unbroken: before.is_some_and(|(_, count)| *count == runs) }
    }
}

/// Which threads have woken since the last byte in either direction.
#[derive(Debug, Default)]
pub(super) struct Wakeups {
    /// When that byte was sent or received.
    since: Option<Instant>,
    /// How often each thread had run when it was first sampled after that.
    first: Vec<(Pid, u64)>,
}

/// Two estimates of when the last byte passed are the same if they differ by less than this.
const SAME_BYTE_TOLERANCE: Duration = Duration::from_millis(2);

impl Wakeups {
    /// Begins a sample, `quiet` after the last byte.
    pub(super) fn begin(&mut self, now: Instant, quiet: Duration) {
        let since = now.checked_sub(quiet);
        let same = self.since.zip(since).is_some_and(|(before, since)| since <= before + SAME_BYTE_TOLERANCE);
        if !same {
            self.since = since;
            self.first.clear();
        }
    }

    /// Whether a thread has run since it was first sampled after the last byte.
    pub(super) fn has_run(&mut self, scanner: &mut ThreadScanner, pid: Pid, tid: Pid) -> bool {
        let Some(runs) = scanner.run_count(pid, tid) else { return false };
        match self.first.iter().find(|(first, _)| *first == tid) {
            Some((_, first)) => *first != runs,
            None => {
                self.first.push((tid, runs));
                false
            }
        }
    }
}

/// How much CPU time the foreground has used since the last byte.
#[derive(Debug, Default)]
pub(super) struct ProcessorUse {
    readings: VecDeque<(Instant, u64)>,
    /// How many threads did not count at the last reading: if their number changes, earlier readings say nothing.
    left_out: usize,
    /// Whether this sample has taken its reading: several candidates may ask.
    taken: bool,
}

/// A share needs readings at least this far apart.
const MIN_SPAN: Duration = Duration::from_millis(15);
/// Readings older than this are dropped.
const MAX_SPAN: Duration = Duration::from_millis(600);
/// The most readings that are kept, however often samples are taken.
const MAX_READINGS: usize = 32;

impl ProcessorUse {
    /// Begins a sample, `quiet` after the last byte in either direction. What was used before that byte says nothing
    /// about what the program does now: it was most likely used to print it.
    pub(super) fn begin(&mut self, now: Instant, quiet: Duration) {
        self.taken = false;
        if let Some(since) = now.checked_sub(quiet) {
            self.readings.retain(|(at, _)| *at >= since);
        }
    }

    /// The share of one processor since the last byte; `None` while there is only one reading. Threads of a runtime do not
    /// count: they work for what the program did before.
    pub(super) fn share<'s>(
        &mut self,
        scanner: &mut ThreadScanner,
        processes: impl Iterator<Item = &'s Sample>,
    ) -> Option<f64> {
        let now = Instant::now();
        if !self.taken {
            self.taken = true;
            let (mut total, mut left_out) = (0, 0);
            for seen in processes {
                for thread in &seen.threads {
                    if scanner.is_known_runtime_thread(&seen.process, thread.tid) {
                        left_out += 1;
                        continue;
                    }
                    let used = thread.processor_time;
                    total += used
                        .or_else(|| Some(scanner.schedstat(seen.process.pid, thread.tid)?.0))
                        .unwrap_or(0);
                }
            }
            if std::mem::replace(&mut self.left_out, left_out) != left_out {
                self.readings.clear();
            }
            self.readings.push_back((now, total));
        }
        let too_old = |at: &Instant| now.duration_since(*at) > MAX_SPAN;
        while self.readings.len() > 2 && (self.readings.len() > MAX_READINGS || too_old(&self.readings[1].0))
        {
            self.readings.pop_front();
        }
        let (first, last) = (self.readings.front()?, self.readings.back()?);
        share_between(first, last)
    }

    /// The same since the latest reading that is far enough back: whether it still works, or only did so until just now.
    pub(super) fn share_lately(&self) -> Option<f64> {
        let last = self.readings.back()?;
        self.readings.iter().rev().find_map(|before| share_between(before, last))
    }
}

fn share_between(first: &(Instant, u64), last: &(Instant, u64)) -> Option<f64> {
    let span = last.0.duration_since(first.0);
    (span >= MIN_SPAN).then(|| last.1.saturating_sub(first.1) as f64 / span.as_nanos() as f64)
}
