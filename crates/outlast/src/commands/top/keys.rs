//! What a person types, as keys.

/// A key, as far as this screen knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A character that can be seen.
    Char(char),
    /// A letter with Ctrl, in lower case.
    Ctrl(char),
    Enter,
    Escape,
    Tab,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
}

/// Bytes of a terminal that are being made into keys. A sequence may come in pieces, over a network for one.
#[derive(Debug, Default)]
pub(super) struct Keys {
    bytes: Vec<u8>,
}

impl Keys {
    /// Takes in bytes; returns the keys that are whole.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.bytes.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Some((key, used)) = next(&self.bytes) {
            self.bytes.drain(..used);
            keys.extend(key);
        }
        keys
    }

    /// Whether more bytes could belong to what has come.
    pub(super) fn is_unfinished(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Nothing more has come: a lone Escape is the key of that name, and anything else is nothing.
    pub(super) fn finish(&mut self) -> Option<Key> {
        let bytes = std::mem::take(&mut self.bytes);
        (bytes == [ESCAPE]).then_some(Key::Escape)
    }
}

const ESCAPE: u8 = 0x1b;

/// The first key, if it is one that is known, and how many bytes it takes; none when more must come.
fn next(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    match *bytes.first()? {
        ESCAPE => after_escape(bytes),
        b'\r' | b'\n' => Some((Some(Key::Enter), 1)),
        b'\t' => Some((Some(Key::Tab), 1)),
        8 | 0x7f => Some((Some(Key::Backspace), 1)),
        0 => Some((None, 1)),
        letter @ 1..=26 => Some((Some(Key::Ctrl(char::from(letter - 1 + b'a'))), 1)),
        0x1c..=0x1f => Some((None, 1)),
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let most = bytes.len().min(4);
    for length in 1..=most {
        if let Some(c) = std::str::from_utf8(&bytes[..length]).ok().and_then(|text| text.chars().next()) {
            return Some((Some(Key::Char(c)), length));
        }
    }
    // No character, and none that more bytes could make.
    (most == 4 || std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_some()))
        .then_some((None, 1))
}

fn after_escape(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    match *bytes.get(1)? {
        b'[' => {
            let end = bytes.iter().skip(2).position(|byte| (0x40..=0x7e).contains(byte))? + 2;
            Some((named(&bytes[2..end], bytes[end]), end + 1))
        }
        b'O' => Some((named(&[], *bytes.get(2)?), 3)),
        // Escape, and then another sequence.
        ESCAPE => Some((Some(Key::Escape), 1)),
        // A key with Alt means nothing here.
        _ => Some((None, 2)),
    }
}

fn named(parameters: &[u8], last: u8) -> Option<Key> {
    match (parameters.first(), last) {
        (_, b'A') => Some(Key::Up),
        (_, b'B') => Some(Key::Down),
        (_, b'C') => Some(Key::Right),
        (_, b'D') => Some(Key::Left),
        (_, b'H') | (Some(b'1' | b'7'), b'~') => Some(Key::Home),
        (_, b'F') | (Some(b'4' | b'8'), b'~') => Some(Key::End),
        (Some(b'5'), b'~') => Some(Key::PageUp),
        (Some(b'6'), b'~') => Some(Key::PageDown),
        (None, b'M') => Some(Key::Enter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_same_in_whatever_pieces_they_come() {
        let typed = "jä日\x1b[A\x1bOB\x1b[5~\x1b[1;5C\r\x03\x7f\x1b[F".as_bytes();
        let wanted = [
            Key::Char('j'),
            Key::Char('ä'),
            Key::Char('日'),
            Key::Up,
            Key::Down,
            Key::PageUp,
            Key::Right,
            Key::Enter,
            Key::Ctrl('c'),
            Key::Backspace,
            Key::End,
        ];
        for size in 1..=typed.len() {
            let mut keys = Keys::default();
            let got: Vec<Key> = typed.chunks(size).flat_map(|piece| keys.take(piece)).collect();
            assert_eq!(got, wanted, "in pieces of {size}");
            assert!(!keys.is_unfinished());
        }
    }

    #[test]
    fn a_lone_escape_is_a_key_when_nothing_more_comes() {
        let mut keys = Keys::default();
        assert_eq!(keys.take(b"\x1b"), []);
        assert!(keys.is_unfinished());
        assert_eq!(keys.finish(), Some(Key::Escape));
        assert_eq!(keys.take(b"\xff\xfez"), [Key::Char('z')]);
    }
}
