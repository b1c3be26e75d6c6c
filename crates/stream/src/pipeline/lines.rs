//! The short way for plain lines: many at a time, with the same result as one by one.

use super::dispatch::Step;
use crate::scan::{Lines, plain_lines};

/// So much is looked at at once: enough to be worth it, little enough to be looked at in vain.
const WINDOW: usize = 8 << 10;
/// Fewer lines than this are no gain.
const FEW: usize = 4;
/// The most lines that pass before the short way is tried again.
const LONGEST_PAUSE: u32 = 63;

/// When to try the short way: after it was no gain, not at once again.
#[derive(Debug, Default)]
pub(super) struct Tries {
    pause: u32,
    left: u32,
}

impl Tries {
    fn is_due(&mut self) -> bool {
        let due = self.left == 0;
        self.left = self.left.saturating_sub(1);
        due
    }

    fn gained(&mut self, lines: usize) {
        self.pause = if lines < FEW { (self.pause * 2 + 1).min(LONGEST_PAUSE) } else { 0 };
        self.left = self.pause;
    }
}

impl Step<'_> {
    /// Takes the plain lines that `bytes` begin with, if everything is as it mostly is. Says how many bytes it took.
    pub(super) fn plain_lines(&mut self, bytes: &[u8], start: u64) -> usize {
        let fold = &mut *self.fold;
        let modes = &fold.modes;
        let plain = fold.transcript.is_at_line_start()
            && modes.autowrap
            && !modes.insert
            && !modes.alternate_screen
            && fold.region.is_none()
            && fold.charsets.are_plain();
        if !plain || !fold.tries.is_due() {
            return 0;
        }
        let lines = if fold.watches.are_idle() {
            let window = &bytes[..bytes.len().min(WINDOW)];
            let lines = plain_lines(window, modes.newline);
            match fold.watches.pass_over(&window[..lines.len]) {
                len if len == lines.len => lines,
                len => Lines { len, count: memchr::memchr_iter(b'\n', &window[..len]).count() },
            }
        } else {
            Lines::default()
        };
        fold.tries.gained(lines.count);
        if lines.count > 0 {
            self.take_lines(&bytes[..lines.len], lines.count, start + lines.len as u64);
        }
        lines.len
    }

    fn take_lines(&mut self, bytes: &[u8], count: usize, end: u64) {
        let fold = &mut *self.fold;
        fold.last_printed = None;
        if fold.only_patterns {
            return;
        }
        fold.screen.lines(bytes, count, fold.modes.terminal);
        fold.transcript.lines(bytes, count, self.out);
        fold.mark_lines(count, end);
    }
}
