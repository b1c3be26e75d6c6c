//! Programs that are more than wrappers, but run what they are told all the same.

use super::tables::{CANNOT_RUN_COMMANDS, INTERPRETERS};
use super::{Inner, MADE, line_of, replaced};
use crate::reading::StdinSource;
use crate::word::{Kind, Word, known_text};

/// What is inside; none when nothing special is known of the program.
pub(super) fn unwrap(name: &str, rest: &[Word], fed: &StdinSource) -> Option<Vec<Inner>> {
    Some(match name {
        "." | "source" => vec![Inner::Opaque("it runs a file of commands, which is not read")],
        "trap" => trap(rest),
        "alias" => alias(rest),
        "bind" | "enable" | "fc" | "compgen" | "complete" | "tmux" | "screen" | "zellij" => {
            vec![
                Inner::Mention(known_text(rest)),
                Inner::Opaque("it can make something run that it does not show"),
            ]
        }
        "hash" | "mapfile" | "readarray"
            if rest.iter().any(|word| ["-p", "-C"].contains(&word.text.as_str())) =>
        {
            vec![Inner::Opaque("it can make something run that it does not show")]
        }
        "stty"
            if rest.iter().any(|word| word.text.chars().all(char::is_alphabetic) && word.text.len() > 3) =>
        {
            vec![Inner::Opaque("it can change what keys do")]
        }
        "find" => find(rest),
        "git" => git(rest),
        "outlast" => super::nested::unwrap(rest, fed),
        "awk" | "gawk" | "mawk" | "nawk" => awk(rest),
        "sed" | "gsed" => super::sed::unwrap(rest),
        // Its second operand is where it writes.
        "uniq" | "xxd" => {
            rest.iter().filter(|word| !word.is_option()).skip(1).cloned().map(Inner::Output).collect()
        }
        "make" | "gmake" => fed_or_told(rest, fed),
        "at" | "batch" | "crontab"
            if !rest.iter().all(|word| word.text == "-l") || *fed != StdinSource::Outside =>
        {
            vec![Inner::Mention(known_text(rest)), Inner::Opaque("it has something run later")]
        }
        // What it writes at the end of a transfer can go into a file.
        "curl" if rest.iter().any(|word| word.text.contains("%output{")) => {
            vec![Inner::Mention(known_text(rest)), Inner::Opaque("what it writes goes into a file")]
        }
        "curl" | "wget" => vec![Inner::Mention(known_text(rest))],
        "tee" => rest.iter().filter(|word| !word.is_option()).cloned().map(Inner::Write).collect(),
        "dd" => written_by_dd(rest),
        "cp" | "mv" | "ln" | "install" => copied(rest),
        _ if INTERPRETERS.contains(&name) || versioned(name) => interpreter(name, rest, fed),
        _ => return None,
    })
}

/// `python3.12`.
fn versioned(name: &str) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    stem != name && INTERPRETERS.contains(&stem)
}

fn trap(rest: &[Word]) -> Vec<Inner> {
    match rest.iter().find(|word| word.text != "--") {
        Some(word) if word.text == "-" || word.is_option() => Vec::new(),
        Some(word) => line_of(std::slice::from_ref(word)),
        None => Vec::new(),
    }
}

fn alias(rest: &[Word]) -> Vec<Inner> {
    let mut inner = Vec::new();
    for word in rest {
        if let Some((_, value)) = word.text.split_once('=') {
            inner.push(Inner::Line(value.to_owned()));
        }
        if word.text.contains('=') || word.kind == Kind::Dynamic {
            inner.push(Inner::Opaque("it gives a command another name"));
        }
    }
    inner
}

fn find(rest: &[Word]) -> Vec<Inner> {
    let mut inner = Vec::new();
    let starts = |word: &Word| ["-exec", "-execdir", "-ok", "-okdir"].contains(&word.text.as_str());
    let mut words = rest;
    while let Some(at) = words.iter().position(starts) {
        words = &words[at + 1..];
        let ends = |word: &Word| word.text == ";" || word.text == "+";
        let end = words.iter().position(ends).unwrap_or(words.len());
        inner.push(Inner::Words(replaced(&words[..end], &["{}".to_owned()])));
        words = &words[end..];
    }
    if rest.iter().any(|word| word.kind == Kind::Dynamic && word.text.is_empty()) {
        inner.push(Inner::Opaque(MADE));
    }
    if rest.iter().any(|word| word.text == "-delete") {
        inner.push(Inner::Unclear("it deletes files"));
    }
    inner
}

/// Settings of git that are commands.
const GIT_RUNS: [&str; 13] = [
    "help.autocorrect",
    "alias.",
    "core.pager",
    "core.editor",
    "core.sshcommand",
    "core.fsmonitor",
    "core.hookspath",
    "core.askpass",
    "diff.external",
    "sequence.editor",
    "credential.helper",
    "pager.",
    "filter.",
];

fn git(rest: &[Word]) -> Vec<Inner> {
    let mut inner = Vec::new();
    let runs = |key: &str| {
        let key = key.to_ascii_lowercase();
        GIT_RUNS.iter().any(|start| key.starts_with(start))
            || key.ends_with(".command")
            || key.ends_with(".cmd")
    };
    let is_verb = |word: &Word, verbs: &[&str]| verbs.contains(&word.text.as_str());
    for (i, word) in rest.iter().enumerate() {
        let next = rest.get(i + 1..).unwrap_or_default();
        if word.text.contains("ext::") {
            inner.push(Inner::Opaque("git runs what stands behind ext::"));
        }
        if word.text == "-c" || word.text.starts_with("--config-env") || word.text.starts_with("--exec-path=")
        {
            let set = next.first().map_or("", |setting| setting.text.as_str());
            let dynamic = next.first().is_some_and(|setting| setting.kind == Kind::Dynamic);
            if word.text != "-c" || dynamic || runs(set) {
                inner.push(Inner::Mention(known_text(next)));
                inner.push(Inner::Opaque("it sets something that git runs"));
            }
        } else if is_verb(word, &["config"])
            && next.iter().any(|word| runs(&word.text) || word.kind == Kind::Dynamic)
        {
            inner.push(Inner::Mention(known_text(next)));
            inner.push(Inner::Opaque("it sets something that git runs"));
        } else if is_verb(
            word,
            &[
                "run",
                "foreach",
                "-x",
                "--exec",
                "--extcmd",
                "filter-branch",
                "--tree-filter",
                "--index-filter",
            ],
        ) || word.text.starts_with("--exec=")
            || word.text.starts_with("--extcmd=")
            || word.text.starts_with("--upload-pack")
            || word.text.starts_with("--receive-pack")
            || word.text.starts_with("--open-files-in-pager")
            || word.text.starts_with("-O")
        {
            inner.push(Inner::Mention(known_text(&rest[i..]).replace('=', " ").replace("-O", " ")));
        }
        // Of `fetch` it is something else; of `clone`, `ls-remote` and `archive` a program.
        if is_verb(word, &["clone"])
            && next.iter().any(|word| word.is_option() && word.text.starts_with("-u"))
        {
            inner.push(Inner::Opaque("an option of git names a program to run"));
        }
    }
    inner
}

fn awk(rest: &[Word]) -> Vec<Inner> {
    let text = known_text(rest);
    let runs = ["system", "|", "getline", "@", "-f"].iter().any(|sign| text.contains(sign))
        || rest.iter().any(|word| word.kind == Kind::Dynamic);
    let mut inner = vec![Inner::Mention(text.clone())];
    if runs {
        inner.push(Inner::Opaque("its program can run commands"));
    }
    if text.contains('>') {
        inner.push(Inner::Unclear("a program of awk can write files"));
    }
    inner
}

fn fed_or_told(rest: &[Word], fed: &StdinSource) -> Vec<Inner> {
    let mut inner = vec![Inner::Mention(known_text(rest))];
    let told = rest
        .iter()
        .any(|word| word.text == "-" || word.text.starts_with("--eval") || word.text.starts_with("SHELL="));
    if *fed != StdinSource::Outside || told {
        inner.push(Inner::Opaque("it runs what is fed to it"));
    }
    inner
}

fn written_by_dd(rest: &[Word]) -> Vec<Inner> {
    let target = |word: &Word| {
        let path = word.text.strip_prefix("of=")?;
        Some(Inner::Write(Word { text: path.to_owned(), kind: word.kind }))
    };
    rest.iter().filter_map(target).collect()
}

/// A copy of a program is that program.
fn copied(rest: &[Word]) -> Vec<Inner> {
    let mut inner = vec![Inner::Mention(known_text(rest))];
    inner.extend(rest.iter().rfind(|word| !word.is_option()).cloned().map(Inner::Write));
    inner
}

/// A program in another language can do anything.
fn interpreter(name: &str, rest: &[Word], fed: &StdinSource) -> Vec<Inner> {
    if CANNOT_RUN_COMMANDS.contains(&name) {
        return Vec::new();
    }
    let code = |word: &Word| {
        let text = word.text.as_str();
        let short = text.len() > 1 && text.starts_with('-') && !text.starts_with("--");
        (short && text[1..].starts_with(['c', 'e', 'E', 'r', 'p', 'x', 'm']) && !text.contains('='))
            || ["--eval", "--command", "--execute", "--print", "--run", "eval"]
                .iter()
                .any(|long| text.starts_with(long))
            || (text.starts_with('+') && text[1..].starts_with(|c: char| !c.is_ascii_digit()))
    };
    // A module is a file like any other, and so is what comes behind it.
    let module = rest.first().is_some_and(|word| word.text == "-m");
    let told = !module
        && rest
            .iter()
            .take_while(|word| word.is_option() || word.text.starts_with('+') || word.text == "eval")
            .any(code);
    let fed = *fed != StdinSource::Outside && rest.iter().all(|word| word.is_option() || word.text == "-");
    let mut inner = vec![Inner::Mention(known_text(rest))];
    if told
        || fed
        || rest
            .iter()
            .any(|word| word.kind == Kind::Dynamic && word.text.is_empty() && !module && rest.len() == 1)
    {
        inner.push(Inner::Opaque("it is code that can run commands"));
    }
    inner
}
