//! Hides secrets in all that the keeper gives out besides the log: transcript, screens, prompts, finds and last lines.

use super::Keeper;
use super::pump::Channel;
use crate::secrets::{self, SharedMasks};

/// How much of the transcript is remembered, to know a secret that began in it.
const REMEMBERED: usize = 4 << 10;
/// A secret may have begun in rows that have left the screen.
const ROWS_ABOVE: usize = 16;

/// Hides secrets in a transcript that grows and is taken back.
#[derive(Default)]
pub(super) struct Hiding {
    /// The end of what was written, as it was.
    before: Vec<u8>,
}

impl Hiding {
    /// Hides what must be in the text that takes the place of the last `retract` bytes.
    pub(super) fn hide(&mut self, masks: &SharedMasks, retract: u64, text: &mut [u8]) {
        let kept = self.before.len().saturating_sub(usize::try_from(retract).unwrap_or(usize::MAX));
        self.before.truncate(kept);
        self.before.extend_from_slice(text);
        let (before, masks) = (&self.before, masks);
        secrets::with(masks, |masks| masks.hide_end(before, text));
        let old = self.before.len().saturating_sub(REMEMBERED);
        self.before.copy_within(old.., 0);
        self.before.truncate(self.before.len() - old);
    }
}

/// Hides secrets in the rows of a screen, also those that began above it.
pub(super) fn hide_on_screen(masks: &SharedMasks, channel: &mut Channel, rows: &mut [String], cols: u16) {
    let mut all = channel.fold.scrollback(ROWS_ABOVE);
    let above = all.len();
    all.extend_from_slice(rows);
    secrets::with(masks, |masks| masks.rows(&mut all, usize::from(cols)));
    rows.clone_from_slice(&all[above..]);
}

impl Keeper {
    /// Text without secrets.
    pub(super) fn hide(&self, text: &str) -> String {
        secrets::with(&self.ground.masks, |masks| masks.text(text))
    }
}
