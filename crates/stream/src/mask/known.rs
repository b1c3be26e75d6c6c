//! Known values, as fingerprints: enough to recognise a value where it is printed, too little to read it back.
//!
//! Of each value are kept its length, 16 bits of a keyed hash of its first four bytes (to find candidates fast), 8 bits
//! for each further four (to know the beginning of one whose rest has not come yet), and 128 bits of an HMAC over all
//! of it (to be sure).

use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::Found;
use crate::scan::find_control;

/// The shortest value that is hidden: shorter ones are in too many words.
pub const SHORTEST: usize = 4;
/// A longer one is known by pieces of this length.
const PIECE: usize = 512;
/// More than these are not kept: the first ones count.
const MOST: usize = 512;
/// A line of a value of several lines is also hidden by itself from this length on.
const LINE: usize = 12;

/// What is kept of one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Print {
    /// Whether a person typed it as a secret.
    pub(super) typed: bool,
    pub(super) len: usize,
    pub(super) head: u16,
    pub(super) chain: Vec<u8>,
    pub(super) proof: [u8; 16],
}

/// All known values of a job.
#[derive(Clone, Debug)]
pub(super) struct Known {
    key: [u8; 32],
    factor: u32,
    mac: Hmac<Sha256>,
    prints: Vec<Print>,
    /// One bit for each possible head.
    heads: Box<[u64; 1 << 10]>,
}

impl Known {
    pub(super) fn new(key: [u8; 32]) -> Self {
        let factor = u32::from_le_bytes([key[0], key[1], key[2], key[3]]) | 1;
        // A key of any length will do.
        let mac = Hmac::new_from_slice(&key).unwrap_or_else(|_| Hmac::new(&[0; 64].into()));
        Self { key, factor, mac, prints: Vec::new(), heads: Box::new([0; 1 << 10]) }
    }

    pub(super) fn key(&self) -> &[u8; 32] {
        &self.key
    }

    pub(super) fn prints(&self) -> &[Print] {
        &self.prints
    }

    pub(super) fn is_empty(&self) -> bool {
        self.prints.is_empty()
    }

    pub(super) fn typed_only(&self) -> Self {
        let mut only = Self::new(self.key);
        self.prints.iter().filter(|print| print.typed).for_each(|print| only.push(print.clone()));
        only
    }

    /// Adds a value, and its lines if it has several; false if it is too short.
    pub(super) fn add(&mut self, value: &str, typed: bool) -> bool {
        let plain = |text: &str| -> Vec<u8> { text.bytes().filter(|byte| is_part(*byte)).collect() };
        let whole = plain(value.trim());
        if whole.len() < SHORTEST {
            return false;
        }
        for piece in whole.chunks(PIECE).filter(|piece| piece.len() >= SHORTEST) {
            self.push(self.print(piece, typed));
        }
        if value.trim().contains('\n') {
            let lines =
                value.lines().map(plain).filter(|line| line.len() >= LINE && !line.starts_with(b"-----"));
            lines.take(64).for_each(|line| self.push(self.print(&line, typed)));
        }
        true
    }

    pub(super) fn push(&mut self, print: Print) {
        if self.prints.len() >= MOST || self.prints.contains(&print) || print.len < SHORTEST {
            return;
        }
        self.heads[usize::from(print.head >> 6)] |= 1 << (print.head & 63);
        self.prints.push(print);
    }

    fn print(&self, value: &[u8], typed: bool) -> Print {
        let mut head = 0;
        value[..SHORTEST].iter().for_each(|byte| head = head << 8 | u32::from(*byte));
        let chain = (2..=value.len() / 4).map(|step| self.link(&value[..step * 4])).collect();
        Print { typed, len: value.len(), head: self.fold_head(head), chain, proof: self.proof(value) }
    }

    fn fold_head(&self, head: u32) -> u16 {
        (head.wrapping_mul(self.factor) >> 16) as u16
    }

    fn link(&self, beginning: &[u8]) -> u8 {
        let mut mac = self.mac.clone();
        mac.update(b"beginning");
        mac.update(beginning);
        mac.finalize().into_bytes()[0]
    }

    fn proof(&self, value: &[u8]) -> [u8; 16] {
        let mut mac = self.mac.clone();
        mac.update(b"whole");
        mac.update(value);
        let mut proof = [0; 16];
        proof.copy_from_slice(&mac.finalize().into_bytes()[..16]);
        proof
    }

    /// Finds every known value in visible text, line breaks or not.
    pub(super) fn find(&self, text: &[u8], found: &mut Found) {
        if self.prints.is_empty() {
            return;
        }
        let mut window: u32 = 0;
        let mut at = 0;
        while at < text.len() {
            let (len, _) = find_control(&text[at..]);
            let stretch = &text[at..at + len];
            // What the line before it ends with may be the beginning of one.
            for (i, byte) in stretch.iter().enumerate().take(SHORTEST - 1) {
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
        // Three bytes are too few to tell, and too few to matter; but whoever can wait should. A blank ends a prompt.
        let few = text.iter().rev().take(SHORTEST - 1).take_while(|byte| is_part(**byte)).count();
        if few > 0 && text.last() != Some(&b' ') {
            found.undecided_from(text.len() - few);
        }
    }

    /// The next four bytes of a stretch that may be the beginning of a value. This sees every byte that is shown.
    fn next_head(&self, stretch: &[u8]) -> Option<(usize, u16)> {
        let heads = &*self.heads;
        let mut heads_of =
            stretch.array_windows().map(|bytes| self.fold_head(u32::from_be_bytes(*bytes))).enumerate();
        heads_of.find(|(_, head)| heads[usize::from(head >> 6)] >> (head & 63) & 1 == 1)
    }

    /// Looks at the four bytes that end at `last`.
    fn try_window(&self, text: &[u8], last: usize, window: u32, found: &mut Found) {
        let head = self.fold_head(window);
        if self.heads[usize::from(head >> 6)] >> (head & 63) & 1 == 1 {
            self.try_at(text, start_of_window(text, last), head, found);
        }
    }

    fn try_at(&self, text: &[u8], start: usize, head: u16, found: &mut Found) {
        for print in self.prints.iter().filter(|print| print.head == head) {
            let (value, end) = collect(text, start, print.len);
            if value.len() == print.len {
                if self.proof(&value) == print.proof {
                    found.spans.push(start..end);
                    found.whole.push(start..end);
                }
                continue;
            }
            // The end of what there is: hidden if it may be the beginning of it.
            let mut links = (2..=value.len() / 4).zip(&print.chain);
            if links.all(|(step, link)| self.link(&value[..step * 4]) == *link) {
                found.spans.push(start..text.len());
                found.undecided_from(start);
            }
        }
    }
}

/// Line breaks are no part of a value.
fn is_part(byte: u8) -> bool {
    byte >= 0x20 && byte != 0x7f
}

/// Where the four bytes begin that end at `last`.
fn start_of_window(text: &[u8], last: usize) -> usize {
    let mut start = last;
    let mut missing = SHORTEST - 1;
    while missing > 0 && start > 0 {
        start -= 1;
        missing -= usize::from(is_part(text[start]));
    }
    start
}

/// The next `len` bytes of a value from `start` on, and where they end. Where a line is broken, blanks and the frame of
/// a box on both sides are left out.
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
