//! Whether a screen is stable: unchanged for some checks in a row, whatever bytes came in between.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use regex_automata::meta::Regex;

use outlast_protocol::failure::Failure;
use outlast_protocol::wire::Stable;

use crate::PatternSet;

/// Checks of a screen at fixed times, each compared with the one before.
#[derive(Debug)]
pub struct StableScreen {
    checks: u32,
    interval: Duration,
    ignore: Vec<Regex>,
    ignore_rows: Vec<i32>,
    last: u64,
    unchanged: u32,
    next: Instant,
}

impl StableScreen {
    /// Begins with the rows as they are now.
    ///
    /// # Errors
    /// A usage failure for a bad pattern.
    pub fn new(wanted: &Stable, rows: &[String], now: Instant) -> Result<Self, Failure> {
        let ignore =
            wanted.ignore.iter().map(|pattern| compile_pattern(pattern)).collect::<Result<_, _>>()?;
        let interval = Duration::from_millis(wanted.interval_ms.max(10));
        let mut screen = Self {
            checks: wanted.checks.max(1),
            interval,
            ignore,
            ignore_rows: wanted.ignore_rows.clone(),
            last: 0,
            unchanged: 0,
            next: now + interval,
        };
        screen.last = screen.fingerprint_of(rows);
        Ok(screen)
    }

    /// Stands for the screen of the last check, without what is left out. Only good within this process.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.last
    }

    /// When the next check is due.
    #[must_use]
    pub fn next(&self) -> Instant {
        self.next
    }

    /// One check; true when the screen has been stable for long enough.
    pub fn check(&mut self, rows: &[String], now: Instant) -> bool {
        let fingerprint = self.fingerprint_of(rows);
        self.unchanged = if fingerprint == self.last { self.unchanged + 1 } else { 0 };
        self.last = fingerprint;
        self.next = (self.next + self.interval).max(now);
        self.unchanged >= self.checks
    }

    /// A hash of the screen without what always moves.
    fn fingerprint_of(&self, rows: &[String]) -> u64 {
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

/// Compiles a pattern for one row of a screen.
///
/// # Errors
/// A usage failure for a bad pattern.
pub fn compile_pattern(pattern: &str) -> Result<Regex, Failure> {
    // The same limits and messages as for patterns in output.
    PatternSet::compile(&[pattern]).map_err(|error| Failure::usage(error.to_string()))?;
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
        let mut screen = StableScreen::new(&Stable::default(), &rows("50%"), now).unwrap();
        let seen = ["50%", "50%", "60%", "60%", "60%", "60%"];
        let verdicts: Vec<bool> = seen.iter().map(|text| screen.check(&rows(text), now)).collect();
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
        let mut screen = StableScreen::new(&wanted, &rows("at 12:00 ok\nspin |"), now).unwrap();
        assert!(screen.check(&rows("at 12:01 ok\nspin /"), now));
        assert!(!screen.check(&rows("at 12:02 no\nspin -"), now));
    }
}
