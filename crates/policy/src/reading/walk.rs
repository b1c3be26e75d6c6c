//! Walks the syntax tree of a line, and corrects it where the shell parses differently.

use tree_sitter::Node;

use super::{Piece, Reading, StdinSource, UNPARSED, without_quotes};
use crate::word::{Word, base};

/// Walks a tree.
pub(super) struct Walk<'a> {
    pub(super) source: &'a str,
    pub(super) depth: usize,
    pub(super) reading: &'a mut Reading,
}

/// Nodes that only contain others.
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
    "heredoc_start",
    "heredoc_end",
    "heredoc_body",
    "heredoc_content",
    "file_descriptor",
    "command_name",
    "herestring_redirect",
];

/// Nodes in which there can be no comment.
const EXPRESSIONS: &[&str] = &[
    "string",
    "expansion",
    "arithmetic_expansion",
    "binary_expression",
    "unary_expression",
    "postfix_expression",
    "ternary_expression",
    "parenthesized_expression",
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

/// Whether a text contains the start of a substitution that is not escaped.
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

/// Whether a text contains a line end that is not escaped.
fn has_bare_newline(text: &str) -> bool {
    text.char_indices().any(|(i, c)| c == '\n' && !text[..i].ends_with('\\'))
}

impl Walk<'_> {
    pub(super) fn text(&self, node: Node<'_>) -> &str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    fn children(&mut self, node: Node<'_>, fed: &StdinSource) {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            self.node(child, fed);
        }
    }

    pub(super) fn node(&mut self, node: Node<'_>, fed: &StdinSource) {
        let shown = self.text(node).to_owned();
        match node.kind() {
            "command" => self.command(node, fed, &shown, &[]),
            "pipeline" => {
                let mut cursor = node.walk();
                for (i, child) in node.named_children(&mut cursor).enumerate() {
                    self.node(child, if i == 0 { fed } else { &StdinSource::Unknown });
                }
            }
            "process_substitution" => self.children(node, &StdinSource::Unknown),
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
            // The rest of the line after `<<EOF` is in here too, and a pipe there gets the document as its
            // stdin.
            "heredoc_redirect" => {
                self.backticks_in(node, &shown);
                self.children(node, &StdinSource::Unknown);
            }
            "variable_assignment" => self.assignment(node, &shown),
            "declaration_command" => self.children(node, fed),
            "comment" => self.comment(node, &shown),
            "ERROR" => {
                self.reading.opaque(UNPARSED, &shown);
                self.children(node, fed);
            }
            kind if HOLDERS.contains(&kind) => {
                if kind == "word" && has_bare_newline(&shown) {
                    self.reading.opaque("it has a line end where the grammar sees none", &shown);
                }
                // Arithmetic runs substitutions in an array index, even from a variable.
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

    /// Only a blank or an operator starts a comment, and not if it is escaped or part of an expression. After
    /// a `)` it depends: the one of an array is part of a word.
    fn comment(&mut self, node: Node<'_>, shown: &str) {
        let before = self.source.get(..node.start_byte()).unwrap_or_default();
        let mut back = before.chars().rev();
        let blank = back.next().is_none_or(|c| " \t\n;&|".contains(c));
        let escaped = back.take_while(|c| *c == '\\').count() % 2 == 1;
        let mut around = std::iter::successors(node.parent(), Node::parent);
        if !blank || escaped || around.any(|node| EXPRESSIONS.contains(&node.kind())) {
            self.reading.opaque("the shell does not read it as a comment", shown);
        }
    }

    /// A statement with redirections. Words after a redirection belong to the command before it.
    fn redirected(&mut self, node: Node<'_>, fed: &StdinSource, shown: &str) {
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
            self.reading.opaque("it has words after a redirection", shown);
        }
    }

    fn command(&mut self, node: Node<'_>, fed: &StdinSource, shown: &str, more: &[Node<'_>]) {
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
                    fed = word
                        .filter(Word::is_plain)
                        .map_or(StdinSource::Unknown, |word| StdinSource::Text(word.text));
                    self.children(child, &StdinSource::Outside);
                    continue;
                }
                "file_redirect" => {
                    let text = self.text(child).to_owned();
                    if text.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('<') {
                        fed = StdinSource::Unknown;
                    }
                    self.redirect(child, &text);
                    continue;
                }
                "comment" => {
                    self.comment(child, self.text(child).to_owned().as_str());
                    continue;
                }
                _ => self.word(child),
            };
            if child.is_named() {
                self.node(child, &StdinSource::Outside);
            }
            // The grammar splits some words that the shell does not: there is no blank between the parts.
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

    /// The stdin that a statement's redirections give it, if any.
    fn fed_by_redirects(&self, node: Node<'_>) -> Option<StdinSource> {
        let mut cursor = node.walk();
        let mut fed = None;
        for child in node.named_children(&mut cursor) {
            let text = self.text(child);
            match child.kind() {
                "heredoc_redirect" => {
                    let mut inside = child.walk();
                    let body = child.named_children(&mut inside).find(|part| part.kind() == "heredoc_body");
                    fed = Some(StdinSource::Text(
                        body.map(|body| self.text(body)).unwrap_or_default().to_owned(),
                    ));
                }
                "herestring_redirect" => {
                    let word = child.named_child(0).map(|text| self.word(text));
                    fed = Some(
                        word.filter(Word::is_plain)
                            .map_or(StdinSource::Unknown, |word| StdinSource::Text(word.text)),
                    );
                }
                "file_redirect" if text.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('<') => {
                    fed = Some(StdinSource::Unknown);
                }
                _ => {}
            }
        }
        fed
    }

    /// The grammar does not parse backticks in here-documents.
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

    /// Text that is written to a file may be run from there.
    fn spoken_into_a_file(&mut self, node: Node<'_>) {
        let text = self.text(node).to_owned();
        if text.contains('>') {
            self.reading.push(Piece::Mention { text: written_text(&text) }, &text, None);
        }
    }

    fn redirect(&mut self, node: Node<'_>, shown: &str) {
        self.children(node, &StdinSource::Outside);
        let operator = shown.trim_start_matches(|c: char| c.is_ascii_digit());
        let writes = operator.starts_with('>') || operator.starts_with("&>") || operator.starts_with("<>");
        let Some(target) = node.child_by_field_name("destination") else { return };
        let target = self.word(target);
        // Bash expands the word of `>&word` twice.
        let twice = shown.contains(">&") || shown.contains("<&");
        if twice && (!target.is_plain() || target.text.contains(['$', '`'])) {
            self.reading.opaque("it has text that the shell expands twice", shown);
        }
        if !writes {
            return;
        }
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
        self.children(node, &StdinSource::Outside);
    }
}

/// The text that a statement writes to a file: the arguments of its `echo` or `printf`, and here-documents.
fn written_text(statement: &str) -> String {
    let first = statement.split_whitespace().next().unwrap_or_default();
    if ["echo", "printf", "cat", "tee"].contains(&base(first)) {
        without_quotes(statement)
    } else {
        String::new()
    }
}
