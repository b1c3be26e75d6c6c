//! How a shell that remembers is driven: what it runs first, and how a step is written for it.
//!
//! The shell takes its commands from a private line and says over it how each ended. Nothing is typed into
//! its terminal and nothing that it prints is parsed: the terminal belongs to the commands. Each dialect is a script that
//! the shell evaluates once; `docs/formats/shell-line.md` has what goes over the line.

mod bash;
mod dash;
mod fish;
pub(crate) mod state;
mod zsh;

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

/// What the descriptors of its line are called in a shell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    /// The socket.
    pub(crate) line: i32,
    /// What lies [beside](Beside) it.
    pub(crate) beside: i32,
}

/// What a shell needs besides the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    Nothing,
    /// A script that it can read again and again.
    Script(&'static str),
    /// A pipe for what it is told: it can read no other descriptors than those it opens itself.
    Pipe,
    /// A pipe for what it is told, its standard output when it begins; the socket is its standard input then. It can close no
    /// descriptor with a number of two digits.
    Stdio,
}

/// What a kind of shell needs besides the socket.
pub(crate) fn beside(kind: ShellKind) -> Beside {
    match kind {
        ShellKind::Bash => Beside::Nothing,
        ShellKind::Zsh => Beside::Script(zsh::PUMP),
        ShellKind::Fish => Beside::Pipe,
        ShellKind::Dash => Beside::Stdio,
    }
}

/// What is run for a shell, and the variables that it needs.
pub(crate) fn start(shell: &Shell, numbers: Numbers) -> (Vec<String>, Vec<(String, String)>) {
    match shell.kind {
        ShellKind::Bash => bash::start(numbers.line),
        ShellKind::Zsh => zsh::start(numbers),
        ShellKind::Fish => fish::start(shell.rc, numbers),
        ShellKind::Dash => dash::start(shell.rc),
    }
}

/// The first thing that goes over the line: what the shell evaluates before its first step. It tells its state, and then gets
/// back what a shell of the same name remembered: so all that was changed since the first one is what differs from that.
pub(crate) fn driver(shell: &Shell, numbers: Numbers, state: Option<&str>) -> Vec<u8> {
    match shell.kind {
        ShellKind::Bash => bash::driver(shell.rc, numbers.line, state),
        ShellKind::Zsh => zsh::driver(shell.rc, state),
        ShellKind::Fish => fish::driver(numbers, state),
        // It begins before there is anything to remember.
        ShellKind::Dash => dash::ask('s', 0, ""),
    }
}

/// What a shell is told with its first step, as if it had said so itself.
pub(crate) fn first_carried(kind: ShellKind, state: Option<&str>) -> String {
    match kind {
        ShellKind::Bash | ShellKind::Zsh | ShellKind::Fish => String::new(),
        ShellKind::Dash => state.unwrap_or_default().to_owned(),
    }
}

/// A step as bytes.
pub(crate) fn frame(kind: ShellKind, frame: &Frame<'_>) -> Vec<u8> {
    match kind {
        ShellKind::Bash => bash::frame(frame),
        ShellKind::Zsh => zsh::frame(frame),
        ShellKind::Fish => fish::frame(frame),
        ShellKind::Dash => dash::frame(frame),
    }
}

/// Lets the person at the terminal type a command; it will be this step.
pub(crate) fn prompt(kind: ShellKind, step: u64, carried: &str, token: &str) -> Vec<u8> {
    match kind {
        ShellKind::Bash | ShellKind::Zsh => format!("p {step} 0 0 0 0\0{token}").into_bytes(),
        ShellKind::Fish => format!("p\0{step}\0{token}\0\0").into_bytes(),
        ShellKind::Dash => dash::ask('p', step, carried),
    }
}

/// Asks a shell what it would have to be told to become what it is.
pub(crate) fn ask_for_state(kind: ShellKind, carried: &str) -> Vec<u8> {
    match kind {
        ShellKind::Bash | ShellKind::Zsh => b"s 0 0 0 0 0\0".to_vec(),
        ShellKind::Fish => b"s\0".to_vec(),
        ShellKind::Dash => dash::ask('s', 0, carried),
    }
}

/// The number of its line that a shell closes for each step in itself, if it can do that.
pub(crate) fn closed_for_steps(kind: ShellKind) -> Option<i32> {
    match kind {
        ShellKind::Bash => Some(31),
        ShellKind::Zsh => Some(8),
        ShellKind::Fish | ShellKind::Dash => None,
    }
}

/// What goes over the socket behind a step that was told in another way: its token, for a shell that would otherwise read it with
/// the step.
pub(crate) fn token_apart(kind: ShellKind, token: &str) -> Option<String> {
    match kind {
        ShellKind::Bash | ShellKind::Zsh | ShellKind::Fish => None,
        ShellKind::Dash => Some(format!("{token}\n")),
    }
}

/// What a shell wants back with its next step, as it must be told.
pub(crate) fn carried(kind: ShellKind, said: &str) -> String {
    match kind {
        ShellKind::Bash | ShellKind::Zsh | ShellKind::Fish => said.to_owned(),
        ShellKind::Dash => dash::carried(said),
    }
}

/// A word that a POSIX shell reads as this text.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// What a step says that can't go where it was told to.
fn no_such_folder(folder: &str) -> String {
    format!("outlast: there is no folder {folder}, or it can't be entered")
}

/// The frame of a shell that reads bytes by their number.
fn counted(kind: char, frame: &Frame<'_>, (setup, carried, restore): (&str, &str, &str)) -> Vec<u8> {
    let (step, command) = (frame.step, frame.command);
    let (s, n, m, z) = (setup.len(), carried.len(), command.len(), restore.len());
    format!("{kind} {step} {s} {n} {m} {z}\0{setup}{carried}{command}{}{restore}", frame.token).into_bytes()
}

/// Whether a line can be added behind a command without changing what the command means: that line notes the codes of a
/// pipeline and the last argument for the next step. The exit code is known without it.
fn may_add_line(command: &str) -> bool {
    let says = |words: &[&str]| words.iter().any(|word| command.contains(word));
    !command.ends_with('\\')
        && !says(&["set ", "set\t", "shopt", "setopt", "trap", "verbose", "xtrace"])
        && here_documents_end(command)
}

/// Whether a command says that its shell is to end, as far as that can be seen: what the shell remembers is asked for before.
pub(crate) fn may_end_shell(command: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || "_-".contains(c);
    let mut words = command.split(|c| !is_word(c));
    words.any(|word| ["exit", "exec", "logout", "kill", "return", "-e", "errexit"].contains(&word))
}

/// Whether every here-document of a command has its last line in it, as far as that can be seen.
fn here_documents_end(command: &str) -> bool {
    let mut rest = command;
    while let Some(at) = rest.find("<<") {
        rest = &rest[at + 2..];
        if let Some(here_string) = rest.strip_prefix('<') {
            rest = here_string;
            continue;
        }
        let word = rest.trim_start_matches('-').trim_start();
        let end = word.find(|c: char| c.is_whitespace() || ";&|()<>".contains(c)).unwrap_or(word.len());
        let name: String = word[..end].chars().filter(|c| !"'\"\\".contains(*c)).collect();
        if name.is_empty() || !word.lines().skip(1).any(|line| line.trim_start_matches('\t') == name) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_added_only_where_it_changes_nothing() {
        for fine in ["echo hi", "a | b", "cat <<E\nx\nE", "cat <<-'E' | b\n\tE", "cat <<<x", "echo 'open"] {
            assert!(may_add_line(fine), "{fine}");
        }
        for not in ["cat <<E\nx", "echo $((1<<2))", "set -x", "trap x DEBUG", "echo \\", "cat <<"] {
            assert!(!may_add_line(not), "{not}");
        }
    }
}
