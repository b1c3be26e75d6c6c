//! The compiler of TypeScript.

use outlast_protocol::{Count, KnownTool, ToolOutcome};

use super::parse::{Place, digits, number_before, place};
use super::{Reading, Text, finding};

pub(super) fn read(text: &Text<'_>) -> Option<ToolOutcome> {
    let mut reading = Reading::default();
    let (mut errors, mut total) = (0, None);
    for line in text.lines {
        if let Some((at, code, message)) = diagnostic(line.text) {
            errors += 1;
            reading.errors.push(finding(line, at, Some(code), message));
        } else if line.text.starts_with("Found ") && line.text.contains(" error") {
            total = number_before(line.text, " error");
        }
    }
    if errors == 0 {
        return None;
    }
    if text.whole && total.is_none_or(|total| total == errors) {
        reading.count(Count::Errors, errors);
    }
    reading.of(KnownTool::Tsc)
}

/// `a.ts(1,7): error TS2322: message`, `a.ts:1:7 - error TS2322: message`, or `error TS5023: message`.
fn diagnostic(line: &str) -> Option<(Option<Place<'_>>, &str, &str)> {
    let (before, rest) = line.split_once("error TS")?;
    let (number, message) = digits(rest);
    number?;
    let code = &line[before.len() + "error ".len()..line.len() - message.len()];
    let message = message.strip_prefix(": ")?;
    if before.is_empty() {
        return Some((None, code, message));
    }
    let at = match before.strip_suffix(" - ") {
        Some(pretty) => place(pretty).filter(|(_, rest)| rest.is_empty())?.0,
        None => {
            let (file, position) = before.strip_suffix("): ")?.rsplit_once('(')?;
            Place { file, line: digits(position).0? }
        }
    };
    Some((Some(at), code, message))
}
