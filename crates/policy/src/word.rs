//! Words of a command line, as far as its text tells. The words themselves are in `outlast-rules`, which keepers use too.

pub(crate) use outlast_rules::{Kind, Word, base, plain_words};

/// The words as one line; `None` if some of them are unknown.
pub(crate) fn joined(words: &[Word]) -> Option<String> {
    words.iter().map(Word::known).collect::<Option<Vec<_>>>().map(|words| words.join(" "))
}

/// The known text of all words.
pub(crate) fn known_text(words: &[Word]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// What `$'...'` stands for, given the text between its quotes; `None` if it is unknown how bash reads it.
pub(crate) fn ansi_c(body: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = body.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let (&escape, after) = rest.split_first()?;
        rest = after;
        match escape {
            b'a' => bytes.push(7),
            b'b' => bytes.push(8),
            b'e' | b'E' => bytes.push(27),
            b'f' => bytes.push(12),
            b'n' => bytes.push(b'\n'),
            b'r' => bytes.push(b'\r'),
            b't' => bytes.push(b'\t'),
            b'v' => bytes.push(11),
            b'\\' | b'\'' | b'"' | b'?' => bytes.push(escape),
            b'x' => bytes.push(u8::try_from(number(&mut rest, 16, 2)?).ok()?),
            b'u' => push(&mut bytes, number(&mut rest, 16, 4)?)?,
            b'U' => push(&mut bytes, number(&mut rest, 16, 8)?)?,
            b'0'..=b'7' => {
                rest = &body.as_bytes()[body.len() - rest.len() - 1..];
                bytes.push(u8::try_from(number(&mut rest, 8, 3)? & 0xff).ok()?);
            }
            _ => return None,
        }
    }
    // In bash, a NUL ends the word in the middle of the text that we see.
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

fn push(bytes: &mut Vec<u8>, code: u32) -> Option<()> {
    bytes.extend(char::from_u32(code)?.encode_utf8(&mut [0; 4]).bytes());
    Some(())
}

/// Takes a number of at max_digits `max_digits` digits.
fn number(rest: &mut &[u8], radix: u32, max_digits: usize) -> Option<u32> {
    let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
    let count = rest.iter().take(max_digits).take_while(|byte| is_digit(byte)).count();
    let (digits, after) = rest.split_at(count);
    *rest = after;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_like_in_bash() {
        let cases =
            [(r"\x72m", "rm"), (r"\162m", "rm"), (r"r\u006d", "rm"), (r"a\tb\'c", "a\tb'c"), ("é", "é")];
        for (written, meant) in cases {
            assert_eq!(ansi_c(written).as_deref(), Some(meant), "{written}");
        }
        assert_eq!(ansi_c(r"\c["), None);
        assert_eq!(ansi_c(r"\xff"), None, "no text");
        assert_eq!(ansi_c(r"rm\0x"), None, "bash ends it there");
    }
}
