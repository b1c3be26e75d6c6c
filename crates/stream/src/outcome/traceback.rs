//! Python's tracebacks: where the program was, and what was raised.

use super::Text;
use super::parse::{Place, between};

/// The deepest place in the project, and what was raised, of the traceback that begins in a line.
pub(super) fn read<'a>(text: &Text<'a>, begin: usize) -> Option<(Option<Place<'a>>, &'a str)> {
    let mut places = Vec::new();
    for i in text.below(begin) {
        let line = text.at(i);
        if let Some(at) = frame(line) {
            places.push(at);
        } else if !line.starts_with(' ') && !line.trim().is_empty() {
            let own = |at: &&Place<'_>| {
                !at.file.contains("/lib/python")
                    && !at.file.contains("site-packages/")
                    && !at.file.starts_with('<')
            };
            let at = places.iter().rev().find(own).or(places.last()).copied();
            return Some((at, line.trim()));
        } else if line.trim().is_empty() && !places.is_empty() {
            return None;
        }
    }
    None
}

/// `  File "a.py", line 3, in f`.
pub(super) fn frame(line: &str) -> Option<Place<'_>> {
    let line = line.trim_start();
    if !line.starts_with("File \"") {
        return None;
    }
    let file = between(line, "File \"", "\"")?;
    let number = line.split("\", line ").nth(1)?;
    let number = super::parse::digits(number).0?;
    Some(Place { file, line: number })
}
