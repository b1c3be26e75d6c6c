//! vitest.

use outlast_protocol::{Count, KnownTool, ToolOutcome};

use super::parse::{Place, counted, place};
use super::{Reading, Text, finding};

pub(super) fn read(text: &Text<'_>) -> Option<ToolOutcome> {
    let mut reading = Reading::default();
    let (mut total, mut runs) = (None, 0);
    let mut seen = std::collections::BTreeSet::new();
    let mut files = false;
    for (i, line) in text.numbered() {
        let said = line.text.trim();
        if said.starts_with("Test Files  ") {
            files = true;
        } else if let Some(counts) =
            said.strip_prefix("Tests  ").or_else(|| (said == "Tests  no tests").then_some("no tests"))
            && files
        {
            runs += 1;
            total = counts_of(counts.trim());
        } else if let Some(name) = line.text.strip_prefix(" FAIL  ")
            && seen.insert(name.trim())
        {
            let (at, message) = reason(text, i);
            let (file, test) = name.trim().split_once(" > ").unwrap_or((name.trim(), ""));
            let mut one = finding(line, at, Some(test).filter(|test| !test.is_empty()), message);
            one.file = one.file.or_else(|| Some(file.split(" [").next().unwrap_or(file).to_owned()));
            reading.errors.push(one);
        }
    }
    let total = total?;
    for (what, count) in total.into_iter().filter(|_| runs == 1) {
        reading.count(what, count);
    }
    reading.of(KnownTool::Vitest)
}

/// `1 failed | 1 passed | 1 todo (3)`.
fn counts_of(text: &str) -> Option<Vec<(Count, u64)>> {
    let mut known = vec![(Count::Failed, 0), (Count::Passed, 0)];
    if text == "no tests" {
        return Some(known);
    }
    let (counts, _) = text.rsplit_once(" (")?;
    for (count, word) in counted(counts, " | ")? {
        known.push(match word {
            "failed" => (Count::Failed, count),
            "passed" => (Count::Passed, count),
            "skipped" => (Count::Skipped, count),
            "todo" => (Count::Todo, count),
            "expected fail" => (Count::Xfailed, count),
            _ => return None,
        });
    }
    Some(known)
}

/// What a failure says, and its place: ` ❯ cart.test.js:3:17`.
fn reason<'a>(text: &Text<'a>, begin: usize) -> (Option<Place<'a>>, &'a str) {
    let mut message = "";
    for i in text.below(begin) {
        let line = text.at(i);
        if line.starts_with("⎯⎯⎯") && !message.is_empty() {
            break;
        }
        let said = line.trim();
        if message.is_empty() && !said.is_empty() && !line.starts_with(" FAIL  ") {
            message = said;
        }
        if let Some(rest) = said.strip_prefix("❯ ") {
            // A frame of the stack may name its function first.
            let at = rest.split_once(' ').and_then(|(_, rest)| place(rest)).or_else(|| place(rest));
            if let Some((at, _)) = at
                && !at.file.contains("node_modules/")
            {
                return (Some(at), message);
            }
        }
    }
    (None, message)
}
