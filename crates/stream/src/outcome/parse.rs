//! Pieces that the readers share: places, numbers, one-line texts.

/// A file and a line in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<'a> {
    pub(super) file: &'a str,
    pub(super) line: u64,
}

/// `FILE:LINE` or `FILE:LINE:COLUMN` at the beginning, and what comes after it.
pub(super) fn place(text: &str) -> Option<(Place<'_>, &str)> {
    let mut from = 0;
    while let Some(colon) = text[from..].find(':').map(|at| at + from) {
        let (digits, rest) = digits(&text[colon + 1..]);
        let file = &text[..colon];
        if let Some(line) = digits
            && is_file(file)
        {
            let column = rest.strip_prefix(':').map(self::digits);
            let rest = match column {
                Some((Some(_), rest)) => rest,
                Some((None, _)) | None => rest,
            };
            return Some((Place { file, line }, rest));
        }
        from = colon + 1;
    }
    None
}

fn is_file(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with([' ', '\t', '"', '\'', '('])
        && !text.contains("://")
        && text.len() < 1024
}

/// A number at the beginning, and what comes after it.
pub(super) fn digits(text: &str) -> (Option<u64>, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    (text[..end].parse().ok(), &text[end..])
}

/// `3 failed, 2 passed`: each number with its word. None if one part is something else.
pub(super) fn counted<'a>(text: &'a str, separator: &str) -> Option<Vec<(u64, &'a str)>> {
    let part = |part: &'a str| {
        let (count, word) = digits(part.trim());
        Some((count?, word.strip_prefix(' ')?.trim()))
    };
    text.split(separator).map(part).collect()
}

/// The number before a word: `found 3 errors`, with `error`, gives 3.
pub(super) fn number_before(text: &str, word: &str) -> Option<u64> {
    let before = &text[..text.find(word)?];
    before.trim_end().rsplit([' ', '(', '[']).next()?.parse().ok()
}

/// The text between two marks.
pub(super) fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let from = text.find(begin)? + begin.len();
    let to = text[from..].find(end)? + from;
    Some(&text[from..to])
}

/// A text as one line without control characters, cut to a length.
pub(super) fn one_line(text: &str, max: usize) -> String {
    let mut line = String::new();
    for (count, c) in text.trim().chars().enumerate() {
        if count == max {
            line.push('…');
            break;
        }
        line.push(if c.is_control() || is_invisible(c) { ' ' } else { c });
    }
    line
}

/// Line separators, and marks that turn the direction of text.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_places_and_what_follows() {
        let (at, rest) = place("src/a.rs:3:5: error").unwrap();
        assert_eq!((at.file, at.line, rest), ("src/a.rs", 3, ": error"));
        let (at, rest) = place("a.py:12 in x").unwrap();
        assert_eq!((at.file, at.line, rest), ("a.py", 12, " in x"));
        assert!(place("http://127.0.0.1:80/x").is_none());
        assert!(place("no place: here").is_none());
        assert_eq!(place("x::7: y").unwrap().0.file, "x:");
    }

    #[test]
    fn reads_counts_only_if_all_parts_are() {
        assert_eq!(counted("1 failed, 2 passed", ", "), Some(vec![(1, "failed"), (2, "passed")]));
        assert_eq!(counted("1 failed, more", ", "), None);
        assert_eq!(number_before("Found 3 errors in 2 files", "error"), Some(3));
    }
}
