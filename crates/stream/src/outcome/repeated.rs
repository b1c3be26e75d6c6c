//! Lines of unknown tools that come again and again: folded into one, with a count.
//!
//! In a report, lines are alike if they are the same but for their numbers: digits, and words of hexadecimal digits.

use std::collections::HashMap;

use outlast_protocol::Repeated;

use super::Line;
use super::parse::one_line;

/// From how many lines on it is worth a word.
const MIN_LINES: usize = 200;
/// From how many alike lines on they are counted.
const MIN_ALIKE: u64 = 50;
/// A line with fewer letters is data rather than a message.
const MIN_LETTERS: usize = 4;
/// How many kinds of lines are named.
const MAX_KINDS: usize = 3;
/// How many kinds of lines are told apart.
const MAX_TEMPLATES: usize = 4096;
/// The most characters of a line that are looked at or shown.
const MAX_CHARS: usize = 160;
/// How many lines in a row must be the same to be shown as one.
const MIN_IN_A_ROW: usize = 4;

/// The kinds of lines that come most often, in the order of their first lines.
pub(super) fn read(lines: &[Line<'_>], whole: bool) -> Vec<Repeated> {
    if lines.len() < MIN_LINES {
        return Vec::new();
    }
    let mut kinds: HashMap<String, Repeated> = HashMap::new();
    for line in lines.iter().filter(|line| !line.text.trim().is_empty()) {
        let template = template(line.text);
        if template.chars().filter(|c| c.is_alphabetic()).count() < MIN_LETTERS {
            continue;
        }
        if kinds.len() >= MAX_TEMPLATES && !kinds.contains_key(&template) {
            continue;
        }
        let first = || Repeated {
            text: one_line(line.text, MAX_CHARS),
            count: 0,
            at_least: !whole,
            offset: line.at,
            stream: line.stream,
        };
        kinds.entry(template).or_insert_with(first).count += 1;
    }
    let mut often: Vec<Repeated> = kinds.into_values().filter(|kind| kind.count >= MIN_ALIKE).collect();
    often.sort_by_key(|kind| (std::cmp::Reverse(kind.count), kind.offset));
    often.truncate(MAX_KINDS);
    often.sort_by_key(|kind| kind.offset);
    often
}

/// A text in which a line that is repeated at once stands for all of them, with `mark` below it; and how many lines
/// were left out.
#[must_use]
pub fn fold_repeated(text: &str, mark: &str) -> (String, usize) {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (mut folded, mut left_out, mut at) = (String::with_capacity(text.len()), 0, 0);
    while at < lines.len() {
        folded.push_str(lines[at]);
        let alike = lines[at..].iter().take_while(|other| **other == lines[at]).count();
        if alike < MIN_IN_A_ROW || lines[at].trim().is_empty() {
            at += 1;
            continue;
        }
        folded.push_str(mark);
        left_out += alike - 1;
        at += alike;
    }
    (folded, left_out)
}

/// A line without its numbers.
fn template(line: &str) -> String {
    let mut out = String::new();
    for word in line.trim_end().split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let body = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let has_digit = body.bytes().any(|byte| byte.is_ascii_digit());
        if has_digit && body.len() >= 6 && body.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            out.push('#');
            out.push_str(&word[body.len()..]);
            continue;
        }
        let mut in_number = false;
        for c in word.chars() {
            if c.is_ascii_digit() {
                if !in_number {
                    out.push('#');
                }
                in_number = true;
            } else {
                in_number = false;
                out.push(c);
            }
        }
        if out.len() > 4 * MAX_CHARS {
            break;
        }
    }
    out
}
