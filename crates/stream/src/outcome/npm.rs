//! npm and pnpm: what they installed, why they did not, and the uncaught error of a script that they ran.

use outlast_protocol::{Count, KnownTool, ToolOutcome};

use super::jest::stack_place;
use super::parse::{counted, place};
use super::{Line, Reading, Text, finding};

pub(super) fn read(text: &Text<'_>) -> Option<ToolOutcome> {
    let mut reading = Reading::default();
    let mut npm = text.names(&["npm", "npx"]);
    let mut pnpm = text.names(&["pnpm", "pnpx"]);
    let mut code = None;
    let mut thrown = None;
    for (i, line) in text.numbered() {
        // A spinner may be left before the text.
        let said = line.text.trim_start_matches(|c: char| ('\u{2800}'..='\u{28ff}').contains(&c)).trim_end();
        if let Some(rest) = said.strip_prefix("npm error").or_else(|| said.strip_prefix("npm ERR!")) {
            npm = true;
            own(line, rest.trim(), &mut code, &mut reading);
        } else if let Some(rest) = said
            .trim_start()
            .strip_prefix("ERR_PNPM_")
            .or_else(|| said.trim_start().strip_prefix("[ERR_PNPM_"))
        {
            pnpm = true;
            let (name, message) = rest.split_once([' ', ']']).unwrap_or((rest, ""));
            reading.errors.push(finding(line, None, Some(&format!("ERR_PNPM_{name}")), message));
        } else if let Some(rest) = said
            .trim_start()
            .strip_prefix("ELIFECYCLE ")
            .or_else(|| said.trim_start().strip_prefix("[ELIFECYCLE] "))
        {
            pnpm = true;
            reading.errors.push(finding(line, None, Some("ELIFECYCLE"), rest));
        } else if (npm || pnpm) && said.starts_with(['a', 'r', 'c', 'u']) && said.contains(" package") {
            installed(said, &mut reading);
        } else if npm && said.starts_with("up to date") || pnpm && said == "Already up to date" {
            reading.count(Count::Added, 0);
        } else if let Some(changes) = said.strip_prefix("Packages: ").filter(|_| pnpm) {
            for change in changes.split_whitespace() {
                if let Some(Ok(count)) = change.strip_prefix('+').map(str::parse) {
                    reading.count(Count::Added, count);
                } else if let Some(Ok(count)) = change.strip_prefix('-').map(str::parse) {
                    reading.count(Count::Removed, count);
                }
            }
        } else if thrown.is_none() && text.at(i + 1).starts_with("    at ") && said.contains("Error") {
            let frames = text.below(i).map(|i| text.at(i)).take_while(|line| line.starts_with("    at "));
            let at = frames
                .filter_map(|line| stack_place(line.trim().strip_prefix("at ")?))
                .find(|at| !at.file.starts_with("node:"));
            thrown = Some(finding(line, at, None, said.strip_prefix("Uncaught ").unwrap_or(said)));
        }
    }
    if !npm && !pnpm {
        return None;
    }
    if reading.errors.iter().all(|one| one.code.as_deref() == Some("ELIFECYCLE")) {
        // A script failed: what it threw is the error.
        if let Some(thrown) = thrown.filter(|_| text.programs.name(&["npm", "pnpm", "npx"])) {
            reading.errors.insert(0, thrown);
        }
    }
    reading.of(if pnpm && !text.names(&["npm"]) { KnownTool::Pnpm } else { KnownTool::Npm })
}

/// npm's own errors: the code once, and then what it says.
fn own(line: &Line<'_>, said: &str, code: &mut Option<String>, reading: &mut Reading) {
    const AROUND: [&str; 12] = [
        "A complete log",
        "syscall ",
        "errno ",
        "path ",
        "at ",
        "If you are behind",
        "To see a list",
        "dest ",
        "workspace ",
        "location ",
        "command ",
        "Tell the author",
    ];
    if let Some(name) = said.strip_prefix("code ") {
        *code = Some(name.to_owned());
        return;
    }
    let is_part = said.is_empty()
        || said == "npm run"
        || said.starts_with('}')
        || AROUND.iter().any(|begin| said.starts_with(begin));
    if !is_part && reading.errors.len() < super::MAX_FINDINGS {
        let message = said.strip_prefix(code.as_deref().unwrap_or_default()).unwrap_or(said);
        let at = place(message).filter(|(at, _)| at.file.ends_with("package.json")).map(|(at, _)| at);
        reading.errors.push(finding(line, at, code.as_deref(), message));
    }
}

/// `added 5 packages, and changed 1 package in 2s`.
fn installed(said: &str, reading: &mut Reading) {
    let (counts, _) = said.rsplit_once(" in ").unwrap_or((said, ""));
    for part in counts.split(", ") {
        let part = part.strip_prefix("and ").unwrap_or(part);
        let Some((word, rest)) = part.split_once(' ') else { continue };
        let what = match word {
            "added" => Count::Added,
            "removed" => Count::Removed,
            "changed" => Count::Changed,
            _ => continue,
        };
        if let Some([(count, "package" | "packages")]) = counted(rest, ", ").as_deref() {
            reading.count(what, *count);
        }
    }
}
