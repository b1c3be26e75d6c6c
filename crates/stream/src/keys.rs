//! Keys by name, and text, as the bytes that a terminal would send.
//!
//! What a key sends depends on the program's [`Modes`]. Names are spelled as people write them: `Ctrl-C`,
//! `C-c`, `^C` and `ctrl+c` are the same key.

mod encode;
mod names;

use crate::modes::Modes;
pub use encode::encode;
pub use names::UnknownKey;

/// The key that is pressed, without modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Base {
    /// A key that types a character.
    Char(char),
    /// Enter.
    Enter,
    /// Tab.
    Tab,
    /// Escape.
    Escape,
    /// Backspace.
    Backspace,
    /// Delete, to the right.
    Delete,
    /// Insert.
    Insert,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// A function key, 1 to 24.
    Function(u8),
    /// A key of the keypad: a digit or one of `+-*/.,=`, or `\r` for its Enter.
    Keypad(char),
}

/// A key with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// The key.
    pub base: Base,
    /// Held with Ctrl.
    pub ctrl: bool,
    /// Held with Alt (Meta).
    pub alt: bool,
    /// Held with Shift.
    pub shift: bool,
}

impl Key {
    /// A key without modifiers.
    #[must_use]
    pub fn plain(base: Base) -> Self {
        Self { base, ctrl: false, alt: false, shift: false }
    }

    /// Reads a key's name.
    ///
    /// # Errors
    /// An unknown name, with the known names nearest to it.
    pub fn parse(name: &str) -> Result<Self, UnknownKey> {
        names::parse(name)
    }

    /// The name to suggest for each named key.
    pub fn named() -> impl Iterator<Item = &'static str> {
        names::named()
    }

    /// The names of all keys, as a sentence.
    #[must_use]
    pub fn names() -> String {
        names::all()
    }
}

const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// Text as a paste. It is bracketed if the program asked for that, so that a shell neither runs its lines one
/// by one nor indents them. Bracket sequences inside the text are removed: pasted text cannot end the paste
/// and type commands.
#[must_use]
pub fn paste(text: &str, modes: &Modes) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() + 12);
    if modes.bracketed_paste && modes.terminal {
        bytes.extend_from_slice(PASTE_START);
        bytes.extend_from_slice(&without_paste_marks(&as_lines(text, modes)));
        bytes.extend_from_slice(PASTE_END);
    } else {
        bytes = as_lines(text, modes);
    }
    bytes
}

/// Text as it is typed, followed by Enter if `append_newline` is set. Several lines are sent as a [`paste`].
#[must_use]
pub fn typed(text: &str, append_newline: bool, modes: &Modes) -> Vec<u8> {
    let mut bytes = if text.contains(['\n', '\r']) { paste(text, modes) } else { text.as_bytes().to_vec() };
    if append_newline {
        bytes.extend_from_slice(enter(modes));
    }
    bytes
}

/// One line of several, and Enter, for a program that reads lines. Line editors complete at a tab and act on
/// other control characters, so a line that has any is sent as a [`paste`].
#[must_use]
pub fn typed_line(line: &str, modes: &Modes) -> Vec<u8> {
    let mut bytes = if line.contains(char::is_control) { paste(line, modes) } else { line.into() };
    bytes.extend_from_slice(enter(modes));
    bytes
}

/// What Enter sends.
fn enter(modes: &Modes) -> &'static [u8] {
    if modes.terminal { b"\r" } else { b"\n" }
}

/// Converts line ends of any kind to what Enter sends.
fn as_lines(text: &str, modes: &Modes) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'\r' | b'\n' => {
                if byte == b'\r' {
                    rest = rest.strip_prefix(b"\n").unwrap_or(rest);
                }
                bytes.extend_from_slice(enter(modes));
            }
            other => bytes.push(other),
        }
    }
    bytes
}

/// Removes paste brackets until none is left: removing one can form another.
fn without_paste_marks(text: &[u8]) -> Vec<u8> {
    let mut kept: Vec<u8> = Vec::with_capacity(text.len());
    for &byte in text {
        kept.push(byte);
        while kept.ends_with(PASTE_END) || kept.ends_with(PASTE_START) {
            kept.truncate(kept.len() - PASTE_END.len());
        }
    }
    kept
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
