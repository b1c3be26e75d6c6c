//! Commands that start other commands: what is inside them.
//!
//! A known wrapper is unwrapped exactly. The arguments of any other program are searched for words of rules:
//! it may be a wrapper too.

mod nested;
mod options;
mod programs;
mod sed;
mod tables;

use std::path::PathBuf;

use crate::decision::Tool;
use crate::reading::StdinSource;
use crate::word::{Kind, Word, base, joined, known_text};
use tables::{ARGUMENTS_NOT_RUN, COMMAND_VARIABLES, CommandForm, WRAPPERS, Wrapper};
pub(crate) use tables::{MAY_START_SHELL, SHELLS};

/// What is inside a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Inner {
    /// Another command.
    Words(Vec<Word>),
    /// A shell line.
    Line(String),
    /// It could be anything.
    Opaque(&'static str),
    /// It could be what its text mentions.
    Mention(String),
    /// It writes to a file: that is what it is for.
    Write(Word),
    /// It writes to a file by one of its options, which counts as a redirection.
    Output(Word),
    /// It could do more than one thinks: where only plain lines are allowed, it is none.
    Unclear(&'static str),
    /// It acts with one of our own tools, and could reach any job.
    Tool(Tool),
    /// It looks with one of our own tools.
    Look(Tool),
    /// It runs its command in another folder.
    Folder(PathBuf),
    /// It sets a variable.
    Set(String, Word),
    /// The command itself does nothing of its own.
    Transparent,
}

pub(crate) const MADE: &str = "a part of it is made only when it runs";

/// Unwraps a command.
pub(crate) fn unwrap(words: &[Word], fed: &StdinSource) -> Vec<Inner> {
    let Some((program, rest)) = words.split_first() else { return Vec::new() };
    let Some(path) = program.known() else {
        return vec![
            Inner::Mention(known_text(rest)),
            Inner::Opaque("the name of its program is made only when it runs"),
        ];
    };
    let name = base(path).trim_start_matches('=');
    if SHELLS.contains(&name) {
        return shell(name, rest, fed);
    }
    let mut inner = told(name, rest, fed);
    inner.extend(options::of(name, rest));
    // Its stdin may reach a shell behind it.
    match fed {
        StdinSource::Text(text) if MAY_START_SHELL.contains(&name) => inner.push(Inner::Line(text.clone())),
        StdinSource::Unknown if MAY_START_SHELL.contains(&name) => {
            inner.push(Inner::Opaque("a shell behind it may read its input"))
        }
        StdinSource::Outside | StdinSource::Text(_) | StdinSource::Unknown => {}
    }
    inner
}

/// What is inside a command that is not a shell, by its arguments.
fn told(name: &str, rest: &[Word], fed: &StdinSource) -> Vec<Inner> {
    // It only prints what it would run.
    if name == "command"
        && rest.iter().take_while(|word| word.is_option()).any(|word| word.text.contains(['v', 'V']))
    {
        return Vec::new();
    }
    if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name)) {
        return wrapped(wrapper, name, rest);
    }
    programs::unwrap(name, rest, fed).unwrap_or_else(|| {
        if ARGUMENTS_NOT_RUN.contains(&name) { Vec::new() } else { vec![Inner::Mention(known_text(rest))] }
    })
}

/// Whether a shell may read a line in another way than bash, by whose grammar we read it. Shells of the POSIX kind know
/// neither `((` nor `[[`, and run what stands behind them; of others only plain lines are known.
fn is_read_otherwise(name: &str, line: &str) -> bool {
    match name {
        "bash" | "rbash" => false,
        "sh" | "dash" | "ash" | "posh" => {
            let after = |what: &str| line.match_indices(what).map(|(at, _)| at).collect::<Vec<_>>();
            let is_command = |at: usize| !line[..at].ends_with('$');
            let is_test = |at: usize| line[at + 2..].starts_with(char::is_whitespace);
            after("((").into_iter().any(is_command) || after("[[").into_iter().any(is_test)
        }
        _ => crate::grammar::outside(line).is_some(),
    }
}

/// A shell: with a string, a script, something on its stdin, or interactive.
fn shell(name: &str, rest: &[Word], fed: &StdinSource) -> Vec<Inner> {
    let mut string = false;
    let mut words = rest.iter();
    let mut operand = None;
    while let Some(word) = words.next() {
        if word.kind == Kind::Dynamic {
            return vec![Inner::Mention(known_text(rest)), Inner::Opaque(MADE)];
        }
        let text = word.text.as_str();
        if text == "--" || text == "-" {
            operand = words.next();
            break;
        }
        if let Some(option) = text.strip_prefix("--") {
            if ["rcfile", "init-file", "command", "init-command"].iter().any(|with| option.starts_with(with))
            {
                return vec![
                    Inner::Mention(known_text(rest)),
                    Inner::Opaque("it reads commands from a file"),
                ];
            }
        } else if text.len() > 1 && (text.starts_with('-') || text.starts_with('+')) {
            string |= text[1..].contains('c') && text.starts_with('-');
            // Each takes a word of its own, also among other letters: `bash -oc pipefail LINE`.
            for _ in text[1..].matches(['o', 'O']) {
                words.next();
            }
        } else {
            operand = Some(word);
            break;
        }
    }
    let mut inner = Vec::new();
    match (string, operand, fed) {
        (true, Some(line), _) => match line.known() {
            Some(line) => inner.push(Inner::Line(line.to_owned())),
            None => inner.extend([Inner::Mention(line.text.clone()), Inner::Opaque(MADE)]),
        },
        (true, None, _) => {}
        (false, Some(_), _) => inner.push(Inner::Opaque("it runs a script, which is not read")),
        (false, None, StdinSource::Outside) => {}
        (false, None, StdinSource::Text(text)) => inner.push(Inner::Line(text.clone())),
        (false, None, StdinSource::Unknown) => {
            inner.push(Inner::Opaque("it is a shell that reads commands from its input"))
        }
    }
    if inner.iter().any(|inner| matches!(inner, Inner::Line(line) if is_read_otherwise(name, line))) {
        inner.push(Inner::Opaque("another shell than bash reads it, by other rules"));
    }
    if !tables::BASH_LIKE_SHELLS.contains(&name) && !inner.is_empty() {
        inner.push(Inner::Opaque("it is in the language of another shell"));
    }
    inner
}

/// A known wrapper: the command comes after its options and their values.
fn wrapped(wrapper: &Wrapper, name: &str, rest: &[Word]) -> Vec<Inner> {
    let mut inner = Vec::new();
    if wrapper.transparent {
        inner.push(Inner::Transparent);
    }
    let mut at = 0;
    let mut skip = wrapper.positionals;
    while let Some(word) = rest.get(at) {
        if word.kind == Kind::Dynamic && (skip == 0 || word.text.starts_with('-')) {
            inner.extend([Inner::Mention(known_text(rest)), Inner::Opaque(MADE)]);
            return inner;
        }
        let text = word.text.as_str();
        if text == "--" {
            at += 1;
            if skip == 0 {
                break;
            }
        } else if text == "-" {
            at += 1;
        } else if word.is_option() {
            at += option(wrapper, rest, at, &mut inner);
        } else if let Some((variable, value)) =
            text.split_once('=').filter(|(name, _)| wrapper.assigns && !name.is_empty())
        {
            inner.push(Inner::Set(variable.to_owned(), Word { text: value.to_owned(), kind: word.kind }));
            at += 1;
        } else if skip > 0 {
            skip -= 1;
            at += 1;
        } else {
            break;
        }
    }
    let command = rest.get(at..).unwrap_or_default();
    if command.is_empty() {
        return inner;
    }
    match wrapper.then {
        CommandForm::Words => inner.push(Inner::Words(command.to_vec())),
        CommandForm::Line => inner.extend(line_of(command)),
        CommandForm::More => inner.push(Inner::Words(with_replaced(command, rest))),
    }
    // We may misread its options.
    if name != "env" && name != "command" {
        inner.push(Inner::Mention(known_text(rest)));
    }
    inner
}

/// Skips an option of a wrapper; returns how many words it takes.
fn option(wrapper: &Wrapper, rest: &[Word], at: usize, inner: &mut Vec<Inner>) -> usize {
    let text = rest[at].text.as_str();
    let next = rest.get(at + 1);
    if let Some(long) = text.strip_prefix("--") {
        let (long, value) = long.split_once('=').map_or((long, None), |(long, value)| (long, Some(value)));
        if wrapper.lines.iter().any(|line| line.len() > 1 && line.starts_with(long)) {
            inner.extend(
                value
                    .map(|value| vec![Inner::Line(value.into())])
                    .or_else(|| next.map(one_line))
                    .into_iter()
                    .flatten(),
            );
            return if value.is_some() { 1 } else { 2 };
        }
        let takes = value.is_none() && wrapper.longs.contains(&long);
        return if takes { 2 } else { 1 };
    }
    for (i, letter) in text[1..].char_indices() {
        let attached = &text[1 + i + letter.len_utf8()..];
        let is_line = wrapper.lines.iter().any(|line| line.len() == 1 && line.starts_with(letter));
        if is_line && attached.is_empty() {
            inner.extend(next.map(one_line).into_iter().flatten());
            return 2;
        }
        if is_line {
            inner.push(Inner::Line(attached.to_owned()));
            return 1;
        }
        if wrapper.shorts.contains(letter) {
            return if attached.is_empty() { 2 } else { 1 };
        }
    }
    1
}

fn one_line(word: &Word) -> Vec<Inner> {
    line_of(std::slice::from_ref(word))
}

/// Words that are joined into a shell line.
pub(crate) fn line_of(words: &[Word]) -> Vec<Inner> {
    match joined(words) {
        Some(line) => vec![Inner::Line(line)],
        None => vec![Inner::Mention(known_text(words)), Inner::Opaque(MADE)],
    }
}

/// What `xargs` runs: its words, with the replacement mark replaced, and more words after them.
fn with_replaced(command: &[Word], all: &[Word]) -> Vec<Word> {
    let mut marks = vec!["{}".to_owned()];
    for pair in all.windows(2) {
        if pair[0].text == "-I" || pair[0].text == "--replace" {
            marks.push(pair[1].text.clone());
        }
    }
    marks.extend(
        all.iter().filter_map(|word| {
            word.text.strip_prefix("-I").filter(|mark| !mark.is_empty()).map(str::to_owned)
        }),
    );
    let mut words = replaced(command, &marks);
    words.push(Word::dynamic());
    words
}

/// Words in which a mark stands for something unknown.
pub(crate) fn replaced(words: &[Word], marks: &[String]) -> Vec<Word> {
    let marked = |word: &Word| marks.iter().any(|mark| word.text.contains(mark.as_str()));
    words
        .iter()
        .map(|word| if marked(word) { Word { kind: Kind::Dynamic, ..word.clone() } } else { word.clone() })
        .collect()
}

/// Variables whose value is run, or changes what is run.
pub(crate) fn assignment(name: &str, value: &Word) -> Vec<Inner> {
    let name = name.split('[').next().unwrap_or(name);
    let substitutes =
        value.kind == Kind::Dynamic || value.text.contains("$(") || value.text.contains(['`', '@']);
    if tables::RUNS_FILES.contains(&name)
        || (tables::PROMPTS.contains(&name) && substitutes)
        || tables::RUNS_FILES_LIKE.iter().any(|start| name.starts_with(start))
    {
        return vec![Inner::Opaque("it sets a variable that makes programs run something")];
    }
    let mut inner = Vec::new();
    if value.text.contains("$(") || value.text.contains('`') {
        inner.push(Inner::Opaque("it sets a variable to text that the shell may run later"));
    }
    if COMMAND_VARIABLES.contains(&name) || tables::JUDGED_AS_COMMANDS.contains(&name) {
        inner.extend(one_line(value).into_iter().filter(|inner| *inner != Inner::Line(String::new())));
    }
    inner
}
