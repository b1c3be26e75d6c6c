//! What a job printed, bounded and safe to show: from its files, in the words of the tools.

use outlast_job::client::Piece;
use outlast_job::request::{ReadBytes, ReadText};
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
    /// Where the range that was asked for ends.
    pub(crate) end: u64,
    pub(crate) omitted_bytes: u64,
}

/// How many bytes of output go into an answer of at most `max`: its other words need room too.
pub(crate) fn budget(max: Option<u64>) -> usize {
    let max = max.map_or(outlast_job::client::MAX_OUTPUT, |max| usize::try_from(max).unwrap_or(BOUNDS.1));
    let max = max.clamp(BOUNDS.0, BOUNDS.1);
    max - (max / 8).clamp(256, 1024)
}

/// A range of a job's output as text.
pub(crate) fn text((job, words): (&Job, Words), read: ReadText) -> Result<Printed, Failure> {
    let text = job.read(read)?;
    let handle = job.handle();
    let mut shown_text = text.joined(|from, to| words.read(handle, from, to));
    if !text.ends_line && shown_text.ends_with('\n') {
        // A prompt is not a line yet; the fold closes it, because nothing more comes.
        shown_text.pop();
    }
    Ok(Printed {
        text: shown(&shown_text),
        from: text.from,
        to: text.offset,
        end: text.offset,
        omitted_bytes: text.omitted_bytes(),
    })
}

/// The bytes of a range as they are, at most `budget` of text; what is not plain text is shown as an escape.
pub(crate) fn raw((job, words): (&Job, Words), read: ReadBytes, budget: usize) -> Result<Printed, Failure> {
    let mut text = String::new();
    let (from, _) = job.borders(read)?;
    let mut to = from;
    let end = job.read_pieces(ReadBytes { max: budget, ..read }, |piece| {
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
            Piece::Lost { from, to: end } => {
                text.push_str(&format!("\n[{} bytes are gone, from {from} to {end}]\n", end - from));
                to = end;
            }
        }
        text.len() < budget
    })?;
    let left = end.saturating_sub(to);
    if left > 0 {
        let call = words.read_raw(job.handle(), to);
        text.push_str(&format!("\n[... {left} bytes more: {call} ...]"));
    }
    Ok(Printed { text, from, to, end, omitted_bytes: left })
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
