//! The fast path for plain lines: many at a time, with the same result as one by one.

use super::dispatch::Step;
use crate::scan::{Lines, plain_lines};

/// How much is scanned at once: enough to pay off, not too much to waste if it fails.
const WINDOW_BYTES: usize = 8 << 10;
/// With fewer lines than this, the fast path does not pay off.
const MIN_LINES: usize = 4;
/// The most lines that pass before the fast path is tried again.
const MAX_BACKOFF_LINES: u32 = 63;

/// When to try the fast path: with exponential backoff after it did not pay off.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    pause: u32,
    left: u32,
}

impl Backoff {
    fn is_due(&mut self) -> bool {
        let due = self.left == 0;
        self.left = self.left.saturating_sub(1);
        due
    }

    fn gained(&mut self, lines: usize) {
        self.pause = if lines < MIN_LINES { (self.pause * 2 + 1).min(MAX_BACKOFF_LINES) } else { 0 };
        self.left = self.pause;
    }
}

impl Step<'_> {
    /// Takes the plain lines that `bytes` begins with, if the terminal is in its usual state. Returns how
    /// many bytes it took.
    pub(super) fn plain_lines(&mut self, bytes: &[u8], start: u64) -> usize {
        let fold = &mut *self.fold;
        let modes = &fold.modes;
        let plain = fold.transcript.is_at_line_start()
            && modes.autowrap
            && !modes.insert
            && !modes.alternate_screen
            && fold.region.is_none()
            && fold.charsets.are_plain();
        if !plain || !fold.backoff.is_due() {
            return 0;
        }
        let lines = if fold.matchers.are_idle() {
            let window = &bytes[..bytes.len().min(WINDOW_BYTES)];
            let lines = plain_lines(window, modes.newline);
            match fold.matchers.pass_over(&window[..lines.len]) {
                len if len == lines.len => lines,
                len => Lines { len, count: memchr::memchr_iter(b'\n', &window[..len]).count() },
            }
        } else {
            Lines::default()
        };
        fold.backoff.gained(lines.count);
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
