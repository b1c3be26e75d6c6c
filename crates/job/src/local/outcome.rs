//! What a job's tools reported, read from its log after it ended.
//!
//! A log is never read whole for this: of a long one, the beginning and the end are looked at, and what can only be known
//! from all of it is not said. While a job runs, nothing is read at all.

use outlast_protocol::JobOutcome;
use outlast_protocol::request::Stream;
use outlast_stream::outcome::{self, LocatedText, Run};

use super::LocalJob;
use super::log_slice::{Folded, LogSlice};
use super::read::Range;
use crate::failure::Failure;

/// How much of the beginning and of the end of a long log is looked at.
const HEAD: u64 = 64 << 10;
const TAIL: u64 = 192 << 10;

impl LocalJob {
    /// What its tools reported; none while it runs, and where nothing is certain.
    pub(crate) fn outcome(&self) -> Result<Option<JobOutcome>, Failure> {
        let info = self.record()?;
        if info.state.is_live() {
            return Ok(None);
        }
        let mut streams = vec![Stream::Output];
        if !info.has_terminal() {
            streams.push(Stream::Stderr);
        }
        let (mut parts, mut whole) = (Vec::new(), true);
        for stream in streams {
            let range = self.range(stream, 0, None)?;
            whole &= !range.has_gaps() && range.to() <= HEAD + TAIL;
            parts.extend(texts(&range).into_iter().map(|text| (stream, text)));
        }
        let lines: Vec<_> = parts.iter().flat_map(|(stream, text)| text.lines(*stream)).collect();
        let succeeded = info.state.exit_code() == Some(0);
        Ok(outcome::read(&Run { command: &info.command, lines: &lines, whole, succeeded }))
    }
}

/// All of a range, or its beginning and its end, at lines.
fn texts(range: &Range) -> Vec<LocatedText> {
    let end = range.to();
    if end <= HEAD + TAIL {
        return vec![located(&LogSlice::of(range.part(0, end)), 0)];
    }
    let head = LogSlice::of(range.part(0, HEAD));
    let tail = LogSlice::of(range.part(end - TAIL, end));
    let begin = tail.first_line_end().unwrap_or(end - TAIL);
    vec![located(&head, 0), located(&tail, begin)]
}

fn located(slice: &LogSlice, from: u64) -> LocatedText {
    let Folded { text, line_ends } = slice.fold(from);
    LocatedText { text, from, line_ends }
}
