//! What a job is called, what it runs, and what its streams are.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::size::Size;

/// A job's number: small, growing, never used again in one home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Handle(pub u64);

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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
