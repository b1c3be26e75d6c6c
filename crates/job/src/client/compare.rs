//! Compares two runs, or two moments: what was printed, or the screens, line by line.
//!
//! Only the requests that every job answers are used, so either side may be on another machine.

use std::time::{Duration, Instant};

use outlast_protocol::request::{Moment, ReadText, Stream};
use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use super::Job;
use crate::failure::{Failure, Kind};

/// How much of what a job printed is compared: the first and the last half of it where there is more.
pub const MAX_COMPARED: usize = 4 << 20;
/// Looking for the shortest difference ends after this long; what is found then is right, but longer than it had to be.
const DEADLINE: Duration = Duration::from_secs(2);
/// The most lines of an answer.
const MAX_LINES: usize = 5000;

/// How lines are compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompareLines {
    /// How many lines that are the same are shown around a difference.
    pub context: usize,
    /// Lines that differ only in digits are the same: times, durations, numbers of processes.
    pub ignore_numbers: bool,
}

/// What differs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Whether nothing does.
    pub same: bool,
    /// How many lines only the second has.
    pub added: usize,
    /// How many lines only the first has.
    pub removed: usize,
    /// Where they are.
    pub hunks: Vec<Hunk>,
    /// There is more than an answer may have.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// Lines that differ, with those around them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Hunk {
    /// The first of them on the first side, from 1.
    pub first: usize,
    /// The first of them on the second side, from 1.
    pub second: usize,
    /// The lines, in order.
    pub lines: Vec<ComparedLine>,
}

/// A line of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComparedLine {
    /// On which side it is.
    pub on: Side,
    /// What it says.
    pub text: String,
}

/// On which side a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// On both.
    Both,
    /// Only on the first.
    First,
    /// Only on the second.
    Second,
}

impl Job {
    /// All that it printed, as lines to compare, and whether some in the middle are left out.
    ///
    /// # Errors
    /// When the job's record cannot be read.
    pub fn lines_to_compare(&self) -> Result<(Vec<String>, bool), Failure> {
        let (mut lines, mut is_cut) = self.lines_of(Stream::Output)?;
        if !self.info()?.has_terminal() {
            let (stderr, is_stderr_cut) = self.lines_of(Stream::Stderr)?;
            if !stderr.is_empty() {
                lines.push("[stderr]".to_owned());
                lines.extend(stderr);
            }
            is_cut |= is_stderr_cut;
        }
        Ok((lines, is_cut))
    }

    fn lines_of(&self, stream: Stream) -> Result<(Vec<String>, bool), Failure> {
        let text = self.read(ReadText { stream, max: MAX_COMPARED, ..ReadText::default() })?;
        let mut lines: Vec<String> = text.head.lines().map(str::to_owned).collect();
        let is_cut = text.omitted.is_some();
        if is_cut {
            lines.push("[…]".to_owned());
        }
        lines.extend(text.tail.lines().map(str::to_owned));
        Ok((lines, is_cut))
    }

    /// The rows of its screen, as it was at a moment, as it is, or as it was last.
    ///
    /// # Errors
    /// A usage failure for a job without a terminal.
    pub fn rows_to_compare(&self, at: Option<Moment>) -> Result<Vec<String>, Failure> {
        if !self.info()?.has_terminal() {
            let said = format!("job {} runs on pipes: it has no screen", self.handle());
            return Err(Failure::usage(said).hint("leave out --screen and --at: what it printed is compared"));
        }
        let end = Moment::Time(u64::MAX);
        let rows = match at {
            Some(moment) => self.screen_at(moment, false)?.rows,
            None => match self.screen(false, 0) {
                Err(failure) if failure.kind == Kind::NotRunning => match self.last_screen()? {
                    Some(text) => text.lines().map(str::to_owned).collect(),
                    None => self.screen_at(end, false)?.rows,
                },
                shot => shot?.rows,
            },
        };
        let mut rows: Vec<String> = rows.iter().map(|row| row.trim_end().to_owned()).collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        Ok(rows)
    }
}

/// What differs between two lists of lines. Blanks at the end of a line do not count.
#[must_use]
pub fn compare_lines(first: &[String], second: &[String], how: CompareLines) -> Difference {
    let keys = |lines: &[String]| -> Vec<String> { lines.iter().map(|line| key(line, how)).collect() };
    let (old, new) = (keys(first), keys(second));
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(Instant::now() + DEADLINE));
    let mut difference = Difference { same: true, ..Difference::default() };
    for op in &ops {
        let (_, old, new) = op.as_tag_tuple();
        if !matches!(op, DiffOp::Equal { .. }) {
            difference.same = false;
            difference.removed += old.len();
            difference.added += new.len();
        }
    }
    let mut count = 0;
    for group in similar::group_diff_ops(ops, how.context) {
        let Some(start) = group.first() else { continue };
        let mut hunk = Hunk {
            first: start.old_range().start + 1,
            second: start.new_range().start + 1,
            lines: Vec::new(),
        };
        for op in &group {
            let (_, old, new) = op.as_tag_tuple();
            let mut add = |on, lines: &[String]| {
                hunk.lines.extend(lines.iter().map(|text| ComparedLine { on, text: text.clone() }));
            };
            if matches!(op, DiffOp::Equal { .. }) {
                add(Side::Both, &second[new]);
            } else {
                add(Side::First, &first[old]);
                add(Side::Second, &second[new]);
            }
        }
        if count + hunk.lines.len() > MAX_LINES {
            hunk.lines.truncate(MAX_LINES - count);
            difference.cut = true;
        }
        count += hunk.lines.len();
        if !hunk.lines.is_empty() {
            difference.hunks.push(hunk);
        }
        if difference.cut {
            break;
        }
    }
    difference
}

/// What of a line is compared.
fn key(line: &str, how: CompareLines) -> String {
    let line = line.trim_end();
    if !how.ignore_numbers {
        return line.to_owned();
    }
    let mut key = String::with_capacity(line.len());
    let mut in_number = false;
    for letter in line.chars() {
        // The point within a number belongs to it: 9.8s and 10s are both one number and an s.
        let is_number = letter.is_ascii_digit() || (in_number && letter == '.');
        if !is_number {
            key.push(letter);
        } else if !in_number {
            key.push('0');
        }
        in_number = is_number;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn what_differs_is_found_with_its_places() {
        let (first, second) = (lines("a\nb\nc\nd\ne"), lines("a\nb  \nx\nd\ne\nf"));
        let how = CompareLines { context: 1, ignore_numbers: false };
        let found = compare_lines(&first, &second, how);
        assert_eq!((found.same, found.added, found.removed), (false, 2, 1));
        assert_eq!(found.hunks.len(), 1);
        assert_eq!((found.hunks[0].first, found.hunks[0].second), (2, 2));
        let said: Vec<_> = found.hunks[0].lines.iter().map(|line| (line.on, line.text.as_str())).collect();
        use Side::{Both, First, Second};
        let wanted = [(Both, "b  "), (First, "c"), (Second, "x"), (Both, "d"), (Both, "e"), (Second, "f")];
        assert_eq!(said, wanted);
    }

    #[test]
    fn numbers_can_be_left_out() {
        let (first, second) = (lines("took 9.81s, pid 4\nok"), lines("took 10s, pid 512\nok"));
        let how = CompareLines { context: 3, ignore_numbers: true };
        assert!(compare_lines(&first, &second, how).same);
        assert!(!compare_lines(&first, &second, CompareLines { ignore_numbers: false, ..how }).same);
        assert!(!compare_lines(&lines("took 1s"), &lines("took 1ms"), how).same);
    }

    #[test]
    fn an_answer_is_bounded() {
        let many: Vec<String> = (0..20_000).map(|n| format!("line {n}")).collect();
        let found = compare_lines(&[], &many, CompareLines::default());
        assert_eq!((found.added, found.cut), (20_000, true));
        assert_eq!(found.hunks.iter().map(|hunk| hunk.lines.len()).sum::<usize>(), MAX_LINES);
    }
}
