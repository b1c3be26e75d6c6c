//! Reads what a job printed.

use outlast_job::client::read::{Range, Stream};
use outlast_job::{Failure, Job, Reason, Waited};
use regex_automata::meta::Regex;

use super::{Caller, Engine, Shown};
use crate::answer::Answer;
use crate::printed::{self, Printed};

/// Which part of the output.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadOrder {
    pub(crate) offset: Option<u64>,
    pub(crate) until: Option<u64>,
    pub(crate) head: Option<u64>,
    pub(crate) tail: Option<u64>,
    pub(crate) pattern: Option<String>,
    pub(crate) raw: bool,
    pub(crate) stderr: bool,
    pub(crate) budget: usize,
}

impl ReadOrder {
    /// Whether a part was named; else it is what the session has not seen yet.
    fn is_picky(&self) -> bool {
        self.offset.is_some()
            || self.until.is_some()
            || self.head.is_some()
            || self.tail.is_some()
            || self.pattern.is_some()
            || self.raw
    }
}

impl Engine {
    pub(crate) fn read(&self, caller: &Caller, job: &Job, order: &ReadOrder) -> Result<Answer, Failure> {
        let cursor = self.cursors.get(&caller.session, job.handle());
        let stream = if order.stderr { Stream::Errors } else { Stream::Output };
        let unseen = if order.stderr { cursor.errors } else { cursor.read };
        let from = order.offset.unwrap_or(if order.is_picky() { 0 } else { unseen });
        let mut range = job.range(stream, from, order.until)?;
        if let Some(count) = order.head {
            range = range.first_lines(usize::try_from(count).unwrap_or(usize::MAX));
        }
        if let Some(count) = order.tail {
            range = range.last_lines(usize::try_from(count).unwrap_or(usize::MAX));
        }
        let mut notes = Vec::new();
        let part = match &order.pattern {
            Some(pattern) => matching_lines(&range, pattern, order.budget, &mut notes)?,
            None if order.raw => printed::raw((job, self.words), &range, order.budget),
            None => printed::of((job, self.words), &range, order.budget),
        };
        let info = job.info_to_show()?;
        let mut answer = Answer::of((job, self.words), &info).printed(part);
        answer.notes = notes;
        if let Some(offset) = order.offset.filter(|offset| *offset > range.to()) {
            answer.note(format!("offset {offset} is past the end, which is {}", range.to()));
        }
        // Only reading on from where the session was moves its cursor: a look elsewhere does not.
        let reads_on = order.pattern.is_none() && range.from() <= unseen && range.to() >= unseen;
        if reads_on && order.stderr {
            let seen = crate::cursors::Cursor { errors: range.to(), ..cursor };
            self.cursors.set(&caller.session, job.handle(), seen);
        } else if reads_on {
            let errors = if order.is_picky() {
                None
            } else {
                self.add_errors((job, &info), caller, &mut answer, order.budget)?
            };
            let waited = Waited::because(Reason::Output, range.to());
            self.remember(job, caller, &mut answer, (Shown::Seen, &waited), errors);
        }
        Ok(answer)
    }
}

/// The lines of a range that a regular expression is found in, with their numbers.
fn matching_lines(
    range: &Range,
    pattern: &str,
    budget: usize,
    notes: &mut Vec<String>,
) -> Result<Printed, Failure> {
    let regex = Regex::new(pattern).map_err(|error| {
        Failure::usage(format!("the pattern {pattern:?} is no regular expression: {error}"))
            .hint("write \\( for a bracket, \\. for a dot, \\$ for a dollar")
    })?;
    let mut lines =
        Matching { regex, text: String::new(), rest: Vec::new(), number: 0, found: 0, left_out: 0, budget };
    range.fold(|bytes| {
        lines.feed(bytes);
        true
    });
    lines.finish();
    notes.push(match (lines.found, lines.left_out) {
        (0, _) => format!("no line of {} matches", lines.number),
        (found, 0) => format!("{found} of {} lines match", lines.number),
        (found, left_out) => format!(
            "{found} of {} lines match; the last {left_out} are not shown: use a narrower pattern, or offset",
            lines.number
        ),
    });
    let omitted_bytes = 0;
    Ok(Printed { text: printed::shown(&lines.text), from: range.from(), to: range.to(), omitted_bytes })
}

struct Matching {
    regex: Regex,
    text: String,
    rest: Vec<u8>,
    number: u64,
    found: u64,
    left_out: u64,
    budget: usize,
}

impl Matching {
    fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == b'\n' {
                self.line();
            } else {
                self.rest.push(*byte);
            }
        }
    }

    fn finish(&mut self) {
        if !self.rest.is_empty() {
            self.line();
        }
    }

    fn line(&mut self) {
        self.number += 1;
        let line = std::mem::take(&mut self.rest);
        if !self.regex.is_match(&line[..]) {
            return;
        }
        self.found += 1;
        let line = String::from_utf8_lossy(&line);
        let entry = format!("{}: {line}\n", self.number);
        if self.left_out > 0 || self.text.len() + entry.len() > self.budget {
            self.left_out += 1;
        } else {
            self.text.push_str(&entry);
        }
    }
}
