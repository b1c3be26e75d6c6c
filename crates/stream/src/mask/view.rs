//! Text as a person would see it, and where each byte of it came from.

use std::borrow::Cow;
use std::ops::Range;

use crate::scan::find_control;

/// The visible bytes and line feeds of a piece of output.
#[derive(Debug)]
pub(super) struct View<'a> {
    bytes: Cow<'a, [u8]>,
    /// Where each copied run starts: in the view, and in the piece. Empty if nothing was left out.
    stretches: Vec<(usize, usize)>,
    /// Where the piece starts, if nothing was left out.
    start: usize,
}

impl<'a> View<'a> {
    /// All of a piece.
    pub(super) fn whole(bytes: &'a [u8], start: usize) -> Self {
        Self { bytes: Cow::Borrowed(bytes), stretches: Vec::new(), start }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The range of the piece that corresponds to a range of the view.
    pub(super) fn origin(&self, range: Range<usize>) -> Range<usize> {
        let first = self.place(range.start);
        first..range.end.checked_sub(1).map_or(first, |last| self.place(last) + 1)
    }

    fn place(&self, at: usize) -> usize {
        let after = self.stretches.partition_point(|(here, _)| *here <= at);
        match after.checked_sub(1).map(|index| self.stretches[index]) {
            Some((here, there)) => there + at - here,
            None => self.start + at,
        }
    }

    fn take_over(&mut self, bytes: &[u8], from: usize) {
        let len = self.bytes.len();
        if self.stretches.last().is_none_or(|(here, there)| there + len - here != from) {
            // A backspace may have removed all of the last run.
            while self.stretches.last().is_some_and(|(here, _)| *here >= len) {
                self.stretches.pop();
            }
            self.stretches.push((len, from));
        }
        self.bytes.to_mut().extend_from_slice(bytes);
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

/// One step of a scan that only separates text from sequences.
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
        // Another sequence interrupts the string.
        (State::StringEscape, byte) => step(State::Escape, byte),
    }
}

/// Whether nothing needs to be left out except carriage returns before line feeds, which do no harm.
fn is_plain(bytes: &[u8]) -> bool {
    let mut at = 0;
    loop {
        at += find_control(&bytes[at..]).0;
        match bytes.get(at) {
            None => return true,
            Some(b'\n' | b'\t') => at += 1,
            Some(b'\r') if bytes.get(at + 1) == Some(&b'\n') => at += 2,
            Some(_) => return false,
        }
    }
}

/// What a backspace does to the character before it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Backspaces {
    /// The next character replaces it.
    Delete,
    /// Nothing: it was printed.
    Ignore,
}

/// The visible text of a piece, and the bodies of strings (titles and the like) in it. With `exact`, carriage
/// returns before line feeds are removed too.
pub(super) fn split(bytes: &[u8], exact: bool, backspaces: Backspaces) -> (View<'_>, Vec<View<'_>>) {
    if is_plain(bytes) && !(exact && memchr::memchr(b'\r', bytes).is_some()) {
        return (View::whole(bytes, 0), Vec::new());
    }
    let mut view = View { bytes: Cow::Owned(Vec::with_capacity(bytes.len())), ..View::whole(&[], 0) };
    let mut strings = Vec::new();
    let mut string_start = None;
    let mut state = State::Text;
    let mut at = 0;
    while at < bytes.len() {
        if state == State::Text {
            let len = find_control(&bytes[at..]).0;
            view.take_over(&bytes[at..at + len], at);
            at += len;
        }
        let Some(&byte) = bytes.get(at) else { break };
        let before = state;
        state = step(state, byte);
        match (before, state) {
            (State::Text, State::Text) if matches!(byte, b'\n' | b'\t') => view.take_over(&[byte], at),
            (State::Text, State::Text) if byte == 0x08 && backspaces == Backspaces::Delete => {
                let _ = view.bytes.to_mut().pop();
            }
            (State::Escape, State::String) => string_start = Some(at + 1),
            (State::String | State::StringEscape, State::Text | State::Escape | State::Csi) => {
                strings.extend(string_start.take().map(|start| View::whole(&bytes[start..at], start)));
            }
            _ => {}
        }
        at += 1;
    }
    strings.extend(string_start.map(|start| View::whole(&bytes[start..], start)));
    (view, strings)
}

/// Visits each visible byte, except line breaks and the blanks around them.
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
