//! Cuts raw bytes into text, control characters and escape sequences, in one pass.
//!
//! Everything else in this crate sees a terminal's output through [`Sink`]. Only this file knows what a
//! sequence looks like, and only this file has to care where a read happened to end. Plain text is passed on
//! as slices of the input: the common case copies nothing.
//!
//! Hostile input is bounded here. Strings (OSC, DCS, …) are cut to 4 KiB, numbers are clamped to 65535, and a
//! sequence that is too long to be real is read to its end and dropped.

mod csi;
mod find;
mod lines;

pub(crate) use csi::{Csi, Params};
pub(crate) use find::find_control;
pub(crate) use lines::{Lines, plain_lines, push_lines};

/// How many bytes of an OSC or DCS body are kept. No title or query that we act on is longer.
const MAX_STRING: usize = 4096;
/// How many bytes of a CSI sequence's parameters are kept: enough for 32 numbers of 5 digits.
const MAX_CSI: usize = 256;

/// Where the scanner puts what it finds. Offsets are positions in the log.
pub(crate) trait Sink {
    /// A fast path. Takes the plain lines that `bytes` begins with, and returns how many bytes it took. It
    /// may always take none: then the same bytes come piece by piece.
    fn lines(&mut self, _bytes: &[u8], _start: u64) -> usize {
        0
    }
    /// Printable text: no control characters, whole characters only. `end` is the offset after its last byte.
    fn text(&mut self, text: &str, end: u64);
    /// One C0 control character.
    fn control(&mut self, byte: u8, end: u64);
    /// A complete CSI sequence.
    fn csi(&mut self, csi: &Csi<'_>, end: u64);
    /// A complete escape sequence of two or three bytes: `ESC intermediates last`.
    fn escape(&mut self, intermediates: &[u8], last: u8, end: u64);
    /// The body of an operating system command, perhaps cut short.
    fn osc(&mut self, body: &[u8], ended_by_bell: bool, end: u64);
    /// The body of a device control string, perhaps cut short.
    fn dcs(&mut self, body: &[u8], end: u64);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ground,
    Escape,
    Csi,
    CsiIgnored,
    Osc,
    Dcs,
    /// SOS, PM and APC: their bodies are ignored.
    Discarded,
}

/// The state of the scan between two reads.
#[derive(Debug)]
pub(crate) struct Scanner {
    state: State,
    /// The first bytes of a character that the last read cut off.
    partial: [u8; 4],
    partial_len: usize,
    /// Intermediates, parameters or string body of the unfinished sequence.
    sequence: Vec<u8>,
}

impl Scanner {
    pub(crate) fn new() -> Self {
        Self { state: State::Ground, partial: [0; 4], partial_len: 0, sequence: Vec::new() }
    }

    /// Scans bytes that begin at log offset `start`.
    pub(crate) fn scan(&mut self, bytes: &[u8], start: u64, sink: &mut impl Sink) {
        let mut at = 0;
        while at < bytes.len() {
            let end_of = |used: usize| start + used as u64;
            at = match self.state {
                State::Ground => self.ground(bytes, at, start, sink),
                State::Escape => self.escape_byte(bytes[at], at, end_of(at + 1), sink),
                State::Csi | State::CsiIgnored => self.csi_byte(bytes[at], at, end_of(at + 1), sink),
                State::Osc | State::Dcs | State::Discarded => self.string(bytes, at, start, sink),
            };
        }
    }

    /// The end of all output: an incomplete character becomes U+FFFD.
    pub(crate) fn finish(&mut self, end: u64, sink: &mut impl Sink) {
        if self.partial_len > 0 {
            self.partial_len = 0;
            sink.text("\u{FFFD}", end);
        }
        self.state = State::Ground;
        self.sequence = Vec::new();
    }

    /// Appends bytes that bring another scanner into this state: the start of the unfinished sequence.
    pub(crate) fn unfinished(&self, into: &mut Vec<u8>) {
        let introducer: &[u8] = match self.state {
            State::Ground => &self.partial[..self.partial_len],
            State::Escape => b"\x1b",
            State::Csi | State::CsiIgnored => b"\x1b[",
            State::Osc => b"\x1b]",
            State::Dcs => b"\x1bP",
            State::Discarded => b"\x1bX",
        };
        into.extend_from_slice(introducer);
        if self.state != State::Ground {
            into.extend_from_slice(&self.sequence);
        }
        if self.state == State::CsiIgnored {
            into.push(b'0');
        }
    }

    fn ground(&mut self, bytes: &[u8], mut at: usize, start: u64, sink: &mut impl Sink) -> usize {
        if self.partial_len > 0 {
            at = self.complete_partial(bytes, at, start, sink);
            if at >= bytes.len() {
                return at;
            }
        }
        let taken = sink.lines(&bytes[at..], start + at as u64);
        if taken > 0 {
            return at + taken;
        }
        let (length, ascii) = find_control(&bytes[at..]);
        let stop = at + length;
        if length > 0 {
            self.run(&bytes[at..stop], ascii, start + stop as u64, stop == bytes.len(), sink);
        }
        if stop == bytes.len() {
            return stop;
        }
        if bytes[stop] != 0x1b {
            sink.control(bytes[stop], start + stop as u64 + 1);
            return stop + 1;
        }
        self.begin_escape();
        // Most sequences are CSI and lie whole in this read: no need to go byte by byte.
        if bytes.get(stop + 1) == Some(&b'[')
            && let Some((body, last, used)) = csi::whole(&bytes[stop + 2..])
        {
            self.state = State::Ground;
            let next = stop + 2 + used;
            sink.csi(&Csi::new(body, last), start + next as u64);
            return next;
        }
        stop + 1
    }

    fn begin_escape(&mut self) {
        self.state = State::Escape;
        self.sequence.clear();
    }

    /// A run without C0 controls. Valid text is passed on, invalid bytes become U+FFFD, C1 controls are
    /// dropped.
    fn run(&mut self, mut bytes: &[u8], ascii: bool, end: u64, last: bool, sink: &mut impl Sink) {
        loop {
            match std::str::from_utf8(bytes) {
                Ok(text) => return pass_text(text, ascii, end, sink),
                Err(error) => {
                    let (good, rest) = bytes.split_at(error.valid_up_to());
                    let rest_start = end.saturating_sub(rest.len() as u64);
                    if let Ok(text) = std::str::from_utf8(good) {
                        pass_text(text, false, rest_start, sink);
                    }
                    let bad = match error.error_len() {
                        None if last => {
                            self.partial[..rest.len()].copy_from_slice(rest);
                            self.partial_len = rest.len();
                            return;
                        }
                        None => rest.len(),
                        Some(length) => length,
                    };
                    sink.text("\u{FFFD}", rest_start + bad as u64);
                    bytes = &rest[bad..];
                    if bytes.is_empty() {
                        return;
                    }
                }
            }
        }
    }

    /// Adds bytes to the character that the last read cut off, until it is complete or invalid.
    fn complete_partial(&mut self, bytes: &[u8], mut at: usize, start: u64, sink: &mut impl Sink) -> usize {
        while at < bytes.len() {
            let length = self.partial_len;
            self.partial[length] = bytes[at];
            match std::str::from_utf8(&self.partial[..=length]) {
                Ok(text) => {
                    let character = text.to_owned();
                    self.partial_len = 0;
                    pass_text(&character, false, start + at as u64 + 1, sink);
                    return at + 1;
                }
                Err(error) if error.error_len().is_none() => self.partial_len += 1,
                Err(_) => {
                    // The new byte does not belong to it: emit U+FFFD, and scan that byte again.
                    self.partial_len = 0;
                    sink.text("\u{FFFD}", start + at as u64);
                    return at;
                }
            }
            at += 1;
        }
        at
    }

    fn escape_byte(&mut self, byte: u8, at: usize, end: u64, sink: &mut impl Sink) -> usize {
        match byte {
            0x1b => self.begin_escape(),
            0x18 | 0x1a => self.state = State::Ground,
            0x00..=0x1f => sink.control(byte, end),
            0x7f => {}
            0x20..=0x2f => {
                if self.sequence.len() < 4 {
                    self.sequence.push(byte);
                }
            }
            b'[' if self.sequence.is_empty() => self.state = State::Csi,
            b']' if self.sequence.is_empty() => self.state = State::Osc,
            b'P' if self.sequence.is_empty() => self.state = State::Dcs,
            b'X' | b'^' | b'_' if self.sequence.is_empty() => self.state = State::Discarded,
            0x30..=0x7e => {
                self.state = State::Ground;
                sink.escape(&self.sequence, byte, end);
            }
            0x80.. => {
                // Text cannot be part of a sequence: the sequence was cut short.
                self.state = State::Ground;
                return at;
            }
        }
        at + 1
    }

    fn csi_byte(&mut self, byte: u8, at: usize, end: u64, sink: &mut impl Sink) -> usize {
        match byte {
            0x1b => self.begin_escape(),
            0x18 | 0x1a => self.state = State::Ground,
            0x00..=0x1f => sink.control(byte, end),
            0x7f => {}
            0x20..=0x3f => {
                if self.sequence.len() < MAX_CSI {
                    self.sequence.push(byte);
                } else {
                    self.state = State::CsiIgnored;
                }
            }
            0x40..=0x7e => {
                if self.state == State::Csi {
                    sink.csi(&Csi::new(&self.sequence, byte), end);
                }
                self.state = State::Ground;
            }
            0x80.. => {
                self.state = State::Ground;
                return at;
            }
        }
        at + 1
    }

    fn string(&mut self, bytes: &[u8], at: usize, start: u64, sink: &mut impl Sink) -> usize {
        let rest = &bytes[at..];
        let stop = rest
            .iter()
            .position(|&b| matches!(b, 0x1b | 0x18 | 0x1a) || (b == 0x07 && self.state == State::Osc))
            .unwrap_or(rest.len());
        let room = MAX_STRING - self.sequence.len().min(MAX_STRING);
        if self.state != State::Discarded {
            self.sequence.extend_from_slice(&rest[..stop.min(room)]);
        }
        let Some(&terminator) = rest.get(stop) else { return bytes.len() };
        let end = start + (at + stop + 1) as u64;
        let cancelled = matches!(terminator, 0x18 | 0x1a);
        let state = std::mem::replace(&mut self.state, State::Ground);
        if !cancelled {
            match state {
                State::Osc => sink.osc(&self.sequence, terminator == 0x07, end),
                State::Dcs => sink.dcs(&self.sequence, end),
                State::Ground | State::Escape | State::Csi | State::CsiIgnored | State::Discarded => {}
            }
        }
        // A string may have grown this buffer to 4 KiB, which is rarely needed again.
        if self.sequence.capacity() > MAX_CSI * 2 {
            self.sequence = Vec::new();
        }
        if terminator == 0x1b {
            self.begin_escape();
        }
        at + stop + 1
    }
}

/// C1 controls (U+0080–U+009F) are not text. They are rare, so a run is only searched when it has non-ASCII
/// bytes.
fn pass_text(text: &str, ascii: bool, end: u64, sink: &mut impl Sink) {
    if text.is_empty() {
        return;
    }
    if ascii || memchr::memchr(0xc2, text.as_bytes()).is_none() {
        return sink.text(text, end);
    }
    let mut kept_from = 0;
    let start = end.saturating_sub(text.len() as u64);
    for (at, character) in text.char_indices() {
        if ('\u{80}'..='\u{9f}').contains(&character) {
            if at > kept_from {
                sink.text(&text[kept_from..at], start + at as u64);
            }
            kept_from = at + character.len_utf8();
        }
    }
    if kept_from < text.len() {
        sink.text(&text[kept_from..], end);
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
