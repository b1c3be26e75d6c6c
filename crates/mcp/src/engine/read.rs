//! Reads what a job printed.

use outlast_job::request::{Grep, JobRequest, Lines, ReadBytes, ReadText, Stream};
use outlast_job::{Failure, Job, Reason, Waited};

use super::{Caller, Engine, Shown};
use crate::answer::Answer;
use crate::printed::{self, Printed};

/// Room for what is said besides lines that were looked for, or raw bytes.
const OTHER_WORDS: usize = 256;

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

fn count(lines: u64) -> usize {
    usize::try_from(lines).unwrap_or(usize::MAX)
}

impl Engine {
    pub(crate) fn read(&self, caller: &Caller, job: &Job, order: &ReadOrder) -> Result<Answer, Failure> {
        let cursor = self.cursors.get(&caller.session, job.handle());
        let stream = if order.stderr { Stream::Stderr } else { Stream::Output };
        let unseen = if order.stderr { cursor.errors } else { cursor.read };
        let from = order.offset.unwrap_or(if order.is_picky() { 0 } else { unseen });
        let (from, to) = match order.head {
            // The last lines of the first ones.
            Some(head) if order.tail.is_some() => {
                let (to, lines) = (order.until, Some(Lines::First(count(head))));
                let (from, to) =
                    job.borders(ReadBytes { stream, from, to, lines, ..ReadBytes::default() })?;
                (from, Some(to))
            }
            _ => (from, order.until),
        };
        let lines = order.tail.map(|tail| Lines::Last(count(tail)));
        let lines = lines.or(order.head.map(|head| Lines::First(count(head))));
        let read = ReadText { stream, from, to, lines, ..ReadText::default() };
        let mut notes = Vec::new();
        let bytes = ReadBytes { stream, from, to, lines, max: 0, as_is: true };
        job.expect([JobRequest::ReadBytes(bytes)]);
        let info = job.info_to_show()?;
        let answer = Answer::of((job, self.words), &info);
        // What is said besides needs room too.
        let room = order.budget.saturating_sub(OTHER_WORDS);
        let mut answer = match &order.pattern {
            Some(pattern) => {
                let grep = Grep { range: ReadText { max: room, ..read }, pattern: pattern.clone() };
                answer.printed(matching_lines(job, grep, &mut notes)?, order.budget)
            }
            None if order.raw => {
                let mut part = printed::raw(job, bytes, room)?;
                if let Some((from, to)) = part.omitted.take() {
                    let call = self.words.read_raw(job.handle(), from);
                    notes.push(format!("{} bytes more: {call}", to - from));
                }
                answer.printed(part, order.budget)
            }
            None => {
                let (from, to) = job.borders(bytes)?;
                answer.showing(ReadText { from, to: Some(to), lines: None, ..read }, order.budget)
            }
        };
        let (begin, end) = answer.range;
        answer.notes = notes;
        if let Some(offset) = order.offset.filter(|offset| *offset > end) {
            answer.note(match order.until.filter(|until| *until < offset) {
                Some(until) => {
                    format!("until ({until}) is before offset ({offset}): there is nothing between")
                }
                None => format!("offset {offset} is past the end, which is {end}"),
            });
        }
        // Only reading on from where the session was moves its cursor: a look elsewhere does not.
        let reads_on = order.pattern.is_none() && begin <= unseen && end >= unseen;
        if reads_on && order.stderr {
            let seen = crate::cursors::Cursor { errors: end, ..cursor };
            self.note_seen(caller, job.handle(), seen);
        } else if reads_on {
            let errors =
                if order.is_picky() { None } else { self.add_errors((job, &info), caller, &mut answer)? };
            let waited = Waited::because(Reason::Output, end);
            self.remember(job, caller, &mut answer, (Shown::Seen, &waited), errors);
        }
        Ok(answer)
    }
}

/// The lines of a range that a regular expression is found in, with their numbers.
fn matching_lines(job: &Job, grep: Grep, notes: &mut Vec<String>) -> Result<Printed, Failure> {
    let Grep { range: ReadText { max, .. }, .. } = grep;
    let matches = job.grep(grep)?;
    let (searched, found) = (matches.searched, matches.found);
    let mut text = String::new();
    let mut shown = 0;
    for line in &matches.lines {
        let entry = format!("{}: {}\n", line.number, line.text);
        // The numbers need room too.
        if text.len() + entry.len() > max {
            break;
        }
        text.push_str(&entry);
        shown += 1;
    }
    let left_out = found - shown;
    notes.push(match (found, left_out) {
        (0, _) => format!("no line of {searched} matches"),
        (found, 0) => format!("{found} of {searched} lines match"),
        (found, left_out) => format!(
            "{found} of {searched} lines match; the last {left_out} are not shown: use a narrower pattern"
        ),
    });
    let (from, to) = (matches.from, matches.offset);
    Ok(Printed { text: printed::shown(&text), from, to, end: to, omitted: None })
}
