//! Where lines end for a shell: not inside quotes, after a backslash or an operator, or in a here-document.
//!
//! This is a second opinion to the grammar, which sometimes sees one command where the shell sees two.

use std::collections::VecDeque;

use crate::reading::without_quotes;

/// Tracks quotes and here-documents from line to line.
#[derive(Debug, Default)]
struct Scanner {
    quote: Option<char>,
    /// The delimiters of open here-documents, and whether tabs may precede them.
    documents: VecDeque<(String, bool)>,
}

impl Scanner {
    /// Reads a line. Returns whether a shell would ask for more.
    fn feed(&mut self, line: &str) -> bool {
        if self.quote.is_none()
            && let Some((end, tabs)) = self.documents.front()
        {
            let line = if *tabs { line.trim_start_matches('\t') } else { line };
            if line == end {
                self.documents.pop_front();
            }
            return !self.documents.is_empty();
        }
        let goes_on = self.scan(line);
        goes_on || self.quote.is_some() || !self.documents.is_empty()
    }

    /// Tracks quotes through a line. Returns whether it continues on the next one.
    fn scan(&mut self, line: &str) -> bool {
        let mut chars = line.char_indices().peekable();
        let mut word_start = true;
        while let Some((i, c)) = chars.next() {
            match (self.quote, c) {
                (None | Some('"'), '\\') if chars.next().is_none() => return true,
                (None, '#') if word_start => return false,
                (None, '\'' | '"' | '`') => self.quote = Some(c),
                (Some(open), c) if open == c => self.quote = None,
                (None, '<') if line[i..].starts_with("<<") => {
                    chars.next();
                    if line[i..].starts_with("<<<") {
                        chars.next();
                    } else {
                        self.documents.extend(document(&line[i + 2..]));
                    }
                }
                _ => {}
            }
            // As in bash: no other white space counts, and a `)` may be part of a word.
            word_start = " \t;&|(".contains(c);
        }
        let end = line.trim_end();
        self.quote.is_none() && (end.ends_with('|') || end.ends_with("&&"))
    }
}

/// The delimiter of a here-document, from the text after its `<<`.
fn document(rest: &str) -> Option<(String, bool)> {
    let word = rest.trim_start_matches('-').trim_start();
    let end: String = word.chars().take_while(|c| !c.is_whitespace() && !";&|<>()".contains(*c)).collect();
    (!end.is_empty()).then(|| (without_quotes(&end), rest.starts_with('-')))
}

/// Whether a shell would ask for more.
pub(crate) fn is_unfinished(text: &str) -> bool {
    let mut scanner = Scanner::default();
    text.lines().fold(false, |_, line| scanner.feed(line))
}

/// Splits a text into the lines in which a shell would read it, including here-documents.
pub(crate) fn logical_lines(text: &str) -> Vec<String> {
    let mut scanner = Scanner::default();
    let mut lines = Vec::new();
    let mut whole = String::new();
    for line in text.lines() {
        if !whole.is_empty() {
            whole.push('\n');
        }
        whole.push_str(line);
        if !scanner.feed(line) {
            lines.push(std::mem::take(&mut whole));
        }
    }
    lines.push(whole);
    lines.retain(|line| !line.trim().is_empty());
    lines
}

/// Shell keywords that may come before a command in a block.
const KEYWORDS: [&str; 13] =
    ["then", "do", "else", "elif", "if", "while", "until", "{", "(", "!", "time", "fi", "}"];

/// A line without the keywords before its command.
pub(crate) fn behind_keywords(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some(after) = KEYWORDS.iter().find_map(|keyword| {
        let after = rest.strip_prefix(keyword)?;
        (after.is_empty() || after.starts_with([' ', '\t', ';'])).then_some(after)
    }) {
        rest = after.trim_start_matches([' ', '\t', ';']);
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_asks_for_more() {
        for text in [
            "echo 'a",
            "echo \"a",
            "a \\",
            "a |",
            "a &&",
            "cat <<EOF\nx",
            "cat <<-'EOF'\nx",
            "echo `a",
            "cat <<A <<B\nA\nx",
        ] {
            assert!(is_unfinished(text), "{text:?}");
        }
        for text in [
            "echo 'a'",
            "a",
            "a # it's",
            "cat <<EOF\nit's\nEOF",
            "cat <<-EOF\n\tx\n\tEOF",
            "echo \\'",
            "a; b",
            "cat <<< x",
            "cat <<A <<B\nA\nx\nB",
        ] {
            assert!(!is_unfinished(text), "{text:?}");
        }
    }

    #[test]
    fn lines_are_as_a_shell_reads_them() {
        let text = "a # it's\n\\b 'c\nd' \\\ne\n\ncat <<E\nit's\nE\nf";
        assert_eq!(logical_lines(text), ["a # it's", "\\b 'c\nd' \\\ne", "cat <<E\nit's\nE", "f"]);
        assert_eq!(behind_keywords("then  ! { rm x"), "rm x");
        assert_eq!(behind_keywords("time"), "");
        assert_eq!(behind_keywords("timeout 5"), "timeout 5");
    }
}
