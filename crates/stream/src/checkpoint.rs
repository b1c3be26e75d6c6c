//! Where a keeper's heir can resume the fold.
//!
//! The fold's state is not saved. It is rebuilt by feeding the log from a point far enough back. While output
//! is plain lines, a screenful of line ends determines everything on the screen, so a point that far back
//! will do. When the cursor leaves its line, older points become unusable until another screenful has passed.

use crate::charset::Charsets;
use crate::modes::Modes;
use crate::page::Cursor;

/// A checkpoint is at most this far behind. Where no exact point is that near, an inexact one is used.
const MAX_DISTANCE: u64 = 16 << 20;
/// The longest title that a checkpoint contains, in bytes.
const MAX_TITLE: usize = 256;

/// A point to resume the fold from: cut the transcript to `transcript_len`, create a
/// [`Pipeline`](crate::Pipeline) with [`resume`](crate::Pipeline::resume), and feed the log from `offset`.
///
/// Transcript, screen text and modes are then as if nothing had happened. There is one exception: if the
/// output was full-screen or redrawn for more than 16 MiB, or the size changed, the screen is only right once
/// it is redrawn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checkpoint {
    /// Log offset to feed from.
    pub offset: u64,
    /// Length of the transcript up to there.
    pub transcript_len: u64,
    /// At most 1 KiB of sequences that put a fresh terminal into the modes of this point.
    pub prelude: Vec<u8>,
}

/// Tracks the newest usable checkpoint.
#[derive(Debug)]
pub(crate) struct CheckpointTracker {
    usable: Checkpoint,
    /// A point that becomes usable once a screenful of lines has passed.
    candidate: Option<Checkpoint>,
    lines_since: usize,
}

impl CheckpointTracker {
    pub(crate) fn new(start: Checkpoint) -> Self {
        Self { usable: start, candidate: None, lines_since: 0 }
    }

    pub(crate) fn usable(&self) -> &Checkpoint {
        &self.usable
    }

    /// Lines ended, and the next one starts at the left edge. Returns whether a new candidate is needed.
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

    /// The cursor left its line: the candidate cannot become usable.
    pub(crate) fn cursor_left_line(&mut self) {
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

/// Sequences that put a fresh terminal into this state, except for the text on the screen.
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
