//! The way out, said to a person in front of a job until something else is to be seen.

use std::time::{Duration, Instant};

use super::Viewer;
use crate::output::Output;

/// A fresh job that has printed nothing for this long may not show by itself that it runs.
const SILENCE: Duration = Duration::from_secs(1);

/// What is said, and where it stands.
#[derive(Debug)]
pub(super) struct Hint {
    text: Option<String>,
    due: Option<Instant>,
    shown: Shown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Nowhere,
    /// In the line below the prompt, where the job's first line will be.
    Line,
    /// Over a row of the job's screen.
    Over(usize),
}

impl Hint {
    pub(super) fn new(text: Option<String>) -> Self {
        Self { text, due: None, shown: Shown::Nowhere }
    }

    /// It comes if nothing else does.
    pub(super) fn when_nothing_comes(&mut self, now: Instant) {
        self.due = self.text.as_ref().map(|_| now + SILENCE);
    }

    /// How long to wait for something else.
    pub(super) fn due(&self) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(Instant::now()))
    }
}

impl Viewer<'_> {
    /// Says it over a row that the cursor is not in.
    pub(super) fn greet(&mut self, out: &mut Output) {
        let (Some(own), Some(text)) = (self.attach.size, self.hint.text.take()) else { return };
        let cursor = self.fold.screen().cursor.row;
        let last = usize::from(own.rows) - 1;
        let first = if self.frame.is_some() { 0 } else { self.first_row };
        let row = if cursor >= last { first } else { last };
        // What is above the job's rows is the person's own.
        if row == cursor {
            return;
        }
        let text: String = text.chars().take(own.cols.into()).collect();
        let text = format!("\x1b[0;7m{text}\x1b[0m");
        if self.frame.is_some() {
            out.draw(format!("\x1b7\x1b[{};1H{text}\x1b8", row + 1).as_bytes());
        } else {
            out.draw(&self.fold.repaint_row(row, Some(&text)));
        }
        self.hint.shown = Shown::Over(row);
    }

    /// Says it in a line of its own, if nothing was printed yet.
    pub(super) fn hint_if_due(&mut self, out: &mut Output) {
        if self.hint.due().is_none_or(|due| !due.is_zero()) {
            return;
        }
        self.hint.due = None;
        if self.offset > 0 || self.frame.is_some() {
            return;
        }
        if let (Some(own), Some(text)) = (self.attach.size, self.hint.text.take()) {
            let text: String = text.chars().take(usize::from(own.cols).saturating_sub(1)).collect();
            out.draw(format!("\x1b[7m{text}\x1b[0m\r").as_bytes());
            self.hint.shown = Shown::Line;
        }
    }

    /// Something happens: the hint goes away, and what was below it is there again.
    pub(super) fn unhint(&mut self, out: &mut Output) {
        self.hint.due = None;
        match std::mem::replace(&mut self.hint.shown, Shown::Nowhere) {
            Shown::Nowhere => {}
            Shown::Line => {
                out.draw(b"\r\x1b[K");
            }
            Shown::Over(_) if self.frame.is_some() => self.draw_frame(out),
            Shown::Over(row) => {
                let row = self.fold.repaint_row(row, None);
                out.draw(&row);
            }
        }
    }
}
