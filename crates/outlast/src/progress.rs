//! Tells somebody at a terminal that something takes longer than a moment, and how far it is. Says nothing anywhere
//! else, and leaves no trace.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// What takes less is not worth a word.
const QUIET: Duration = Duration::from_secs(1);
/// How often it is written anew.
const EVERY: Duration = Duration::from_millis(200);

/// A count of steps on the last line of the terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    what: &'static str,
    steps: u64,
    next: Option<Instant>,
    shown: bool,
}

impl Progress {
    /// Begins to count.
    pub(crate) fn new(what: &'static str) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let next = (std::io::stderr().is_terminal() && !dumb).then(|| Instant::now() + QUIET);
        Self { what, steps: 0, next, shown: false }
    }

    /// One more is done.
    pub(crate) fn step(&mut self) {
        self.steps += 1;
        if self.next.is_some_and(|next| Instant::now() >= next) {
            self.next = Some(Instant::now() + EVERY);
            self.shown = true;
            let _ = write!(std::io::stderr().lock(), "\r{} {}\x1b[K", self.steps, self.what);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}
