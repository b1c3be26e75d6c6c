//! ruff check, in its full and its concise form, and ruff format --check.

use outlast_protocol::{Count, Finding, KnownTool, ToolOutcome};

use super::parse::{number_before, place};
use super::{Reading, Text, finding};

/// What `ruff format --check` calls a file that it would change.
const UNFORMATTED: &str = "unformatted";

pub(super) fn read(text: &Text<'_>) -> Option<ToolOutcome> {
    let named = text.names(&["ruff"]);
    let mut reading = Reading::default();
    let mut total = None;
    let mut formatted = false;
    for (i, line) in text.numbered() {
        let said = line.text.trim_end();
        if let Some((code, message)) = rule(said) {
            // Its place stands below it; `help` and code frames come later.
            let below = (i + 1..i + 4).map(|i| text.at(i).trim_start());
            if let Some((at, _)) = below.filter_map(|line| line.strip_prefix("--> ")).find_map(place) {
                formatted |= code == UNFORMATTED;
                reading.errors.push(finding(line, Some(at), Some(code), message));
            }
        } else if let Some((at, rest)) = place(said)
            && let Some((code, message)) = rest.strip_prefix(": ").and_then(rule)
        {
            reading.errors.push(finding(line, Some(at), Some(code), message));
        } else if let Some(counts) = said.strip_prefix("Found ")
            && !said.contains(" in ")
        {
            // With --fix: "Found 3 errors (2 fixed, 1 remaining)."
            total = number_before(counts, " remaining").or_else(|| number_before(said, " error"));
            if counts.contains(" fixed") && !counts.contains(" remaining") {
                total = None;
            }
        } else if said == "All checks passed!" && named {
            total = Some(0);
        } else if let Some(file) = said.strip_prefix("Would reformat: ") {
            formatted = true;
            reading.errors.push(Finding {
                file: Some(file.to_owned()),
                ..finding(line, None, None, "would be reformatted")
            });
        } else if let Some(why) = said.strip_prefix("error: ")
            && named
        {
            reading.errors.push(finding(line, None, None, why));
        }
    }
    if !named && (reading.errors.is_empty() || total.is_none()) {
        return None;
    }
    if let Some(total) = total
        && !formatted
        && (!text.whole || total == 0 || reading.errors.len() as u64 == total)
    {
        reading.count(Count::Errors, total);
    }
    reading.of(KnownTool::Ruff)
}

/// `F401 [*] message`, `invalid-syntax: message`.
fn rule(line: &str) -> Option<(&str, &str)> {
    for word in ["invalid-syntax", UNFORMATTED] {
        if let Some(message) = line.strip_prefix(word).and_then(|rest| rest.strip_prefix(": ")) {
            return Some((word, message));
        }
    }
    let (code, message) = line.split_once(' ')?;
    let letters = code.bytes().take_while(u8::is_ascii_uppercase).count();
    let is_code = (1..=5).contains(&letters)
        && code.len() > letters + 1
        && code.bytes().skip(letters).all(|byte| byte.is_ascii_digit());
    let message = message.strip_prefix("[*] ").unwrap_or(message);
    is_code.then_some((code, message))
}
