//! Words of the syntax tree without their quotes.

use tree_sitter::Node;

use super::walk::Walk;
use crate::word::{Kind, Word, ansi_c};

impl Walk<'_> {
    /// A word without its quotes.
    pub(super) fn word(&self, node: Node<'_>) -> Word {
        let text = self.text(node);
        match node.kind() {
            "word" | "number" | "variable_name" | "test_operator" | "regex" => bare(text),
            "raw_string" => Word::plain(text.trim_start_matches('\'').trim_end_matches('\'')),
            "string" => self.pieces(node, 1, double_quoted),
            "translated_string" => match node.named_child(0) {
                Some(string) if string.kind() == "string" => {
                    // A translated string (`$"..."`) may differ in another language.
                    Word { kind: Kind::Dynamic, ..self.word(string) }
                }
                _ => Word::dynamic(),
            },
            "ansi_c_string" => {
                let body = text.strip_prefix("$'").and_then(|text| text.strip_suffix('\''));
                body.and_then(ansi_c).map_or_else(Word::dynamic, Word::plain)
            }
            "concatenation" => self.pieces(node, 0, bare),
            "command_name" => node.named_child(0).map_or_else(|| bare(text), |name| self.word(name)),
            _ if !node.is_named() => bare(text),
            _ => Word::dynamic(),
        }
    }

    /// A word of several parts. The text between quoted parts is read with `between`.
    fn pieces(&self, node: Node<'_>, quotes: usize, between: fn(&str) -> Word) -> Word {
        let (start, end) = (node.start_byte() + quotes, node.end_byte().saturating_sub(quotes));
        let mut whole = Word::plain("");
        let mut add = |mut part: Word, written: &str| {
            // Within a word it is the beginning of a set of characters, not the program of that name.
            if quotes == 0 && written == "[" {
                part.kind = Kind::Glob;
            }
            whole.append(&part);
        };
        let between_at = |from: usize, to: usize| self.source.get(from..to).unwrap_or_default();
        let gap = |from: usize, to: usize| (between(between_at(from, to)), between_at(from, to));
        let mut at = start;
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor).filter(|child| child.kind() != "string_content") {
            let (part, written) = gap(at, child.start_byte());
            add(part, written);
            add(self.word(child), self.text(child));
            at = child.end_byte();
        }
        let (part, written) = gap(at, end);
        add(part, written);
        // `{r,}m` and similar words come in several nodes.
        if quotes == 0 && has_braces(self.text(node)) {
            whole.kind = Kind::Dynamic;
        }
        whole
    }
}

/// Unquoted text.
fn bare(text: &str) -> Word {
    let mut plain = String::with_capacity(text.len());
    let mut kind = Kind::Plain;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(c) => plain.push(c),
            },
            '*' | '?' | '[' => {
                // `[` alone is a program.
                if text != "[" {
                    kind = Kind::Glob;
                }
                plain.push(c);
            }
            '$' | '`' if text.len() > 1 => {
                kind = Kind::Dynamic;
                plain.push(c);
            }
            c => plain.push(c),
        }
    }
    if has_braces(text) {
        kind = Kind::Dynamic;
    }
    Word { text: plain, kind }
}

fn has_braces(text: &str) -> bool {
    text.contains('{') && text.contains('}') && (text.contains(',') || text.contains(".."))
}

/// Text in double quotes.
fn double_quoted(text: &str) -> Word {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut kind = Kind::Plain;
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('"' | '\\' | '$' | '`')) => plain.extend(chars.next()),
            ('\\', Some('\n')) => drop(chars.next()),
            ('`', _) => kind = Kind::Dynamic,
            _ => plain.push(c),
        }
    }
    Word { text: plain, kind }
}
