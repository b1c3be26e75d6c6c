//! The fold: bytes in, lines, screen, answers and matches out.
//!
//! What output means is decided here and below, from the bytes and sizes alone. Feeding the same bytes in
//! other pieces, or again after a crash, gives the same result.

#[cfg(test)]
mod canvas_tests;
mod dispatch;
mod keyframe;
mod lines;
mod rare;

use crate::charset::Charsets;
use crate::checkpoint::{Checkpoint, CheckpointTracker, prelude};
use crate::fold_output::FoldOutput;
use crate::matching::Matchers;
use crate::modes::Modes;
use crate::pattern::PatternSet;
use crate::replies::Responder;
use crate::scan::Scanner;
use crate::screen::{Paint, Screen, Snapshot, State};
use crate::size::Size;
use crate::transcript::Transcript;
pub use keyframe::Keyframe;

/// How a fold is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// The terminal's size.
    pub size: Size,
    /// Rows kept above the screen.
    pub scrollback: usize,
    /// Whether the bytes come from a terminal. On a pipe, a bare line feed ends a line, and queries are not
    /// answered.
    pub terminal: bool,
    /// Only match patterns: there is no text, no screen and no answers, and it is faster.
    pub only_patterns: bool,
    /// Row and column, from 0, where the cursor is before the first byte.
    pub cursor: (u16, u16),
}

impl Default for Config {
    fn default() -> Self {
        Self { size: Size::default(), scrollback: 1000, terminal: true, only_patterns: false, cursor: (0, 0) }
    }
}

/// The fold of one output stream.
pub struct Pipeline {
    scanner: Scanner,
    fold: Fold,
}

/// Everything except the scanner, which calls it.
struct Fold {
    offset: u64,
    only_patterns: bool,
    modes: Modes,
    charsets: Charsets,
    saved_charsets: Charsets,
    title: String,
    bells: u64,
    transcript: Transcript,
    screen: Screen,
    responder: Responder,
    matchers: Matchers,
    checkpoints: CheckpointTracker,
    /// First and last row of the scroll region, if it is less than the screen.
    region: Option<(usize, usize)>,
    backoff: lines::Backoff,
    /// The character that REP repeats; `None` at the start of a line.
    last_printed: Option<char>,
    rare: rare::Rare,
}

impl Pipeline {
    /// A fold that starts at log offset 0.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self::resume(config, &Checkpoint::default())
    }

    /// A fold that continues from a checkpoint; its bytes continue at the checkpoint's offset.
    #[must_use]
    pub fn resume(config: Config, from: &Checkpoint) -> Self {
        let size = config.size.clamped();
        let mut pipeline = Self {
            scanner: Scanner::new(),
            fold: Fold {
                offset: 0,
                only_patterns: config.only_patterns,
                modes: Modes::fresh(config.terminal),
                charsets: Charsets::default(),
                saved_charsets: Charsets::default(),
                title: String::new(),
                bells: 0,
                transcript: Transcript::new(size, from.transcript_len, config.terminal),
                screen: if config.only_patterns {
                    Screen::disabled(size)
                } else {
                    Screen::new(size, config.scrollback.min(100_000))
                },
                responder: Responder::new(from.offset),
                matchers: Matchers::new(),
                checkpoints: CheckpointTracker::new(from.clone()),
                region: None,
                backoff: lines::Backoff::default(),
                last_printed: None,
                rare: rare::Rare::default(),
            },
        };
        if config.cursor != (0, 0) && from.offset == 0 {
            let (row, col) = config.cursor;
            pipeline.fold.screen.feed_cursor_move(format!("\x1b[{};{}H", row + 1, col + 1).as_bytes());
        }
        // The prelude only switches modes. Whatever it emits was emitted long ago.
        pipeline.advance(&from.prelude, from.offset, &mut FoldOutput::default());
        pipeline.fold.offset = from.offset;
        pipeline.fold.transcript.take_left_line();
        pipeline.fold.checkpoints = CheckpointTracker::new(from.clone());
        pipeline
    }

    /// Takes bytes that continue at [`offset`](Self::offset), then reports patterns that match the unfinished
    /// line. If more bytes are known to follow, use [`feed_more`](Self::feed_more): a match at the end of a
    /// read may not be complete.
    pub fn feed(&mut self, bytes: &[u8], out: &mut FoldOutput) {
        self.feed_more(bytes, out);
        self.peek(out);
    }

    /// Takes bytes without matching the unfinished line; [`peek`](Self::peek) does that.
    pub fn feed_more(&mut self, bytes: &[u8], out: &mut FoldOutput) {
        let start = self.fold.offset;
        self.advance(bytes, start, out);
        self.fold.offset = start + bytes.len() as u64;
    }

    fn advance(&mut self, bytes: &[u8], start: u64, out: &mut FoldOutput) {
        let mut step = dispatch::Step { fold: &mut self.fold, out };
        self.scanner.scan(bytes, start, &mut step);
    }

    /// Reports patterns that match the unfinished line, as if no more output came.
    pub fn peek(&mut self, out: &mut FoldOutput) {
        if !self.fold.matchers.is_empty() {
            self.fold.matchers.peek(&mut out.hits);
        }
    }

    /// The terminal has a new size.
    pub fn resize(&mut self, size: Size, out: &mut FoldOutput) {
        let size = size.clamped();
        if size == self.fold.screen.size() {
            return;
        }
        self.fold.screen.resize(size);
        self.fold.transcript.resize(size, out);
        self.fold.checkpoints.cursor_left_line();
        self.fold.region = None;
    }

    /// The end of all output: the unfinished line is ended.
    pub fn finish(&mut self, out: &mut FoldOutput) {
        let end = self.fold.offset;
        let mut step = dispatch::Step { fold: &mut self.fold, out };
        self.scanner.finish(end, &mut step);
        self.peek(out);
        self.fold.transcript.finish(out);
    }

    /// Log offset of the next byte.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.fold.offset
    }

    /// Length of the transcript so far, without what was retracted.
    #[must_use]
    pub fn transcript_len(&self) -> u64 {
        self.fold.transcript.len()
    }

    /// Whether a program has the alternate screen.
    #[must_use]
    pub fn is_alternate(&self) -> bool {
        self.fold.modes.alternate_screen
    }

    /// A point from which another fold can continue as this one would. Cheap.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        self.fold.checkpoints.usable().clone()
    }

    /// What the terminal shows now.
    pub fn screen(&mut self) -> Snapshot {
        let fold = &mut self.fold;
        fold.screen.snapshot(&fold.modes, &fold.title, fold.bells)
    }

    /// The rows of the screen with colours and styles, and no other sequences.
    pub fn styled_screen(&mut self) -> Vec<String> {
        self.fold.screen.styled()
    }

    /// Bytes that draw the whole screen, with cursor and modes, on a person's terminal of the same size. The
    /// log from [`offset`](Self::offset) on continues them, even in the middle of a sequence. Both go through
    /// one [`Passthrough`](crate::Passthrough).
    pub fn repaint(&mut self) -> Vec<u8> {
        let mut bytes = self.fold.paint(Paint::Whole);
        self.scanner.unfinished(&mut bytes);
        bytes
    }

    /// Like [`repaint`](Self::repaint), but printed as lines from the cursor's line on: what the person's
    /// terminal showed scrolls up into its history. The rows before `first` are left out; the person's cursor must
    /// then be in that row or below it. For the normal screen only.
    pub fn repaint_as_lines(&mut self, first: usize) -> Vec<u8> {
        let mut bytes = self.fold.paint(Paint::Lines(first));
        self.scanner.unfinished(&mut bytes);
        bytes
    }

    /// Bytes that draw one row of a screen that was drawn by [`repaint`](Self::repaint): the row itself, or a
    /// text in its place. They must not go through a filter.
    pub fn repaint_row(&mut self, row: usize, over: Option<&str>) -> Vec<u8> {
        self.fold.paint(Paint::Row(row, over))
    }

    /// Bytes that draw the part of the screen around the cursor on a person's terminal of another size.
    pub fn repaint_within(&mut self, own: Size) -> Vec<u8> {
        self.fold.screen.repaint_within(own.clamped(), &self.fold.modes)
    }

    /// The newest `lines` rows above the screen, oldest first.
    pub fn scrollback(&mut self, lines: usize) -> Vec<String> {
        self.fold.screen.scrollback(lines)
    }

    /// The modes in force.
    #[must_use]
    pub fn modes(&self) -> Modes {
        self.fold.modes
    }

    /// The unfinished last line as it reads now (only the end of a very long one).
    #[must_use]
    pub fn unfinished(&self) -> String {
        self.fold.transcript.unfinished()
    }

    /// Matches patterns in what is printed from here on. Replaces a watch with the same id.
    pub fn watch(&mut self, id: u64, patterns: PatternSet) {
        let unfinished = self.fold.transcript.unfinished();
        self.fold.matchers.add(id, patterns, &unfinished, self.fold.offset);
    }

    /// Stops watching.
    pub fn unwatch(&mut self, id: u64) {
        self.fold.matchers.remove(id);
    }
}

impl Fold {
    /// Text, or a sequence that stays within its line as long as lines are all there is.
    fn feed_in_line(&mut self, bytes: &[u8]) {
        if self.modes.alternate_screen || self.region.is_some() {
            self.screen.feed_cursor_move(bytes);
        } else {
            self.screen.feed_in_line(bytes);
        }
    }

    /// Whether what is drawn in place can go to a canvas. What would change that closes it.
    fn has_canvas(&mut self) -> bool {
        self.region.is_none() && self.charsets.are_plain() && self.screen.has_canvas(self.charsets.active())
    }

    fn paint(&mut self, what: Paint<'_>) -> Vec<u8> {
        let state = State { modes: &self.modes, charsets: &self.charsets, region: self.region };
        self.screen.paint(what, &state)
    }

    /// A checkpoint at this point.
    fn point(&self, offset: u64) -> Checkpoint {
        Checkpoint {
            offset,
            transcript_len: self.transcript.len(),
            prelude: prelude(&self.modes, &self.charsets, self.transcript.saved_cursor(), &self.title),
        }
    }

    /// Records that lines have ended, the last one at `offset`.
    fn mark_lines(&mut self, count: usize, offset: u64) {
        if self.only_patterns {
            return;
        }
        if self.transcript.take_left_line() {
            self.checkpoints.cursor_left_line();
        }
        if self.transcript.is_at_line_start()
            && self.region.is_none()
            && self.checkpoints.lines(count, self.screen.size().lines())
        {
            let point = self.point(offset);
            self.checkpoints.set_candidate(point);
        }
        if self.checkpoints.is_too_far(offset) {
            let point = self.point(offset);
            self.checkpoints.force(point);
        }
    }
}

/// Matches patterns in finished output.
#[cfg(test)]
pub(crate) fn scan<'a>(
    config: Config,
    patterns: PatternSet,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<crate::matching::Hit> {
    let mut pipeline = Pipeline::new(config);
    pipeline.watch(0, patterns);
    let mut hits = Vec::new();
    let mut out = FoldOutput::default();
    for chunk in chunks {
        pipeline.feed_more(chunk, &mut out);
        hits.append(&mut out.hits);
        out.clear();
    }
    pipeline.finish(&mut out);
    hits.append(&mut out.hits);
    hits
}

#[cfg(test)]
#[path = "pipeline_tests.rs"]
mod tests;
