//! pytest: its last line has the totals, its sections the reasons.

use outlast_protocol::{Count, Finding, KnownTool, ToolOutcome};

use super::parse::{counted, place};
use super::{Line, Reading, Text, finding};

pub(super) fn read(text: &Text<'_>) -> Option<ToolOutcome> {
    let mut reading = Reading::default();
    let (mut total, mut runs) = (None, 0);
    let mut sections = Sections::default();
    for (i, line) in text.numbered() {
        if let Some(counts) = totals(line.text) {
            runs += 1;
            total = Some(counts);
            sections.end(text, i, &mut reading);
        } else if let Some(title) = framed(line.text, '_') {
            sections.end(text, i, &mut reading);
            sections.open = Some((title, i));
        } else if framed(line.text, '=').is_some() {
            sections.end(text, i, &mut reading);
        } else if let Some(what) =
            line.text.strip_prefix("FAILED ").or_else(|| line.text.strip_prefix("ERROR "))
        {
            sections.short.extend(short(line, what));
        }
    }
    if total.is_none() && text.names(&["pytest", "py.test"]) {
        // It could not even begin: a wrong option, a broken conftest.py.
        let usage = text.lines.iter().find(|line| {
            line.text.starts_with("ERROR: ") || line.text.contains("error: unrecognized arguments")
        });
        reading.errors.extend(usage.map(|line| finding(line, None, None, line.text)));
        let conftest = text.lines.iter().rev().find(|line| line.text.starts_with("E   "));
        if reading.errors.is_empty() {
            reading.errors.extend(conftest.map(|line| finding(line, None, None, &line.text[1..])));
        }
        return reading.of(KnownTool::Pytest);
    }
    let total = total?;
    // The totals of several runs are not told apart from those that a test printed.
    for (what, count) in total.into_iter().filter(|_| runs == 1) {
        reading.count(what, count);
    }
    if reading.errors.is_empty() {
        reading.errors = sections.short;
    }
    reading.of(KnownTool::Pytest)
}

#[derive(Default)]
struct Sections<'a> {
    /// The title of the failure that is being read, and its line.
    open: Option<(&'a str, usize)>,
    short: Vec<Finding>,
}

impl Sections<'_> {
    /// Takes the reason out of the section that ends here.
    fn end(&mut self, text: &Text<'_>, end: usize, reading: &mut Reading) {
        let Some((title, begin)) = self.open.take() else { return };
        let inside = &text.lines[begin + 1..end];
        // What the test itself printed comes after the traceback, and may look like anything.
        let is_captured =
            |line: &Line<'_>| framed(line.text, '-').is_some_and(|title| title.starts_with("Captured "));
        let inside = &inside[..inside.iter().position(is_captured).unwrap_or(inside.len())];
        let reason = |line: &&Line<'_>| line.text.starts_with("E  ");
        let Some(first) = inside.iter().find(reason) else { return };
        // The deepest place of the traceback, in the project rather than in a library.
        let places: Vec<_> = inside
            .iter()
            .filter_map(|line| place(line.text))
            .map(|(at, _)| at)
            .filter(|at| at.file.ends_with(".py") && !at.file.contains(' '))
            .collect();
        let own = |file: &str| {
            !file.contains("site-packages/") && !file.contains("/lib/python") && !file.contains("/versions/")
        };
        let at = places.iter().rev().find(|at| own(at.file)).or(places.last()).copied();
        let name = title
            .strip_prefix("ERROR at setup of ")
            .or_else(|| title.strip_prefix("ERROR at teardown of "))
            .unwrap_or(title);
        let name = if name.starts_with("ERROR collecting") { None } else { Some(name) };
        reading.errors.push(finding(first, at, name, first.text[1..].trim()));
    }
}

/// `2 failed, 1 passed in 0.11s`, framed or not.
fn totals(line: &str) -> Option<Vec<(Count, u64)>> {
    let said = line.trim_matches(['=', ' ']);
    let (counts, time) = said.rsplit_once(" in ")?;
    let is_time = time.split(' ').next()?.strip_suffix('s')?.parse::<f64>().is_ok();
    let counts = if counts == "no tests ran" { Vec::new() } else { counted(counts, ", ")? };
    let mut known = Vec::new();
    for (count, word) in counts {
        let what = match word {
            "failed" => Count::Failed,
            "passed" => Count::Passed,
            "error" | "errors" => Count::Errors,
            "skipped" => Count::Skipped,
            "xfailed" => Count::Xfailed,
            "xpassed" => Count::Xpassed,
            "warning" | "warnings" => Count::Warnings,
            "deselected" | "rerun" | "subtests passed" | "subtests failed" => continue,
            _ => return None,
        };
        known.push((what, count));
    }
    if counts_nothing(&known) {
        known.push((Count::Passed, 0));
    }
    is_time.then_some(known)
}

fn counts_nothing(known: &[(Count, u64)]) -> bool {
    known.is_empty()
}

/// The title in a line like `____ title ____`.
fn framed(line: &str, frame: char) -> Option<&str> {
    let line = line.trim_end();
    let bar: String = std::iter::repeat_n(frame, 3).collect();
    // Long titles leave one character of the frame at their end.
    let is_long = line.len() > 60 && line.starts_with(frame) && line.ends_with(frame);
    if !line.starts_with(&bar) && !is_long {
        return None;
    }
    let title = line.trim_matches(frame);
    (title.starts_with(' ') && title.ends_with(' ')).then(|| title.trim())
}

/// `FAILED test_a.py::test_b - reason`.
fn short(line: &Line<'_>, what: &str) -> Option<Finding> {
    let (id, reason) = what.split_once(" - ").unwrap_or((what, ""));
    let (file, name) = id.split_once("::").unwrap_or((id, ""));
    let is_test = file.ends_with(".py") || !name.is_empty();
    is_test.then(|| Finding {
        file: Some(file.to_owned()),
        ..finding(line, None, Some(name).filter(|name| !name.is_empty()), reason)
    })
}
