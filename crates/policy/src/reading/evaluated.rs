//! Text that the shell evaluates a second time when the line runs. Arithmetic runs substitutions in an array
//! index, even in a variable's value, and so do `[[ -eq`, `${x:offset}`, `unset`, `read`, `printf -v`, `test
//! -v` and `declare`.
//!
//! So what such a place evaluates must be known. If it uses a variable that the line itself sets to something
//! unknown, or if a substitution is hidden in quotes elsewhere in the line, a person is asked.

use tree_sitter::Node;

use super::walk::Walk;
use crate::word::{Kind, Word, base};

const EVALUATED: &str = "it has text that arithmetic would run";
const RENAMED: &str = "it uses a variable by a name that is made only when it runs";

/// Programs that print numbers, whatever their plain arguments are.
const PRINT_NUMBERS: &[&str] = &["date", "nproc", "id", "stat", "getconf", "pidof", "seq", "expr", "tput"];
/// Stands for all arguments of a function or script.
const ARGUMENTS: &str = "$@";
/// Longer chains of variables that are set from each other are not followed.
const MAX_CHAIN: usize = 64;
/// What may come before a shell builtin; the grammar takes some of these for programs.
const BUILTIN_PREFIXES: &[&str] = &["builtin", "command", "{", "!", "time", "-p", "coproc"];
/// Operators of `[[` that evaluate their operands as arithmetic, or look up a name.
const EVALUATING_TESTS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"];

/// What is known about a line's variables and about what it evaluates.
#[derive(Default)]
struct Line {
    /// Variables, each with a text that its value is made from.
    set: Vec<(String, String)>,
    /// Texts that are evaluated.
    read: Vec<String>,
    /// Whether values of variables are evaluated when they are set (`declare -i`).
    integers: bool,
    /// Whether an evaluated text contains the output of an unknown program.
    printed: bool,
    /// What is clearly evaluated and unknown.
    found: Vec<(&'static str, String)>,
}

impl Walk<'_> {
    /// Finds what the line evaluates and what is unknown about it. Variables that it sets are remembered for
    /// nested lines.
    pub(super) fn evaluations(&mut self, root: Node<'_>) {
        let mut line = Line::default();
        self.look(root, &mut line);
        if line.integers && line.printed {
            line.found.push((EVALUATED, self.text(root).to_owned()));
        }
        if line.integers {
            line.read.extend(line.set.iter().map(|(_, value)| value.clone()));
        }
        // A value that mentions an unknown variable is unknown too.
        let mut grows = true;
        for _ in 0..MAX_CHAIN {
            let made = &mut self.reading.unknown_variables;
            let before = made.len();
            for (name, value) in &line.set {
                if names(value).any(|mentioned| made.contains(mentioned)) {
                    made.insert(name.clone());
                }
            }
            grows = made.len() > before;
            if !grows {
                break;
            }
        }
        if grows {
            self.reading.opaque("its variables are set from each other in too long a chain", "");
        }
        let hides = self.reading.hides_substitution;
        let unknown = |text: &&String| {
            // Its own sign is not a name in it.
            let inside = text.strip_prefix('$').unwrap_or(text);
            names(text).any(|name| self.reading.unknown_variables.contains(name))
                || (hides && inside.contains(|c: char| c.is_alphabetic() || c == '_' || c == '$'))
        };
        let read: Vec<String> = line.read.iter().filter(unknown).cloned().collect();
        for text in read {
            self.reading.opaque(EVALUATED, &text);
        }
        for (why, text) in line.found {
            self.reading.opaque(why, &text);
        }
    }

    fn look(&mut self, node: Node<'_>, line: &mut Line) {
        let text = self.text(node).to_owned();
        let evaluated = line.read.len();
        match node.kind() {
            "arithmetic_expansion" => line.read.push(text),
            // The grammar takes some of these for groups.
            "compound_statement" | "subshell" if text.starts_with("((") => line.read.push(text),
            "c_style_for_statement" => {
                let body = node.child_by_field_name("body").map_or(node.end_byte(), |body| body.start_byte());
                line.read.push(self.source.get(node.start_byte()..body).unwrap_or_default().to_owned());
            }
            "test_command" => self.test(node, &text, line),
            "subscript" => {
                let index = node.child_by_field_name("index").map(|index| self.text(index).to_owned());
                line.read.extend(index.filter(|index| index != "@" && index != "*"));
            }
            "expansion" => expansion(&text, line),
            "declaration_command" => self.declaration(node, line),
            "unset_command" => self.unset(node, line),
            "variable_assignment" => {
                let name = node.child_by_field_name("name").map(|name| self.text(name).to_owned());
                let name =
                    name.as_deref().and_then(|name| name.split('[').next()).unwrap_or_default().to_owned();
                if let Some(value) = node.child_by_field_name("value") {
                    self.set(&name, value, line);
                }
            }
            "for_statement" => {
                let name = node.child_by_field_name("variable").map(|name| self.text(name).to_owned());
                let mut cursor = node.walk();
                for value in node.children_by_field_name("value", &mut cursor) {
                    self.set(name.as_deref().unwrap_or_default(), value, line);
                }
            }
            "command" => self.command_sets(node, line),
            "raw_string" | "ansi_c_string" | "concatenation" | "word" | "string" | "heredoc_redirect" => {
                self.hiding(node, &text);
                // An assignment after `time`, which the grammar takes for a program.
                if let Some((target, _)) = text.split_once('=') {
                    let (name, index) = target.split_once('[').unwrap_or((target, ""));
                    line.read.extend((!index.is_empty()).then(|| index.to_owned()));
                    self.set(name.trim_end_matches('+'), node, line);
                }
            }
            _ => {}
        }
        // Output that is printed there is evaluated too.
        if line.read.len() > evaluated && self.has_unknown_output(node) {
            line.found.push((EVALUATED, self.text(node).to_owned()));
        }
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            self.look(child, line);
        }
    }

    /// Records a substitution that is only text here.
    fn hiding(&mut self, node: Node<'_>, text: &str) {
        let hides = match node.kind() {
            "raw_string" => starts_substitution(text),
            "string" => text.contains("\\$") || text.contains("\\`"),
            "heredoc_redirect" => {
                text.lines().next().is_some_and(|line| line.contains(['\'', '"', '\\']))
                    && starts_substitution(text)
            }
            _ => {
                let word = self.word(node);
                (node.kind() == "ansi_c_string" && !word.is_plain())
                    || (word.is_plain() && starts_substitution(&word.text))
            }
        };
        self.reading.hides_substitution |= hides;
    }

    /// A variable is set.
    fn set(&mut self, name: &str, value: Node<'_>, line: &mut Line) {
        if value.kind() == "array" {
            let mut cursor = value.walk();
            for element in value.named_children(&mut cursor) {
                self.set(name, element, line);
            }
            return;
        }
        let word = self.word(value);
        let text = self.text(value).to_owned();
        line.printed |= self.has_unknown_output(value);
        let known = match word.kind {
            Kind::Plain => !word.text.contains(['$', '[', '`']),
            Kind::Glob => false,
            Kind::Dynamic => {
                !self.has_unknown_output(value)
                    && !self.puts_text_together(value)
                    && !word.text.contains(['[', '`'])
            }
        };
        if !known && !is_range(&text) {
            self.reading.unknown_variables.insert(name.to_owned());
        }
        line.set.push((name.to_owned(), text));
    }

    /// Whether it has a substitution that may print anything.
    fn has_unknown_output(&self, node: Node<'_>) -> bool {
        if ["command_substitution", "process_substitution"].contains(&node.kind()) {
            let counts = node.named_child_count() == 1
                && node.named_child(0).is_some_and(|command| self.is_counter(command));
            return !counts;
        }
        if node.kind() == "ansi_c_string" || node.kind() == "translated_string" {
            return !self.word(node).is_plain();
        }
        let mut cursor = node.walk();
        node.named_children(&mut cursor).any(|child| self.has_unknown_output(child))
    }

    /// Whether an expansion in it inserts characters that arithmetic would run, as `${x/a/\\$}` does.
    fn puts_text_together(&self, node: Node<'_>) -> bool {
        if node.kind() == "expansion" {
            let text = self.text(node).trim_start_matches("${").trim_start_matches(['#', '!']);
            let operator = text.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
            if operator.contains(['\\', '\'', '"', '$', '`'])
                || operator.trim_start_matches("[@]").contains('[')
            {
                return true;
            }
        }
        let mut cursor = node.walk();
        node.named_children(&mut cursor).any(|child| self.puts_text_together(child))
    }

    fn is_counter(&self, node: Node<'_>) -> bool {
        let text = self.text(node);
        match node.kind() {
            "pipeline" => {
                let last = u32::try_from(node.named_child_count()).unwrap_or(0).checked_sub(1);
                last.and_then(|last| node.named_child(last as _)).is_some_and(|last| self.is_counter(last))
            }
            "redirected_statement" => node.child_by_field_name("body").is_some_and(|body| {
                body.kind() == "command" && self.is_counter(body) && !text.contains("<<")
            }),
            "command" => {
                let mut words = text.split_whitespace();
                let name = words.next().map(base).unwrap_or_default();
                let words: Vec<&str> = words.collect();
                let has = |long: &str, letters: &[char]| {
                    words.iter().any(|word| {
                        word.starts_with(long) || letters.iter().any(|letter| is_short(word, *letter))
                    })
                };
                // Some print names of files or processes beside the number, and a name can be anything.
                let counts = match name {
                    "grep" => has("--count", &['c']) && !has("--r", &['r', 'R', 'd']) && !has("--d", &[]),
                    "pgrep" => !has("--l", &['l', 'a']),
                    "wc" => !has("--f", &[]),
                    name => PRINT_NUMBERS.contains(&name),
                };
                counts && !text.contains(['$', '`', '[', '\\', '*', '?'])
            }
            _ => false,
        }
    }

    fn test(&mut self, node: Node<'_>, text: &str, line: &mut Line) {
        let mut operators = Vec::new();
        self.operators(node, &mut operators);
        let evaluates = |operator: &String| {
            operator == "-v" || (text.starts_with("[[") && EVALUATING_TESTS.contains(&operator.as_str()))
        };
        if text.starts_with("((") || operators.iter().any(evaluates) {
            line.read.push(text.to_owned());
        }
    }

    fn operators(&self, node: Node<'_>, found: &mut Vec<String>) {
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            if child.kind() == "test_operator" || !child.is_named() {
                found.push(self.text(child).trim().to_owned());
            }
            self.operators(child, found);
        }
    }

    /// `declare` and similar builtins evaluate a quoted assignment again.
    fn declaration(&mut self, node: Node<'_>, line: &mut Line) {
        let mut cursor = node.walk();
        let parts: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        let words: Vec<Word> = parts.iter().map(|part| self.word(*part)).collect();
        let has = |letters: &[char]| {
            words.iter().any(|word| word.text.starts_with(['-', '+']) && word.text.contains(letters))
        };
        line.integers |= has(&['i']);
        for (part, word) in parts.iter().zip(&words) {
            let text = self.text(*part).to_owned();
            match part.kind() {
                "variable_assignment" => {
                    let value = part.child_by_field_name("value").map(|value| self.text(value).to_owned());
                    let value = value.filter(|value| !value.starts_with('('));
                    if has(&['n']) && value.as_ref().is_some_and(|value| value.contains(['$', '[', '`'])) {
                        line.found.push((RENAMED, text));
                    } else if has(&['a', 'A']) {
                        line.read.extend(value);
                    }
                }
                "variable_name" => {}
                "word" if !text.contains(['(', '[', '\\']) => {}
                _ if has(&['a', 'A', 'i', 'n']) || word.text.contains(['(', '[', '`']) => {
                    line.found.push((EVALUATED, text));
                }
                _ => {
                    let name = word.text.split('=').next().unwrap_or_default().to_owned();
                    self.set(&name, *part, line);
                }
            }
        }
    }

    fn unset(&mut self, node: Node<'_>, line: &mut Line) {
        let mut cursor = node.walk();
        for part in node.named_children(&mut cursor) {
            let word = self.word(part);
            if !is_name(&word) && !word.text.starts_with('-') {
                line.found.push((RENAMED, self.text(part).to_owned()));
            }
        }
    }

    /// Builtins that set or evaluate variables.
    fn command_sets(&mut self, node: Node<'_>, line: &mut Line) {
        let mut cursor = node.walk();
        let parts: Vec<Node<'_>> = node
            .named_children(&mut cursor)
            .filter(|part| {
                !["variable_assignment", "file_redirect", "herestring_redirect"].contains(&part.kind())
            })
            .collect();
        let words: Vec<Word> = parts.iter().map(|part| self.word(*part)).collect();
        let wrappers = words.iter().take_while(|word| BUILTIN_PREFIXES.contains(&word.text.as_str())).count();
        let Some((name, rest)) = words.get(wrappers..).and_then(<[Word]>::split_first) else { return };
        let shown = self.text(node).to_owned();
        let behind =
            |letter: char| rest.windows(2).find(|pair| is_short(&pair[0].text, letter)).map(|pair| &pair[1]);
        let named: Vec<&Word> = match name.text.as_str() {
            "read" => {
                let values = |word: &Word| {
                    word.text.starts_with('-') && word.text.ends_with(['p', 'd', 'n', 'N', 't', 'u', 'i'])
                };
                let operand = |(i, word): (usize, &Word)| {
                    !word.is_option() && !i.checked_sub(1).is_some_and(|before| values(&rest[before]))
                };
                rest.iter().enumerate().filter(|pair| operand(*pair)).map(|(_, word)| word).collect()
            }
            "mapfile" | "readarray" => rest.iter().filter(|word| !word.is_option()).collect(),
            "getopts" => rest.get(1).into_iter().collect(),
            "printf" => {
                if rest.first().is_some_and(|word| word.text.len() > 2 && word.text.starts_with("-v")) {
                    line.found.push((RENAMED, shown.clone()));
                }
                rest.first().filter(|word| word.text == "-v").and_then(|_| rest.get(1)).into_iter().collect()
            }
            "wait" => behind('p').into_iter().collect(),
            "test" | "[" => behind('v').into_iter().collect(),
            "unset" => rest.iter().filter(|word| !word.is_option()).collect(),
            "let" => {
                line.read.push(shown.clone());
                Vec::new()
            }
            "declare" | "typeset" | "local" | "export" | "readonly" => {
                line.integers |= rest.iter().any(|word| is_short(&word.text, 'i'));
                line.read.push(shown.clone());
                let plain = |word: &&Word| word.is_plain() && !word.text.contains(['(', '[', '$', '`']);
                if !rest.iter().all(|word| plain(&word)) {
                    line.found.push((EVALUATED, shown.clone()));
                }
                Vec::new()
            }
            _ => Vec::new(),
        };
        for word in &named {
            if !is_name(word) {
                line.found.push((RENAMED, shown.clone()));
            }
            self.reading.unknown_variables.insert(word.text.clone());
        }
        if name.text == "read" {
            self.reading.unknown_variables.insert("REPLY".into());
        }
        if ["mapfile", "readarray"].contains(&name.text.as_str()) {
            self.reading.unknown_variables.insert("MAPFILE".into());
        }
        for part in parts {
            // The arguments of a function, or of `set`.
            if !self.word(part).is_plain() {
                if self.has_unknown_output(part) {
                    self.reading.unknown_variables.insert(ARGUMENTS.to_owned());
                }
                line.set.push((ARGUMENTS.to_owned(), self.text(part).to_owned()));
            }
        }
    }
}

/// Whether a text contains the start of a substitution.
fn starts_substitution(text: &str) -> bool {
    text.contains("$(") || text.contains('`')
}

fn is_short(word: &str, letter: char) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word[1..].contains(letter)
}

fn is_name(word: &Word) -> bool {
    word.is_plain() && word.text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// `{1..9}`.
fn is_range(text: &str) -> bool {
    text.starts_with('{')
        && text.contains("..")
        && text.chars().all(|c| c.is_ascii_digit() || "{}.-".contains(c))
}

/// The names of variables that a text may mention.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let words = words.filter(|word| !word.starts_with(|c: char| c.is_ascii_digit()));
    let is_argument = |rest: &str| {
        rest.trim_start_matches('{').starts_with(|c: char| c.is_ascii_digit() || c == '@' || c == '*')
    };
    let arguments = text.split('$').skip(1).any(is_argument);
    words.chain(arguments.then_some(ARGUMENTS))
}

/// `${...}`: some of its forms evaluate.
fn expansion(text: &str, line: &mut Line) {
    let inside = text.strip_prefix("${").and_then(|text| text.strip_suffix('}')).unwrap_or_default();
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if let Some(name) = inside.strip_prefix('!') {
        let keys = ["[@]", "[*]", "@", "*"].iter().any(|end| {
            name.strip_suffix(end).is_some_and(|name| !name.is_empty() && name.chars().all(is_part))
        });
        if !keys {
            line.found.push((RENAMED, text.to_owned()));
        }
    }
    if inside.ends_with("@P") {
        line.found.push(("it expands a variable as a prompt, which runs what is in it", text.to_owned()));
    }
    let rest = inside.trim_start_matches(|c: char| is_part(c) || "!#@*".contains(c));
    let rest = if rest.starts_with('[') { rest.split_once(']').map_or("", |(_, rest)| rest) } else { rest };
    if let Some(offset) = rest.strip_prefix(':')
        && !offset.starts_with(['-', '=', '?', '+'])
    {
        line.read.push(offset.to_owned());
    }
}
