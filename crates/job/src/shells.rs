//! How a shell that remembers is driven: what it runs first, and how a step is written for it.
//!
//! The shell takes its commands from a private socket and says over the same socket how each ended. Nothing is typed into
//! its terminal and nothing that it prints is parsed: the terminal belongs to the commands. Each dialect is a script that
//! the shell evaluates once; `docs/formats/shell-line.md` has what goes over the socket.

pub(crate) mod bash;
pub(crate) mod state;

use std::collections::BTreeMap;

use outlast_protocol::shell::{Shell, ShellKind};

/// How long a token is: it comes back with the end of its step.
pub(crate) const TOKEN: usize = 16;

/// A step, as it is written for a shell.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) step: u64,
    pub(crate) command: &'a str,
    /// The folder for this step alone.
    pub(crate) folder: Option<&'a str>,
    /// Variables for this step alone.
    pub(crate) env: &'a BTreeMap<String, Option<String>>,
    /// What the shell said of itself after the last step, and wants back.
    pub(crate) carried: &'a str,
    pub(crate) token: &'a str,
}

/// What is run for a shell, and the variables that it needs; `line` is the number of its private descriptor.
pub(crate) fn start(shell: &Shell, line: i32) -> (Vec<String>, Vec<(String, String)>) {
    match shell.kind {
        ShellKind::Bash => bash::start(line),
    }
}

/// The first thing that goes over the line: what the shell evaluates before its first step. `state` is what a shell of
/// the same name remembered.
pub(crate) fn driver(shell: &Shell, line: i32, state: Option<&str>) -> Vec<u8> {
    match shell.kind {
        ShellKind::Bash => bash::driver(shell.rc, line, state),
    }
}

/// A step as bytes.
pub(crate) fn frame(kind: ShellKind, frame: &Frame<'_>) -> Vec<u8> {
    match kind {
        ShellKind::Bash => bash::frame(frame),
    }
}

/// Asks a shell what it would have to be told to become what it is.
pub(crate) fn ask_for_state(kind: ShellKind) -> &'static [u8] {
    match kind {
        ShellKind::Bash => b"s 0 0 0 0 0\0",
    }
}

/// A word that a POSIX shell reads as this text.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
