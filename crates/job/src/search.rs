//! Searches a log for patterns, in the keeper while the job runs and in the client afterwards.

use outlast_protocol::Condition;
use outlast_stream::{Checkpoint, Config, FoldOutput, MASK_CONTEXT, PatternSet, Pipeline};

use crate::failure::Failure;
use crate::log::writer::read_exact_at;
use crate::registry::format::Info;
use crate::secrets::{self, SharedMasks};
use crate::spec::{Size, Streams};
use crate::wire::Found;

/// How much of a log is read at once.
const READ_BYTES: usize = 256 << 10;
/// How many rows of scrollback the screen of a running job keeps; older lines are in the transcript.
const SCROLLBACK: usize = 1000;

/// How all of a job's bytes are folded, from the first one on.
pub(crate) fn whole_fold_config(info: &Info) -> Config {
    Config { cursor: info.cursor_at_start, ..fold_config(info.streams) }
}

/// How a job's bytes are folded.
pub(crate) fn fold_config(streams: Streams) -> Config {
    let (size, terminal) = match streams {
        Streams::Terminal(size) => (size, true),
        Streams::Pipes => (Size::default(), false),
    };
    let size = outlast_stream::Size { cols: size.cols, rows: size.rows };
    Config { size, scrollback: SCROLLBACK, terminal, ..Config::default() }
}

/// The start of a fold that knows nothing of what came before an offset.
pub(crate) fn begin_at(offset: u64) -> Checkpoint {
    Checkpoint { offset, transcript_len: 0, prelude: Vec::new() }
}

/// Compiles patterns.
///
/// # Errors
/// A usage failure that shows what is wrong with which pattern.
pub(crate) fn compile(patterns: &[impl AsRef<str>]) -> Result<PatternSet, Failure> {
    PatternSet::compile(patterns).map_err(|error| {
        Failure::usage(error.to_string()).hint(
            "patterns are regular expressions: write \\( for a bracket, \\. for a dot, \\$ for a dollar",
        )
    })
}

/// Checks all patterns of some conditions.
///
/// # Errors
/// A usage failure that shows what is wrong with which pattern.
pub(crate) fn check(conditions: &[Condition]) -> Result<(), Failure> {
    let patterns: Vec<&String> = conditions.iter().flat_map(Condition::regexes).collect();
    if patterns.is_empty() { Ok(()) } else { compile(&patterns).map(|_| ()) }
}

/// Searches the bytes of a log for patterns, from some offset on. It reads nothing itself.
pub(crate) struct PatternSearch {
    fold: Pipeline,
    outcome: FoldOutput,
    begin: u64,
    /// Whether the unfinished line is still to be matched.
    unfinished: bool,
}

impl PatternSearch {
    pub(crate) fn new(set: PatternSet, streams: Streams, from: u64) -> Self {
        let config = Config { only_patterns: true, ..fold_config(streams) };
        let mut fold = Pipeline::resume(config, &begin_at(from));
        fold.watch(0, set);
        Self { fold, outcome: FoldOutput::default(), begin: from, unfinished: false }
    }

    /// Where the next bytes must start.
    pub(crate) fn offset(&self) -> u64 {
        self.fold.offset()
    }

    /// Whether the log has more than was searched.
    pub(crate) fn is_behind(&self, end: u64) -> bool {
        self.offset() < end || self.unfinished
    }

    /// Takes the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.fold.feed_more(bytes, &mut self.outcome);
    }

    /// Matches the unfinished line, if everything up to `end` was fed: before that, it may end in what was
    /// not fed yet. With `more_comes`, it is matched later.
    pub(crate) fn look_at_unfinished(&mut self, end: u64, more_comes: bool) {
        if more_comes {
            self.unfinished = true;
        } else if self.offset() >= end {
            self.unfinished = false;
            self.fold.peek(&mut self.outcome);
        }
    }

    /// The end of output: an unfinished line counts as ended. Nothing can be fed after it.
    pub(crate) fn end_line(&mut self) {
        let end = self.offset();
        self.fold.feed(b"\r\n", &mut self.outcome);
        for hit in &mut self.outcome.hits {
            hit.offset = hit.offset.min(end);
        }
    }

    /// The matches since the last call, with the offsets at which they end.
    pub(crate) fn take_found(&mut self, mut each: impl FnMut(Found, u64)) {
        for hit in self.outcome.hits.drain(..) {
            let found = Found { pattern: hit.pattern, text: hit.text, captures: hit.captures };
            each(found, hit.offset.max(self.begin));
        }
        self.outcome.clear();
    }
}

/// Searches a log that it reads itself: for a job without a keeper.
pub(crate) struct LogSearch {
    search: PatternSearch,
    masks: Option<SharedMasks>,
    buffer: Vec<u8>,
}

impl LogSearch {
    /// A search from an offset on. With masks, it sees no secrets: what it finds goes to an agent.
    ///
    /// # Errors
    /// A usage failure that shows what is wrong with which pattern.
    pub(crate) fn new(
        patterns: &[String],
        (streams, from): (Streams, u64),
        masks: Option<SharedMasks>,
    ) -> Result<Self, Failure> {
        let search = PatternSearch::new(compile(patterns)?, streams, from);
        Ok(Self { search, masks, buffer: Vec::new() })
    }

    /// Reads up to `end`; returns the first match, and where it ends.
    pub(crate) fn first(&mut self, log: impl std::os::fd::AsFd, end: u64) -> Option<(Found, u64)> {
        let mut first = None;
        while first.is_none() && self.search.is_behind(end) {
            let at = self.search.offset();
            let len = usize::try_from(end.saturating_sub(at)).unwrap_or(READ_BYTES).min(READ_BYTES);
            let bytes = read_range(log.as_fd(), (at, len), self.masks.as_ref(), &mut self.buffer);
            self.search.feed(bytes);
            self.search.look_at_unfinished(end, false);
            self.search.take_found(|found, offset| {
                first.get_or_insert((found, offset));
            });
        }
        first
    }
}

/// Reads a range of a log, without its secrets if there are masks. Missing bytes read as zeros, which the
/// fold skips. The buffer is only scratch space.
pub(crate) fn read_range<'a>(
    log: impl std::os::fd::AsFd,
    (at, len): (u64, usize),
    masks: Option<&SharedMasks>,
    buffer: &'a mut Vec<u8>,
) -> &'a [u8] {
    let (before, after) = if masks.is_some() { around(at) } else { (0, 0) };
    buffer.resize(before + len + after, 0);
    let got = read_exact_at(log, buffer, at - before as u64);
    buffer[got..].fill(0);
    if let Some(masks) = masks {
        secrets::with(masks, |masks| masks.hide(&mut buffer[..got]));
    }
    &buffer[before..before + len]
}

/// How far before and after a piece to read, to find secrets that are cut by its edges.
fn around(at: u64) -> (usize, usize) {
    (usize::try_from(at).unwrap_or(MASK_CONTEXT).min(MASK_CONTEXT), MASK_CONTEXT)
}

/// What is hidden in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hiding {
    /// Nothing: for what is asked of the bytes themselves.
    Nothing,
    /// Everything.
    All,
    /// All but the beginning of a value at their end: they become text, in which that is hidden.
    Complete,
}

/// Reads a piece of a log without its secrets, including those cut by its edges. Missing bytes read as zeros.
pub(crate) fn read_masked(
    log: impl std::os::fd::AsFd,
    buffer: &mut [u8],
    at: u64,
    (masks, hiding): (&SharedMasks, Hiding),
) -> usize {
    if hiding == Hiding::Nothing {
        return read_exact_at(log, buffer, at);
    }
    let (before, after) = around(at);
    let mut wide = vec![0; before + buffer.len() + after];
    let got = read_exact_at(log, &mut wide, at - before as u64);
    secrets::with(masks, |masks| match hiding {
        Hiding::Nothing => {}
        Hiding::All => masks.hide(&mut wide[..got]),
        Hiding::Complete => masks.hide_complete(&mut wide[..got]),
    });
    buffer.copy_from_slice(&wide[before..before + buffer.len()]);
    got.saturating_sub(before).min(buffer.len())
}
