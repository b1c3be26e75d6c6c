//! Makes text from a job safe to look at: nothing in it acts on a terminal, and nothing in it is hidden.

use std::borrow::Cow;
use std::fmt::Write;

/// Spells out what would act or hide. Control characters become `^[`. Characters that reorder text, take no
/// space or carry hidden messages become `<U+202E>`. Line feeds and tabs stay, and so do combining marks and
/// the joiners and selectors inside emoji.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_shown) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            _ if !is_shown(character) => shown.push(character),
            '\0'..='\x1f' | '\x7f' => {
                shown.push('^');
                shown.push(char::from(character as u8 ^ 0x40));
            }
            _ => {
                let _ = write!(shown, "<U+{:04X}>", u32::from(character));
            }
        }
    }
    Cow::Owned(shown)
}

/// Whether a character must be spelled out.
fn is_shown(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' => true,
        // Soft hyphen, Arabic letter mark, Mongolian separators, Hangul fillers: all invisible.
        '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
        | '\u{3164}' | '\u{ffa0}' => true,
        // Zero width space and non-joiner, direction marks, overrides, isolates, invisible operators.
        '\u{200b}'
        | '\u{200c}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' => true,
        // Byte order mark, interlinear notes.
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' => true,
        // Musical controls, tags, and selectors that no font uses.
        '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_invisible_characters_are_spelled_out() {
        assert_eq!(visible("a\x1b[31mb\r\x07\x7f"), "a^[[31mb^M^G^?");
        assert_eq!(visible("x\u{202e}y\u{9b}\u{200b}\u{e0041}"), "x<U+202E>y<U+009B><U+200B><U+E0041>");
    }

    #[test]
    fn ordinary_text_is_unchanged() {
        let text = "tab\tline\n漢字 e\u{301} 👩\u{200d}💻 ❤\u{fe0f}";
        assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
    }
}
