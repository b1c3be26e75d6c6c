//! Knows a flood: then a moment is waited for more, so that what each piece costs is shared by many.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The time over which output is measured.
const WINDOW: Duration = Duration::from_millis(4);
/// This much output in one window is a flood.
const FLOOD_BYTES: usize = 16 << 10;
/// How long more is waited for in a flood.
const GATHER_FOR: Duration = Duration::from_micros(800);

/// How fast output comes.
#[derive(Debug)]
pub(super) struct Flood {
    since: Instant,
    bytes: usize,
    on: bool,
}

impl Flood {
    pub(super) fn new() -> Self {
        Self { since: Instant::now(), bytes: 0, on: false }
    }

    /// So much came now.
    pub(super) fn note(&mut self, bytes: usize) {
        self.bytes += bytes;
        let elapsed = self.since.elapsed();
        if elapsed >= WINDOW {
            // After a silence it is not one any more, however much came just now.
            self.on = self.bytes >= FLOOD_BYTES && elapsed < 2 * WINDOW;
            (self.since, self.bytes) = (Instant::now(), 0);
        }
    }

    /// Until when to wait for more, in a flood.
    pub(super) fn gather_until(&self) -> Option<Instant> {
        self.on.then(|| Instant::now() + GATHER_FOR)
    }
}

/// Waits for more, but not for long. Says whether there is some.
pub(super) fn comes_before(source: impl AsFd, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return false;
    }
    let left = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
    let mut fds = [PollFd::new(&source, PollFlags::IN)];
    matches!(poll(&mut fds, Some(&left)), Ok(1..))
}
