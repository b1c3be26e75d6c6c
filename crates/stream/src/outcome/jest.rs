//! jest.

use outlast_protocol::{Count, KnownTool, ToolOutcome};

use super::parse::{Place, counted, digits};
use super::{Reading, Text, finding};

pub(super) fn read(text: &Text<'_>) -> Option<ToolOutcome> {
    let mut reading = Reading::default();
    let (mut total, mut runs) = (None, 0);
    let mut suites_failed = 0;
    let mut seen = std::collections::BTreeSet::new();
    for (i, line) in text.numbered() {
        if let Some(counts) = line.text.strip_prefix("Tests: ") {
            runs += 1;
            total = counts_of(counts);
        } else if let Some(counts) = line.text.strip_prefix("Test Suites: ") {
            let counts = counted(counts, ", ").unwrap_or_default();
            suites_failed = counts.iter().find(|(_, word)| *word == "failed").map_or(0, |(count, _)| *count);
        } else if let Some(name) = line.text.strip_prefix("  ● ").filter(|name| !name.starts_with("Console"))
        {
            // Long runs print all failures once more at their end.
            let (at, message) = reason(text, i);
            if seen.insert((name, at.map(|at| (at.file, at.line)))) {
                reading.errors.push(finding(line, at, Some(name), message));
            }
        }
    }
    let total = total?;
    for (what, count) in total.into_iter().filter(|_| runs == 1) {
        reading.count(what, count);
    }
    if runs == 1 && suites_failed == 0 && reading.counts.get(&Count::Failed).is_none_or(|count| *count == 0) {
        // What looks like a failure is an obsolete snapshot, or the like.
        reading.errors.clear();
    }
    reading.of(KnownTool::Jest)
}

fn counts_of(text: &str) -> Option<Vec<(Count, u64)>> {
    let mut known = vec![(Count::Failed, 0), (Count::Passed, 0)];
    for (count, word) in counted(text, ", ")? {
        known.push(match word {
            "failed" => (Count::Failed, count),
            "passed" => (Count::Passed, count),
            "skipped" => (Count::Skipped, count),
            "todo" => (Count::Todo, count),
            "total" => continue,
            _ => return None,
        });
    }
    Some(known)
}

/// What a failure says, and its place: the marked line of the code frame, in the file of the stack below.
fn reason<'a>(text: &Text<'a>, begin: usize) -> (Option<Place<'a>>, &'a str) {
    let mut message = "";
    let mut marked = None;
    for i in text.below(begin) {
        let line = text.at(i);
        if line.starts_with("  ● ") || line.starts_with("Test Suites: ") {
            break;
        }
        let said = line.trim();
        if message.is_empty() && !said.is_empty() {
            message = said;
        }
        if let Some(number) = line.strip_prefix("    > ").and_then(|rest| digits(rest.trim_start()).0) {
            marked = Some(number);
        }
        if let Some(at) = said.strip_prefix("at ").and_then(stack_place)
            && marked.is_none_or(|line| at.line == line)
            && !at.file.contains("node_modules/")
            && !at.file.starts_with("node:")
        {
            return (Some(at), message);
        }
    }
    (None, message)
}

/// `Object.toBe (sum.test.js:4:23)` or `sum.test.js:4:23`.
pub(super) fn stack_place(frame: &str) -> Option<Place<'_>> {
    let inner = frame.rsplit_once('(').map_or(frame, |(_, inner)| inner).trim_end_matches(')');
    let inner = inner.strip_prefix("file://").unwrap_or(inner);
    super::parse::place(inner).map(|(at, _)| at)
}
