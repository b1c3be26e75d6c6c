//! mypy.

use outlast_protocol::{Count, KnownTool, ToolOutcome};

use super::parse::{number_before, place};
use super::{Reading, Text, finding};

pub(super) fn read(text: &Text<'_>) -> Option<ToolOutcome> {
    let mut reading = Reading::default();
    let mut total = None;
    for line in text.lines {
        let said = line.text.trim_end();
        if said.starts_with("Found ")
            && said.contains(" error")
            && (said.contains("(checked ") || said.contains("(errors prevented"))
        {
            total = number_before(said, " error");
        } else if said.starts_with("Success: no issues found in ") {
            total = Some(0);
        } else if let Some((at, rest)) = place(said)
            && let Some(message) = rest.trim_start_matches(':').trim_start().strip_prefix("error: ")
            && (at.file.ends_with(".py") || at.file.ends_with(".pyi"))
        {
            let (message, code) = match message.strip_suffix(']').and_then(|rest| rest.rsplit_once("  [")) {
                Some((message, code)) => (message, Some(code)),
                None => (message, None),
            };
            reading.errors.push(finding(line, Some(at), code, message));
        } else if let Some(why) =
            said.strip_prefix("mypy: error: ").or_else(|| said.strip_prefix("mypy: can't "))
        {
            reading.errors.push(finding(line, None, None, why));
        }
    }
    if total.is_none() && !text.names(&["mypy", "dmypy"]) {
        return None;
    }
    // Each error is a line.
    if let Some(total) = total
        && (!text.whole || reading.errors.len() as u64 == total)
    {
        reading.count(Count::Errors, total);
    }
    reading.of(KnownTool::Mypy)
}
