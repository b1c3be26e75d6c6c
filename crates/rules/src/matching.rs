//! Whether the words of a rule are those of a command.
//!
//! A rule names a program and words after it. Options may come anywhere and be written together or apart, and
//! options of the program itself may come before its verb. So `git push` also matches `git -C there push`,
//! and `rm -rf` also matches `rm -v -f -R x`. If a match is not certain it is [`Strength::Maybe`], and a
//! person is asked.

use crate::word::{Kind, Word, base};

/// Whether a rule applies to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// It does not.
    No,
    /// That cannot be said for sure.
    Maybe,
    /// It does.
    Yes,
}

/// Whether a command is what a rule forbids. `prefix` is the rule's words, each with its alternatives.
#[must_use]
pub fn forbids(prefix: &[Vec<String>], words: &[Word]) -> Strength {
    let (Some((program, rest)), Some(first)) = (words.split_first(), prefix.first()) else {
        return Strength::No;
    };
    if let Some(split) = split_program(prefix, program) {
        return forbids(prefix, &[&split, rest].concat());
    }
    let named = is_program(first, program);
    if named == Strength::No {
        return Strength::No;
    }
    let (options, others): (Vec<_>, Vec<_>) =
        prefix[1..].iter().partition(|choice| choice[0].starts_with('-'));
    let mut strength = named.min(in_order(&others, base(&program.text), rest));
    for choice in options {
        let best = choice.iter().map(|option| has_option(option, rest)).max();
        strength = strength.min(best.unwrap_or(Strength::No));
    }
    strength
}

/// `git-push` is `git push`.
fn split_program(prefix: &[Vec<String>], program: &Word) -> Option<[Word; 2]> {
    let name = base(program.known()?);
    let rest = |first: &String| name.strip_prefix(first.as_str())?.strip_prefix('-');
    let (first, verb) = prefix[0].iter().find_map(|first| Some((first, rest(first)?)))?;
    (prefix.len() > 1).then(|| [Word::plain(first), Word::plain(verb)])
}

fn is_program(choice: &[String], program: &Word) -> Strength {
    if !program.is_plain() {
        return Strength::Maybe;
    }
    // In zsh, `=rm` is the path of rm.
    let name = base(&program.text).trim_start_matches('=');
    let one = |token: &String| {
        if *token == program.text || (!token.contains('/') && token == name) {
            Strength::Yes
        } else if token.contains('/') && base(token) == base(&program.text) {
            Strength::Maybe
        } else {
            Strength::No
        }
    };
    choice.iter().map(one).max().unwrap_or(Strength::No)
}

/// Options of programs with verbs that take their value from the next word.
const WITH_VALUE: [(&str, &[&str]); 6] = [
    ("git", &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"]),
    ("docker", &["-H", "--host", "-c", "--context", "--config", "-l", "--log-level"]),
    ("podman", &["--url", "--connection", "-c", "--log-level", "--root"]),
    ("kubectl", &["-n", "--namespace", "--context", "--kubeconfig", "--cluster", "--user", "-s", "--server"]),
    ("npm", &["--prefix", "-w", "--workspace", "--registry"]),
    ("cargo", &["--color", "-C", "--config", "-Z"]),
];

/// Options of those programs that take no value.
const ALONE: [(&str, &[&str]); 6] = [
    (
        "git",
        &["-p", "-P", "--paginate", "--no-pager", "--bare", "--no-replace-objects", "--literal-pathspecs"],
    ),
    ("docker", &["-D", "--debug", "--tls", "--tlsverify"]),
    ("podman", &["-r", "--remote"]),
    ("kubectl", &["--insecure-skip-tls-verify"]),
    ("npm", &["-s", "--silent", "-g", "--global", "--quiet", "--verbose"]),
    ("cargo", &["-v", "-vv", "-q", "--verbose", "--quiet", "--offline", "--locked", "--frozen"]),
];

/// Whether words come in this order, with only options and their values between them.
fn in_order(wanted: &[&Vec<String>], program: &str, words: &[Word]) -> Strength {
    let known = |table: &[(&str, &[&str])], option: &str| {
        table.iter().any(|(name, options)| *name == program && options.contains(&option))
    };
    let mut strength = Strength::Yes;
    let mut wanted = wanted.iter().peekable();
    // Whether the previous word was an option that may take this one as its value.
    let mut maybe_value = false;
    let mut only_words = false;
    // Whether a verb may be another name for one that is wanted.
    let mut other = Strength::No;
    let mut words = words.iter();
    while let Some(choice) = wanted.peek() {
        let Some(word) = words.next() else { return other };
        if word.kind == Kind::Dynamic {
            return Strength::Maybe;
        }
        if !only_words && word.is_option() {
            only_words = word.text == "--";
            if known(&WITH_VALUE, &word.text) {
                if words.next().is_some_and(|value| names_a_verb(program, &value.text)) {
                    other = Strength::Maybe;
                }
                maybe_value = false;
            } else {
                if word.text.strip_prefix("--config-env=").is_some_and(|value| names_a_verb(program, value)) {
                    other = Strength::Maybe;
                }
                maybe_value = !only_words && !word.text.contains('=') && !known(&ALONE, &word.text);
            }
            continue;
        }
        let fits = word.kind == Kind::Glob || choice.contains(&word.text);
        if fits {
            if maybe_value || word.kind == Kind::Glob {
                strength = Strength::Maybe;
            }
            wanted.next();
        } else if !maybe_value && !is_toolchain(program, &word.text) {
            return other;
        }
        maybe_value = false;
    }
    strength
}

/// `git -c alias.x=push x`, and `git -c include.path=…`, which may have such a name in it.
fn names_a_verb(program: &str, value: &str) -> bool {
    let text = value.to_ascii_lowercase();
    program == "git" && ["alias.", "include.", "includeif."].iter().any(|start| text.starts_with(start))
}

/// `cargo +nightly publish`.
fn is_toolchain(program: &str, word: &str) -> bool {
    program == "cargo" && word.starts_with('+')
}

/// Whether an option is among the words: alone, combined with others, or by its other name.
fn has_option(option: &str, words: &[Word]) -> Strength {
    let unknown = words.iter().any(|word| word.kind == Kind::Dynamic);
    let given: Vec<&str> = words
        .iter()
        .take_while(|word| word.text != "--" || !word.is_plain())
        .filter(|word| word.is_option())
        .map(|word| word.text.split('=').next().unwrap_or_default())
        .collect();
    let found = if let Some(long) = option.strip_prefix("--") {
        has_long(long, &given)
    } else {
        has_short(&option[1..], &given)
    };
    if unknown { found.max(Strength::Maybe) } else { found }
}

fn has_long(long: &str, given: &[&str]) -> Strength {
    let long = long.split('=').next().unwrap_or_default();
    let first = long.chars().next();
    let one = |option: &&str| match option.strip_prefix("--") {
        Some(name) if name == long => Strength::Yes,
        // Programs accept an unambiguous prefix of a long option.
        Some(name) if !name.is_empty() && long.starts_with(name) => Strength::Maybe,
        Some(_) => Strength::No,
        None if first.is_some_and(|first| has_letter(option, first)) => Strength::Maybe,
        None => Strength::No,
    };
    given.iter().map(one).max().unwrap_or(Strength::No)
}

fn has_short(letters: &str, given: &[&str]) -> Strength {
    if given.iter().any(|option| option[1..] == *letters) {
        return Strength::Yes;
    }
    if letters.chars().count() > 3 {
        return Strength::No;
    }
    let one = |letter: char| {
        let short = |option: &&str| !option.starts_with("--");
        if given.iter().any(|option| short(option) && option[1..].contains(letter)) {
            return Strength::Yes;
        }
        let other_name =
            |option: &&str| option.starts_with("--") && option[2..].starts_with(letter.to_ascii_lowercase());
        if given.iter().any(|option| (short(option) && has_letter(option, letter)) || other_name(option)) {
            return Strength::Maybe;
        }
        Strength::No
    };
    letters.chars().map(one).min().unwrap_or(Strength::No)
}

/// Whether a group of short options has a letter, in lower or upper case.
fn has_letter(option: &str, letter: char) -> bool {
    option.chars().skip(1).any(|c| c.eq_ignore_ascii_case(&letter))
}
