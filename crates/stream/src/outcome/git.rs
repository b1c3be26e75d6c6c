//! git: why it refused, what it could not merge, what it changed.

use outlast_protocol::{Count, Finding, KnownTool, ToolOutcome};

use super::parse::{counted, place};
use super::{Reading, Text, finding};

pub(super) fn read(text: &Text<'_>) -> Option<ToolOutcome> {
    if !text.names(&["git"]) {
        return None;
    }
    let mut reading = Reading::default();
    let (mut conflicts, mut changed) = (0, 0);
    let mut general = Vec::new();
    for line in text.lines {
        let said = line.text.trim_end();
        if let Some(rest) = said.strip_prefix("CONFLICT (") {
            conflicts += 1;
            let (kind, message) = rest.split_once("): ").unwrap_or((rest, ""));
            let file = message
                .strip_prefix("Merge conflict in ")
                .or_else(|| message.split_once(" deleted in ").map(|(file, _)| file));
            let one = finding(line, None, Some(&format!("CONFLICT ({kind})")), message);
            reading.errors.push(Finding { file: file.map(ToOwned::to_owned), ..one });
        } else if said.starts_with(" ! [") {
            reading.errors.push(finding(line, None, None, said));
        } else if let Some(message) = said.strip_prefix("fatal: ") {
            reading.errors.push(finding(line, None, Some("fatal"), message));
        } else if let Some(message) = said.strip_prefix("error: ") {
            let at = message.strip_prefix("patch failed: ").and_then(place).map(|(at, _)| at);
            let one = finding(line, at, Some("error"), message);
            // What follows a rejected ref only says so again.
            if message.starts_with("failed to push") { general.push(one) } else { reading.errors.push(one) }
        } else if !text.succeeded
            && (said.starts_with("nothing to commit") || said.starts_with("no changes added to commit"))
        {
            reading.errors.push(finding(line, None, None, said));
        } else if let Some(counts) = summary(said) {
            changed += 1;
            for (what, count) in counts {
                reading.count(what, count);
            }
        }
    }
    if reading.errors.is_empty() {
        reading.errors = general;
    }
    // Several commits in a command have several totals.
    if changed > 1 || conflicts > 0 {
        reading.counts.clear();
    }
    if conflicts > 0 && text.whole {
        reading.count(Count::Conflicts, conflicts);
    }
    reading.of(KnownTool::Git)
}

/// ` 2 files changed, 2 insertions(+), 1 deletion(-)`.
fn summary(line: &str) -> Option<Vec<(Count, u64)>> {
    let line = line.strip_prefix(' ')?;
    let counts = counted(line, ", ")?;
    let known = counts.into_iter().map(|(count, word)| {
        Some(match word {
            "file changed" | "files changed" => (Count::Files, count),
            "insertion(+)" | "insertions(+)" => (Count::Insertions, count),
            "deletion(-)" | "deletions(-)" => (Count::Deletions, count),
            _ => return None,
        })
    });
    known.collect::<Option<Vec<_>>>().filter(|known| known.iter().any(|(what, _)| *what == Count::Files))
}
