//! What was meant: verbs, options and programs by a nearly right name, and the words of other programs.

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};
use outlast_cli::Cli;
use outlast_protocol::near::{is_near, nearest};

/// What people type who know other programs, and what does it here.
const WORDS_OF_OTHERS: &[(&[&str], &str)] = &[
    (&["start", "spawn", "launch", "up", "bg", "nohup", "add"], "run -d COMMAND"),
    (&["exec", "do", "sh", "bash"], "run COMMAND"),
    (&["log", "output", "journal"], "logs JOB"),
    (&["cat", "get", "print", "stdout"], "read JOB"),
    (&["follow", "stream"], "logs -f JOB"),
    (&["terminate", "end", "cancel", "abort", "down", "killall"], "kill JOB"),
    (&["signal"], "kill JOB --signal NAME"),
    (&["type", "input", "write", "answer", "reply", "stdin"], "send JOB TEXT"),
    (&["key", "keys", "press"], "send JOB --key KEY"),
    (&["password", "passwd"], "secret JOB"),
    (&["connect", "open", "reattach", "resume", "join", "enter"], "attach JOB"),
    (&["detach"], "attach JOB` and leave it with `Ctrl-]"),
    (&["cont", "continue"], "attach JOB` or `outlast kill JOB --signal CONT"),
    (&["pause", "suspend"], "kill JOB --signal STOP"),
    (&["pgrep", "jobls"], "jobs"),
    (&["htop"], "top"),
    (&["capture", "capture-pane", "snapshot"], "screen JOB"),
    (&["play", "record", "rec"], "replay JOB"),
    (&["compare", "changed"], "diff JOB OTHER"),
    (&["clean", "cleanup", "gc", "purge", "clear"], "prune"),
    (&["notify", "subscribe"], "watch JOB"),
    (&["setup", "init", "connect-agent"], "install --list"),
    (&["version"], "--version"),
];

/// A command line that clap can't read, in our words: a verb or option that is none, a value that is wrong, a word that
/// is missing. None where clap's own words say what to type next.
pub(crate) fn misread(error: &clap::Error) -> Option<String> {
    match error.kind() {
        ErrorKind::InvalidSubcommand => unknown_verb(error),
        ErrorKind::MissingRequiredArgument => missing_word(error),
        ErrorKind::ValueValidation => wrong_value(error),
        ErrorKind::InvalidValue => unknown_value(error),
        ErrorKind::UnknownArgument => unknown_option(error),
        // Clap has kinds of its own, and words for all of them.
        _ => None,
    }
}

/// The words of a call, with `kill -9 JOB` and `kill -HUP JOB` as the option that they stand for: everybody's fingers
/// know them.
pub(crate) fn with_signal(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    // Only options of everybody may stand before the verb.
    let is_option = |at: usize| words[at].as_encoded_bytes().starts_with(b"-") || words[at - 1] == "--home";
    let verb =
        (1..words.len()).find(|at| !is_option(*at)).filter(|at| words[*at] == "kill" || words[*at] == "stop");
    let Some(verb) = verb else { return words };
    for word in words.iter_mut().skip(verb + 1) {
        let name = word.to_str().and_then(|word| word.strip_prefix('-'));
        let signal = name.filter(|name| outlast_job::signal_number(name).is_some());
        if let Some(signal) = signal {
            *word = format!("--signal={signal}").into();
        }
    }
    words
}

/// A verb without what it is about: says what is missing, with an example from the verb's own help.
fn missing_word(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return None };
    let (verb, name) = verb_of(error)?;
    let missing = missing.iter().map(|word| word.replace(['<', '>'], "").replace("...", ""));
    let missing = missing.collect::<Vec<_>>().join(" and ");
    let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
    let example = help.lines().map(str::trim).find(|line| line.starts_with(&name));
    // What follows after many blanks explains the example.
    let example = example.and_then(|line| line.split("   ").next()).unwrap_or(&name);
    Some(format!(
        "outlast: `{name}` needs {missing}\n  for example: {example}   all about it: {name} --help\n"
    ))
}

/// The verb that a mistake is about, and how it is written.
fn verb_of(error: &clap::Error) -> Option<(Command, String)> {
    let usage = error.get(ContextKind::Usage)?.to_string();
    let (mut verb, mut name) = (Cli::command(), "outlast".to_owned());
    for word in usage.split_whitespace().skip_while(|word| *word != "outlast").skip(1) {
        let Some(next) = verb.find_subcommand(word).cloned() else { break };
        verb = next;
        name = format!("{name} {word}");
    }
    Some((verb, name))
}

/// The option, or the name of the word, that a mistake is about, without what says how it is written.
fn argument_of(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return None };
    let name = argument.split([' ', '=']).next().unwrap_or(argument);
    Some(name.trim_end_matches(['.', '[']).trim_matches(['<', '>', '[', ']']).to_owned())
}

/// A value that its option can't read: the reader's own words say why, and what to write.
fn wrong_value(error: &clap::Error) -> Option<String> {
    let why = std::error::Error::source(error)?;
    // The placeholder of a word tells less than the word itself.
    let option = argument_of(error).filter(|name| name.starts_with('-'));
    let option = option.map(|option| format!("{option}: ")).unwrap_or_default();
    Some(format!("outlast: {option}{why}\n"))
}

/// A value that is none of those there are.
fn unknown_value(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else { return None };
    let Some(ContextValue::Strings(known)) = error.get(ContextKind::ValidValue) else { return None };
    let argument = argument_of(error)?;
    let said = match (value.as_str(), argument.starts_with('-')) {
        ("", _) => format!("outlast: {argument} needs a value"),
        (value, true) => format!("outlast: {argument} can't be {value:?}"),
        (value, false) => format!("outlast: {value:?} is not a known {}", argument.to_lowercase()),
    };
    let meant = nearest(value, known.iter().map(String::as_str));
    let meant = meant.map(|meant| format!("did you mean {meant}? ")).unwrap_or_default();
    Some(format!("{said}\n  {meant}known: {}\n", known.join(", ")))
}

/// An option that the verb does not have, or a word too many.
fn unknown_option(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    let (_, name) = verb_of(error)?;
    let meant = match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(meant)) => format!("did you mean: {name} {meant}   "),
        _ => String::new(),
    };
    let said = if word.starts_with('-') {
        format!("outlast: `{name}` has no option {word:?}")
    } else {
        format!("outlast: {word:?} is one word too many for `{name}`")
    };
    Some(format!("{said}\n  {meant}all about it: {name} --help\n"))
}

/// A verb that is none: says so, with what was meant.
fn unknown_verb(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let (verb, name) = verb_of(error)?;
    if name != "outlast" {
        let known: Vec<&str> =
            verb.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name).collect();
        let meant = nearest(word, known.iter().copied());
        let meant = meant.map(|meant| format!("did you mean: {name} {meant}   ")).unwrap_or_default();
        let known = known.join(", ");
        return Some(format!("outlast: `{name}` has no verb {word:?}\n  {meant}known: {known}\n"));
    }
    Some(format!("outlast: there is no verb {word:?}\n  {}; all verbs: outlast --help\n", meant(word)))
}

fn meant(word: &str) -> String {
    let said_by_others = |is: &dyn Fn(&&str) -> bool| {
        let found = WORDS_OF_OTHERS.iter().find(|(words, _)| words.iter().any(is));
        found.map(|(_, verb)| format!("what does that here: `outlast {verb}`"))
    };
    if let Some(said) = said_by_others(&|known| *known == word) {
        return said;
    }
    if let Some(verb) = nearest(word, verbs(&Cli::command()).iter().map(String::as_str)) {
        return format!("did you mean: outlast {verb}");
    }
    if let Some(said) = said_by_others(&|known| is_near(word, known)) {
        return said;
    }
    let path = std::env::var("PATH").ok();
    let is_program = outlast_job::JobSpec::new(outlast_job::Run::Program(vec![word.to_owned()]));
    if path.is_some() && outlast_job::spec::program_files(&is_program).is_ok_and(|files| !files.is_empty()) {
        return format!("to run the program as a job: outlast run {}", quoted(word));
    }
    "to run a command: outlast run COMMAND".to_owned()
}

fn verbs(command: &Command) -> Vec<String> {
    let names = |verb: &Command| {
        let aliases: Vec<String> = verb.get_all_aliases().map(str::to_owned).collect();
        std::iter::once(verb.get_name().to_owned()).chain(aliases).collect::<Vec<_>>()
    };
    command.get_subcommands().flat_map(names).collect()
}

/// A program on the path with nearly the same name.
pub(crate) fn similar_program(path: Option<impl AsRef<OsStr>>, name: &str) -> Option<String> {
    let near = |file: &std::fs::DirEntry| {
        let found = file.file_name().into_string().ok()?;
        (found.chars().next() == name.chars().next() && is_near(name, &found)).then_some(found)
    };
    let path = path?;
    let folders = std::env::split_paths(&path).filter_map(|folder| std::fs::read_dir(folder).ok());
    folders.flatten().filter_map(Result::ok).filter_map(|file| near(&file)).min()
}

/// Words as a shell takes them.
pub(crate) fn line_of(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./:=,@%+".contains(c));
    if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_may_be_written_as_everywhere() {
        let words = |line: &str| -> Vec<OsString> { line.split(' ').map(Into::into).collect() };
        for (typed, read) in [
            ("outlast kill -9 web", "outlast kill --signal=9 web"),
            ("outlast --json stop web -HUP", "outlast --json stop web --signal=HUP"),
            ("outlast kill -s 9 web", "outlast kill -s 9 web"),
            ("outlast kill -a", "outlast kill -a"),
            ("outlast run kill -9 web", "outlast run kill -9 web"),
            ("outlast --home kill run -9", "outlast --home kill run -9"),
            ("outlast logs -n 9", "outlast logs -n 9"),
        ] {
            assert_eq!(with_signal(words(typed).into_iter()), words(read), "{typed}");
        }
    }

    #[test]
    fn a_word_of_others_is_no_verb_of_ours() {
        let verbs = verbs(&Cli::command());
        for (words, meant) in WORDS_OF_OTHERS {
            assert!(words.iter().all(|word| !verbs.iter().any(|verb| verb == word)), "{words:?}");
            let verb = meant.split(' ').next().unwrap_or_default();
            assert!(verb.starts_with("--") || verbs.iter().any(|known| known == verb), "{meant}");
        }
    }
}
