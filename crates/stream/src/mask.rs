//! Hides secrets in what others read, byte for byte, so that every offset stays valid.
//!
//! It knows three kinds: [values](known) that a job was given or that were typed into it, of which it keeps
//! only fingerprints; the [formats] of common keys; and patterns of the user. It searches the text as a
//! person would see it ([`view`]), so colours, cursor moves and line breaks do not break up a secret.
//!
//! A secret may be cut by the end of the text at hand. So readers search [`CONTEXT`] bytes further in both
//! directions than they show, and a possible start of a known value at the very end is hidden too. For output
//! that is passed on while it comes, [`Redactor`] holds back what is not decided yet.

mod formats;
mod known;
mod redactor;
mod spellings;
mod view;

use std::fmt::Write;
use std::ops::Range;

use regex_automata::meta::Regex;
use unicode_width::UnicodeWidthStr;

pub use known::MIN_SECRET_BYTES;
use known::{Fingerprint, KnownValues};
pub use redactor::Redactor;
use view::{Backspaces, View};

/// How far around a piece a reader must search to find every secret that is cut by its edges.
pub const CONTEXT: usize = 8 << 10;

/// Replaces each byte of a secret.
const MASK: u8 = b'*';

/// The first line of the file format.
const TITLE: &str = "outlast-masks 1";

/// The secrets to hide.
#[derive(Clone, Debug)]
pub struct Masks {
    known: KnownValues,
    patterns: Vec<(String, Regex)>,
    formats: bool,
    /// Values under another key.
    also: Option<Box<KnownValues>>,
}

/// The secrets found in a piece of text.
#[derive(Debug, Default)]
pub(crate) struct FoundSecrets {
    /// What to hide, by position. Ranges may overlap.
    spans: Vec<Range<usize>>,
    /// Those of them that are complete known values.
    whole: Vec<Range<usize>>,
    /// Those of them that are only the beginning of a known value, at the end of the text.
    beginnings: Vec<Range<usize>>,
    /// From here on it is not decided: more bytes could complete a secret, or rule it out.
    undecided: Option<usize>,
}

impl FoundSecrets {
    fn undecided_from(&mut self, at: usize) {
        self.undecided = Some(self.undecided.map_or(at, |known| known.min(at)));
    }
}

/// A pattern that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the pattern {pattern:?} of secrets can't be used: {why}")]
pub struct BadMask {
    pattern: String,
    why: String,
}

impl Masks {
    /// Hides common key formats only. `key` is random, and makes the fingerprints worthless anywhere else.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        Self { known: KnownValues::new(key), patterns: Vec::new(), formats: true, also: None }
    }

    /// Also hides a value. Returns whether it is long enough. `typed` means that a person typed it as a
    /// secret.
    pub fn add(&mut self, value: &str, typed: bool) -> bool {
        self.known.add(value, typed)
    }

    /// Also hides what a regular expression matches: its first group, or the whole match.
    ///
    /// # Errors
    /// [`BadMask`] if it is not a valid expression, or matches the empty string.
    pub fn add_pattern(&mut self, pattern: &str) -> Result<(), BadMask> {
        let bad = |why: String| BadMask { pattern: pattern.to_owned(), why };
        let regex = Regex::new(pattern).map_err(|error| bad(error.to_string()))?;
        if regex.is_match(b"".as_slice()) {
            return Err(bad("it also matches where nothing is".into()));
        }
        self.patterns.push((pattern.to_owned(), regex));
        Ok(())
    }

    /// Also hides the values of others, whose fingerprints have another key. They are not written down with these.
    pub fn set_others(&mut self, others: Option<Masks>) {
        self.also = others.map(|others| Box::new(others.known));
    }

    /// Only the values that were typed as secrets; `None` if there are none.
    #[must_use]
    pub fn typed_only(&self) -> Option<Self> {
        let known = self.known.typed_only();
        (!known.is_empty()).then(|| Self { known, patterns: Vec::new(), formats: false, also: None })
    }

    /// Hides every secret in the bytes of a program's output.
    pub fn hide(&self, bytes: &mut [u8]) {
        let found = self.look(bytes);
        found.spans.into_iter().for_each(|span| cover(bytes, span));
    }

    /// The same, but for what is only the beginning of a known value at the end of the bytes: for bytes that become text in
    /// which that is hidden. A program may draw the rest of the value before it, and with its beginning hidden the whole would
    /// not be found there.
    pub fn hide_complete(&self, bytes: &mut [u8]) {
        let found = self.look(bytes);
        let FoundSecrets { spans, beginnings, .. } = found;
        spans.into_iter().filter(|span| !beginnings.contains(span)).for_each(|span| cover(bytes, span));
    }

    /// Whether a known value is in some bytes, as one piece.
    #[must_use]
    pub fn knows_part_of(&self, bytes: &[u8]) -> bool {
        !self.look(bytes).whole.is_empty()
    }

    /// Hides every secret of a transcript in `end`, a copy of its last bytes.
    pub fn hide_end(&self, transcript: &[u8], end: &mut [u8]) {
        let before = transcript.len() - end.len();
        let mut found = FoundSecrets::default();
        // A transcript has no escape sequences.
        self.look_at(&View::whole(transcript, 0), true, &mut found);
        for span in found.spans {
            cover(end, span.start.saturating_sub(before)..span.end.saturating_sub(before));
        }
    }

    /// Hides every secret in text. Its length in bytes does not change.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        let mut found = self.look(text.as_bytes());
        if found.spans.is_empty() {
            return text.to_owned();
        }
        let mut bytes = text.as_bytes().to_vec();
        for span in &mut found.spans {
            // Half a character would not be text.
            let whole = text.floor_char_boundary(span.start)..text.ceil_char_boundary(span.end);
            cover(&mut bytes, whole);
        }
        String::from_utf8(bytes).unwrap_or_else(|_| "*".repeat(text.len()))
    }

    /// Hides every secret in rows of a screen, even if it continues in the next row: a row as wide as the
    /// screen was wrapped by the screen, not by the program.
    pub fn rows(&self, rows: &mut [String], cols: usize) {
        let ends = |row: &str| if row.width() < cols { "\n" } else { "" };
        let joined: String = rows.iter().flat_map(|row| [row.as_str(), ends(row)]).collect();
        let hidden = self.text(&joined);
        // Lengths do not change, so the rows can be split where they were joined.
        let mut rest = hidden.as_str();
        for row in rows {
            let (this, after) = rest.split_at(rest.floor_char_boundary(row.len()));
            let line_break = ends(row).len();
            this.clone_into(row);
            rest = &after[line_break.min(after.len())..];
        }
    }

    /// Searches the bytes of a program's output.
    pub(crate) fn look(&self, bytes: &[u8]) -> FoundSecrets {
        let mut found = FoundSecrets::default();
        let (screen, strings) = view::split(bytes, !self.patterns.is_empty(), Backspaces::Delete);
        self.look_at(&screen, true, &mut found);
        // What was taken back again is in the bytes all the same.
        if memchr::memchr(0x08, bytes).is_some() {
            let (printed, _) = view::split(bytes, false, Backspaces::Ignore);
            self.look_at(&printed, false, &mut found);
        }
        // Titles and other strings are not part of the text around them.
        strings.iter().for_each(|string| self.look_at(string, false, &mut found));
        found
    }

    fn look_at(&self, view: &View<'_>, goes_on: bool, found: &mut FoundSecrets) {
        let mut here = FoundSecrets::default();
        self.known.find(view.bytes(), &mut here);
        if let Some(others) = &self.also {
            others.find(view.bytes(), &mut here);
        }
        if self.formats {
            formats::find(view.bytes(), &mut here);
        }
        for (_, regex) in &self.patterns {
            let mut groups = regex.create_captures();
            let mut at = 0;
            while at <= view.bytes().len() {
                regex.search_captures(&regex_automata::Input::new(view.bytes()).range(at..), &mut groups);
                let Some(whole) = groups.get_group(0) else { break };
                let hidden = groups.get_group(1).unwrap_or(whole);
                here.spans.push(hidden.range());
                at = whole.end.max(at + 1);
            }
        }
        if !self.patterns.is_empty() && goes_on {
            let line = memchr::memrchr(b'\n', view.bytes()).map_or(0, |feed| feed + 1);
            if view.bytes().len() - line < CONTEXT / 8 {
                here.undecided_from(line);
            }
        }
        found.spans.extend(here.spans.into_iter().map(|span| view.origin(span)));
        found.whole.extend(here.whole.into_iter().map(|span| view.origin(span)));
        found.beginnings.extend(here.beginnings.into_iter().map(|span| view.origin(span)));
        if let Some(at) = here.undecided.filter(|_| goes_on) {
            found.undecided_from(view.origin(at..at + 1).start);
        }
    }

    /// The file format, which has no values: for readers that come later.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{TITLE}\nkey {}\n", hex(self.known.key()));
        for print in self.known.fingerprints() {
            let kind = if print.typed { "typed" } else { "known" };
            let (len, head, chain, proof) = (print.len, print.head, hex(&print.chain), hex(&print.proof));
            let _ = writeln!(text, "{kind} {len} {head:04x} {chain} {proof}");
        }
        for (pattern, _) in &self.patterns {
            let _ = writeln!(text, "pattern {}", pattern.replace('\n', "\\n"));
        }
        text
    }

    /// Parses the file format; `None` if it is something else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != TITLE {
            return None;
        }
        let key: [u8; 32] = unhex(lines.next()?.strip_prefix("key ")?)?.try_into().ok()?;
        let mut masks = Self::new(key);
        for line in lines {
            let (kind, rest) = line.split_once(' ')?;
            match kind {
                "known" | "typed" => {
                    let mut fields = rest.split(' ');
                    let mut field = || fields.next();
                    masks.known.push(Fingerprint {
                        typed: kind == "typed",
                        len: field()?.parse().ok()?,
                        head: u16::from_str_radix(field()?, 16).ok()?,
                        chain: unhex(field()?)?,
                        proof: unhex(field()?)?.try_into().ok()?,
                    });
                }
                "pattern" => masks.add_pattern(rest).ok()?,
                // A newer version's line.
                _ => {}
            }
        }
        Some(masks)
    }
}

/// Hides the visible bytes of a range, but not the sequences and line breaks in it.
fn cover(bytes: &mut [u8], span: Range<usize>) {
    let end = span.end.min(bytes.len());
    let start = span.start.min(end);
    view::each_visible(&mut bytes[start..end], |byte| *byte = MASK);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(text.get(i..i + 2)?, 16).ok()).collect()
}

#[cfg(test)]
#[path = "mask_tests.rs"]
mod tests;
