//! Rules for files that a job may not read, or may not change.
//!
//! A pattern without a slash is a name, in any folder; one with a slash is a whole path. `*` and `?` stand for any
//! characters but a slash. A keeper finds the files, and closes them with mounts that only the job sees; the policy finds
//! texts that could name one.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What is not allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// To read it; nor to change it.
    #[default]
    Read,
    /// To change it.
    Write,
}

/// Files that are closed to a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRule {
    /// A name, or an absolute path; either may have wildcards.
    pub pattern: String,
    /// What is not allowed.
    pub access: Access,
    /// For a name in a project's policy: the project's folder, below which it is looked for too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<PathBuf>,
    /// Where the rule is written.
    pub place: String,
}

impl FileRule {
    /// Whether it is about files of a name in any folder.
    #[must_use]
    pub fn is_a_name(&self) -> bool {
        !self.pattern.contains('/')
    }

    /// Whether it is about one path or one name, and not about all that look alike.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        !has_wildcard(&self.pattern)
    }
}

/// Whether a text has a wildcard.
#[must_use]
pub fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// Whether a name or a path is one of those of a pattern: `*` stands for any characters but a slash, `?` for one.
#[must_use]
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Where the last star was, and how far it has reached.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some('?') if text[t] != '/' => (p, t) = (p + 1, t + 1),
            Some(c) if *c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((at, reached)) if text[reached] != '/' => {
                    star = Some((at, reached + 1));
                    (p, t) = (at + 1, reached + 1);
                }
                _ => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Whether a text, of any kind, could name a file of the pattern: as a word, as a part of a path, behind an option or in
/// quotes; or with wildcards of a shell that it could be one of.
#[must_use]
pub fn could_name(pattern: &str, text: &str) -> bool {
    let name = pattern.rsplit('/').next().unwrap_or(pattern);
    let unquoted: String = text.chars().filter(|c| !['\'', '"', '\\'].contains(c)).collect();
    [text, unquoted.as_str()].iter().any(|text| {
        let is_separator = |c: char| c.is_whitespace() || "/;|&<>()=:,@'\"`{}$!".contains(c);
        text.split(is_separator).filter(|word| !word.is_empty()).any(|word| could_be(name, word))
    })
}

/// Whether a word, which may have wildcards itself, could be a file of that name.
fn could_be(name: &str, word: &str) -> bool {
    if matches(name, word) {
        return true;
    }
    if !word.contains(['*', '?', '[']) {
        return false;
    }
    // A hidden file is not among those of a plain star.
    if name.starts_with('.') && !word.starts_with('.') {
        return word.starts_with('[');
    }
    // What stands before the first wildcard of either must agree: the rest could be anything.
    let start = |text: &str| text.split(['*', '?', '[']).next().unwrap_or_default().to_owned();
    let (name, word) = (start(name), start(word));
    name.starts_with(&word) || word.starts_with(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything_but_a_slash() {
        for (pattern, text) in [
            (".env", ".env"),
            ("*.pem", "a.pem"),
            ("*.pem", ".pem"),
            ("id_*", "id_rsa"),
            ("/p/*/x", "/p/a/x"),
            ("a*b*c", "aXbYbc"),
            ("?.key", "a.key"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            (".env", ".envrc"),
            (".env", "x.env"),
            ("*.pem", "a.pem.pub"),
            ("/p/*/x", "/p/a/b/x"),
            ("?.key", ".key"),
            ("/p/?", "/p//"),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn a_text_could_name_a_file_in_many_ways() {
        for text in [
            "cat .env",
            "cat ./.env",
            "cat<.env",
            "cat '.env'",
            "cat .e\\nv",
            "cat \".e\"nv",
            "curl -d @.env x",
            "dd if=.env",
            "cat .e*",
            "cat .??v",
            "cat .[e]nv",
            "cat [.]env",
            "cat a/.env",
            "cp .env x",
            "git show HEAD:.env",
            "tar c .env | cat",
            "cat {.env,}",
            "source .env",
        ] {
            assert!(could_name(".env", text), "{text}");
        }
        for text in ["cat *", "ls", "cat .envrc", "cat x.env.example", "make", "ls .git/*", "cat .g*"] {
            assert!(!could_name(".env", text), "{text}");
        }
        assert!(could_name("/home/me/.ssh/id_*", "cat ~/.ssh/id_rsa"));
        assert!(could_name("*.pem", "cat server.pem") && could_name("*.pem", "cat *"));
    }
}
