//! A screen kept in the middle of a log, so that what was shown after it is found without the bytes before it.
//!
//! The engine that draws cannot be copied. A keyframe is what would draw its screen anew, as for a person who attaches; it is
//! only given out if it does draw the same.

use super::{Config, Pipeline};
use crate::charset::Charsets;
use crate::checkpoint::Checkpoint;
use crate::fold_output::FoldOutput;
use crate::size::Size;

/// The screen at a place in the log.
#[derive(Debug, Clone)]
pub struct Keyframe {
    offset: u64,
    size: Size,
    paint: Vec<u8>,
    title: String,
    bells: u64,
    saved_charsets: Charsets,
    last_printed: Option<char>,
    alternate: bool,
}

impl Keyframe {
    /// Whether a program had the alternate screen. What is beneath that is not in the keyframe: once the program leaves it, an
    /// earlier keyframe has to be used.
    #[must_use]
    pub fn is_alternate(&self) -> bool {
        self.alternate
    }

    /// How many bytes it takes.
    #[must_use]
    pub fn weight(&self) -> usize {
        size_of::<Self>() + self.paint.len() + self.title.len()
    }
}

impl Pipeline {
    /// The screen as it is, to go on from later. None where that would not show the same.
    pub fn keyframe(&mut self, config: Config) -> Option<Keyframe> {
        let paint = self.repaint();
        let now = self.screen();
        let keyframe = Keyframe {
            offset: self.fold.offset,
            size: now.size,
            paint,
            title: now.title.clone(),
            bells: now.bells,
            saved_charsets: self.fold.saved_charsets,
            last_printed: self.fold.last_printed,
            alternate: now.alternate,
        };
        let mut again = Self::from_keyframe(config, &keyframe);
        let is_same = again.screen() == now
            && again.styled_screen() == self.styled_screen()
            && again.fold.screen.cursors() == self.fold.screen.cursors();
        is_same.then_some(keyframe)
    }

    /// A fold that continues from a keyframe, for its screen: its transcript and scrollback begin there.
    #[must_use]
    pub fn from_keyframe(config: Config, from: &Keyframe) -> Self {
        let config = Config { size: from.size, cursor: (0, 0), ..config };
        let start = Checkpoint { offset: from.offset, ..Checkpoint::default() };
        let mut pipeline = Self::resume(config, &start);
        pipeline.advance(&from.paint, from.offset, &mut FoldOutput::default());
        pipeline.fold.title.clone_from(&from.title);
        pipeline.fold.bells = from.bells;
        pipeline.fold.saved_charsets = from.saved_charsets;
        pipeline.fold.last_printed = from.last_printed;
        pipeline
    }
}
