//! What a step of the fold returns to its caller.

use crate::matching::Hit;

/// The results of some bytes. The caller clears it and passes it in again, so that a steady stream allocates
/// nothing.
///
/// To keep a transcript up to date, cut `retract` bytes off its end, then append `text`.
#[derive(Debug, Default)]
pub struct FoldOutput {
    /// Bytes to cut off the end of the transcript before `text` is appended, for lines that were drawn over.
    pub retract: u64,
    /// Transcript text to append: UTF-8, lines end in `\n`.
    pub text: Vec<u8>,
    /// The terminal's answers to the program's queries, to be written to its input.
    pub replies: Vec<u8>,
    /// Pattern matches, in order.
    pub hits: Vec<Hit>,
    /// How often the bell rang.
    pub bells: u32,
    /// The window title, if it changed.
    pub title: Option<String>,
}

impl FoldOutput {
    /// Clears it and keeps its memory.
    pub fn clear(&mut self) {
        self.retract = 0;
        self.text.clear();
        self.replies.clear();
        self.hits.clear();
        self.bells = 0;
        self.title = None;
    }
}
