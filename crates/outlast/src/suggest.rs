//! What was meant: verbs, options and programs by a nearly right name, and the words of other programs.

use std::ffi::OsStr;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};
use outlast_cli::Cli;

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

/// A verb that is none: says so in our words, with what was meant. None if the mistake is another.
pub(crate) fn unknown_verb(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    // The verbs of `tmux`, `acp` and `policy` are told by their own help.
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    if usage.contains(" tmux ") || usage.contains(" acp ") || usage.contains(" policy ") {
        return None;
    }
    Some(format!("outlast: there is no verb {word:?}\n  {}; all verbs: outlast --help\n", meant(word)))
}

fn meant(word: &str) -> String {
    let of_others = WORDS_OF_OTHERS.iter().find(|(words, _)| words.contains(&word));
    if let Some((_, verb)) = of_others {
        return format!("what does that here: `outlast {verb}`");
    }
    if let Some(verb) = similar(word, &verbs(&Cli::command())) {
        return format!("did you mean: outlast {verb}");
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

/// The first known word that is nearly the same.
pub(crate) fn similar(name: &str, known: &[String]) -> Option<String> {
    known.iter().find(|known| is_near(name, known)).cloned()
}

/// Whether two words differ by one change: a letter more, less or other, or two that changed places.
fn is_near(one: &str, other: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if a == b || a.len().abs_diff(b.len()) > 1 || a.len() < 3 {
        return false;
    }
    let start = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[start..], &b[start..]);
    let swapped = a.len() == b.len() && a.len() > 1 && (a[0], a[1]) == (b[1], b[0]) && a[2..] == b[2..];
    let tail = |word: &[char]| word.get(1..).unwrap_or_default().to_vec();
    swapped || tail(a) == tail(b) || tail(a) == b || a == tail(b)
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
    fn near_words_differ_by_one_change() {
        let near =
            [("--backgroud", "--background"), ("pyhton3", "python3"), ("gti", "git"), ("maek", "make")];
        for (one, other) in near {
            assert!(is_near(one, other), "{one} {other}");
        }
        for (one, other) in [("ls", "ps"), ("git", "git"), ("sleep", "less"), ("npm", "node")] {
            assert!(!is_near(one, other), "{one} {other}");
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
