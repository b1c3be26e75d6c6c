//! What a job waits for when it waits for input, and how we know.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// How sure we are that a job waits for input.
    pub enum Level ("level") {
        /// A blocked read, and nothing else in the job can go on.
        Certain = "certain",
        /// The terminal is all it waits for, or it has a timer and shows a prompt.
        Likely = "likely",
        /// The kernel does not tell, but the screen looks like it.
        Possible = "possible",
        /// It takes input, and goes on without it: other things can wake it, too. It does not wait.
        Listening = "listening",
    }
}

words! {
    /// What kind of input a job waits for.
    pub enum AwaitingKind ("kind of input") {
        /// A line of text.
        Line = "line",
        /// A line that is not shown.
        Password = "password",
        /// A single key.
        Key = "key",
        /// A full-screen program: a menu or an editor.
        Menu = "menu",
        /// A pager.
        Pager = "pager",
        /// A prompt that edits lines itself: a shell or an interpreter.
        Repl = "repl",
        /// Anything, into the pipe that is its standard input: it has no terminal.
        Stdin = "stdin",
        /// Nothing that is typed: a person must agree to what it wants to execute.
        Approval = "approval",
    }
}

impl AwaitingKind {
    /// Whether somebody is asked something. A shell at its prompt, an editor and a pager wait, but nobody has to answer them.
    #[must_use]
    pub fn is_question(self) -> bool {
        match self {
            Self::Line | Self::Password | Self::Key | Self::Stdin | Self::Approval => true,
            Self::Menu | Self::Pager | Self::Repl => false,
        }
    }
}

impl Level {
    /// Whether this is as sure as that, or surer.
    #[must_use]
    pub fn is_at_least(self, least: Self) -> bool {
        self <= least
    }
}

/// What a job waits for, and how we know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Awaiting {
    /// How sure we are.
    pub level: Level,
    /// What kind of input.
    pub kind: AwaitingKind,
    /// The text before the cursor.
    pub prompt: String,
    /// What the kernel says.
    pub evidence: Evidence,
}

/// What the kernel says about a program that waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// Which process waits.
    pub pid: i32,
    /// Its program.
    pub program: String,
    /// In which system call.
    pub syscall: String,
    /// On which descriptor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fd: Option<i32>,
    /// In words.
    pub why: String,
}
