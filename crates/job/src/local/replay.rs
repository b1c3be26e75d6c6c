//! A job as a recording: its bytes and sizes with their times, from the log and its timing.

use outlast_protocol::request::{Moment, Stream};
use outlast_stream::{FoldOutput, Pipeline};

use super::LocalJob;
use super::read::{Piece, Range};
use crate::failure::Failure;
use crate::lifecycle::Outcome as End;
use crate::log::timing::{self, Fact};
use crate::registry::format::Info;
use crate::registry::layout;
use crate::search::{begin_at, fold_config};
use crate::spec::{Size, Streams};

/// What happened at a time.
#[derive(Debug, PartialEq, Eq)]
pub enum Played<'a> {
    /// Bytes came.
    Output(&'a [u8]),
    /// The terminal got a new size.
    Resized(Size),
}

/// A job as a recording.
#[derive(Debug)]
pub struct Recording {
    info: Info,
    facts: Vec<Fact>,
    output: Range,
    errors: Range,
}

impl LocalJob {
    /// What is needed to play it again, as far as it has got.
    ///
    /// # Errors
    /// When the job's record can't be read.
    pub(crate) fn recording(&self) -> Result<Recording, Failure> {
        let info = self.info()?;
        let facts = self.facts();
        let output = self.range(Stream::Output, 0, None)?;
        let errors = self.range(Stream::Stderr, 0, None)?;
        Ok(Recording { info, facts, output, errors })
    }
}

impl LocalJob {
    /// When it printed what.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let text = std::fs::read_to_string(self.open.dir.file(layout::TIMING)).unwrap_or_default();
        timing::parse(&text)
    }
}

impl Recording {
    /// The size the terminal had at the start: sizes are noted when they change, and the record has the last.
    fn first_size(&self) -> Size {
        let resized = self.facts.iter().any(|fact| matches!(fact.what, timing::FactKind::Resized(_)));
        match self.info.streams {
            Streams::Terminal(size) if !resized => size,
            _ => self.info.started_size.unwrap_or_default(),
        }
    }

    /// Hands out everything in the order it happened, with milliseconds since the start, until told to stop.
    pub fn events(&self, mut each: impl FnMut(u64, Played<'_>) -> bool) {
        let mut at = [0_u64; 2];
        let mut last_ms = 0;
        for fact in &self.facts {
            last_ms = fact.at_ms;
            let stream = usize::from(fact.what == timing::FactKind::Stderr);
            let going = match fact.what {
                timing::FactKind::Resized(size) => each(fact.at_ms, Played::Resized(size)),
                timing::FactKind::Output | timing::FactKind::Stderr => {
                    let from = at[stream];
                    at[stream] = fact.offset.max(from);
                    self.bytes(stream, from, fact.offset, |bytes| each(fact.at_ms, Played::Output(bytes)))
                }
            };
            if !going {
                return;
            }
        }
        // What came after the last fact: of a job that still runs, or whose keeper died.
        for (stream, from) in at.into_iter().enumerate() {
            self.bytes(stream, from, u64::MAX, |bytes| each(last_ms, Played::Output(bytes)));
        }
    }

    fn bytes(&self, stream: usize, from: u64, to: u64, mut each: impl FnMut(&[u8]) -> bool) -> bool {
        let range = if stream == 0 { &self.output } else { &self.errors };
        let mut going = true;
        range.part(from.min(range.to()), to.min(range.to())).pieces(|_, piece| {
            if let Piece::Bytes(bytes) = piece {
                going = each(bytes);
            }
            going
        });
        going
    }

    /// The fold as it was at a moment.
    pub(crate) fn fold_until(&self, moment: Moment) -> Pipeline {
        let mut config = fold_config(self.info.streams);
        let size = self.first_size();
        config.size = outlast_stream::Size { cols: size.cols, rows: size.rows };
        let mut fold = Pipeline::resume(config, &begin_at(0));
        let mut outcome = FoldOutput::default();
        self.events(|at, what| {
            if matches!(moment, Moment::Time(time) if at > time) {
                return false;
            }
            match what {
                Played::Resized(size) => {
                    fold.resize(outlast_stream::Size { cols: size.cols, rows: size.rows }, &mut outcome);
                }
                Played::Output(bytes) => {
                    let left = match moment {
                        Moment::Offset(offset) => offset.saturating_sub(fold.offset()),
                        Moment::Time(_) => u64::MAX,
                    };
                    let len = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    fold.feed(&bytes[..len], &mut outcome);
                    outcome.clear();
                    return len == bytes.len();
                }
            }
            outcome.clear();
            true
        });
        fold
    }

    /// The recording as asciicast version 3, a line at a time.
    pub fn write_cast(&self, mut line: impl FnMut(&str) -> bool) {
        let size = self.first_size();
        let header = serde_json::json!({
            "version": 3,
            "term": { "cols": size.cols, "rows": size.rows, "type": "xterm-256color" },
            "timestamp": self.info.created_at / 1000,
            "command": self.info.command,
            "title": self.info.name.as_deref().unwrap_or(&self.info.command),
        });
        if !line(&header.to_string()) {
            return;
        }
        let mut last = 0;
        let mut held = Vec::new();
        let mut interval = |at: u64| {
            let gap = at.saturating_sub(last);
            last = at.max(last);
            gap as f64 / 1000.0
        };
        self.events(|at, what| match what {
            Played::Resized(size) => line(
                &serde_json::json!([interval(at), "r", format!("{}x{}", size.cols, size.rows)]).to_string(),
            ),
            Played::Output(bytes) => {
                held.extend_from_slice(bytes);
                let whole = whole_characters(&held);
                let text = String::from_utf8_lossy(&held[..whole]).into_owned();
                held.drain(..whole);
                text.is_empty() || line(&serde_json::json!([interval(at), "o", text]).to_string())
            }
        });
        // A character that was broken off at the very end.
        if !held.is_empty() && !line(&serde_json::json!([0.0, "o", "\u{fffd}"]).to_string()) {
            return;
        }
        if let Some(receipt) = self.info.state.receipt() {
            let code = match receipt.outcome {
                End::Exited { code } => code,
                End::Signalled { .. } | End::NotStarted { .. } => 1,
            };
            let at = receipt.ended_at.saturating_sub(self.info.created_at);
            line(&serde_json::json!([interval(at), "x", code.to_string()]).to_string());
        }
    }
}

/// How many of the bytes do not end within a character.
fn whole_characters(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let at = bytes.len() - back;
        let needs = match bytes[at] {
            0x80..0xc0 => continue,
            0xf0.. => 4,
            0xe0.. => 3,
            0xc0.. => 2,
            _ => 1,
        };
        return if needs > back { at } else { bytes.len() };
    }
    bytes.len()
}
