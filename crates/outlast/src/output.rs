//! stdout is data, stderr is talk; both for people or as JSON.

use std::io::{IsTerminal, Write};

use outlast_job::{Failure, Kind};
use serde::Serialize;

/// Where answers go.
#[derive(Debug)]
pub(crate) struct Output {
    /// Whether everything is JSON.
    pub(crate) json: bool,
    /// Whether stdout may have colours.
    pub(crate) colour: bool,
    /// On a terminal: the last line of data has no end yet.
    unfinished: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { json, colour: !no_colour && std::io::stdout().is_terminal(), unfinished: false }
    }

    /// Data, as it is. A reader that has gone away is not an error.
    pub(crate) fn data(&mut self, bytes: &[u8]) -> bool {
        if let Some(last) = bytes.last() {
            self.unfinished = *last != b'\n' && std::io::stdout().is_terminal();
        }
        self.draw(bytes)
    }

    /// Whatever comes next, on a terminal, begins in a line of its own.
    pub(crate) fn end_line(&mut self) {
        if std::mem::take(&mut self.unfinished) {
            self.draw(b"\n");
        }
    }

    /// Bytes for a terminal that need not be lines.
    pub(crate) fn draw(&mut self, bytes: &[u8]) -> bool {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(bytes).and_then(|()| stdout.flush()).is_ok()
    }

    /// A line of data.
    pub(crate) fn line(&mut self, line: &str) -> bool {
        self.data(format!("{line}\n").as_bytes())
    }

    /// A line of data whose content is told in a sentence too: whoever reads both on one screen needs only that.
    pub(crate) fn line_for_scripts(&mut self, line: &str) {
        if !(std::io::stdout().is_terminal() && std::io::stderr().is_terminal()) {
            self.line(line);
        }
    }

    /// A line of data for people; an answer in JSON has said it.
    pub(crate) fn line_or_nothing(&mut self, line: &str) {
        if !self.json {
            self.line(line);
        }
    }

    /// One JSON value on a line.
    pub(crate) fn value(&mut self, value: &impl Serialize) -> bool {
        let mut bytes = serde_json::to_vec(value).unwrap_or_default();
        bytes.push(b'\n');
        self.data(&bytes)
    }

    /// Talk, for people; not in the way of JSON.
    pub(crate) fn talk(&mut self, line: &str) {
        if !self.json {
            self.end_line();
            let _ = writeln!(std::io::stderr().lock(), "{line}");
        }
    }

    /// Talk that only somebody at a terminal needs.
    pub(crate) fn aside(&mut self, line: &str) {
        if std::io::stderr().is_terminal() {
            self.talk(line);
        }
    }

    /// Says what is wrong and what to do next; returns the exit code for it.
    pub(crate) fn failure(&mut self, failure: &Failure) -> i32 {
        if self.json {
            let error = serde_json::json!({
                "error": {
                    "kind": failure.kind.name(),
                    "message": failure.message,
                    "hint": failure.hint.as_ref().map(ToString::to_string),
                }
            });
            self.value(&error);
        } else {
            self.end_line();
            let _ = writeln!(std::io::stderr().lock(), "outlast: {failure}");
        }
        exit_code(failure.kind)
    }

    /// Text in a style, where colours are welcome.
    pub(crate) fn styled(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn exit_code(kind: Kind) -> i32 {
    match kind {
        Kind::Usage => USAGE,
        Kind::NoSuchJob => 3,
        Kind::Denied => DENIED,
        Kind::NotRunning
        | Kind::CannotStart
        | Kind::BadHome
        | Kind::UnknownFormat
        | Kind::OutcomeUnknown
        | Kind::Busy
        | Kind::Unreachable
        | Kind::Keeper
        | Kind::System => 1,
    }
}

/// The exit code for a command line that cannot be meant.
pub(crate) const USAGE: i32 = 2;
/// The exit code for what is not allowed.
pub(crate) const DENIED: i32 = 5;
/// The exit code for a job that runs on: a deadline has come, it asks, or it was left.
pub(crate) const DEADLINE: i32 = 4;
