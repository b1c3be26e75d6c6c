//! Where a keeper's heir can take up the fold again.
//!
//! The fold's state is not written down; it is made again by feeding the log from a point far enough back. While
//! output is plain lines, a screenful of line ends after a point settles everything on the screen, so that point will
//! do as a start. A cursor that strays makes older points unfit until another screenful has passed.

use crate::charset::Charsets;
use crate::modes::Modes;
use crate::page::Cursor;

/// Never more than this lies between a checkpoint and now; then exactness gives way.
const MAX_DISTANCE: u64 = 16 << 20;
/// Longest title that a checkpoint carries.
const MAX_TITLE: usize = 256;

/// A point to take up the fold from: cut the transcript to `transcript_len`, make a
/// [`Pipeline`](crate::Pipeline) with [`resume`](crate::Pipeline::resume), and feed the log from `offset`.
///
/// Transcript, screen text and modes then come out as if nothing had happened, unless the output between here and there
/// was full-screen or redrawn for more than 16 MiB, or the size changed: then the screen is right once it is redrawn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checkpoint {
    /// Log offset to feed from.
    pub offset: u64,
    /// Length of the transcript up to there.
    pub transcript_len: u64,
    /// At most 1 KiB of sequences that bring a fresh terminal into the modes in force there.
    pub prelude: Vec<u8>,
}

/// Keeps the newest usable checkpoint.
#[derive(Debug)]
pub(crate) struct Marks {
    usable: Checkpoint,
    /// A point that becomes usable once a screenful of lines has passed.
    candidate: Option<Checkpoint>,
    lines_since: usize,
}

impl Marks {
    pub(crate) fn new(start: Checkpoint) -> Self {
        Self { usable: start, candidate: None, lines_since: 0 }
    }

    pub(crate) fn usable(&self) -> &Checkpoint {
        &self.usable
    }

    /// Lines ended and the next begins at the left edge. Says whether a new candidate is wanted.
    pub(crate) fn lines(&mut self, count: usize, screen_lines: usize) -> bool {
        self.lines_since += count;
        if self.candidate.is_some() && self.lines_since < screen_lines {
            return false;
        }
        self.lines_since = 0;
        if let Some(passed) = self.candidate.take() {
            self.usable = passed;
        }
        true
    }

    pub(crate) fn set_candidate(&mut self, point: Checkpoint) {
        self.candidate = Some(point);
    }

    /// The cursor left its line: points before this no longer become usable.
    pub(crate) fn stray(&mut self) {
        self.candidate = None;
    }

    pub(crate) fn is_too_far(&self, offset: u64) -> bool {
        offset.saturating_sub(self.usable.offset) > MAX_DISTANCE
    }

    pub(crate) fn force(&mut self, point: Checkpoint) {
        self.usable = point;
        self.candidate = None;
    }
}

/// Sequences that bring a fresh terminal to where this one is, but for what is printed.
pub(crate) fn prelude(modes: &Modes, charsets: &Charsets, saved: Cursor, title: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    if *modes == Modes::fresh(modes.terminal)
        && *charsets == Charsets::default()
        && saved == Cursor::default()
        && title.is_empty()
    {
        return bytes;
    }
    if saved != Cursor::default() {
        bytes.extend_from_slice(format!("\x1b[{};{}H\x1b7\x1b[H", saved.row + 1, saved.col + 1).as_bytes());
    }
    charsets.prelude(&mut bytes);
    if !title.is_empty() && title.len() <= MAX_TITLE {
        bytes.extend_from_slice(format!("\x1b]2;{title}\x1b\\").as_bytes());
    }
    modes.prelude(&mut bytes);
    bytes
}
