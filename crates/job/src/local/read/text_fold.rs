//! A fold that collects the text of what a job printed.

use outlast_stream::{FoldOutput, Pipeline};

use super::Piece;
use crate::search::{begin_at, fold_config};
use crate::spec::Streams;

/// A fold that collects text.
pub(in crate::local) struct Fold {
    pub(super) pipeline: Pipeline,
    pub(super) outcome: FoldOutput,
    pub(super) text: Vec<u8>,
}

impl Fold {
    pub(super) fn new(streams: Streams, from: u64) -> Self {
        let pipeline = Pipeline::resume(fold_config(streams), &begin_at(from));
        Self { pipeline, outcome: FoldOutput::default(), text: Vec::new() }
    }

    /// Folds a piece; says how much of the text before it was left standing.
    pub(in crate::local) fn piece(&mut self, at: u64, piece: &Piece<'_>) -> usize {
        match piece {
            Piece::Bytes(bytes) => self.pipeline.feed(bytes, &mut self.outcome),
            Piece::Lost { from, to } => {
                debug_assert!(at == *from, "a piece begins where it says");
                let mark = format!("\r\n[{} bytes are gone, from {from} to {to}]\r\n", to - from);
                self.pipeline.feed(mark.as_bytes(), &mut self.outcome);
            }
        }
        self.collect()
    }

    /// How long the text is, without the line that has not ended.
    pub(in crate::local) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn finish(&mut self) {
        let open = !self.pipeline.unfinished().is_empty();
        self.pipeline.finish(&mut self.outcome);
        self.collect();
        if open && self.text.ends_with(b"\n") {
            // The program has not ended this line, so neither do we.
            self.text.pop();
        }
    }

    /// Takes over new text; says how much of the old was left standing.
    fn collect(&mut self) -> usize {
        let keep =
            self.text.len().saturating_sub(usize::try_from(self.outcome.retract).unwrap_or(usize::MAX));
        self.text.truncate(keep);
        self.text.extend_from_slice(&self.outcome.text);
        self.outcome.clear();
        keep
    }

    /// Hands out text that is older than any line a program could still go back to.
    pub(super) fn take_settled(&mut self, each: &mut impl FnMut(&[u8]) -> bool) -> bool {
        const REACH: usize = 1 << 20;
        if self.text.len() <= 2 * REACH {
            return true;
        }
        let settled: Vec<u8> = self.text.drain(..self.text.len() - REACH).collect();
        each(&settled)
    }
}
