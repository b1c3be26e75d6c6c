//! The lines of a range that match a regular expression.

use outlast_protocol::request::{Grep, MatchedLine, Matches};
use regex_automata::meta::Regex;

use super::read::Range;
use crate::failure::Failure;

/// # Errors
/// When the pattern is not a regular expression.
pub(super) fn grep(range: &Range, grep: &Grep) -> Result<Matches, Failure> {
    let pattern = &grep.pattern;
    let regex = Regex::new(pattern).map_err(|error| {
        let why = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
        // The parser draws the pattern and points at the place; what is wrong is its last line.
        let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
        Failure::usage(format!("the pattern {pattern:?} is not a regular expression: {why}"))
            .hint("write \\( for a bracket, \\. for a dot, \\$ for a dollar")
    })?;
    let matches = Matches { from: range.from(), offset: range.to(), ..Matches::default() };
    let mut search = Search { regex, unfinished: Vec::new(), size: 0, max: grep.range.max, matches };
    range.fold(|text| {
        search.feed(text);
        true
    });
    if !search.unfinished.is_empty() {
        let last = std::mem::take(&mut search.unfinished);
        search.line(&last);
    }
    Ok(search.matches)
}

struct Search {
    regex: Regex,
    /// A line whose end has not come yet.
    unfinished: Vec<u8>,
    /// How much text was found.
    size: usize,
    max: usize,
    matches: Matches,
}

impl Search {
    fn feed(&mut self, text: &[u8]) {
        let mut lines = text.split(|byte| *byte == b'\n');
        let Some(rest) = lines.next_back() else { return };
        for line in lines {
            if self.unfinished.is_empty() {
                self.line(line);
            } else {
                let mut whole = std::mem::take(&mut self.unfinished);
                whole.extend_from_slice(line);
                self.line(&whole);
            }
        }
        self.unfinished.extend_from_slice(rest);
    }

    fn line(&mut self, line: &[u8]) {
        let matches = &mut self.matches;
        matches.searched += 1;
        if !self.regex.is_match(line) {
            return;
        }
        matches.found += 1;
        let size = line.len() + 1;
        // Once one did not fit, none after it is shown: the answer is the first of them, without gaps.
        if matches.omitted_bytes > 0 || self.size.saturating_add(size) > self.max {
            matches.omitted_bytes += size as u64;
        } else {
            self.size += size;
            let text = String::from_utf8_lossy(line).into_owned();
            matches.lines.push(MatchedLine { number: matches.searched, text });
        }
    }
}
