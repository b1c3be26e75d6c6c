//! What a shell may complete: verbs and options from the grammar, and the names of jobs, keys, signals,
//! sessions, hosts and settings, which only this program knows.
//!
//! The script that `outlast completions SHELL` prints calls this program with [`VARIABLE`] set, and the words so
//! far after `--`. Nothing is made or changed by it, not even a home.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::{Arg, Command, CommandFactory};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::{CompleteEnv, Shells};
use outlast_cli::{Cli, Shell};
use outlast_job::condition::CONDITIONS;
use outlast_job::registry::Home;
use outlast_job::request::{List, ListedJob};
use outlast_job::{Outlast, signal_names};
use outlast_policy::OrderKind;
use outlast_remote::hosts::HostFile;
use outlast_stream::Key;

use crate::ask::is_free;
use crate::commands::setting_names;
use crate::human::cut;

/// Set by the scripts when they ask.
const VARIABLE: &str = "OUTLAST_COMPLETE";
/// More programs than this are not offered at once.
const MAX_PROGRAMS: usize = 500;

/// Whether a shell asks.
pub(crate) fn is_asked() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| !value.is_empty())
}

/// Answers the shell; returns the exit code.
pub(crate) fn answer() -> i32 {
    let answered = CompleteEnv::with_factory(grammar)
        .var(VARIABLE)
        .completer("outlast")
        .try_complete(std::env::args_os(), std::env::current_dir().ok().as_deref());
    i32::from(!matches!(answered, Ok(true)))
}

/// The script for a shell.
pub(crate) fn script(shell: Shell) -> Vec<u8> {
    let name = match shell {
        Shell::Bash => "bash",
        Shell::Elvish => "elvish",
        Shell::Fish => "fish",
        Shell::PowerShell => "powershell",
        Shell::Zsh => "zsh",
    };
    let mut text = Vec::new();
    if let Some(shell) = Shells::builtins().completer(name) {
        // A write into memory does not fail.
        let _ = shell.write_registration(VARIABLE, "outlast", "outlast", "outlast", &mut text);
    }
    text
}

/// The grammar, with what stands behind its values.
fn grammar() -> Command {
    let mut grammar = Cli::command();
    for verb in Cli::command().get_subcommands() {
        let name = verb.get_name().to_owned();
        grammar = grammar.mut_subcommand(&name, |command| with_values(command, &name));
    }
    grammar
}

fn with_values(mut command: Command, verb: &str) -> Command {
    let ids: Vec<String> = command.get_arguments().map(|arg| arg.get_id().to_string()).collect();
    for id in ids {
        command = command.mut_arg(&id, |arg| with_value(arg, verb, &id));
    }
    let below: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    for name in below {
        command = command.mut_subcommand(&name, |sub| with_values(sub, &format!("{verb} {name}")));
    }
    command
}

/// What completes the value of an argument, by its name in the grammar.
fn with_value(arg: Arg, verb: &str, id: &str) -> Arg {
    let jobs = match verb {
        "kill" | "send" | "secret" | "attach" | "resize" | "watch" => Jobs::Running,
        _ => Jobs::Any,
    };
    match (verb, id) {
        (_, "job" | "jobs" | "after" | "after_any") | ("diff", "first" | "second") => {
            arg.add(ArgValueCompleter::new(jobs))
        }
        ("jobs", "name") => arg.add(ArgValueCompleter::new(|current: &OsStr| names(current))),
        (_, "session") => arg.add(ArgValueCompleter::new(|current: &OsStr| sessions(current))),
        ("send", "keys") => arg.add(ArgValueCompleter::new(|current: &OsStr| keys(current))),
        ("kill", "signal") => arg.add(ArgValueCompleter::new(|current: &OsStr| signals(current))),
        ("run" | "jobs" | "events", "on") | ("host test" | "host remove", "name") => {
            arg.add(ArgValueCompleter::new(|current: &OsStr| hosts(current)))
        }
        ("config get" | "config set" | "config unset", "key") => {
            let settings = || setting_names().map(ToOwned::to_owned);
            arg.add(ArgValueCompleter::new(move |current: &OsStr| distinct(current, settings())))
        }
        ("run", "notify") => arg.add(ArgValueCompleter::new(|current: &OsStr| conditions(current))),
        ("run", "command") => arg.add(ArgValueCompleter::new(|current: &OsStr| programs(current))),
        _ => arg,
    }
}

/// Names of jobs, and numbers of those without.
#[derive(Clone, Copy)]
enum Jobs {
    Any,
    Running,
}

impl ValueCompleter for Jobs {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let running = matches!(self, Self::Running);
        let by_number = current.to_string_lossy().starts_with(|c: char| c.is_ascii_digit());
        // The newest first: that is what most want.
        let candidates = list(running).into_iter().rev().map(|ListedJob { job, .. }| {
            let value = job.name.filter(|_| !by_number).unwrap_or_else(|| job.handle.to_string());
            CompletionCandidate::new(value)
                .help(Some(format!("{}: {}", job.state.name(), cut(&job.command, 50)).into()))
        });
        beginning_with(current, candidates)
    }
}

/// The jobs of the home that the command line names. None are shown that a policy does not let us list.
fn list(running: bool) -> Vec<ListedJob> {
    let home =
        home_in(std::env::args().skip_while(|word| word != "--")).or_else(|| Home::default_path().ok());
    // To look must not make one.
    let Some(home) = home.filter(|home| home.is_dir()) else { return Vec::new() };
    let Ok(outlast) = Outlast::open_at(&home) else { return Vec::new() };
    if !is_free(outlast.home(), OrderKind::List) {
        return Vec::new();
    }
    outlast.list(List { running, ..List::default() })
}

fn home_in(words: impl Iterator<Item = String>) -> Option<PathBuf> {
    let words: Vec<String> = words.collect();
    let apart = words.iter().position(|word| word == "--home").and_then(|at| words.get(at + 1)).cloned();
    let joined = words.iter().find_map(|word| word.strip_prefix("--home=").map(ToOwned::to_owned));
    apart.or(joined).map(PathBuf::from)
}

fn names(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = list(false).into_iter().filter_map(|listed| listed.job.name);
    distinct(current, names)
}

/// Other machines, as the file of hosts has them: none of them is asked.
fn hosts(current: &OsStr) -> Vec<CompletionCandidate> {
    let Ok(file) = HostFile::load() else { return Vec::new() };
    distinct(current, file.all().map(|host| host.name.to_string()).collect::<Vec<_>>().into_iter())
}

fn sessions(current: &OsStr) -> Vec<CompletionCandidate> {
    distinct(current, list(false).into_iter().map(|listed| listed.job.session))
}

fn keys(current: &OsStr) -> Vec<CompletionCandidate> {
    let control = ('A'..='Z').map(|letter| format!("Ctrl-{letter}"));
    let function = (1..=12).map(|number| format!("F{number}"));
    distinct(current, Key::named().map(ToOwned::to_owned).chain(control).chain(function))
}

fn signals(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = signal_names().into_iter().map(ToOwned::to_owned);
    distinct(current, names)
}

fn conditions(current: &OsStr) -> Vec<CompletionCandidate> {
    distinct(current, CONDITIONS.iter().map(|row| row.word().to_owned()).chain(["none".to_owned()]))
}

/// Programs of `PATH`, and files.
fn programs(current: &OsStr) -> Vec<CompletionCandidate> {
    let text = current.to_string_lossy();
    let mut found = PathCompleter::any().complete(current);
    if !text.is_empty() && !text.contains('/') {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let files =
            std::env::split_paths(&path).filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
        let names = files.flatten().filter_map(|file| file.file_name().into_string().ok());
        let mut programs: Vec<String> = names.filter(|name| name.starts_with(&*text)).collect();
        programs.sort_unstable();
        programs.dedup();
        found.extend(programs.into_iter().take(MAX_PROGRAMS).map(CompletionCandidate::new));
    }
    found
}

fn distinct(current: &OsStr, words: impl Iterator<Item = String>) -> Vec<CompletionCandidate> {
    let mut seen = std::collections::HashSet::new();
    let new = words.filter(|word| seen.insert(word.clone())).map(CompletionCandidate::new);
    beginning_with(current, new)
}

fn beginning_with(
    current: &OsStr,
    candidates: impl Iterator<Item = CompletionCandidate>,
) -> Vec<CompletionCandidate> {
    let begun = current.to_string_lossy().into_owned();
    candidates.filter(|candidate| candidate.get_value().to_string_lossy().starts_with(&begun)).collect()
}
