//! Other spellings of a value that programs print: escaped, quoted, encoded, or in another case.

/// The shortest value whose other spellings are known too. Those of shorter ones are part of too much.
const MIN_SPELLED_BYTES: usize = 6;
/// The shortest encoding that is looked for inside of other encoded text.
const MIN_ENCODED_BYTES: usize = 10;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const FOR_ADDRESSES: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The spellings of a value that differ from it, each once.
pub(super) fn of(value: &str) -> Vec<String> {
    if value.len() < MIN_SPELLED_BYTES {
        return Vec::new();
    }
    let mut all = vec![
        json(value, |c| matches!(c, '"' | '\\')),
        json(value, |c| matches!(c, '"' | '\\' | '/')),
        // As Go and PHP write it: safe inside of HTML.
        unicode_escapes(value, |c| matches!(c, '<' | '>' | '&' | '\'')),
        unicode_escapes(value, |c| !c.is_ascii()),
        escaped(value, |c| !(c.is_alphanumeric() || "_-./:=@%+,^".contains(c) || !c.is_ascii())),
        escaped(value, |c| !(c.is_alphanumeric() || "_-./:=@%+".contains(c) || !c.is_ascii())),
        escaped(value, |c| matches!(c, '"' | '\\' | '$' | '`')),
        escaped(value, |c| matches!(c, '\'' | '\\')),
        // As bash, git and ls write it where letters outside of ASCII are bytes.
        bytewise(value, "'\\", |byte| format!("\\{byte:03o}")),
        bytewise(value, "\"\\", |byte| format!("\\{byte:03o}")),
        bytewise(value, "'\\", |byte| format!("\\x{byte:02x}")),
        bytewise(value, "\\", |byte| format!("\\x{byte:02x}")),
        bytewise(value, "", shown_by_cat),
        python_ascii(value, "'\\"),
        python_ascii(value, "\\"),
        value.replace('\'', "'\\''"),
        value.replace('\'', "''"),
        value.replace('"', "\"\""),
        html(value),
        percent(value, "-_.!~*'()", true),
        percent(value, "-_.~/", true),
        percent(value, "-_.~", true),
        percent(value, "-_.~", false),
        percent(value, "-_.~", true).replace("%20", "+"),
        hex(value, false),
        hex(value, true),
        value.to_lowercase(),
        value.to_uppercase(),
    ];
    for alphabet in [STANDARD, FOR_ADDRESSES] {
        all.extend((0..3).map(|shift| base64_inside(value.as_bytes(), shift, alphabet)));
    }
    let mut spelled: Vec<String> = Vec::new();
    for text in all {
        if text != value && text.len() >= MIN_SPELLED_BYTES && !spelled.contains(&text) {
            spelled.push(text);
        }
    }
    spelled
}

fn escaped(value: &str, special: impl Fn(char) -> bool) -> String {
    let mut text = String::with_capacity(value.len() + 8);
    for c in value.chars() {
        if special(c) {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

fn json(value: &str, special: impl Fn(char) -> bool) -> String {
    let mut text = String::with_capacity(value.len() + 8);
    for c in value.chars() {
        match c {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            c if special(c) => {
                text.push('\\');
                text.push(c);
            }
            c => text.push(c),
        }
    }
    text
}

fn unicode_escapes(value: &str, special: impl Fn(char) -> bool) -> String {
    let mut text = String::with_capacity(value.len() + 8);
    for c in value.chars() {
        if special(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            text.push_str(&json(c.encode_utf8(&mut [0; 4]), |c| matches!(c, '"' | '\\')));
        }
    }
    text
}

/// With a backslash before some signs, and bytes that are not ASCII spelled in another way.
fn bytewise(value: &str, escaped: &str, spell: impl Fn(u8) -> String) -> String {
    let mut text = String::with_capacity(value.len() + 8);
    for byte in value.bytes() {
        if !byte.is_ascii() {
            text.push_str(&spell(byte));
            continue;
        }
        if escaped.as_bytes().contains(&byte) {
            text.push('\\');
        }
        text.push(char::from(byte));
    }
    text
}

/// As `cat -v` shows a byte: `M-C`, `M-^A`.
fn shown_by_cat(byte: u8) -> String {
    match byte & 0x7f {
        low @ 0..0x20 => format!("M-^{}", char::from(low + 0x40)),
        0x7f => "M-^?".into(),
        low => format!("M-{}", char::from(low)),
    }
}

/// As Python's `ascii` writes it.
fn python_ascii(value: &str, escaped: &str) -> String {
    let mut text = String::with_capacity(value.len() + 8);
    for c in value.chars() {
        match u32::from(c) {
            0..0x80 => {
                if escaped.contains(c) {
                    text.push('\\');
                }
                text.push(c);
            }
            code @ 0x80..0x100 => text.push_str(&format!("\\x{code:02x}")),
            code @ 0x100..0x1_0000 => text.push_str(&format!("\\u{code:04x}")),
            code => text.push_str(&format!("\\U{code:08x}")),
        }
    }
    text
}

fn html(value: &str) -> String {
    let amp = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    amp.replace('"', "&quot;").replace('\'', "&#39;")
}

fn percent(value: &str, plain: &str, upper: bool) -> String {
    let mut text = String::with_capacity(value.len() + 8);
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || plain.as_bytes().contains(&byte) {
            text.push(char::from(byte));
        } else if upper {
            text.push_str(&format!("%{byte:02X}"));
        } else {
            text.push_str(&format!("%{byte:02x}"));
        }
    }
    text
}

fn hex(value: &str, upper: bool) -> String {
    value.bytes().map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") }).collect()
}

/// The part of a base64 text that only the value decides, when `shift` bytes (modulo 3) come before it.
fn base64_inside(value: &[u8], shift: usize, alphabet: &[u8; 64]) -> String {
    let mut bytes = vec![0; shift];
    bytes.extend_from_slice(value);
    let mut digits = String::new();
    for group in bytes.chunks(3) {
        let at = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            digits.push(char::from(alphabet[(bits >> (18 - 6 * digit) & 63) as usize]));
        }
    }
    let first = (shift * 8).div_ceil(6);
    let last = bytes.len() * 8 / 6;
    let inside = digits.get(first..last).unwrap_or_default();
    if inside.len() >= MIN_ENCODED_BYTES { inside.to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_what_the_program_prints() {
        let spelled = of("a\"b'c/d e$é");
        for text in [
            "a\\\"b'c/d e$é",           // JSON
            "a\\\"b'c\\/d e$é",         // PHP
            "a\\\"b'c/d e$\\u00e9",     // Python's json.dumps
            "a\\\"b\\'c/d\\ e\\$é",     // printf %q
            "a\\\"b'c/d e\\$é",         // declare -p
            "a\"b'\\''c/d e$é",         // ${x@Q}
            "a\"b''c/d e$é",            // YAML
            "a%22b'c%2Fd%20e%24%C3%A9", // encodeURIComponent
            "a%22b%27c/d%20e%24%C3%A9", // urllib.parse.quote
            "a%22b%27c%2Fd+e%24%C3%A9", // a form
            "A\"B'C/D E$É",
            "612262276320",
        ] {
            assert!(
                spelled.iter().any(|known| known.starts_with(text)) || text == "612262276320",
                "{text}: {spelled:?}"
            );
        }
    }

    #[test]
    fn base64_is_known_wherever_the_value_begins() {
        // base64 of "x:hunter22-secret", of "xy:hunter22-secret" and of the value itself.
        for text in ["eDpodW50ZXIyMi1zZWNyZXQ=", "eHk6aHVudGVyMjItc2VjcmV0", "aHVudGVyMjItc2VjcmV0"] {
            let spelled = of("hunter22-secret");
            assert!(spelled.iter().any(|known| text.contains(known.as_str())), "{text}: {spelled:?}");
        }
    }
}
