//! What a line would run, as far as its text tells: every simple command in it, also those in substitutions, in
//! strings for other shells and behind wrappers, and what can't be told.
//!
//! The grammar is that of bash. What it does not understand, and every node that is not known here, becomes
//! [`Piece::Opaque`]: it may be anything.

use std::cell::RefCell;

use tree_sitter::{Node, Parser};

use crate::decision::Tool;
use crate::lines::{behind_keywords, logical_lines};
use crate::unwrap::{Inner, assignment, unwrap};
use crate::word::{Kind, Word, ansi_c, base, known_text};

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
}

impl Reading {
    /// Reads a line for the shell.
    pub(crate) fn of_line(line: &str) -> Self {
        let mut reading = Self::default();
        reading.line(line, &Fed::Outside, 0);
        reading.runs_what_it_wrote();
        reading
    }

    /// Reads a line for a shell that something is fed to.
    pub(crate) fn of_fed_line(line: &str) -> Self {
        let mut reading = Self::default();
        reading.line(line, &Fed::Unknown, 0);
        reading.runs_what_it_wrote();
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
        Walk { source: line, depth, reading: self }.node(root, fed);
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

/// Goes through a tree.
struct Walk<'a> {
    source: &'a str,
    depth: usize,
    reading: &'a mut Reading,
}

/// Nodes that do nothing but hold others.
const HOLDERS: &[&str] = &[
    "program",
    "list",
    "subshell",
    "compound_statement",
    "if_statement",
    "elif_clause",
    "else_clause",
    "while_statement",
    "for_statement",
    "c_style_for_statement",
    "do_group",
    "case_statement",
    "case_item",
    "function_definition",
    "negated_command",
    "test_command",
    "command_substitution",
    "process_substitution",
    "string",
    "string_content",
    "raw_string",
    "ansi_c_string",
    "translated_string",
    "concatenation",
    "word",
    "number",
    "regex",
    "extglob_pattern",
    "brace_expression",
    "expansion",
    "simple_expansion",
    "arithmetic_expansion",
    "binary_expression",
    "unary_expression",
    "postfix_expression",
    "ternary_expression",
    "parenthesized_expression",
    "test_operator",
    "variable_name",
    "special_variable_name",
    "subscript",
    "array",
    "variable_assignments",
    "unset_command",
    "comment",
    "heredoc_start",
    "heredoc_end",
    "heredoc_body",
    "heredoc_content",
    "file_descriptor",
    "command_name",
    "herestring_redirect",
];

/// Nodes in which nothing is substituted.
const LITERAL: &[&str] = &[
    "raw_string",
    "ansi_c_string",
    "comment",
    "heredoc_body",
    "heredoc_content",
    "heredoc_start",
    "heredoc_end",
];

/// Whether a text has the start of a substitution in it that no backslash takes back.
fn substitutes(text: &str) -> bool {
    let mut before = ' ';
    for c in text.chars() {
        if before != '\\' && (c == '`' || (c == '(' && "$<>".contains(before))) {
            return true;
        }
        before = if before == '\\' { ' ' } else { c };
    }
    false
}

impl Walk<'_> {
    fn text(&self, node: Node<'_>) -> &str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    fn children(&mut self, node: Node<'_>, fed: &Fed) {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            self.node(child, fed);
        }
    }

    fn node(&mut self, node: Node<'_>, fed: &Fed) {
        let shown = self.text(node).to_owned();
        match node.kind() {
            "command" => self.command(node, fed, &shown, &[]),
            "pipeline" => {
                let mut cursor = node.walk();
                for (i, child) in node.named_children(&mut cursor).enumerate() {
                    self.node(child, if i == 0 { fed } else { &Fed::Unknown });
                }
            }
            "process_substitution" => self.children(node, &Fed::Unknown),
            "command_substitution" => {
                if shown.starts_with('`') && shown.contains('\\') {
                    self.reading.opaque("backslashes in backticks are not followed", &shown);
                }
                self.children(node, fed);
            }
            "redirected_statement" => {
                let fed = self.fed_by_redirects(node).unwrap_or_else(|| fed.clone());
                self.spoken_into_a_file(node);
                self.redirected(node, &fed, &shown);
            }
            "file_redirect" => self.redirect(node, &shown),
            // What stands behind `<<EOF` on its line is in here too, and a pipe there is fed by it.
            "heredoc_redirect" => {
                self.backticks_in(node, &shown);
                self.children(node, &Fed::Unknown);
            }
            "variable_assignment" => self.assignment(node, &shown),
            "declaration_command" => self.children(node, fed),
            "ERROR" => {
                self.reading.opaque(UNPARSED, &shown);
                self.children(node, fed);
            }
            kind if HOLDERS.contains(&kind) => {
                // Arithmetic runs what stands in the index of an array, even from a variable.
                if node.named_child_count() == 0 && (shown.contains("[$(") || shown.contains("[`")) {
                    self.reading.opaque("it has text that arithmetic would run", &shown);
                }
                if node.named_child_count() == 0 && !LITERAL.contains(&kind) && substitutes(&shown) {
                    self.reading.opaque("it has a substitution where the grammar sees none", &shown);
                }
                self.children(node, fed);
            }
            _ => {
                self.reading.opaque("it has a part that is not understood", &shown);
                self.children(node, fed);
            }
        }
    }

    /// A statement with redirections. Words behind a redirection belong to the command before it.
    fn redirected(&mut self, node: Node<'_>, fed: &Fed, shown: &str) {
        let mut more = Vec::new();
        let mut cursor = node.walk();
        for redirect in node.named_children(&mut cursor) {
            let mut inside = redirect.walk();
            match redirect.kind() {
                "file_redirect" => {
                    more.extend(redirect.children_by_field_name("destination", &mut inside).skip(1));
                }
                "heredoc_redirect" => {
                    more.extend(redirect.children_by_field_name("argument", &mut inside));
                }
                _ => {}
            }
        }
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "command" => self.command(child, fed, shown, &std::mem::take(&mut more)),
                _ => self.node(child, fed),
            }
        }
        if !more.is_empty() {
            self.reading.opaque("it has words behind a redirection", shown);
        }
    }

    fn command(&mut self, node: Node<'_>, fed: &Fed, shown: &str, more: &[Node<'_>]) {
        let mut words: Vec<Word> = Vec::new();
        let mut fed = fed.clone();
        let mut end = None;
        let mut cursor = node.walk();
        let own: Vec<Node<'_>> = node.children(&mut cursor).collect();
        for child in own.into_iter().chain(more.iter().copied()) {
            let word = match child.kind() {
                "variable_assignment" => {
                    self.assignment(child, self.text(child).to_owned().as_str());
                    continue;
                }
                "herestring_redirect" => {
                    let word = child.named_child(0).map(|text| self.word(text));
                    fed = word.filter(Word::is_plain).map_or(Fed::Unknown, |word| Fed::Text(word.text));
                    self.children(child, &Fed::Outside);
                    continue;
                }
                "file_redirect" => {
                    let text = self.text(child).to_owned();
                    if text.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('<') {
                        fed = Fed::Unknown;
                    }
                    self.redirect(child, &text);
                    continue;
                }
                "comment" => continue,
                _ => self.word(child),
            };
            if child.is_named() {
                self.node(child, &Fed::Outside);
            }
            // The grammar takes some words apart that the shell does not: nothing is between them.
            let touches = end == Some(child.start_byte()) && child.kind() != "subshell";
            match words.last_mut().filter(|_| touches) {
                Some(last) => last.append(&word),
                None => words.push(word),
            }
            end = Some(child.end_byte());
        }
        if !words.is_empty() {
            self.reading.command(words, &fed, shown, self.depth);
        }
    }

    /// What a statement's redirections feed it with, if they do.
    fn fed_by_redirects(&self, node: Node<'_>) -> Option<Fed> {
        let mut cursor = node.walk();
        let mut fed = None;
        for child in node.named_children(&mut cursor) {
            let text = self.text(child);
            match child.kind() {
                "heredoc_redirect" => {
                    let mut inside = child.walk();
                    let body = child.named_children(&mut inside).find(|part| part.kind() == "heredoc_body");
                    fed = Some(Fed::Text(body.map(|body| self.text(body)).unwrap_or_default().to_owned()));
                }
                "herestring_redirect" => {
                    let word = child.named_child(0).map(|text| self.word(text));
                    fed = Some(word.filter(Word::is_plain).map_or(Fed::Unknown, |word| Fed::Text(word.text)));
                }
                "file_redirect" if text.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('<') => {
                    fed = Some(Fed::Unknown);
                }
                _ => {}
            }
        }
        fed
    }

    /// The grammar does not look for backticks in here-documents.
    fn backticks_in(&mut self, document: Node<'_>, shown: &str) {
        let mut cursor = document.walk();
        let mut text_of = |kind: &str| {
            let part = document.named_children(&mut cursor).find(|part| part.kind() == kind);
            part.map(|part| self.text(part).to_owned()).unwrap_or_default()
        };
        let literal = text_of("heredoc_start").contains(['\'', '"', '\\']);
        if !literal && text_of("heredoc_body").contains('`') {
            self.reading.opaque("backticks in here-documents are not followed", shown);
        }
    }

    /// What is spoken into a file may be run from there.
    fn spoken_into_a_file(&mut self, node: Node<'_>) {
        let text = self.text(node).to_owned();
        if text.contains('>') {
            self.reading.push(Piece::Mention { text: written_text(&text) }, &text, None);
        }
    }

    fn redirect(&mut self, node: Node<'_>, shown: &str) {
        self.children(node, &Fed::Outside);
        let operator = shown.trim_start_matches(|c: char| c.is_ascii_digit());
        let writes = operator.starts_with('>') || operator.starts_with("&>") || operator.starts_with("<>");
        let Some(target) = node.child_by_field_name("destination").filter(|_| writes) else { return };
        let target = self.word(target);
        let duplicates =
            operator.starts_with(">&") && target.text.chars().all(|c| c.is_ascii_digit() || c == '-');
        let nowhere = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"].contains(&target.text.as_str());
        if !duplicates && !nowhere {
            self.reading.push(Piece::Write { target }, shown, None);
        }
    }

    fn assignment(&mut self, node: Node<'_>, shown: &str) {
        let name =
            node.child_by_field_name("name").map(|name| self.text(name).to_owned()).unwrap_or_default();
        let value = node.child_by_field_name("value");
        let word = value.map_or_else(|| Word::plain(""), |value| self.word(value));
        self.reading.assigned(&name, &word, shown, self.depth);
        self.children(node, &Fed::Outside);
    }

    /// A word without its quotes.
    fn word(&self, node: Node<'_>) -> Word {
        let text = self.text(node);
        match node.kind() {
            "word" | "number" | "variable_name" | "test_operator" | "regex" => bare(text),
            "raw_string" => Word::plain(text.trim_start_matches('\'').trim_end_matches('\'')),
            "string" => self.pieces(node, 1, double_quoted),
            "translated_string" => match node.named_child(0) {
                Some(string) if string.kind() == "string" => {
                    // Another language may say something else.
                    Word { kind: Kind::Dynamic, ..self.word(string) }
                }
                _ => Word::dynamic(),
            },
            "ansi_c_string" => {
                let body = text.strip_prefix("$'").and_then(|text| text.strip_suffix('\''));
                body.and_then(ansi_c).map_or_else(Word::dynamic, Word::plain)
            }
            "concatenation" => self.pieces(node, 0, bare),
            "command_name" => node.named_child(0).map_or_else(|| bare(text), |name| self.word(name)),
            _ if !node.is_named() => bare(text),
            _ => Word::dynamic(),
        }
    }

    /// A word of several parts; what is between them is read as the given sort of text.
    fn pieces(&self, node: Node<'_>, quotes: usize, between: fn(&str) -> Word) -> Word {
        let (start, end) = (node.start_byte() + quotes, node.end_byte().saturating_sub(quotes));
        let mut whole = Word::plain("");
        let mut add = |part: Word| whole.append(&part);
        let gap = |from: usize, to: usize| between(self.source.get(from..to).unwrap_or_default());
        let mut at = start;
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor).filter(|child| child.kind() != "string_content") {
            add(gap(at, child.start_byte()));
            add(self.word(child));
            at = child.end_byte();
        }
        add(gap(at, end));
        // `{r,}m` and the like come in parts.
        if quotes == 0 && has_braces(self.text(node)) {
            whole.kind = Kind::Dynamic;
        }
        whole
    }
}

/// Unquoted text.
fn bare(text: &str) -> Word {
    let mut plain = String::with_capacity(text.len());
    let mut kind = Kind::Plain;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(c) => plain.push(c),
            },
            '*' | '?' | '[' => {
                // `[` alone is a program.
                if text != "[" {
                    kind = Kind::Glob;
                }
                plain.push(c);
            }
            '$' | '`' if text.len() > 1 => {
                kind = Kind::Dynamic;
                plain.push(c);
            }
            c => plain.push(c),
        }
    }
    if has_braces(text) {
        kind = Kind::Dynamic;
    }
    Word { text: plain, kind }
}

fn has_braces(text: &str) -> bool {
    text.contains('{') && text.contains('}') && (text.contains(',') || text.contains(".."))
}

/// Text in double quotes.
fn double_quoted(text: &str) -> Word {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut kind = Kind::Plain;
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('"' | '\\' | '$' | '`')) => plain.extend(chars.next()),
            ('\\', Some('\n')) => drop(chars.next()),
            ('`', _) => kind = Kind::Dynamic,
            _ => plain.push(c),
        }
    }
    Word { text: plain, kind }
}

/// What a statement with an output to a file says in it: the arguments of its speaker, and here-documents.
fn written_text(statement: &str) -> String {
    let first = statement.split_whitespace().next().unwrap_or_default();
    if ["echo", "printf", "cat", "tee"].contains(&base(first)) {
        without_quotes(statement)
    } else {
        String::new()
    }
}
