//! The key that leaves a job and tells it nothing: Ctrl-] unless somebody needs that one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::failure::Failure;

/// Control and another key, as a terminal sends it: one byte. Or none: then only the job's end, or the end of the
/// terminal, leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DetachKey(Option<u8>);

/// Ctrl-]
const DEFAULT: u8 = 0x1d;
/// Keys that every program needs: interrupt, end of input, backspace, tab, newline, enter, stop, escape.
const TAKEN: &[u8] = b"CDHIJMZ[";
const NONE: &str = "none";

impl DetachKey {
    /// Where in what was typed it is.
    #[must_use]
    pub fn find(self, typed: &[u8]) -> Option<usize> {
        typed.iter().position(|byte| Some(*byte) == self.0)
    }

    /// Whether there is one.
    #[must_use]
    pub fn is_some(self) -> bool {
        self.0.is_some()
    }
}

impl Default for DetachKey {
    fn default() -> Self {
        Self(Some(DEFAULT))
    }
}

impl fmt::Display for DetachKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(byte) => write!(out, "Ctrl-{}", char::from(byte | 0x40)),
            None => out.write_str(NONE),
        }
    }
}

impl FromStr for DetachKey {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        if text.eq_ignore_ascii_case(NONE) {
            return Ok(Self(None));
        }
        let bad = |message: String| {
            Failure::usage(message).hint("write for example Ctrl-], Ctrl-A, Ctrl-\\, Ctrl-^ or none")
        };
        let lower = text.to_ascii_lowercase();
        let key = ["ctrl-", "ctrl+", "c-", "^"].iter().find_map(|start| lower.strip_prefix(start));
        match key.map(str::to_ascii_uppercase).as_deref().map(str::as_bytes) {
            Some([key]) if TAKEN.contains(key) => {
                Err(bad(format!("{text:?} cannot leave a job: the program in it needs that key")))
            }
            Some([key @ (b'A'..=b'Z' | b'\\' | b']' | b'^' | b'_')]) => Ok(Self(Some(key & 0x1f))),
            _ => Err(bad(format!("{text:?} is not a key that can leave a job"))),
        }
    }
}

impl Serialize for DetachKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DetachKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(|failure: Failure| serde::de::Error::custom(failure))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_people_write_them() {
        for (text, shown) in [
            ("ctrl-]", "Ctrl-]"),
            ("C-a", "Ctrl-A"),
            ("^_", "Ctrl-_"),
            ("^^", "Ctrl-^"),
            ("Ctrl+\\", "Ctrl-\\"),
            ("None", "none"),
        ] {
            assert_eq!(text.parse::<DetachKey>().unwrap().to_string(), shown, "{text}");
        }
        assert_eq!(DetachKey::default().to_string(), "Ctrl-]");
        assert_eq!(DetachKey::default().find(b"ab\x1d"), Some(2));
        assert_eq!("none".parse::<DetachKey>().unwrap().find(b"\x1d"), None);
    }

    #[test]
    fn keys_that_programs_need_are_refused() {
        for text in ["a", "Ctrl-C", "^[", "ctrl-z", "Ctrl-ab", "", "F1"] {
            assert!(text.parse::<DetachKey>().is_err(), "{text}");
        }
    }
}
