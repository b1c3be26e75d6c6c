//! Text as a person would see it, and where each byte of it came from.

use std::borrow::Cow;
use std::ops::Range;

/// Visible bytes and line feeds of a piece of output.
#[derive(Debug)]
pub(super) struct View<'a> {
    bytes: Cow<'a, [u8]>,
    /// Where each byte was; none when nothing was left out.
    at: Option<Vec<u32>>,
    /// Where the piece begins, when nothing was left out.
    start: usize,
}

impl View<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The range of the piece that a range of the view stands for.
    pub(super) fn origin(&self, range: Range<usize>) -> Range<usize> {
        let Some(at) = &self.at else { return self.start + range.start..self.start + range.end };
        let first = at.get(range.start).map_or(0, |at| *at as usize);
        let last = range.end.checked_sub(1).and_then(|last| at.get(last));
        first..last.map_or(first, |at| *at as usize + 1)
    }
}

/// What a byte is part of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    Escape,
    Csi,
    String,
    StringEscape,
}

/// One step of a scan that only tells text from sequences.
fn step(state: State, byte: u8) -> State {
    match (state, byte) {
        (State::Text | State::Escape | State::Csi, 0x1b) => State::Escape,
        (State::Text, _) => State::Text,
        (State::Escape, b'[') => State::Csi,
        (State::Escape, b']' | b'P' | b'_' | b'^' | b'X') => State::String,
        (State::Escape, 0x20..=0x2f) => State::Escape,
        (State::Csi, 0x40..=0x7e | b'\n') | (State::Escape, _) => State::Text,
        (State::Csi, _) => State::Csi,
        (State::String, 0x07 | 0x9c) | (State::StringEscape, b'\\') => State::Text,
        (State::String | State::StringEscape, 0x1b) => State::StringEscape,
        (State::String, _) => State::String,
        // A sequence that breaks off a string.
        (State::StringEscape, byte) => step(State::Escape, byte),
    }
}

fn is_plain(byte: u8) -> bool {
    (byte >= 0x20 && byte != 0x7f) || matches!(byte, b'\n' | b'\t')
}

/// The visible text of a piece, and the bodies of strings (titles and the like) in it.
pub(super) fn split(bytes: &[u8]) -> (View<'_>, Vec<View<'_>>) {
    if bytes.iter().all(|byte| is_plain(*byte)) {
        return (View { bytes: Cow::Borrowed(bytes), at: None, start: 0 }, Vec::new());
    }
    let (mut seen, mut at) = (Vec::with_capacity(bytes.len()), Vec::with_capacity(bytes.len()));
    let mut strings = Vec::new();
    let mut string_start = None;
    let mut state = State::Text;
    for (i, byte) in bytes.iter().enumerate() {
        let before = state;
        state = step(state, *byte);
        match (before, state) {
            (State::Text, State::Text) if is_plain(*byte) => {
                seen.push(*byte);
                at.push(u32::try_from(i).unwrap_or(u32::MAX));
            }
            // Struck over: what comes next stands in its place.
            (State::Text, State::Text) if *byte == 0x08 => {
                seen.pop();
                at.pop();
            }
            (State::Escape, State::String) => string_start = Some(i + 1),
            (State::String | State::StringEscape, State::Text | State::Escape | State::Csi) => {
                strings.extend(string_start.take().map(|start| body(bytes, start, i)));
            }
            _ => {}
        }
    }
    strings.extend(string_start.map(|start| body(bytes, start, bytes.len())));
    (View { bytes: Cow::Owned(seen), at: Some(at), start: 0 }, strings)
}

fn body(bytes: &[u8], start: usize, end: usize) -> View<'_> {
    View { bytes: Cow::Borrowed(&bytes[start..end]), at: None, start }
}

/// Visits each visible byte, but for line breaks and blanks at them.
pub(super) fn each_visible(bytes: &mut [u8], mut each: impl FnMut(&mut u8)) {
    let mut state = State::Text;
    for byte in bytes {
        let before = state;
        state = step(state, *byte);
        if before == State::Text && state == State::Text && *byte >= 0x20 && *byte != 0x7f {
            each(byte);
        }
    }
}
