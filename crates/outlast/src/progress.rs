//! Tells somebody at a terminal that something takes longer than a moment, and how far it is. Says nothing anywhere
//! else, and leaves no trace.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What takes less is not worth a word.
const QUIET: Duration = Duration::from_secs(1);
/// How often it is written anew.
const EVERY: Duration = Duration::from_millis(200);
/// The same, where only the time changes.
const SECOND: Duration = Duration::from_secs(1);

/// Whether anybody would see it, on a terminal that can take a line back.
fn is_seen() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    std::io::stderr().is_terminal() && !dumb
}

/// Writes over the last line of the terminal. It must not wrap: only one line can be taken back.
fn write_over(text: &str) {
    let columns =
        rustix::termios::tcgetwinsize(rustix::stdio::stderr()).map_or(80, |size| size.ws_col.max(2));
    let text: String = text.chars().take(usize::from(columns) - 1).collect();
    let _ = write!(std::io::stderr().lock(), "\r{text}\x1b[K");
}

/// A count of steps.
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
        Self { what, steps: 0, next: is_seen().then(|| Instant::now() + QUIET), shown: false }
    }

    /// One more is done.
    pub(crate) fn step(&mut self) {
        self.steps += 1;
        if self.next.is_some_and(|next| Instant::now() >= next) {
            self.next = Some(Instant::now() + EVERY);
            self.shown = true;
            write_over(&format!("{} {}", self.steps, self.what));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            write_over("");
        }
    }
}

/// What is being done, and for how long: for what does not say how much of it is left.
#[derive(Debug)]
pub(crate) struct Busy {
    shared: Arc<Shared>,
    clock: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    doing: Mutex<Doing>,
    changed: Condvar,
}

#[derive(Debug)]
struct Doing {
    what: String,
    over: bool,
}

impl Busy {
    /// Begins with something.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        let doing = Mutex::new(Doing { what: what.into(), over: false });
        let shared = Arc::new(Shared { doing, changed: Condvar::new() });
        let clock = is_seen().then(|| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.tell())
        });
        Self { shared, clock }
    }

    /// Goes on with something else.
    pub(crate) fn now(&self, what: impl Into<String>) {
        self.shared.change(|doing| doing.what = what.into());
    }
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut Doing)) {
        change(&mut self.doing.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Shows what is done, until it is over.
    fn tell(&self) {
        let began = Instant::now();
        let mut next = began + QUIET;
        let mut shown = false;
        let mut doing = self.doing.lock().unwrap_or_else(PoisonError::into_inner);
        while !doing.over {
            let left = next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                shown = true;
                write_over(&format!("{} ({} s)", doing.what, began.elapsed().as_secs()));
                next += SECOND;
                continue;
            }
            doing = self.changed.wait_timeout(doing, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if shown {
            write_over("");
        }
    }
}

impl Drop for Busy {
    /// Whatever is said next begins in an empty line.
    fn drop(&mut self) {
        self.shared.change(|doing| doing.over = true);
        if let Some(clock) = self.clock.take() {
            let _ = clock.join();
        }
    }
}
