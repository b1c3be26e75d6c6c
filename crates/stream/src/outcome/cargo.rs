//! cargo and rustc: diagnostics with their totals, and the results of test binaries.

use outlast_protocol::{Count, KnownTool, ToolOutcome};

use super::parse::{between, digits, number_before, place};
use super::{Line, Reading, Text, finding};

/// How far below a diagnostic's first line its place may stand.
const PLACE_WITHIN: usize = 8;

pub(super) fn read(text: &Text<'_>) -> Option<ToolOutcome> {
    let mut seen = Seen::default();
    for (i, line) in text.numbered() {
        seen.line(text, i, line);
    }
    let named = text.names(&["cargo", "rustc", "rustdoc"]);
    if !(seen.is_cargo || named && seen.errors > 0) {
        return None;
    }
    let Seen { mut reading, errors, warnings, .. } = seen;
    if text.whole && seen.totals.agree(errors, warnings) {
        let tested = seen.results > 0;
        if seen.finished || !seen.totals.errors.is_empty() {
            if !tested || errors > 0 {
                reading.count(Count::Errors, errors);
            }
            if !tested || warnings > 0 {
                reading.count(Count::Warnings, warnings);
            }
        }
    }
    if seen.results > 0 && seen.results == seen.begun && text.whole {
        reading.count(Count::Failed, seen.failed);
        reading.count(Count::Passed, seen.passed);
        reading.count(Count::Skipped, seen.ignored);
    }
    reading.of(KnownTool::Cargo)
}

#[derive(Default)]
struct Seen {
    reading: Reading,
    is_cargo: bool,
    finished: bool,
    errors: u64,
    warnings: u64,
    totals: Totals,
    /// How many test binaries began, and how many of them gave a result.
    begun: u64,
    results: u64,
    passed: u64,
    failed: u64,
    ignored: u64,
    /// The failed test whose output is being read, and whether its reason was found.
    section: Option<(String, u64)>,
}

/// What the compiler itself counted, a target each.
#[derive(Default)]
struct Totals {
    errors: Vec<u64>,
    warnings: Vec<u64>,
    /// Warnings that were not printed again for a second target.
    duplicates: u64,
}

impl Totals {
    /// Whether the diagnostics that were seen are those that were counted. A diagnostic that two targets share is printed
    /// once, so then the largest total is as good as the sum.
    fn agree(&self, errors: u64, warnings: u64) -> bool {
        let is_total = |seen: u64, totals: &[u64], duplicates: u64| {
            let sum = totals.iter().sum::<u64>().saturating_sub(duplicates);
            seen == sum || totals.len() > 1 && Some(&seen) == totals.iter().max()
        };
        is_total(errors, &self.errors, 0) && is_total(warnings, &self.warnings, self.duplicates)
    }
}

impl Seen {
    fn line(&mut self, text: &Text<'_>, i: usize, line: &Line<'_>) {
        let said = line.text.trim_end();
        let words = said.trim_start();
        if words.starts_with("Finished `")
            || words.starts_with("Finished dev ")
            || words.starts_with("Finished release ")
        {
            (self.is_cargo, self.finished) = (true, true);
        } else if let Some(result) = said.strip_prefix("test result: ") {
            self.result(result);
        } else if let Some(count) = said.strip_prefix("running ")
            && (count.ends_with(" tests") || count.ends_with(" test"))
        {
            self.begun += 1;
        } else if let Some(name) =
            said.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            self.end_section(text, i);
            self.section = Some((name.to_owned(), line.at));
        } else if let Some(at) = said.strip_prefix("Diff in ").filter(|_| text.names(&["cargo", "rustfmt"])) {
            self.is_cargo = true;
            self.reading.errors.push(finding(line, place(at).map(|(at, _)| at), None, "is not formatted"));
        } else if said == "failures:" {
            self.end_section(text, i);
        } else if said.starts_with("thread '") && said.contains("panicked at ") {
            self.panic(text, i, line);
        } else if let Some((severity, code, message)) = diagnostic(said) {
            self.diagnostic(text, i, line, (severity, code, message));
        }
    }

    fn result(&mut self, result: &str) {
        let Some((_, counts)) = result.split_once(". ") else { return };
        let number = |word: &str| number_before(counts, word);
        if let (Some(passed), Some(failed), Some(ignored)) =
            (number(" passed"), number(" failed"), number(" ignored"))
        {
            self.is_cargo = true;
            self.results += 1;
            self.passed += passed;
            self.failed += failed;
            self.ignored += ignored;
        }
    }

    /// A failed test that did not panic: it returned an error, or was to panic and did not.
    fn end_section(&mut self, text: &Text<'_>, end: usize) {
        let Some((name, at)) = self.section.take() else { return };
        let begin = text.lines.partition_point(|line| line.at < at);
        let inside = text.lines.get(begin + 1..end).unwrap_or_default();
        let Some(line) = inside.iter().find(|line| !line.text.trim().is_empty()) else { return };
        let said = inside
            .iter()
            .find(|line| line.text.starts_with("Error: ") || line.text.starts_with("note: "))
            .unwrap_or(line);
        self.reading.errors.push(finding(said, None, Some(&name), said.text));
    }

    fn panic(&mut self, text: &Text<'_>, i: usize, line: &Line<'_>) {
        let Some((_, rest)) = line.text.split_once("panicked at ") else { return };
        let name = self.section.take().map(|(name, _)| name);
        let name = name.or_else(|| between(line.text, "thread '", "'").map(ToOwned::to_owned));
        // Since Rust 1.73 the message is in the next line; before, it stood in quotes before the place.
        let (at, message) = match rest.strip_prefix('\'').and_then(|rest| rest.rsplit_once("', ")) {
            Some((message, at)) => (at, message.to_owned()),
            None => (rest, message_below(text, i + 1)),
        };
        let at = place(at).map(|(at, _)| at);
        self.reading.errors.push(finding(line, at, name.as_deref(), &message));
        self.is_cargo |= text.names(&["cargo"]);
    }

    fn diagnostic(
        &mut self,
        text: &Text<'_>,
        i: usize,
        line: &Line<'_>,
        said: (Severity, Option<&str>, &str),
    ) {
        let (severity, code, message) = said;
        if self.total(severity, message) {
            self.is_cargo = true;
            return;
        }
        // Cargo's own lines about what it will do next.
        if message.starts_with("build failed, waiting")
            || message.contains("test failed, to rerun")
            || message.ends_with(" failed:")
        {
            self.is_cargo = true;
            return;
        }
        let below = (i + 1..i + 1 + PLACE_WITHIN).map(|i| text.at(i)).take_while(|line| !line.is_empty());
        let at = below.filter_map(|line| line.trim_start().strip_prefix("--> ")).find_map(place);
        let one = finding(line, at.map(|(at, _)| at), code, message);
        match severity {
            Severity::Error => {
                self.errors += 1;
                self.reading.errors.push(one);
            }
            // Cargo's own warnings have no place, and are in no total.
            Severity::Warning if at.is_none() => {}
            Severity::Warning => {
                self.warnings += 1;
                self.reading.warnings.push(one);
            }
        }
    }

    /// Takes a line that counts what was printed before; says whether it is one.
    fn total(&mut self, severity: Severity, message: &str) -> bool {
        if severity == Severity::Error
            && (message.starts_with("could not compile `") || message.starts_with("aborting due to "))
        {
            let errors = number_before(message, " previous error")
                .or(message.contains("due to previous error").then_some(1));
            self.totals.errors.extend(errors);
            self.totals.warnings.extend(number_before(message, " warning"));
            return true;
        }
        if severity == Severity::Warning
            && message.starts_with('`')
            && let Some((_, generated)) = message.split_once(" generated ")
        {
            self.totals.warnings.extend(digits(generated).0);
            self.totals.duplicates += number_before(generated, " duplicate").unwrap_or(0);
            return true;
        }
        if severity == Severity::Warning
            && (message.ends_with(" warnings emitted") || message.ends_with(" warning emitted"))
        {
            self.totals.warnings.extend(digits(message).0);
            self.finished = true;
            return true;
        }
        false
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Severity {
    Error,
    Warning,
}

/// `error[E0308]: message`.
fn diagnostic(line: &str) -> Option<(Severity, Option<&str>, &str)> {
    let (severity, rest) = match line.strip_prefix("error") {
        Some(rest) => (Severity::Error, rest),
        None => (Severity::Warning, line.strip_prefix("warning")?),
    };
    let (code, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(code, rest)| (Some(code), rest))?,
        None => (None, rest),
    };
    let message = rest.strip_prefix(": ")?;
    (!message.trim().is_empty()).then_some((severity, code, message))
}

/// What a panic says, with both sides of an assertion.
fn message_below(text: &Text<'_>, from: usize) -> String {
    let mut message = text.at(from).trim().to_owned();
    for i in from + 1..from + 3 {
        let side = text.at(i).trim();
        if side.starts_with("left: ") || side.starts_with("right: ") {
            message = format!("{message}, {side}");
        }
    }
    message
}
