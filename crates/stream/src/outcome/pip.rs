//! pip.

use outlast_protocol::{Count, KnownTool, ToolOutcome};

use super::{Reading, Text, finding};

pub(super) fn read(text: &Text<'_>) -> Option<ToolOutcome> {
    if !text.names(&["pip", "pip3"]) {
        return None;
    }
    let mut reading = Reading::default();
    let mut context = Vec::new();
    for (i, line) in text.numbered() {
        let said = line.text.trim();
        if let Some(packages) = line.text.strip_prefix("Successfully installed ") {
            reading.add(Count::Added, packages.split_whitespace().count() as u64);
        } else if line.text.starts_with("Successfully uninstalled ")
            || line.text.starts_with("  Successfully uninstalled ")
        {
            reading.add(Count::Removed, 1);
        } else if let Some(message) = line.text.strip_prefix("ERROR: ") {
            let one = finding(line, None, None, message);
            // The first of the two lines only says that the search found nothing.
            if message.starts_with("No matching distribution") {
                reading.errors.insert(0, one)
            } else {
                reading.errors.push(one)
            }
        } else if said.starts_with("error: ") || said.starts_with("× ") && reading.errors.is_empty() {
            if let Some(inner) = build_error(text, i) {
                reading.errors.extend(inner);
            }
            context.push(finding(line, None, None, said.trim_start_matches("× ")));
        }
    }
    if reading.errors.is_empty() {
        reading.errors = context;
    }
    let satisfied = text.lines.iter().any(|line| line.text.starts_with("Requirement already satisfied: "));
    if text.succeeded && satisfied && text.whole {
        reading.add(Count::Added, 0);
    }
    reading.of(KnownTool::Pip)
}

/// What went wrong while a package was built: the last line of the output that pip quotes.
fn build_error(text: &Text<'_>, from: usize) -> Option<Option<outlast_protocol::Finding>> {
    let begin = (from..text.lines.len().min(from + 8)).find(|i| text.at(*i).contains("lines of output]"))?;
    let end = text.below(begin).find(|i| text.at(*i).trim() == "[end of output]")?;
    let last = text.lines[begin + 1..end].iter().rev().find(|line| !line.text.trim().is_empty())?;
    let frames =
        text.lines[begin + 1..end].iter().rev().filter_map(|line| super::traceback::frame(line.text));
    let own = frames.into_iter().find(|at| {
        !at.file.contains("site-packages/") && !at.file.contains("/lib/python") && !at.file.starts_with('<')
    });
    Some(Some(finding(last, own, None, last.text)))
}
