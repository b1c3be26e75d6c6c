//! Reading a job's log: ranges as text or bytes, lines that match, and when it was written.

use serde::{Deserialize, Serialize};

use crate::size::Size;
use crate::wire::base64;

/// Which of a job's streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// What it printed; on a terminal, everything.
    #[default]
    Output,
    /// In pipe mode, what it wrote to stderr.
    Stderr,
}

/// Only some lines of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lines {
    /// This many from its beginning.
    First(usize),
    /// This many up to its end.
    Last(usize),
}

/// A range to be read as a person would have read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadText {
    /// Which stream.
    pub stream: Stream,
    /// Where it begins.
    pub from: u64,
    /// Where it ends; none for the end of the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// Only these lines of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<Lines>,
    /// At most this many bytes of text: the head and the tail.
    pub max: usize,
    /// How many of them are kept free, if something is left out, for the words that say so; none for a line between the two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve: Option<usize>,
}

/// A bounded piece of what a job printed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Text {
    /// The text; the head of it, where something was left out.
    pub head: String,
    /// The tail, where something was left out.
    pub tail: String,
    /// Which bytes of the log were left out between the two to keep the answer small.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted: Option<(u64, u64)>,
    /// The offset it begins at.
    pub from: u64,
    /// The offset it ends at: where the next read begins.
    pub offset: u64,
    /// How many bytes of the range are not in the log any more.
    pub lost_bytes: u64,
    /// Whether its last byte ends a line; so does nothing at all.
    pub ends_line: bool,
}

impl Text {
    /// How many bytes of the log were left out.
    #[must_use]
    pub fn omitted_bytes(&self) -> u64 {
        self.omitted.map_or(0, |(from, to)| to - from)
    }

    /// Head and tail, and between them a line with the call that reads what was left out, in the words of a door.
    #[must_use]
    pub fn joined(&self, call: impl FnOnce(u64, u64) -> String) -> String {
        let Some((from, to)) = self.omitted else { return self.head.clone() };
        let mark = format!("[... {} bytes left out; to read them: {} ...]", to - from, call(from, to));
        let line_break = if self.head.is_empty() || self.head.ends_with('\n') { "" } else { "\n" };
        format!("{}{line_break}{mark}\n{}", self.head, self.tail)
    }
}

/// A range to be read as the bytes that the job wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadBytes {
    /// Which stream.
    pub stream: Stream,
    /// Where it begins.
    pub from: u64,
    /// Where it ends; none for the end of the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// Only these lines of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<Lines>,
    /// At most about this many bytes in one answer.
    pub max: usize,
    /// Somebody will see the bytes as they are: fail if a secret is in them that can't be cut out, because the program drew
    /// it in another order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_is: bool,
}

/// The bytes of a range, from its beginning on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bytes {
    /// Where they begin.
    pub from: u64,
    /// The bytes, and what is missing between them.
    pub parts: Vec<BytePart>,
    /// Where to go on.
    pub next: u64,
    /// Where the range ends: there is no more when `next` is here.
    pub end: u64,
}

/// A piece of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BytePart {
    /// Bytes as the job wrote them.
    Bytes(#[serde(with = "in_base64")] Vec<u8>),
    /// These offsets are not in the log any more.
    Lost {
        /// The first.
        from: u64,
        /// Just after the last.
        to: u64,
    },
}

/// Which lines of a range are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Grep {
    /// The range. Its `max` bounds the text of the lines that are found.
    #[serde(flatten)]
    pub range: ReadText,
    /// The regular expression.
    pub pattern: String,
}

/// Lines that match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Matches {
    /// The first of them, as many as fit.
    pub lines: Vec<MatchedLine>,
    /// How many match in all.
    pub found: u64,
    /// How many bytes of matching lines did not fit.
    pub omitted_bytes: u64,
    /// How many lines were looked at.
    pub searched: u64,
    /// Where the range begins.
    pub from: u64,
    /// Where it ends.
    pub offset: u64,
}

/// A line that matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchedLine {
    /// Its number in the range, from 1.
    pub number: u64,
    /// Its text, without its end.
    pub text: String,
}

/// When a job printed what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timing {
    /// In order.
    pub facts: Vec<Fact>,
    /// Where to go on; none when this is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Something that happened at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// When, in milliseconds since the start.
    pub at_ms: u64,
    /// The end of the log then.
    pub offset: u64,
    /// What.
    pub kind: FactKind,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// The output had grown.
    Output,
    /// In pipe mode, stderr had grown.
    Stderr,
    /// The terminal got a new size.
    Resized(Size),
}

/// Bytes as text, where they go over a wire.
mod in_base64 {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::base64;

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&base64::encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        base64::decode(&text).ok_or_else(|| serde::de::Error::custom("invalid base64"))
    }
}
