//! What a job printed, bounded and safe to show: from its files, in the words of the tools.

use outlast_job::client::Piece;
use outlast_job::request::{ReadBytes, ReadText};
use outlast_job::{Failure, Job};

/// The smallest and the largest bound that a caller can ask for.
const BOUNDS: (usize, usize) = (256, 1 << 20);
/// What stands in the output where something is left out.
const LEFT_OUT: &str = "…\n";

/// A bounded piece of what a job printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Printed {
    pub(crate) text: String,
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Where the range that was asked for ends.
    pub(crate) end: u64,
    /// Which bytes were left out.
    pub(crate) omitted: Option<(u64, u64)>,
}

impl Printed {
    pub(crate) fn omitted_bytes(&self) -> u64 {
        self.omitted.map_or(0, |(from, to)| to - from)
    }
}

/// How many bytes an answer may have.
pub(crate) fn budget(max: Option<u64>) -> usize {
    let max = max.map_or(outlast_job::client::MAX_OUTPUT, |max| usize::try_from(max).unwrap_or(BOUNDS.1));
    max.clamp(BOUNDS.0, BOUNDS.1)
}

/// A range of a job's output as text.
pub(crate) fn text(job: &Job, read: ReadText) -> Result<Printed, Failure> {
    // The mark needs room too, and so does the end of a line that is cut.
    let reserve = read.reserve.map(|reserve| reserve + LEFT_OUT.len() + 1);
    let text = job.read(ReadText { reserve, ..read })?;
    let mut all = text.head.clone();
    if text.omitted.is_some() {
        if !all.is_empty() && !all.ends_with('\n') {
            all.push('\n');
        }
        all.push_str(LEFT_OUT);
        all.push_str(&text.tail);
    }
    if !text.ends_line && all.ends_with('\n') {
        // A prompt is not a line yet; the fold closes it, because nothing more comes.
        all.pop();
    }
    let (from, to) = (text.from, text.offset);
    Ok(Printed { text: shown(&all), from, to, end: to, omitted: text.omitted })
}

/// The bytes of a range as they are, at most `budget` of text; what is not plain text is shown as an escape.
pub(crate) fn raw(job: &Job, read: ReadBytes, budget: usize) -> Result<Printed, Failure> {
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
    let omitted = (end > to).then_some((to, end));
    Ok(Printed { text, from, to, end, omitted })
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
    fn a_bound_is_sane() {
        assert_eq!([budget(None), budget(Some(0)), budget(Some(u64::MAX))], [16_384, 256, 1 << 20]);
    }
}
