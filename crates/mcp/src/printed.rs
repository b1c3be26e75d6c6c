//! What a job printed, bounded and safe to show: from its files, in the words of the tools.

use outlast_job::client::read::{Piece, Range, Stream};
use outlast_job::{Failure, Job};

use crate::words::Words;

/// The smallest and the largest bound that a caller can ask for.
const BOUNDS: (usize, usize) = (512, 1 << 20);

/// A bounded piece of what a job printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Printed {
    pub(crate) text: String,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) omitted_bytes: u64,
}

/// How many bytes of output go into an answer of at most `max`: its other words need room too.
pub(crate) fn budget(max: Option<u64>) -> usize {
    let max =
        max.map_or(outlast_job::client::read::MAX_OUTPUT, |max| usize::try_from(max).unwrap_or(BOUNDS.1));
    let max = max.clamp(BOUNDS.0, BOUNDS.1);
    max - (max / 8).clamp(256, 1024)
}

/// The text of a range of a job's output, at most `budget` bytes.
pub(crate) fn text(
    (job, words): (&Job, Words),
    from: u64,
    until: Option<u64>,
    budget: usize,
) -> Result<Printed, Failure> {
    Ok(of((job, words), &job.range(Stream::Output, from, until)?, budget))
}

/// The text of a range, at most `budget` bytes.
pub(crate) fn of((job, words): (&Job, Words), range: &Range, budget: usize) -> Printed {
    let handle = job.handle();
    let mut text = range.excerpt(budget, |from, to| words.read(handle, from, to));
    if !range.ends_a_line() && text.text.ends_with('\n') {
        // A prompt is not a line yet; the fold closes it, because nothing more comes.
        text.text.pop();
    }
    Printed { text: shown(&text.text), from: text.from, to: text.offset, omitted_bytes: text.omitted_bytes }
}

/// The bytes of a range as they are, at most `budget` of text; what is not plain text is shown as an escape.
pub(crate) fn raw((job, words): (&Job, Words), range: &Range, budget: usize) -> Printed {
    let mut text = String::new();
    let mut to = range.from();
    range.pieces(|at, piece| {
        match piece {
            Piece::Bytes(bytes) => {
                for chunk in bytes.utf8_chunks() {
                    for c in chunk.valid().chars() {
                        push_escaped(&mut text, c);
                        to += c.len_utf8() as u64;
                        if text.len() >= budget {
                            return false;
                        }
                    }
                    for byte in chunk.invalid() {
                        text.push_str(&format!("\\x{byte:02x}"));
                        to += 1;
                    }
                }
            }
            Piece::Gone { from, to: end } => {
                text.push_str(&format!("\n[{} bytes are gone, from {from} to {end}]\n", end - from));
                to = end;
            }
        }
        debug_assert!(to >= at, "bytes come in order");
        text.len() < budget
    });
    let left = range.to().saturating_sub(to);
    if left > 0 {
        let call = words.read_raw(job.handle(), to);
        text.push_str(&format!("\n[... {left} bytes more: {call} ...]"));
    }
    Printed { text, from: range.from(), to, omitted_bytes: left }
}

fn push_escaped(text: &mut String, c: char) {
    match c {
        '\n' | '\t' => text.push(c),
        '\r' => text.push_str("\\r"),
        '\x1b' => text.push_str("\\e"),
        '\\' => text.push_str("\\\\"),
        c if c.is_control() => text.push_str(&format!("\\x{:02x}", u32::from(c))),
        c => text.push(c),
    }
}

/// Text whose control characters can be seen and do nothing.
pub(crate) fn shown(text: &str) -> String {
    let plain = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    if text.chars().all(plain) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if plain(c) { shown.push(c) } else { push_escaped(&mut shown, c) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown() {
        assert_eq!(shown("a\x1b[31mb\x07\r\n"), "a\\e[31mb\\x07\\r\n");
        assert_eq!(shown("C:\\x\ty"), "C:\\x\ty");
    }

    #[test]
    fn an_answer_leaves_room_for_its_other_words() {
        assert_eq!(budget(None), 16_384 - 1024);
        assert_eq!(budget(Some(0)), 256);
        assert_eq!(budget(Some(u64::MAX)), (1 << 20) - 1024);
    }
}
