//! `outlast …` inside a command, read with the program's own grammar.
//!
//! Every verb has a verdict of its own here: it only looks, runs a command, types, ends jobs, or changes
//! something. The matches name every verb and every option, so a new one does not compile before somebody has
//! thought about it.

mod verdict;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use outlast_cli::Cli;

use super::{Inner, MADE};
use crate::reading::StdinSource;
use crate::word::{Word, known_text, plain_words};

/// Stands for a word that is made when the command runs. It is valid wherever a name, a number, a length of
/// time or a size may stand, so that the words around it can still be read.
const STAND_IN: &str = "1";
const REFUSED: &str = "outlast would not understand it: it could be meant for another version";

/// The words behind `outlast`, and where they can be trusted.
#[derive(Clone, Copy, Debug)]
struct Words<'a> {
    all: &'a [Word],
    fed: &'a StdinSource,
}

impl Words<'_> {
    /// Whether every word is known.
    fn are_literal(self) -> bool {
        self.all.iter().all(Word::is_plain)
    }

    /// The words of a command that the grammar found at the end, as far as they are known. None when one before
    /// them is not known, which may be any number of words, and so may move them.
    fn at_end(self, command: &[String]) -> Option<Vec<Word>> {
        if self.are_literal() {
            return Some(plain_words(command));
        }
        let (before, last) = self.all.split_at(self.all.len().saturating_sub(command.len()));
        let is_it = |(word, found): (&Word, &String)| word.known().unwrap_or(STAND_IN) == found;
        let is_there = last.len() == command.len() && last.iter().zip(command).all(is_it);
        (is_there && before.iter().all(Word::is_plain)).then(|| last.to_vec())
    }
}

/// What is inside.
pub(super) fn unwrap(words: &[Word], fed: &StdinSource) -> Vec<Inner> {
    let unknown = |why| vec![Inner::Mention(known_text(words)), Inner::Opaque(why)];
    let literal = words.iter().take_while(|word| word.is_plain()).count();
    if literal < words.len() && !names_a_verb(&words[..literal]) {
        return unknown(MADE);
    }
    let arguments = words.iter().map(|word| word.known().unwrap_or(STAND_IN));
    match Cli::try_parse_from(std::iter::once("outlast").chain(arguments)) {
        Ok(cli) => {
            // The home only says which jobs are meant, and the others how they are shown.
            let Cli { json: _, home: _, mask: _, verb } = cli;
            verdict::of(verb, Words { all: words, fed })
        }
        Err(error) if literal == words.len() && only_shows(error.kind()) => Vec::new(),
        Err(_) => unknown(if literal == words.len() { REFUSED } else { MADE }),
    }
}

fn only_shows(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

/// Whether the verb, down to the last part of its name, is among these words: whatever comes behind them is
/// then only for that verb.
fn names_a_verb(words: &[Word]) -> bool {
    let arguments = words.iter().map(|word| word.text.as_str());
    let command = Cli::command().ignore_errors(true);
    let mut verb = &command;
    let Ok(found) = command.clone().try_get_matches_from(std::iter::once("outlast").chain(arguments)) else {
        return false;
    };
    let mut found = &found;
    while verb.has_subcommands() {
        let Some((name, inside)) = found.subcommand() else { return false };
        let Some(next) = verb.find_subcommand(name) else { return false };
        (verb, found) = (next, inside);
    }
    true
}

#[cfg(test)]
#[path = "nested_tests.rs"]
mod tests;
