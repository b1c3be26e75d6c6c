//! File names for texts of any length and any letters, the same in every version of the program and of its
//! compiler.
//!
//! Names that fit are written so that they can be read back. Longer ones, and the empty one, end in a hash.

use std::fmt::Write;

/// Longer names end in a hash.
const MAX_BYTES: usize = 150;
/// How much of a longer name stays readable.
const READABLE_BYTES: usize = 120;

/// FNV-1a, 64 bits: tells names apart, and will never change.
#[must_use]
pub fn stable_hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A text as a file name: what is not a letter, a digit, `_` or `-` is written as `%` and two digits.
#[must_use]
pub fn stable_name(text: &str) -> String {
    escaped(text).unwrap_or_else(|start| format!("{start}%-{:016x}", stable_hash(text)))
}

/// The name that 0.1 gave to a text, where it was another one: its hash was that of the standard library,
/// which may change with the compiler.
#[must_use]
pub fn name_of_0_1(text: &str) -> Option<String> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let start = escaped(text).err()?;
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    Some(format!("{start}%-{:016x}", hasher.finish()))
}

/// Both names, the present one first.
pub fn all_names(text: &str) -> impl Iterator<Item = String> {
    std::iter::once(stable_name(text)).chain(name_of_0_1(text))
}

/// The escaped text, or its beginning if it is too long or empty.
fn escaped(text: &str) -> Result<String, String> {
    let mut name = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => name.push(char::from(byte)),
            _ => drop(write!(name, "%{byte:02x}")),
        }
    }
    if name.is_empty() || name.len() > MAX_BYTES {
        name.truncate(READABLE_BYTES);
        return Err(name);
    }
    Ok(name)
}

/// The text of a name, where it can be told.
#[must_use]
pub fn text_of(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = (*first == b'%').then(|| after.get(..2)).flatten();
        let byte =
            code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).unwrap_or("x"), 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_and_come_back() {
        for text in ["plain", "a/../b", ".", "..", "with space", "ünïcode", "a%b"] {
            let name = stable_name(text);
            assert!(!name.contains('/') && !name.starts_with('.'), "{name}");
            assert_eq!(text_of(&name), text);
            assert_eq!(name_of_0_1(text), None, "it had the same name");
        }
        assert!(stable_name(&"x".repeat(500)).len() < 200);
        assert_ne!(stable_name(&"x".repeat(500)), stable_name(&"x".repeat(501)));
    }

    /// These are on people's disks. If the second one fails, the compiler's hash has changed: write the old
    /// function (SipHash-1-3 with a key of zeroes) out here.
    #[test]
    fn names_do_not_change_with_the_compiler() {
        let long = "session".repeat(30);
        let start = &long[..READABLE_BYTES];
        assert_eq!(stable_name(&long), format!("{start}%-537b5dd9649744d9"));
        assert_eq!(name_of_0_1(&long).unwrap(), format!("{start}%-aa90d369321e8bb6"));
        assert_eq!(stable_name(""), "%-cbf29ce484222325");
        assert_eq!(all_names(&long).count(), 2);
    }
}
