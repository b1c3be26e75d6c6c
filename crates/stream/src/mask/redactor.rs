//! Hides secrets in bytes while they come, in any pieces.

use super::{CONTEXT, Masks, cover};

/// Bytes in, bytes out: as many, in the same order, secrets hidden, the undecided end held back.
///
/// It holds nothing itself but what it has already given out and must still look at: the caller keeps what was held
/// back, and offers it again together with what came after.
#[derive(Debug, Default)]
pub struct Redactor {
    /// What was given out last, as it was, but for known values.
    before: Vec<u8>,
}

impl Redactor {
    /// Looks at what comes next and hides what must be; returns how many bytes of it may be given out now. The rest is to
    /// be offered again, with more behind it. With `last` nothing is held back.
    pub fn next(&mut self, masks: &Masks, bytes: &mut [u8], last: bool) -> usize {
        let start = self.before.len();
        self.before.extend_from_slice(bytes);
        let found = masks.look(&self.before);
        let decided = match found.undecided {
            // A hold that long is no hold but a leak the other way: the reader would wait for ever.
            Some(at) if !last && self.before.len() - at.max(start) <= CONTEXT => at.max(start),
            _ => self.before.len(),
        };
        if !found.spans.is_empty() {
            let mut hidden = self.before.clone();
            found.spans.into_iter().for_each(|span| cover(&mut hidden, span.start..span.end.min(decided)));
            bytes[..decided - start].copy_from_slice(&hidden[start..decided]);
            wipe(&mut hidden);
        }
        // A known value that has ended, and was given out to its end, is needed no longer.
        let past = found.whole.into_iter().filter(|span| span.end <= decided);
        past.for_each(|span| cover(&mut self.before, span));
        wipe(&mut self.before[decided..]);
        self.before.truncate(decided);
        if self.before.len() > 2 * CONTEXT {
            let old = self.before.len() - CONTEXT;
            self.before.copy_within(old.., 0);
            wipe(&mut self.before[CONTEXT..]);
            self.before.truncate(CONTEXT);
        }
        decided - start
    }
}

impl Drop for Redactor {
    fn drop(&mut self) {
        wipe(&mut self.before);
    }
}

fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    std::hint::black_box(bytes);
}
