//! Whether a screen stands still, and whether something is still on it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use regex_automata::meta::Regex;

use crate::failure::Failure;
use crate::wire::Stable;

/// One client's idea of standing still, and how far it has come: checks at fixed times, each compared with the
/// one before, whatever bytes came in between.
pub(crate) struct Standing {
    checks: u32,
    interval: Duration,
    ignore: Vec<Regex>,
    ignore_rows: Vec<i32>,
    last: u64,
    unchanged: u32,
    next: Instant,
}

impl Standing {
    /// # Errors
    /// A usage failure for a bad pattern.
    pub(crate) fn new(wanted: &Stable, rows: &[String], now: Instant) -> Result<Self, Failure> {
        let ignore = wanted.ignore.iter().map(|pattern| compile(pattern)).collect::<Result<_, _>>()?;
        let interval = Duration::from_millis(wanted.interval_ms.max(10));
        let mut standing = Self {
            checks: wanted.checks.max(1),
            interval,
            ignore,
            ignore_rows: wanted.ignore_rows.clone(),
            last: 0,
            unchanged: 0,
            next: now + interval,
        };
        standing.last = standing.essence(rows);
        Ok(standing)
    }

    /// What stands for the screen of the last check, without what is left out.
    pub(crate) fn seen(&self) -> u64 {
        self.last
    }

    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// One check; true when it has stood still long enough.
    pub(crate) fn check(&mut self, rows: &[String], now: Instant) -> bool {
        let essence = self.essence(rows);
        self.unchanged = if essence == self.last { self.unchanged + 1 } else { 0 };
        self.last = essence;
        self.next = (self.next + self.interval).max(now);
        self.unchanged >= self.checks
    }

    /// The screen without what always moves.
    fn essence(&self, rows: &[String]) -> u64 {
        let mut hasher = DefaultHasher::new();
        let count = i32::try_from(rows.len()).unwrap_or(i32::MAX);
        for (row, number) in rows.iter().zip(0..) {
            if self.ignore_rows.iter().any(|left_out| *left_out == number || *left_out + count == number) {
                continue;
            }
            let mut from = 0;
            let mut moving: Vec<(usize, usize)> = self
                .ignore
                .iter()
                .flat_map(|regex| regex.find_iter(row).map(|m| (m.start(), m.end())))
                .collect();
            moving.sort_unstable();
            for (start, end) in moving {
                row.get(from..start).hash(&mut hasher);
                from = from.max(end);
            }
            row.get(from..).hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// Patterns that are to vanish from a screen.
pub(crate) struct Vanishing {
    patterns: Vec<Regex>,
}

impl Vanishing {
    /// # Errors
    /// A usage failure for a bad pattern.
    pub(crate) fn new(patterns: &[String]) -> Result<Self, Failure> {
        Ok(Self { patterns: patterns.iter().map(|pattern| compile(pattern)).collect::<Result<_, _>>()? })
    }

    /// Whether none of them is on the screen.
    pub(crate) fn is_gone(&self, rows: &[String]) -> bool {
        !rows.iter().any(|row| self.patterns.iter().any(|pattern| pattern.is_match(row)))
    }
}

fn compile(pattern: &str) -> Result<Regex, Failure> {
    // The same limits and messages as for patterns in output.
    outlast_stream::PatternSet::compile(&[pattern]).map_err(|error| Failure::usage(error.to_string()))?;
    Regex::new(pattern).map_err(|error| Failure::usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<String> {
        text.lines().map(ToOwned::to_owned).collect()
    }

    #[test]
    fn three_checks_without_a_change_and_not_one_fewer() {
        let now = Instant::now();
        let mut standing = Standing::new(&Stable::default(), &rows("50%"), now).unwrap();
        let seen = ["50%", "50%", "60%", "60%", "60%", "60%"];
        let verdicts: Vec<bool> = seen.iter().map(|text| standing.check(&rows(text), now)).collect();
        assert_eq!(verdicts, [false, false, false, false, false, true]);
    }

    #[test]
    fn what_is_left_out_may_move() {
        let now = Instant::now();
        let wanted = Stable {
            checks: 1,
            ignore: vec![r"\d\d:\d\d".into()],
            ignore_rows: vec![-1],
            ..Stable::default()
        };
        let mut standing = Standing::new(&wanted, &rows("at 12:00 ok\nspin |"), now).unwrap();
        assert!(standing.check(&rows("at 12:01 ok\nspin /"), now));
        assert!(!standing.check(&rows("at 12:02 no\nspin -"), now));
    }
}
