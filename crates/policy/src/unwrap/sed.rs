//! Scripts of sed. GNU sed runs commands with `e`, as a command of its own and as a flag of `s`, and writes files with `w`.

use super::Inner;
use crate::word::{Kind, Word, known_text};

/// What is inside a call of sed.
pub(super) fn unwrap(rest: &[Word]) -> Vec<Inner> {
    let text = known_text(rest);
    let script = rest.iter().filter(|word| !word.is_option()).map(|word| word.text.as_str());
    let runs = script.clone().any(|script| {
        let parts = script.split([';', '\n', '{', '}']);
        parts.map(str::trim).any(|part| {
            let command = part.trim_start_matches(|c: char| c.is_ascii_digit() || "$,!~ ".contains(c));
            let flags = part.rsplit(['/', '|', '#', ',', '@', '!']).next().unwrap_or_default();
            let substitutes = command.starts_with('s') && flags.len() < 6 && flags.contains('e');
            command == "e" || command.starts_with("e ") || substitutes || part.contains("/e ")
        })
    });
    let unknown = rest.iter().any(|word| word.kind == Kind::Dynamic)
        && !rest.iter().any(|word| word.is_plain() && !word.is_option());
    if runs || unknown {
        return vec![Inner::Mention(text), Inner::Opaque("its script can run commands")];
    }
    let mut inner = Vec::new();
    if !scripts(rest).is_some_and(|scripts| scripts.iter().all(|script| is_plain(script))) {
        inner.push(Inner::Unclear("a script of sed can run commands and write files"));
    }
    let in_place = |word: &Word| {
        let short = word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains('i');
        short || word.text.starts_with("--i")
    };
    let in_place = rest.iter().any(in_place);
    inner
        .extend(rest.iter().filter(|word| in_place && !word.is_option()).skip(1).cloned().map(Inner::Output));
    inner
}

/// The scripts among the arguments; none if that can't be said.
fn scripts(rest: &[Word]) -> Option<Vec<&str>> {
    let (mut scripts, mut operands) = (Vec::new(), Vec::new());
    let mut words = rest.iter();
    let mut only_operands = false;
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if only_operands || !word.is_option() {
            operands.push(word);
        } else if text == "--" {
            only_operands = true;
        } else if let Some(long) = text.strip_prefix("--") {
            match long.split_once('=') {
                Some((name, script)) if "expression".starts_with(name) => scripts.push(script),
                None if "expression".starts_with(long) => scripts.push(words.next()?.known()?),
                Some((name, _)) if "in-place".starts_with(name) => {}
                None if [
                    "quiet",
                    "silent",
                    "regexp-extended",
                    "separate",
                    "null-data",
                    "in-place",
                    "debug",
                ]
                .contains(&long) => {}
                Some(_) | None => return None,
            }
        } else {
            let letters = &text[1..];
            let at = letters.find(|c| !"nErsuz".contains(c));
            match at.map(|at| letters.split_at(at)) {
                None => {}
                Some((_, "e")) => scripts.push(words.next()?.known()?),
                Some((_, rest)) if rest.starts_with('e') => scripts.push(&rest[1..]),
                Some((_, rest)) if rest.starts_with('i') => {}
                Some(_) => return None,
            }
        }
    }
    if scripts.is_empty() {
        scripts.push(operands.first()?.known()?);
    }
    Some(scripts)
}

/// Whether a script only edits and prints.
fn is_plain(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', ';', '{', '}', '!']);
        let Some(first) = rest.chars().next() else { return true };
        let end_of_line = |text: &str| text.find('\n').unwrap_or(text.len());
        let after = &rest[first.len_utf8()..];
        rest = match first {
            '0'..='9' | '$' | ',' | '~' | '+' => after,
            '/' => match behind(after, '/') {
                Some(after) => after.trim_start_matches(['I', 'M']),
                None => return false,
            },
            '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' => after,
            'l' | 'q' | 'Q' => after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' '),
            'a' | 'i' | 'c' | '#' => {
                // A text goes on behind a backslash; a script with one is not followed.
                let end = end_of_line(after);
                if after[..end].ends_with('\\') || after.starts_with('\\') {
                    return false;
                }
                &after[end..]
            }
            's' | 'y' => {
                let Some(delimiter) = after.chars().next().filter(|c| !"\\\n".contains(*c)) else {
                    return false;
                };
                let inside = &after[delimiter.len_utf8()..];
                let Some(after) = behind(inside, delimiter).and_then(|after| behind(after, delimiter)) else {
                    return false;
                };
                after.trim_start_matches(|c: char| {
                    first == 's' && (c.is_ascii_digit() || "gpIiMm".contains(c))
                })
            }
            _ => return false,
        };
        // What follows a command begins anew; an address is followed by its command.
        let begins = |c: char| " \t\n;{}!$,~+/0123456789=dDgGhHnNpPxzlqQaics#y".contains(c);
        if rest.chars().next().is_some_and(|c| !begins(c)) {
            return false;
        }
        if matches!(first, 's' | 'y') && rest.chars().next().is_some_and(|c| !" \t\n;}#".contains(c)) {
            return false;
        }
    }
}

/// What comes behind the next of these that is not escaped.
fn behind(text: &str, delimiter: char) -> Option<&str> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if c == delimiter && !escaped {
            return Some(&text[at + c.len_utf8()..]);
        }
        escaped = c == '\\' && !escaped;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_scripts_that_edit_and_print_are_plain() {
        for script in [
            "s/a/b/",
            "s/a/b/g;s|c|d|",
            "1,5p",
            "$d",
            "/x/,/y/{s/a/b/;p}",
            "2q",
            "s,a\\,b,c,2p",
            "y/ab/cd/",
            "/^#/d",
            "1i text",
            "n;d",
        ] {
            assert!(is_plain(script), "{script}");
        }
        for script in [
            "1e touch x",
            "e",
            "s/a/b/e",
            "s/a/b/ge",
            "w x",
            "1w x",
            "/a/w x",
            "s/a/b/w x",
            "W x",
            "s/a/b/;w x",
            "r x",
            "1{e x\n}",
            "s/a/b/;e",
            "a\\\ne x",
            "v",
            "bx",
            "s/a/b",
            "1!e x",
        ] {
            assert!(!is_plain(script), "{script}");
        }
    }

    #[test]
    fn scripts_are_found_among_the_arguments() {
        let unclear = |line: &[&str]| {
            let words: Vec<Word> = line.iter().map(|word| Word::plain(*word)).collect();
            unwrap(&words).iter().any(|inner| matches!(inner, Inner::Unclear(_) | Inner::Opaque(_)))
        };
        assert!(
            !unclear(&["-n", "1p", "x"])
                && !unclear(&["-ne", "1p", "-e", "2p", "x"])
                && !unclear(&["-i", "s/a/b/", "x"])
        );
        for line in [
            &["-f", "x", "y"][..],
            &["-ne", "w x"],
            &["-e", "p", "-ew x", "y"],
            &["--expr=w x", "y"],
            &["-s", "--file=x"],
            &["-nf", "x"],
        ] {
            assert!(unclear(line), "{line:?}");
        }
    }
}
