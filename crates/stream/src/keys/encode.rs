//! What each key sends, as in xterm.

use super::names::control_code;
use super::{Base, Key, enter};
use crate::modes::Modes;

/// The bytes that these keys send to a program in these modes.
#[must_use]
pub fn encode(keys: &[Key], modes: &Modes) -> Vec<u8> {
    let mut bytes = Vec::new();
    for key in keys {
        encode_one(*key, modes, &mut bytes);
    }
    bytes
}

fn encode_one(key: Key, modes: &Modes, into: &mut Vec<u8>) {
    match key.base {
        Base::Up => cursor_key(key, b'A', modes, into),
        Base::Down => cursor_key(key, b'B', modes, into),
        Base::Right => cursor_key(key, b'C', modes, into),
        Base::Left => cursor_key(key, b'D', modes, into),
        Base::Home => cursor_key(key, b'H', modes, into),
        Base::End => cursor_key(key, b'F', modes, into),
        Base::Insert => numbered(key, 2, into),
        Base::Delete => numbered(key, 3, into),
        Base::PageUp => numbered(key, 5, into),
        Base::PageDown => numbered(key, 6, into),
        Base::Function(number) => function_key(key, number, into),
        Base::Keypad(which) => keypad(key, which, modes, into),
        Base::Enter if other_key(key, 13, modes, into) => {}
        Base::Enter => with_alt(key, enter(modes), into),
        Base::Tab if key.shift && !key.ctrl => with_alt(key, b"\x1b[Z", into),
        Base::Tab if other_key(key, 9, modes, into) => {}
        Base::Tab => with_alt(key, b"\t", into),
        Base::Escape if other_key(key, 27, modes, into) => {}
        Base::Escape => with_alt(key, b"\x1b", into),
        Base::Backspace if other_key(key, 127, modes, into) => {}
        // Ctrl switches between the two kinds of backspace.
        Base::Backspace => with_alt(key, if key.ctrl { b"\x08" } else { b"\x7f" }, into),
        Base::Char(letter) => character(key, letter, modes, into),
    }
}

/// xterm's modifier parameter: 1, plus 1 for Shift, 2 for Alt, 4 for Ctrl.
fn modifier(key: Key) -> u8 {
    1 + u8::from(key.shift) + 2 * u8::from(key.alt) + 4 * u8::from(key.ctrl)
}

fn with_alt(key: Key, bytes: &[u8], into: &mut Vec<u8>) {
    if key.alt {
        into.push(0x1b);
    }
    into.extend_from_slice(bytes);
}

fn cursor_key(key: Key, letter: u8, modes: &Modes, into: &mut Vec<u8>) {
    match modifier(key) {
        1 if modes.application_cursor => into.extend_from_slice(&[0x1b, b'O', letter]),
        1 => into.extend_from_slice(&[0x1b, b'[', letter]),
        modifier => {
            into.extend_from_slice(format!("\x1b[1;{modifier}").as_bytes());
            into.push(letter);
        }
    }
}

fn numbered(key: Key, number: u8, into: &mut Vec<u8>) {
    let sequence = match modifier(key) {
        1 => format!("\x1b[{number}~"),
        modifier => format!("\x1b[{number};{modifier}~"),
    };
    into.extend_from_slice(sequence.as_bytes());
}

fn function_key(key: Key, number: u8, into: &mut Vec<u8>) {
    const NUMBERS: [u8; 20] =
        [15, 17, 18, 19, 20, 21, 23, 24, 25, 26, 28, 29, 31, 32, 33, 34, 42, 43, 44, 45];
    if let 1..=4 = number {
        let letter = b'P' + number - 1;
        match modifier(key) {
            1 => into.extend_from_slice(&[0x1b, b'O', letter]),
            modifier => {
                into.extend_from_slice(format!("\x1b[1;{modifier}").as_bytes());
                into.push(letter);
            }
        }
    } else if let Some(&code) = NUMBERS.get(usize::from(number.saturating_sub(5))) {
        numbered(key, code, into);
    }
}

fn keypad(key: Key, which: char, modes: &Modes, into: &mut Vec<u8>) {
    let plain = if which == '\r' { enter(modes).to_vec() } else { which.to_string().into_bytes() };
    if !modes.application_keypad {
        return with_alt(key, &plain, into);
    }
    let letter = match which {
        '0'..='9' => b'p' + (which as u8 - b'0'),
        '*' => b'j',
        '+' => b'k',
        ',' => b'l',
        '-' => b'm',
        '.' => b'n',
        '/' => b'o',
        '\r' => b'M',
        _ => b'X',
    };
    into.extend_from_slice(&[0x1b, b'O', letter]);
}

/// xterm's modifyOtherKeys: keys without a code of their own for these modifiers get one, if the program
/// asked for it.
fn other_key(key: Key, code: u32, modes: &Modes, into: &mut Vec<u8>) -> bool {
    let modifier = modifier(key);
    if modes.modify_other_keys < 2 || modifier == 1 {
        return false;
    }
    into.extend_from_slice(format!("\x1b[27;{modifier};{code}~").as_bytes());
    true
}

fn character(key: Key, letter: char, modes: &Modes, into: &mut Vec<u8>) {
    if (key.ctrl || key.alt) && other_key(key, u32::from(letter), modes, into) {
        return;
    }
    if key.ctrl && modes.modify_other_keys == 1 && (key.shift || control_code(letter).is_none()) {
        let sequence = format!("\x1b[27;{};{}~", modifier(key), u32::from(letter));
        return into.extend_from_slice(sequence.as_bytes());
    }
    let mut utf8 = [0; 4];
    match control_code(letter) {
        Some(code) if key.ctrl => with_alt(key, &[code], into),
        _ => {
            let shown = if key.shift { letter.to_uppercase().next().unwrap_or(letter) } else { letter };
            with_alt(key, shown.encode_utf8(&mut utf8).as_bytes(), into);
        }
    }
}
