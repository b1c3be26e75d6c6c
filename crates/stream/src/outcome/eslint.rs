//! eslint, in its usual form.

use outlast_protocol::{Count, Finding, KnownTool, ToolOutcome};

use super::parse::{between, counted, digits};
use super::{Reading, Text, finding};

pub(super) fn read(text: &Text<'_>) -> Option<ToolOutcome> {
    let mut reading = Reading::default();
    let mut file = None;
    let (mut total, mut runs) = (None, 0);
    for line in text.lines {
        let said = line.text.trim_end();
        if let Some((number, severity, message, rule)) = problem(said) {
            let one = Finding {
                file: file.map(ToOwned::to_owned),
                line: Some(number),
                ..finding(line, None, rule, message)
            };
            if severity == "error" {
                reading.errors.push(one);
            } else {
                reading.warnings.push(one);
            }
        } else if said.starts_with('✖') && said.contains(" problem") {
            runs += 1;
            total = between(said, "(", ")").and_then(|counts| counted(counts, ", "));
        } else if said.is_empty() {
            file = None;
        } else if !said.starts_with([' ', '\t']) {
            file = Some(said);
        }
    }
    let Some(total) = total else {
        // A broken configuration, or nothing to check.
        let oops = text.lines.iter().position(|line| line.text.starts_with("Oops! Something went wrong!"))?;
        let said = text.lines[oops + 1..]
            .iter()
            .find(|line| !line.text.trim().is_empty() && !line.text.starts_with("ESLint: "))?;
        let mut reading = Reading::default();
        reading.errors.push(finding(said, None, None, said.text));
        return reading.of(KnownTool::Eslint);
    };
    for (count, word) in total.into_iter().filter(|_| runs == 1) {
        match word {
            "error" | "errors" => reading.count(Count::Errors, count),
            "warning" | "warnings" => reading.count(Count::Warnings, count),
            _ => return None,
        }
    }
    reading.of(KnownTool::Eslint)
}

/// `  2:5   error    'y' is not defined   no-undef`.
fn problem(line: &str) -> Option<(u64, &str, &str, Option<&str>)> {
    let (number, rest) = digits(line.strip_prefix("  ")?.trim_start());
    let (column, rest) = digits(rest.strip_prefix(':')?);
    column?;
    let rest = rest.trim_start();
    let (severity, rest) = rest.split_once(' ')?;
    if severity != "error" && severity != "warning" {
        return None;
    }
    // The rule is the last column; a broken file has none.
    let (message, rule) = match rest.trim().rsplit_once("  ") {
        Some((message, rule)) if !rule.contains(' ') => (message, Some(rule)),
        _ => (rest, None),
    };
    Some((number?, severity, message.trim(), rule))
}
