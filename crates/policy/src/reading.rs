//! What a line would run, as far as its text tells: every simple command in it, including those in
//! substitutions, in strings for other shells and behind wrappers; and what cannot be told.
//!
//! The grammar is that of bash. What it does not understand, and every node that is unknown here, becomes
//! [`Piece::Opaque`]: it may be anything.

mod evaluated;
mod walk;
mod words;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;

use tree_sitter::Parser;

use crate::decision::Tool;
use crate::grammar;
use crate::lines::{behind_keywords, logical_lines};
use crate::unwrap::{Inner, assignment, unwrap};
use crate::word::{Word, base, known_text};
use walk::Walk;

/// Nested shells are followed to this depth.
const MAX_DEPTH: usize = 8;
/// A longer line is not read.
const MAX_LINE_BYTES: usize = 256 << 10;

const UNPARSED: &str = "it can't be parsed";
const SETS_A_VARIABLE: &str = "it sets a variable that could change what runs";

/// How much of a piece's text is kept, and what stands for the rest.
const MAX_PIECE_BYTES: usize = 200;
const LEFT_OUT: &str = "...";

/// Whether some of a piece's text was left out.
pub(crate) fn is_cut(shown: &str) -> bool {
    shown.len() > MAX_PIECE_BYTES - 4 && shown.ends_with(LEFT_OUT)
}

/// Where a command's stdin comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StdinSource {
    /// From outside the line.
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
        /// It only starts another command, which is a piece of its own.
        transparent: bool,
    },
    /// Writes to a file.
    Write { target: Word },
    /// It could be anything.
    Opaque { why: &'static str },
    /// It could be what its text mentions.
    Mention { text: String },
    /// It is outside of the small grammar that a rule can allow: see `grammar.rs`.
    Outside { why: &'static str },
    /// A line that runs no program: it only sets variables, compares or computes.
    Bare,
    /// One of our own tools, by its verb on the command line.
    Tool {
        tool: Tool,
        /// More than a look.
        acts: bool,
    },
}

/// A piece of a line, with its text.
#[derive(Clone, Debug)]
pub(crate) struct FoundPiece {
    pub(crate) piece: Piece,
    /// The text as it was written.
    pub(crate) shown: String,
    /// The command that it belongs to. If that one is permitted, so is this.
    pub(crate) of: Option<usize>,
}

/// Whether parse errors count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ParseErrors {
    Count,
    Forgive,
}

/// Everything that a line does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) found: Vec<FoundPiece>,
    /// Other folders that nested commands run in.
    pub(crate) folders: Vec<PathBuf>,
    /// Variables that the line sets to an unknown value.
    unknown_variables: BTreeSet<String>,
    /// Whether a substitution is hidden somewhere in it as quoted text.
    hides_substitution: bool,
}

impl Reading {
    /// Reads a shell line.
    pub(crate) fn of_line(line: &str) -> Self {
        let mut reading = Self::default();
        reading.line(line, &StdinSource::Outside, 0);
        reading.runs_what_it_wrote();
        reading.runs_nothing(line);
        reading
    }

    /// Reads a line for a shell that gets unknown input on its stdin.
    pub(crate) fn of_fed_line(line: &str) -> Self {
        let mut reading = Self::default();
        reading.line(line, &StdinSource::Unknown, 0);
        reading.runs_what_it_wrote();
        reading.runs_nothing(line);
        reading
    }

    /// Reads a program with its arguments.
    pub(crate) fn of_words(words: Vec<Word>, fed: bool) -> Self {
        let mut reading = Self::default();
        let shown = known_text(&words);
        let fed = if fed { StdinSource::Unknown } else { StdinSource::Outside };
        reading.command(words, &fed, &shown, 0);
        reading
    }

    /// Reads a variable that a command is started with.
    pub(crate) fn of_variable(name: &str, value: &str) -> Self {
        let mut reading = Self::default();
        let shown = format!("{name}={value}");
        if !grammar::is_harmless_variable(name) {
            reading.push(Piece::Outside { why: SETS_A_VARIABLE }, &shown, None);
        }
        reading.assigned(name, &Word::plain(value), &shown, 0);
        reading
    }

    /// A text that may mention a command.
    pub(crate) fn of_mention(text: String, shown: &str) -> Self {
        let mut reading = Self::default();
        reading.push(Piece::Mention { text }, shown, None);
        reading
    }

    /// Something that no rule can allow.
    pub(crate) fn of_outside(why: &'static str, shown: &str) -> Self {
        let mut reading = Self::default();
        reading.push(Piece::Outside { why }, shown, None);
        reading
    }

    /// Removes the pieces that could not be parsed.
    pub(crate) fn forget_parse_errors(&mut self, from: usize) {
        let is_error = |piece: &Piece| matches!(piece, Piece::Opaque { why } if *why == UNPARSED);
        // Indices are kept, because other pieces refer to them.
        for found in self.found[from..].iter_mut().filter(|found| is_error(&found.piece)) {
            found.piece = Piece::Mention { text: String::new() };
        }
    }

    fn push(&mut self, piece: Piece, shown: &str, of: Option<usize>) {
        let mut shown = shown.trim().to_owned();
        if shown.len() > MAX_PIECE_BYTES {
            shown.truncate(shown.floor_char_boundary(MAX_PIECE_BYTES));
            shown.push_str(LEFT_OUT);
        }
        self.found.push(FoundPiece { piece, shown, of });
    }

    pub(crate) fn opaque(&mut self, why: &'static str, shown: &str) {
        self.push(Piece::Opaque { why }, shown, None);
    }

    fn line(&mut self, line: &str, fed: &StdinSource, depth: usize) {
        if depth > MAX_DEPTH || line.len() > MAX_LINE_BYTES {
            return self.opaque("it is too long or too deeply nested to be read", line);
        }
        if let Some(why) = grammar::outside(line) {
            self.push(Piece::Outside { why }, line, None);
        }
        // Bash takes them as parts of words where others see blanks.
        if line.contains(|c: char| c.is_control() && c != '\t' && c != '\n') {
            self.opaque("it has a control character", line);
        }
        self.parse(line, fed, depth, ParseErrors::Count);
        if line.contains("\\\n") {
            // The shell joins such lines, except in comments and quotes: both readings count.
            self.parse(&line.replace("\\\n", ""), fed, depth, ParseErrors::Count);
        }
        // The grammar sometimes sees one command where the shell sees two. A single line of a block need not
        // parse.
        let lines = logical_lines(line);
        for line in lines.iter().filter(|_| lines.len() > 1) {
            self.parse(behind_keywords(line), fed, depth, ParseErrors::Forgive);
        }
    }

    fn parse(&mut self, line: &str, fed: &StdinSource, depth: usize, errors: ParseErrors) {
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
        if root.has_error() && errors == ParseErrors::Count {
            self.opaque(UNPARSED, line);
            // Text that cannot be parsed may still mention a command.
            self.push(Piece::Mention { text: without_quotes(line) }, line, None);
        }
        let mut walk = Walk { source: line, depth, reading: self };
        walk.evaluations(root);
        walk.node(root, fed);
        if errors == ParseErrors::Forgive {
            self.forget_parse_errors(before);
        }
    }

    /// Reads a command, and what is inside it.
    fn command(&mut self, words: Vec<Word>, fed: &StdinSource, shown: &str, depth: usize) {
        if depth > MAX_DEPTH {
            return self.opaque("it is too deeply nested to be read", shown);
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
                Inner::Output(target) => self.push(Piece::Write { target }, shown, None),
                Inner::Unclear(why) => self.push(Piece::Outside { why }, shown, None),
                Inner::Tool(tool) => self.push(Piece::Tool { tool, acts: true }, shown, Some(me)),
                Inner::Look(tool) => self.push(Piece::Tool { tool, acts: false }, shown, Some(me)),
                Inner::Folder(folder) => self.folders.push(folder),
                Inner::Set(name, value) => {
                    if !grammar::is_harmless_variable(&name) {
                        self.push(Piece::Outside { why: SETS_A_VARIABLE }, shown, None);
                    }
                    self.assigned(&name, &value, shown, depth);
                }
                Inner::Transparent => {}
            }
        }
    }

    fn assigned(&mut self, name: &str, value: &Word, shown: &str, depth: usize) {
        for inner in assignment(name, value) {
            match inner {
                Inner::Line(line) => self.line(&line, &StdinSource::Outside, depth + 1),
                Inner::Opaque(why) => self.opaque(why, shown),
                Inner::Words(_)
                | Inner::Mention(_)
                | Inner::Write(_)
                | Inner::Output(_)
                | Inner::Unclear(_)
                | Inner::Tool(_)
                | Inner::Look(_)
                | Inner::Folder(_)
                | Inner::Set(..)
                | Inner::Transparent => {}
            }
        }
    }

    /// A line without a program is judged too: no rule can be about it.
    fn runs_nothing(&mut self, line: &str) {
        // A wrapper around nothing, such as `eval ''`, runs no program.
        let runs = |found: &FoundPiece| {
            matches!(found.piece, Piece::Command { transparent: false, .. } | Piece::Write { .. })
        };
        let is_comment = |line: &str| line.trim_start_matches([' ', '\t']).starts_with('#');
        let is_empty = line.lines().all(|line| line.trim().is_empty() || is_comment(line));
        if !is_empty && !self.found.iter().any(runs) {
            self.push(Piece::Bare, line, None);
        }
    }

    /// A file that the same line created may not be what its name says.
    fn runs_what_it_wrote(&mut self) {
        let mut written: Vec<String> = Vec::new();
        for found in &self.found {
            match &found.piece {
                Piece::Write { target } => written.push(base(&target.text).to_owned()),
                Piece::Command { words, .. } if words.first().is_some_and(|word| makes_files(&word.text)) => {
                    written.extend(words[1..].iter().map(|word| base(&word.text).to_owned()));
                }
                Piece::Command { .. }
                | Piece::Opaque { .. }
                | Piece::Mention { .. }
                | Piece::Outside { .. }
                | Piece::Bare
                | Piece::Tool { .. } => {}
            }
        }
        let runs = |found: &FoundPiece| match &found.piece {
            Piece::Command { words, .. } => words.first().is_some_and(|word| {
                word.text.contains('/') && written.iter().any(|name| *name == base(&word.text))
            }),
            Piece::Write { .. }
            | Piece::Opaque { .. }
            | Piece::Mention { .. }
            | Piece::Outside { .. }
            | Piece::Bare
            | Piece::Tool { .. } => false,
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

/// The text without its quotes and backslashes.
pub(crate) fn without_quotes(text: &str) -> String {
    text.chars().filter(|c| !['\'', '"', '\\'].contains(c)).collect()
}
