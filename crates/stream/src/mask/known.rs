//! Known values, as fingerprints: enough to recognise a value where it is printed, too little to
//! recover it.
//!
//! A fingerprint has the length of the value, 16 bits of a keyed hash of its first four bytes (to find
//! candidates fast), 8 bits for each further four (to recognise a value whose rest has not come yet), and 128
//! bits of an HMAC over all of it (to be sure).

use std::collections::HashMap;

use ring::hmac;

use super::{FoundSecrets, spellings};
use crate::scan::find_control;

/// The shortest value that is hidden. Shorter ones are part of too many words.
pub const MIN_SECRET_BYTES: usize = 4;
/// Longer values are split into pieces of this length.
const PIECE_BYTES: usize = 512;
/// The most fingerprints that are kept: the first ones count.
const MAX_FINGERPRINTS: usize = 4096;
/// A line of a multi-line value is also hidden by itself if it is at least this long.
const MIN_LINE_BYTES: usize = 12;

/// A shorter piece of another spelling is part of too much.
const MIN_SPELLED_PIECE: usize = 6;

/// The fingerprint of one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    /// Whether a person typed it as a secret.
    pub(super) typed: bool,
    pub(super) len: usize,
    pub(super) head: u16,
    pub(super) chain: Vec<u8>,
    pub(super) proof: [u8; 16],
}

/// The fingerprints of all known values of a job.
#[derive(Clone, Debug)]
pub(super) struct KnownValues {
    key: [u8; 32],
    factor: u32,
    mac: hmac::Key,
    fingerprints: Vec<Fingerprint>,
    /// Which of them have a head.
    by_head: HashMap<u16, Vec<usize>>,
    /// One bit for each possible head.
    heads: Box<[u64; 1 << 10]>,
}

impl KnownValues {
    pub(super) fn new(key: [u8; 32]) -> Self {
        let factor = u32::from_le_bytes([key[0], key[1], key[2], key[3]]) | 1;
        let mac = hmac::Key::new(hmac::HMAC_SHA256, &key);
        Self {
            key,
            factor,
            mac,
            fingerprints: Vec::new(),
            by_head: HashMap::new(),
            heads: Box::new([0; 1 << 10]),
        }
    }

    pub(super) fn key(&self) -> &[u8; 32] {
        &self.key
    }

    pub(super) fn fingerprints(&self) -> &[Fingerprint] {
        &self.fingerprints
    }

    pub(super) fn is_empty(&self) -> bool {
        self.fingerprints.is_empty()
    }

    pub(super) fn typed_only(&self) -> Self {
        let mut only = Self::new(self.key);
        self.fingerprints.iter().filter(|print| print.typed).for_each(|print| only.push(print.clone()));
        only
    }

    /// Adds a value, and its lines if it has several. Returns false if it is too short.
    pub(super) fn add(&mut self, value: &str, typed: bool) -> bool {
        let plain = |text: &str| -> Vec<u8> { text.bytes().filter(|byte| is_part(*byte)).collect() };
        let whole = plain(value.trim());
        if whole.len() < MIN_SECRET_BYTES {
            return false;
        }
        for piece in whole.chunks(PIECE_BYTES).filter(|piece| piece.len() >= MIN_SECRET_BYTES) {
            self.push(self.print(piece, typed));
        }
        for spelled in spellings::of(value.trim()) {
            let spelled = plain(&spelled);
            for piece in spelled.chunks(PIECE_BYTES).filter(|piece| piece.len() >= MIN_SPELLED_PIECE) {
                self.push(self.print_of_spelling(piece, typed));
            }
        }
        if value.trim().contains('\n') {
            let lines = value
                .lines()
                .map(plain)
                .filter(|line| line.len() >= MIN_LINE_BYTES && !line.starts_with(b"-----"));
            lines.take(64).for_each(|line| self.push(self.print(&line, typed)));
        }
        true
    }

    pub(super) fn push(&mut self, print: Fingerprint) {
        if self.fingerprints.len() >= MAX_FINGERPRINTS
            || self.with_head(print.head).any(|known| *known == print)
            || print.len < MIN_SECRET_BYTES
        {
            return;
        }
        self.heads[usize::from(print.head >> 6)] |= 1 << (print.head & 63);
        self.by_head.entry(print.head).or_default().push(self.fingerprints.len());
        self.fingerprints.push(print);
    }

    /// Another spelling is known only as a whole: its beginnings are not worth their time.
    fn print_of_spelling(&self, value: &[u8], typed: bool) -> Fingerprint {
        let mut head = 0;
        value[..MIN_SECRET_BYTES].iter().for_each(|byte| head = head << 8 | u32::from(*byte));
        let (head, proof) = (self.fold_head(head), self.proof(value));
        Fingerprint { typed, len: value.len(), head, chain: Vec::new(), proof }
    }

    fn print(&self, value: &[u8], typed: bool) -> Fingerprint {
        let mut head = 0;
        value[..MIN_SECRET_BYTES].iter().for_each(|byte| head = head << 8 | u32::from(*byte));
        let chain = (2..=value.len() / 4).map(|step| self.link(&value[..step * 4])).collect();
        Fingerprint { typed, len: value.len(), head: self.fold_head(head), chain, proof: self.proof(value) }
    }

    fn fold_head(&self, head: u32) -> u16 {
        (head.wrapping_mul(self.factor) >> 16) as u16
    }

    fn link(&self, beginning: &[u8]) -> u8 {
        self.digest(b"beginning", beginning).as_ref()[0]
    }

    fn proof(&self, value: &[u8]) -> [u8; 16] {
        let mut proof = [0; 16];
        proof.copy_from_slice(&self.digest(b"whole", value).as_ref()[..16]);
        proof
    }

    /// The keyed hash of some bytes, for one of two purposes.
    fn digest(&self, purpose: &[u8], bytes: &[u8]) -> hmac::Tag {
        let mut mac = hmac::Context::with_key(&self.mac);
        mac.update(purpose);
        mac.update(bytes);
        mac.sign()
    }

    /// Finds every known value in visible text, also across line breaks.
    pub(super) fn find(&self, text: &[u8], found: &mut FoundSecrets) {
        if self.fingerprints.is_empty() {
            return;
        }
        let mut window: u32 = 0;
        let mut at = 0;
        while at < text.len() {
            let (len, _) = find_control(&text[at..]);
            let stretch = &text[at..at + len];
            // The line before may end with the start of a value.
            for (i, byte) in stretch.iter().enumerate().take(MIN_SECRET_BYTES - 1) {
                window = window << 8 | u32::from(*byte);
                self.try_window(text, at + i, window, found);
            }
            let mut from = 0;
            while let Some((ahead, head)) = self.next_head(&stretch[from..]) {
                self.try_at(text, at + from + ahead, head, found);
                from += ahead + 1;
            }
            if let Some(last) = stretch.last_chunk() {
                window = u32::from_be_bytes(*last);
            }
            at += len + 1;
        }
        // Three bytes are too few to tell, and too few to matter, but a caller that can wait should. A prompt
        // ends in a blank.
        let few = text.iter().rev().take(MIN_SECRET_BYTES - 1).take_while(|byte| is_part(**byte)).count();
        if few > 0 && text.last() != Some(&b' ') {
            found.undecided_from(text.len() - few);
        }
    }

    /// The next four bytes that may be the start of a value. This sees every byte that is shown.
    fn next_head(&self, stretch: &[u8]) -> Option<(usize, u16)> {
        let heads = &*self.heads;
        let heads_of = stretch.windows(MIN_SECRET_BYTES);
        let heads_of = heads_of.map(|b| self.fold_head(u32::from_be_bytes([b[0], b[1], b[2], b[3]])));
        let mut heads_of = heads_of.enumerate();
        heads_of.find(|(_, head)| heads[usize::from(head >> 6)] >> (head & 63) & 1 == 1)
    }

    /// Checks the four bytes that end at `last`.
    fn try_window(&self, text: &[u8], last: usize, window: u32, found: &mut FoundSecrets) {
        let head = self.fold_head(window);
        if self.heads[usize::from(head >> 6)] >> (head & 63) & 1 == 1 {
            self.try_at(text, start_of_window(text, last), head, found);
        }
    }

    fn with_head(&self, head: u16) -> impl Iterator<Item = &Fingerprint> {
        let found = self.by_head.get(&head).into_iter().flatten();
        found.filter_map(|index| self.fingerprints.get(*index))
    }

    fn try_at(&self, text: &[u8], start: usize, head: u16, found: &mut FoundSecrets) {
        for print in self.with_head(head) {
            let (value, end) = collect(text, start, print.len);
            if value.len() == print.len {
                if self.proof(&value) == print.proof {
                    found.spans.push(start..end);
                    found.whole.push(start..end);
                }
                continue;
            }
            if print.chain.is_empty() && print.len >= 2 * MIN_SECRET_BYTES {
                // Another spelling, of which only the whole is known.
                found.undecided_from(start);
                continue;
            }
            // The end of the text: hide it if it may be the start of a value.
            let mut links = (2..=value.len() / 4).zip(&print.chain);
            if links.all(|(step, link)| self.link(&value[..step * 4]) == *link) {
                found.spans.push(start..text.len());
                found.beginnings.push(start..text.len());
                found.undecided_from(start);
            }
        }
    }
}

/// Line breaks are not part of a value.
fn is_part(byte: u8) -> bool {
    byte >= 0x20 && byte != 0x7f
}

/// Where the four bytes start that end at `last`.
fn start_of_window(text: &[u8], last: usize) -> usize {
    let mut start = last;
    let mut missing = MIN_SECRET_BYTES - 1;
    while missing > 0 && start > 0 {
        start -= 1;
        missing -= usize::from(is_part(text[start]));
    }
    start
}

/// The next `len` bytes of a value from `start` on, and where they end. At a line break, blanks and the frame
/// of a box are skipped on both sides.
fn collect(text: &[u8], start: usize, len: usize) -> (Vec<u8>, usize) {
    let mut value = Vec::with_capacity(len);
    let mut at = start;
    while at < text.len() && value.len() < len {
        if text[at] == b'\n' {
            value.truncate(value.len() - frame_before(&value));
            at += 1;
            at += frame_after(&text[at..]);
            continue;
        }
        if is_part(text[at]) {
            value.push(text[at]);
        }
        at += 1;
    }
    (value, at)
}

/// The vertical lines of a box, and blanks.
const FRAMES: [&[u8]; 5] = [b" ", b"|", "│".as_bytes(), "┃".as_bytes(), "║".as_bytes()];

fn frame_before(value: &[u8]) -> usize {
    let mut rest = value;
    while let Some(frame) = FRAMES.iter().find(|frame| rest.ends_with(frame)) {
        rest = &rest[..rest.len() - frame.len()];
    }
    value.len() - rest.len()
}

fn frame_after(text: &[u8]) -> usize {
    let mut rest = text;
    while let Some(frame) = FRAMES.iter().find(|frame| rest.starts_with(frame)) {
        rest = &rest[frame.len()..];
    }
    text.len() - rest.len()
}
