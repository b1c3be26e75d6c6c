//! What a line would run, as far as its text tells: every simple command in it, also those in substitutions, in
//! strings for other shells and behind wrappers, and what can't be told.
//!
//! The grammar is that of bash. What it does not understand, and every node that is not known here, becomes
//! [`Piece::Opaque`]: it may be anything.

mod evaluated;
mod walk;
mod words;

use std::cell::RefCell;
use std::collections::BTreeSet;

use tree_sitter::Parser;

use crate::decision::Tool;
use crate::lines::{behind_keywords, logical_lines};
use crate::unwrap::{Inner, assignment, unwrap};
use crate::word::{Word, base, known_text};
use walk::Walk;

/// Shells in shells deeper than this are not followed.
const DEEPEST: usize = 8;
/// A line longer than this is not read.
const LONGEST: usize = 256 << 10;

const UNPARSED: &str = "it can't be parsed";

/// Where a command's standard input comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fed {
    /// From where its line was started.
    Outside,
    /// From the line itself.
    Text(String),
    /// From a file or another command.
    Unknown,
}

/// One thing that a line does.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// A program with its arguments.
    Command {
        words: Vec<Word>,
        /// Only starts another command, which is a piece of its own.
        transparent: bool,
    },
    /// Writes into a file.
    Write { target: Word },
    /// Could be anything.
    Opaque { why: &'static str },
    /// Could be what its text mentions.
    Mention { text: String },
    /// A line that runs no program: it only sets variables, compares or computes.
    Bare,
    /// One of our own tools by its verb on the command line.
    Tool { tool: Tool },
}

/// A piece, and where it was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) piece: Piece,
    /// As it was written.
    pub(crate) shown: String,
    /// The command that it belongs to: leave for that one is leave for this.
    pub(crate) of: Option<usize>,
}

/// Whether it matters that something can't be parsed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Errors {
    Count,
    Forgive,
}

/// Everything that a line does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) found: Vec<Found>,
    /// Variables that the line gives a value which is not known.
    made: BTreeSet<String>,
    /// Whether a substitution is in it somewhere as mere text.
    hides: bool,
}

impl Reading {
    /// Reads a line for the shell.
    pub(crate) fn of_line(line: &str) -> Self {
        let mut reading = Self::default();
        reading.line(line, &Fed::Outside, 0);
        reading.runs_what_it_wrote();
        reading.runs_nothing(line);
        reading
    }

    /// Reads a line for a shell that something is fed to.
    pub(crate) fn of_fed_line(line: &str) -> Self {
        let mut reading = Self::default();
        reading.line(line, &Fed::Unknown, 0);
        reading.runs_what_it_wrote();
        reading.runs_nothing(line);
        reading
    }

    /// Reads a program with its arguments.
    pub(crate) fn of_words(words: Vec<Word>, fed: bool) -> Self {
        let mut reading = Self::default();
        let shown = known_text(&words);
        let fed = if fed { Fed::Unknown } else { Fed::Outside };
        reading.command(words, &fed, &shown, 0);
        reading
    }

    /// Reads a variable that a command is started with.
    pub(crate) fn of_variable(name: &str, value: &str) -> Self {
        let mut reading = Self::default();
        reading.assigned(name, &Word::plain(value), &format!("{name}={value}"), 0);
        reading
    }

    /// A text that may mention something.
    pub(crate) fn of_mention(text: String, shown: &str) -> Self {
        let mut reading = Self::default();
        reading.push(Piece::Mention { text }, shown, None);
        reading
    }

    /// Takes back that parts could not be parsed.
    pub(crate) fn forget_parse_errors(&mut self, from: usize) {
        let is_error = |piece: &Piece| matches!(piece, Piece::Opaque { why } if *why == UNPARSED);
        // Places of pieces are kept: others refer to them.
        for found in self.found[from..].iter_mut().filter(|found| is_error(&found.piece)) {
            found.piece = Piece::Mention { text: String::new() };
        }
    }

    fn push(&mut self, piece: Piece, shown: &str, of: Option<usize>) {
        let mut shown = shown.trim().to_owned();
        if shown.len() > 200 {
            shown.truncate(shown.floor_char_boundary(200));
            shown.push_str("...");
        }
        self.found.push(Found { piece, shown, of });
    }

    pub(crate) fn opaque(&mut self, why: &'static str, shown: &str) {
        self.push(Piece::Opaque { why }, shown, None);
    }

    fn line(&mut self, line: &str, fed: &Fed, depth: usize) {
        if depth > DEEPEST || line.len() > LONGEST {
            return self.opaque("it is too long, or too deep in itself, to be read", line);
        }
        // Bash takes them for parts of words where others see blanks.
        if line.contains(|c: char| c.is_control() && c != '\t' && c != '\n') {
            self.opaque("it has a control character", line);
        }
        self.parse(line, fed, depth, Errors::Count);
        if line.contains("\\\n") {
            // The shell joins such lines, except in comments and quotes: both readings count.
            self.parse(&line.replace("\\\n", ""), fed, depth, Errors::Count);
        }
        // The grammar sees one command in some that are two for the shell. Alone, a line of a block is no whole.
        let lines = logical_lines(line);
        for line in lines.iter().filter(|_| lines.len() > 1) {
            self.parse(behind_keywords(line), fed, depth, Errors::Forgive);
        }
    }

    fn parse(&mut self, line: &str, fed: &Fed, depth: usize, errors: Errors) {
        thread_local! {
            static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
        }
        let tree = PARSER.with_borrow_mut(|slot| {
            let parser = match slot {
                Some(parser) => parser,
                None => {
                    let mut parser = Parser::new();
                    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
                    slot.insert(parser)
                }
            };
            parser.parse(line, None)
        });
        let Some(tree) = tree else { return self.opaque(UNPARSED, line) };
        let root = tree.root_node();
        let before = self.found.len();
        if root.has_error() && errors == Errors::Count {
            self.opaque(UNPARSED, line);
            // What can't be parsed may still say plainly what it wants.
            self.push(Piece::Mention { text: without_quotes(line) }, line, None);
        }
        let mut walk = Walk { source: line, depth, reading: self };
        walk.evaluations(root);
        walk.node(root, fed);
        if errors == Errors::Forgive {
            self.forget_parse_errors(before);
        }
    }

    /// A command, and what is inside it.
    fn command(&mut self, words: Vec<Word>, fed: &Fed, shown: &str, depth: usize) {
        if depth > DEEPEST {
            return self.opaque("it is too deep in itself to be read", shown);
        }
        let inner = unwrap(&words, fed);
        let starts = |inner: &Inner| matches!(inner, Inner::Words(_) | Inner::Line(_));
        let transparent = inner.contains(&Inner::Transparent) && inner.iter().any(starts);
        let me = self.found.len();
        self.push(Piece::Command { words, transparent }, shown, None);
        for inner in inner {
            match inner {
                Inner::Words(words) => self.command(words, fed, shown, depth + 1),
                Inner::Line(line) => self.line(&line, fed, depth + 1),
                Inner::Opaque(why) => self.push(Piece::Opaque { why }, shown, Some(me)),
                Inner::Mention(text) => self.push(Piece::Mention { text }, shown, Some(me)),
                Inner::Write(target) => self.push(Piece::Write { target }, shown, Some(me)),
                Inner::Tool(tool) => self.push(Piece::Tool { tool }, shown, Some(me)),
                Inner::Set(name, value) => self.assigned(&name, &value, shown, depth),
                Inner::Transparent => {}
            }
        }
    }

    fn assigned(&mut self, name: &str, value: &Word, shown: &str, depth: usize) {
        for inner in assignment(name, value) {
            match inner {
                Inner::Line(line) => self.line(&line, &Fed::Outside, depth + 1),
                Inner::Opaque(why) => self.opaque(why, shown),
                _ => {}
            }
        }
    }

    /// A line without a program is judged too: no rule can be about it.
    fn runs_nothing(&mut self, line: &str) {
        // A wrapper such as `eval ''` runs nothing by itself.
        let runs = |found: &Found| {
            matches!(found.piece, Piece::Command { transparent: false, .. } | Piece::Write { .. })
        };
        let is_comment = |line: &str| line.trim_start_matches([' ', '\t']).starts_with('#');
        let is_empty = line.lines().all(|line| line.trim().is_empty() || is_comment(line));
        if !is_empty && !self.found.iter().any(runs) {
            self.push(Piece::Bare, line, None);
        }
    }

    /// A file that the same line made is not known to be what its name says.
    fn runs_what_it_wrote(&mut self) {
        let mut written: Vec<String> = Vec::new();
        for found in &self.found {
            match &found.piece {
                Piece::Write { target } => written.push(base(&target.text).to_owned()),
                Piece::Command { words, .. } if words.first().is_some_and(|word| makes_files(&word.text)) => {
                    written.extend(words[1..].iter().map(|word| base(&word.text).to_owned()));
                }
                _ => {}
            }
        }
        let runs = |found: &Found| match &found.piece {
            Piece::Command { words, .. } => words.first().is_some_and(|word| {
                word.text.contains('/') && written.iter().any(|name| *name == base(&word.text))
            }),
            _ => false,
        };
        let suspects: Vec<String> =
            self.found.iter().filter(|found| runs(found)).map(|found| found.shown.clone()).collect();
        for shown in suspects {
            self.opaque("it runs a file that the same line made", &shown);
        }
    }
}

fn makes_files(program: &str) -> bool {
    ["chmod", "cp", "mv", "ln", "install", "tee", "curl", "wget"].contains(&base(program))
}

/// A text as it reads when its quotes and backslashes are gone.
pub(crate) fn without_quotes(text: &str) -> String {
    text.chars().filter(|c| !['\'', '"', '\\'].contains(c)).collect()
}
