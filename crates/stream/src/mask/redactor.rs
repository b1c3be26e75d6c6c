//! Hides secrets in a stream of bytes, in any pieces.

use zeroize::Zeroize;

use super::{CONTEXT, Masks, cover};

/// As many bytes come out as go in, in the same order, with secrets hidden; the undecided end is held back.
///
/// It only stores what was already passed on and must still be searched. The caller keeps what was held back,
/// and offers it again together with what came after.
#[derive(Debug, Default)]
pub struct Redactor {
    /// What was passed on last, unmasked, except for known values.
    before: Vec<u8>,
}

impl Redactor {
    /// Searches the next bytes and hides secrets in them. Returns how many of them may be passed on now.
    /// Offer the rest again, with more bytes after it. With `last`, nothing is held back.
    pub fn next(&mut self, masks: &Masks, bytes: &mut [u8], last: bool) -> usize {
        let start = self.before.len();
        self.before.extend_from_slice(bytes);
        let found = masks.look(&self.before);
        let decided = match found.undecided {
            // Holding back even more would not protect anything, and the reader would wait forever.
            Some(at) if !last && self.before.len() - at.max(start) <= CONTEXT => at.max(start),
            _ => self.before.len(),
        };
        if !found.spans.is_empty() {
            let mut hidden = self.before.clone();
            found.spans.into_iter().for_each(|span| cover(&mut hidden, span.start..span.end.min(decided)));
            bytes[..decided - start].copy_from_slice(&hidden[start..decided]);
            hidden.zeroize();
        }
        // A complete known value that was passed on to its end is no longer needed.
        let past = found.whole.into_iter().filter(|span| span.end <= decided);
        past.for_each(|span| cover(&mut self.before, span));
        self.before[decided..].zeroize();
        self.before.truncate(decided);
        if self.before.len() > 2 * CONTEXT {
            let old = self.before.len() - CONTEXT;
            self.before.copy_within(old.., 0);
            self.before[CONTEXT..].zeroize();
            self.before.truncate(CONTEXT);
        }
        decided - start
    }
}

impl Drop for Redactor {
    fn drop(&mut self) {
        self.before.zeroize();
    }
}
