//! Text of a transcript, with the place of each line in the log.

use outlast_protocol::request::Stream;

use super::Line;
use crate::{Config, FoldOutput, Pipeline};

/// A part of a log as text.
#[derive(Clone, Debug, Default)]
pub struct LocatedText {
    /// The text.
    pub text: String,
    /// Where in the log it begins.
    pub from: u64,
    /// For each line feed of the log, the offset just after it, and how long the text before it is.
    pub line_ends: Vec<(u64, usize)>,
}

impl LocatedText {
    /// Folds a whole log.
    #[must_use]
    pub fn fold(bytes: &[u8], config: Config) -> Self {
        let mut pipeline = Pipeline::new(config);
        let (mut out, mut text) = (FoldOutput::default(), Vec::new());
        let mut line_ends: Vec<(u64, usize)> = Vec::new();
        let mut at = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            pipeline.feed(line, &mut out);
            let kept = take(&mut text, &mut out);
            at += line.len() as u64;
            line_ends.iter_mut().rev().take_while(|(_, len)| *len > kept).for_each(|(_, len)| *len = kept);
            line_ends.push((at, text.len()));
        }
        pipeline.finish(&mut out);
        take(&mut text, &mut out);
        Self { text: String::from_utf8_lossy(&text).into_owned(), from: 0, line_ends }
    }

    /// Its lines.
    #[must_use]
    pub fn lines(&self, stream: Stream) -> Vec<Line<'_>> {
        let mut lines = Vec::new();
        let (mut begin, mut next, mut at) = (0, 0, self.from);
        for text in self.text.split_inclusive('\n') {
            // Of several places with nothing between them that is still to be seen, the last.
            while let Some((end, len)) = self.line_ends.get(next)
                && *len <= begin
            {
                at = *end;
                next += 1;
            }
            lines.push(Line { text: text.trim_end_matches(['\n', '\r']), at, stream });
            begin += text.len();
        }
        lines
    }
}

/// Takes over new text; says how much of the old was left standing.
fn take(text: &mut Vec<u8>, out: &mut FoldOutput) -> usize {
    let kept = text.len().saturating_sub(usize::try_from(out.retract).unwrap_or(usize::MAX));
    text.truncate(kept);
    text.extend_from_slice(&out.text);
    out.clear();
    kept
}
