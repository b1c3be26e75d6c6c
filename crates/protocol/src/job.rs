//! What a job is called, what it runs, and what its streams are.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::host::HostName;
use crate::size::Size;

/// Which job: its number, small, growing, never used again in one home; and the machine it is on, if that is another.
///
/// How it is written and parsed is in [`crate::host`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle {
    host: Option<HostName>,
    number: u64,
}

impl Handle {
    /// A job of this machine.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self { host: None, number }
    }

    /// The job of the same number on another machine; none for this one.
    #[must_use]
    pub const fn on(self, host: Option<HostName>) -> Self {
        Self { host, number: self.number }
    }

    /// Its number in the home of its machine.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.number
    }

    /// The machine it is on; none for this one.
    #[must_use]
    pub const fn host(self) -> Option<HostName> {
        self.host
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({self})")
    }
}

/// How the command is told to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Run {
    /// A line for the shell.
    Shell(String),
    /// A program and its arguments, as they are.
    Program(Vec<String>),
}

impl Run {
    /// As a person would write it, in one line.
    #[must_use]
    pub fn display(&self) -> String {
        match self {
            Run::Shell(line) => line.clone(),
            Run::Program(argv) => argv.iter().map(|arg| quoted(arg)).collect::<Vec<_>>().join(" "),
        }
    }
}

fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) {
        arg.to_owned()
    } else {
        format!("'{}'", arg.replace('\'', "'\\''"))
    }
}

/// What the command's streams are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Streams {
    /// A terminal of the given size.
    Terminal(Size),
    /// Three pipes, stdout and stderr apart.
    Pipes,
}

/// Where a job's input comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// What is typed into it, or sent.
    #[default]
    Typed,
    /// The standard input of the process that starts it: a file, a pipe, whatever it is, up to its end. The job holds it
    /// itself, and needs nobody to pass it on.
    Given,
    /// There is none.
    Nothing,
}

impl Input {
    /// Whether it is what is typed.
    #[must_use]
    pub fn is_typed(&self) -> bool {
        *self == Self::Typed
    }
}
