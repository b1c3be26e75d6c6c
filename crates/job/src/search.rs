//! Looks for patterns in a log, in the keeper while the job runs and in the client afterwards.

use outlast_stream::{Checkpoint, Config, MASK_CONTEXT, Outcome, PatternSet, Pipeline};

use crate::failure::Failure;
use crate::log::writer::read_exact_at;
use crate::secrets::{self, SharedMasks};
use crate::spec::{Size, Streams};
use crate::wire::Found;

/// How much of a log is read at once.
const PIECE: usize = 256 << 10;
/// The same, where each find is wanted: many small finds must not take much memory at once.
const SMALL_PIECE: usize = 32 << 10;
/// The same, where something else is waited for meanwhile.
const LITTLE: usize = 8 << 10;
/// How much history the screen of a running job keeps; older lines are in the transcript.
const SCROLLBACK: usize = 1000;

/// How a job's bytes are to be understood.
pub(crate) fn fold_config(streams: Streams) -> Config {
    let (size, terminal) = match streams {
        Streams::Terminal(size) => (size, true),
        Streams::Pipes => (Size::default(), false),
    };
    let size = outlast_stream::Size { cols: size.cols, rows: size.rows };
    Config { size, scrollback: SCROLLBACK, terminal, only_patterns: false }
}

/// The beginning of a fold that knows nothing of what came before an offset.
pub(crate) fn begin_at(offset: u64) -> Checkpoint {
    Checkpoint { offset, transcript_len: 0, prelude: Vec::new() }
}

/// Compiles patterns.
///
/// # Errors
/// A usage failure that shows what is wrong with which.
pub(crate) fn compile(patterns: &[String]) -> Result<PatternSet, Failure> {
    PatternSet::compile(patterns).map_err(|error| {
        Failure::usage(error.to_string()).hint(
            "patterns are regular expressions: write \\( for a bracket, \\. for a dot, \\$ for a dollar",
        )
    })
}

/// Looks for patterns in a log from some offset on.
pub(crate) struct Search {
    fold: Pipeline,
    outcome: Outcome,
    begin: u64,
    buffer: Vec<u8>,
    /// What it must not see.
    masks: Option<SharedMasks>,
    /// Whether the unfinished line, as it stands, is still to be looked at.
    unfinished: bool,
}

impl Search {
    /// # Errors
    /// A usage failure that shows what is wrong with which pattern.
    pub(crate) fn new(patterns: &[String], streams: Streams, from: u64) -> Result<Self, Failure> {
        Ok(Self::of(compile(patterns)?, streams, from))
    }

    /// Looks for patterns that are compiled already.
    pub(crate) fn of(set: PatternSet, streams: Streams, from: u64) -> Self {
        let config = Config { only_patterns: true, ..fold_config(streams) };
        let mut fold = Pipeline::resume(config, &begin_at(from));
        fold.watch(0, set);
        Self {
            fold,
            outcome: Outcome::default(),
            begin: from,
            buffer: Vec::new(),
            masks: None,
            unfinished: false,
        }
    }

    /// Lets it see no secrets: what it finds goes to an agent.
    pub(crate) fn masked(mut self, masks: Option<SharedMasks>) -> Self {
        self.masks = masks;
        self
    }

    /// Where it has got to.
    pub(crate) fn offset(&self) -> u64 {
        self.fold.offset()
    }

    /// Reads a piece of the log; says what was found first.
    pub(crate) fn read(&mut self, log: impl std::os::fd::AsFd, end: u64) -> Option<(Found, u64)> {
        let mut first = None;
        self.read_piece(log, end, PIECE, |found, offset| {
            first.get_or_insert((found, offset));
        });
        self.let_unfinished_count(end, |found, offset| {
            first.get_or_insert((found, offset));
        });
        if self.buffer.len() < PIECE / 4 {
            self.buffer.shrink_to(PIECE / 4);
        }
        first
    }

    /// The same with very little of it, while there is no time for more: the unfinished line does not count yet.
    pub(crate) fn read_little(&mut self, log: impl std::os::fd::AsFd, end: u64) -> Option<(Found, u64)> {
        let mut first = None;
        self.read_piece(log, end, LITTLE, |found, offset| {
            first.get_or_insert((found, offset));
        });
        self.unfinished = true;
        first
    }

    /// Reads a small piece of the log; `each` gets everything that was found in it.
    pub(crate) fn read_each(
        &mut self,
        log: impl std::os::fd::AsFd,
        end: u64,
        mut each: impl FnMut(Found, u64),
    ) {
        self.read_piece(log, end, SMALL_PIECE, &mut each);
        self.let_unfinished_count(end, each);
    }

    /// The end of output: an unfinished line counts as one that has ended. Nothing can be read after it.
    pub(crate) fn end_last_line(&mut self, mut each: impl FnMut(Found, u64)) {
        let end = self.offset();
        self.fold.feed(b"\r\n", &mut self.outcome);
        self.give(|found, at| each(found, at.min(end)));
    }

    fn read_piece(
        &mut self,
        log: impl std::os::fd::AsFd,
        end: u64,
        most: usize,
        mut each: impl FnMut(Found, u64),
    ) {
        let at = self.offset();
        let len = usize::try_from(end.saturating_sub(at)).unwrap_or(most).min(most);
        let (before, after) = if self.masks.is_some() { around(at) } else { (0, 0) };
        self.buffer.resize(before + len + after, 0);
        let got = read_exact_at(log, &mut self.buffer, at - before as u64);
        self.buffer[got..].fill(0);
        if let Some(masks) = &self.masks {
            secrets::with(masks, |masks| masks.hide(&mut self.buffer[..got]));
        }
        self.fold.feed_more(&self.buffer[before..before + len], &mut self.outcome);
        self.give(&mut each);
    }

    /// Where all has been read, the unfinished line counts: before, it may have ended in what was not read yet.
    fn let_unfinished_count(&mut self, end: u64, each: impl FnMut(Found, u64)) {
        if self.offset() >= end {
            self.unfinished = false;
            self.fold.peek(&mut self.outcome);
            self.give(each);
        }
    }

    fn give(&mut self, mut each: impl FnMut(Found, u64)) {
        for hit in self.outcome.hits.drain(..) {
            let found = Found { pattern: hit.pattern, text: hit.text, captures: hit.captures };
            each(found, hit.offset.max(self.begin));
        }
        self.outcome.clear();
    }

    /// Whether the log holds more than was looked at.
    pub(crate) fn is_behind(&self, end: u64) -> bool {
        self.offset() < end || self.unfinished
    }
}

/// How much before and after a piece one must look for secrets that it cuts.
fn around(at: u64) -> (usize, usize) {
    (usize::try_from(at).unwrap_or(MASK_CONTEXT).min(MASK_CONTEXT), MASK_CONTEXT)
}

/// Reads a piece of a log without its secrets, also those that it cuts. What is not there reads as zeros.
pub(crate) fn read_masked(
    log: impl std::os::fd::AsFd,
    buffer: &mut [u8],
    at: u64,
    masks: &SharedMasks,
) -> usize {
    let (before, after) = around(at);
    let mut wide = vec![0; before + buffer.len() + after];
    let got = read_exact_at(log, &mut wide, at - before as u64);
    secrets::with(masks, |masks| masks.hide(&mut wide[..got]));
    buffer.copy_from_slice(&wide[before..before + buffer.len()]);
    got.saturating_sub(before).min(buffer.len())
}
