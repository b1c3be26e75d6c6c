//! Types text of several lines, in the way that the reading program needs.
//!
//! A line editor (readline, zsh) takes a pasted line break for a part of its one line: it gets line by line.
//! So does a program that leaves the editing to the terminal: lines that stand there before it asks are shown in
//! the wrong place, and those before a password are thrown away. A program that edits whole texts, and indents
//! them by itself, gets one paste. Like line editors it asks for marked pastes, so that does not tell them
//! apart; what they do to the terminal does.

use outlast_stream::{Modes, encode as encode_keys, typed, typed_line};

use super::Core;
use super::typing::LineModes;
use crate::failure::Failure;
use crate::keys;
use crate::wire::{self, Send};

/// What of something is typed now.
#[derive(Debug, Default)]
pub(super) struct Portion {
    pub(super) bytes: Vec<u8>,
    /// How many bytes of the text are left for later, with what comes after the text.
    pub(super) left: Option<u64>,
    pub(super) pasted: bool,
}

impl Core {
    /// The bytes for what is to be typed. An unknown key is an error, and then nothing is typed.
    pub(super) fn encode(&self, send: &Send, settings: Option<LineModes>) -> Result<Portion, Failure> {
        let mut modes = self.modes();
        let keys = encode_keys(&keys::parse(&send.keys)?, &modes);
        let mut portion = if send.bytes.is_empty() {
            let by_line = send.paste.map_or_else(|| settings.is_some_and(|it| reads_lines(&it)), |it| !it);
            match first_line(send, &modes).filter(|_| by_line && modes.terminal) {
                Some((line, left)) => Portion { bytes: typed_line(line, &modes), left, ..Portion::default() },
                None => {
                    modes.bracketed_paste &= send.paste != Some(false);
                    let pasted = modes.bracketed_paste && modes.terminal && is_several(&send.text);
                    Portion { bytes: typed(&send.text, send.newline, &modes), left: None, pasted }
                }
            }
        } else {
            let bytes = wire::base64::decode(&send.bytes)
                .ok_or_else(|| Failure::usage("the bytes to type are not base64"))?;
            Portion { bytes, ..Portion::default() }
        };
        if portion.left.is_none() {
            portion.bytes.extend(keys);
        }
        Ok(portion)
    }
}

fn is_several(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// Whether the program reads lines: the terminal edits them for it, or it does so itself.
fn reads_lines(settings: &LineModes) -> bool {
    settings.canonical || edits_lines(settings)
}

/// Whether a line editor reads: it takes keys as they come, but leaves the terminal its extended keys
/// (IEXTEN), except the one that quotes the next key. So do readline and zsh, and nobody else who is known;
/// programs that edit whole texts switch the extended keys off.
fn edits_lines(settings: &LineModes) -> bool {
    settings.extended && settings.signals && !settings.canonical && !settings.echo && settings.quote_next == 0
}

/// The first line of what may be typed in steps, if Enter is pressed after it, and how much is left after it.
fn first_line<'a>(send: &'a Send, modes: &Modes) -> Option<(&'a str, Option<u64>)> {
    if !send.in_steps {
        return None;
    }
    let text = send.text.as_str();
    // At the end of a paste, a line break and Enter run the text once. So it is here: an empty line does
    // something of its own in some programs, such as the last command again.
    let kept = if send.newline && modes.bracketed_paste {
        text.strip_suffix('\n').map(|text| text.strip_suffix('\r').unwrap_or(text)).unwrap_or(text)
    } else {
        text
    };
    let Some(at) = kept.find(['\n', '\r']) else { return send.newline.then_some((kept, None)) };
    let (line, rest) = kept.split_at(at);
    let break_length = if rest.starts_with("\r\n") { 2 } else { 1 };
    let is_last = at + break_length == kept.len() && !send.newline;
    Some((line, (!is_last).then_some((text.len() - at - break_length) as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str, newline: bool, bracketed_paste: bool) -> Vec<String> {
        let modes = Modes { bracketed_paste, ..Modes::fresh(true) };
        let mut lines = Vec::new();
        let mut text = text.to_owned();
        loop {
            let send = Send { text: text.clone(), newline, in_steps: true, ..Send::default() };
            let Some((line, left)) = first_line(&send, &modes) else {
                lines.push(format!("{text}…"));
                return lines;
            };
            lines.push(line.to_owned());
            let Some(left) = left else { return lines };
            text = text.split_off(text.len() - usize::try_from(left).unwrap());
        }
    }

    #[test]
    fn lines_come_one_by_one_and_whole() {
        assert_eq!(steps("a\nb", true, true), ["a", "b"]);
        assert_eq!(steps("a\r\n\r\nb\rc", true, false), ["a", "", "b", "c"]);
        assert_eq!(steps("a\nb\n", false, true), ["a", "b"]);
        assert_eq!(steps("a\nb", false, true), ["a", "b…"]);
        assert_eq!(steps("ls\n", false, true), ["ls"]);
    }

    #[test]
    fn a_line_break_before_enter_is_that_enter_where_a_paste_would_be_marked() {
        assert_eq!(steps("next\n", true, true), ["next"]);
        assert_eq!(steps("a\nb\n", true, true), ["a", "b"]);
        assert_eq!(steps("def f():\n  return 1\n", true, false), ["def f():", "  return 1", ""]);
    }
}
