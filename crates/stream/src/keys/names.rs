//! The names of keys.

use super::{Base, Key};

/// A key name that is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown key {name:?}{}", self.suggestion())]
pub struct UnknownKey {
    /// The name as the caller wrote it.
    pub name: String,
    /// Similar names.
    pub near: Vec<String>,
}

impl UnknownKey {
    fn suggestion(&self) -> String {
        if self.near.is_empty() { String::new() } else { format!("; did you mean {}?", self.near.join(", ")) }
    }
}

/// Every named key: the name to suggest first, then other spellings.
const NAMED: [(&[&str], Base); 16] = [
    (&["Enter", "return", "ret", "cr", "newline"], Base::Enter),
    (&["Tab"], Base::Tab),
    (&["Escape", "esc"], Base::Escape),
    (&["Backspace", "bspace", "bs"], Base::Backspace),
    (&["Delete", "del", "dc"], Base::Delete),
    (&["Insert", "ins", "ic"], Base::Insert),
    (&["Up", "arrowup", "uparrow"], Base::Up),
    (&["Down", "arrowdown", "downarrow"], Base::Down),
    (&["Left", "arrowleft", "leftarrow"], Base::Left),
    (&["Right", "arrowright", "rightarrow"], Base::Right),
    (&["Home"], Base::Home),
    (&["End"], Base::End),
    (&["PageUp", "pgup", "ppage", "prior", "page_up"], Base::PageUp),
    (&["PageDown", "pgdn", "pgdown", "npage", "next", "page_down"], Base::PageDown),
    (&["Space", "spc"], Base::Char(' ')),
    (&["KeypadEnter", "kpenter"], Base::Keypad('\r')),
];

/// The name to suggest for each named key.
pub(super) fn named() -> impl Iterator<Item = &'static str> {
    NAMED.iter().filter_map(|(names, _)| names.first().copied())
}

/// Longer names are not compared with known ones.
const MAX_NAME_BYTES: usize = 40;

/// Every name that a key can have, for an error message.
pub(super) fn all() -> String {
    let named: Vec<&str> = NAMED.iter().map(|(names, _)| names[0]).collect();
    format!(
        "{}, Keypad0 to Keypad9, F1 to F24 and every single character, with Ctrl-, Alt- and Shift- before \
         them (Ctrl-C, Alt-x, Shift-Tab)",
        named.join(", ")
    )
}

pub(super) fn parse(name: &str) -> Result<Key, UnknownKey> {
    parse_known(name).ok_or_else(|| unknown(name))
}

fn parse_known(name: &str) -> Option<Key> {
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let mut key = Key::plain(Base::Enter);
    let mut rest = name;
    // The last character may itself be `-` or `+`, so a modifier needs something after its separator.
    while let Some((word, after)) = rest.split_once(['-', '+'])
        && !after.is_empty()
    {
        match word.to_ascii_lowercase().as_str() {
            "ctrl" | "control" | "c" => key.ctrl = true,
            "alt" | "meta" | "m" | "a" | "option" | "opt" => key.alt = true,
            "shift" | "s" => key.shift = true,
            _ => break,
        }
        rest = after;
    }
    if let Some(letter) = rest.strip_prefix('^')
        && letter.chars().count() == 1
    {
        key.ctrl = true;
        rest = letter;
    }
    key.base = base(rest)?;
    if rest.eq_ignore_ascii_case("backtab") || rest.eq_ignore_ascii_case("btab") {
        key.shift = true;
    }
    if let Base::Char(letter) = key.base {
        if key.ctrl {
            key.base = Base::Char(letter.to_ascii_lowercase());
            if !key.shift && letter != ' ' && control_code(letter).is_none() {
                return None;
            }
        } else if key.shift && letter != ' ' {
            key.base = Base::Char(letter.to_uppercase().next()?);
            key.shift = false;
        }
    }
    Some(key)
}

fn base(name: &str) -> Option<Base> {
    let mut characters = name.chars();
    if let (Some(only), None) = (characters.next(), characters.next()) {
        return (!only.is_control()).then_some(Base::Char(only));
    }
    let lower = name.to_ascii_lowercase();
    if lower == "backtab" || lower == "btab" {
        return Some(Base::Tab);
    }
    if let Some(number) = lower.strip_prefix('f')
        && number.bytes().all(|digit| digit.is_ascii_digit())
    {
        let number: u8 = number.parse().ok()?;
        return (1..=24).contains(&number).then_some(Base::Function(number));
    }
    if let Some(pad) = lower.strip_prefix("kp").or_else(|| lower.strip_prefix("keypad")) {
        let mut characters = pad.trim_start_matches('_').chars();
        if let (Some(only), None) = (characters.next(), characters.next())
            && "0123456789+-*/.,=".contains(only)
        {
            return Some(Base::Keypad(only));
        }
    }
    NAMED
        .iter()
        .find(|(names, _)| names.iter().any(|known| known.eq_ignore_ascii_case(&lower)))
        .map(|(_, base)| *base)
}

/// The control character that Ctrl makes of a character.
pub(super) fn control_code(letter: char) -> Option<u8> {
    Some(match letter.to_ascii_lowercase() {
        letter @ 'a'..='z' => letter as u8 - b'a' + 1,
        '@' | ' ' | '2' => 0x00,
        '[' | '3' => 0x1b,
        '\\' | '4' => 0x1c,
        ']' | '5' => 0x1d,
        '^' | '6' | '~' => 0x1e,
        '_' | '7' | '/' | '-' => 0x1f,
        '?' | '8' => 0x7f,
        _ => return None,
    })
}

/// At most five names, nearest first.
fn unknown(name: &str) -> UnknownKey {
    let short: String = name.chars().take(MAX_NAME_BYTES).collect();
    let wanted = short.to_ascii_lowercase();
    let (modifiers, stem) = match wanted.rfind(['-', '+']) {
        Some(at) if at + 1 < wanted.len() => short.split_at(at + 1),
        _ => ("", short.as_str()),
    };
    let stem = stem.to_ascii_lowercase();
    let mut near: Vec<(usize, String)> = Vec::new();
    for (names, _) in &NAMED {
        let distance =
            names.iter().map(|known| distance(&stem, &known.to_ascii_lowercase())).min().unwrap_or(99);
        near.push((distance, format!("{modifiers}{}", names[0])));
    }
    if stem.starts_with('f') && stem[1..].bytes().any(|byte| byte.is_ascii_digit()) {
        near.push((1, "F1".to_owned()));
        near.push((1, "F24".to_owned()));
    }
    if ["ctrl", "control", "strg", "ctl"].iter().any(|start| wanted.starts_with(start)) {
        near.push((2, "Ctrl-C".to_owned()));
    }
    if stem.is_empty() {
        near.clear();
    }
    // `Key::parse` would recurse for a candidate that is unknown too, such as `Cmd-Enter`.
    near.retain(|(distance, candidate)| {
        *distance <= 2.max(stem.len() / 3) && parse_known(candidate).is_some()
    });
    near.sort();
    near.truncate(5);
    UnknownKey { name: short, near: near.into_iter().map(|(_, name)| name).collect() }
}

/// The edit distance: how many letters to change, add or remove.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let substitution = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substitution.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}
