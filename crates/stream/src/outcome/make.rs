//! make: which target failed, or what is wrong with the makefile.

use outlast_protocol::{KnownTool, ToolOutcome};

use super::parse::place;
use super::{Reading, Text, finding};

pub(super) fn read(text: &Text<'_>) -> Option<ToolOutcome> {
    let mut reading = Reading::default();
    for (i, line) in text.numbered() {
        let Some((who, message)) = line.text.split_once(": *** ") else { continue };
        if is_make(who) {
            // `[Makefile:4: b.o] Error 1`: before it stands what the command of that target printed.
            let inside = message.strip_prefix('[').and_then(place).map(|(at, _)| at);
            let is_error = message.contains("] Error ");
            let cause = is_error.then(|| cause(text, i)).flatten();
            let message =
                cause.map_or_else(|| message.to_owned(), |cause| format!("{message}, after: {cause}"));
            reading.errors.push(finding(line, inside, None, &message));
        } else if let Some((at, "")) = place(who) {
            reading.errors.push(finding(line, Some(at), None, message));
        }
    }
    reading.of(KnownTool::Make)
}

/// `make`, `make[2]`, `gmake`, `/usr/bin/make`.
fn is_make(who: &str) -> bool {
    let name = who.rsplit('/').next().unwrap_or(who);
    let name = name.split('[').next().unwrap_or(name);
    matches!(name, "make" | "gmake" | "mingw32-make")
}

/// The line before, if a command printed it.
fn cause<'a>(text: &Text<'a>, i: usize) -> Option<&'a str> {
    let before = (i.saturating_sub(super::MAX_REPORT_LINES)..i)
        .rev()
        .map(|i| text.at(i).trim())
        .find(|line| !line.is_empty())?;
    (!before.contains(": *** ") && !before.contains("Entering directory")).then_some(before)
}
