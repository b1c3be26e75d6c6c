//! The text of a policy file, checked: unknown keys, impossible rules, and examples that do not come true are
//! errors that name the line; rules that can never decide anything are told.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outlast_protocol::UnknownWord;
use outlast_protocol::units::parse_duration;
use serde::Deserialize;
use toml::Spanned;

use crate::decision::{Decision, Tool, Unattended};
use crate::judge::Finding;
use crate::reading::Reading;
use crate::rule::{Files, Place, Rule, Strength};
use outlast_rules::files::Access;

/// Why a policy does not load.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {message}", file.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct LoadError {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl From<LoadError> for outlast_job::Failure {
    fn from(error: LoadError) -> Self {
        Self::usage(error.to_string())
            .hint("nothing was started: without its policy, nothing is; mend the file, or move it away")
    }
}

/// What agents may do to jobs; none where a file does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Agents {
    pub(crate) kill: Option<Decision>,
    pub(crate) input: Option<Decision>,
    pub(crate) others: Option<Decision>,
    pub(crate) unattended: Option<Unattended>,
    pub(crate) confirmed: Option<bool>,
}

/// Whether rules also hold for what a job really executes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Guard {
    #[default]
    On,
    Off,
}

/// One file.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) file: Arc<PathBuf>,
    pub(crate) default: Decision,
    pub(crate) rules: Vec<Arc<Rule>>,
    pub(crate) agents: Agents,
    /// Whether rules also hold for what a job really executes.
    pub(crate) guard: Guard,
    /// How long a question about what a job executes waits for its answer.
    pub(crate) answer_within: Option<Duration>,
    /// What is odd about it, but no error.
    pub(crate) notes: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct File {
    default: Decision,
    guard: Guard,
    answer_within: Option<Spanned<String>>,
    agents: AgentsTable,
    rule: Vec<Spanned<RuleTable>>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct AgentsTable {
    kill: Option<Decision>,
    input: Option<Decision>,
    others: Option<Decision>,
    unattended: Option<Unattended>,
    confirmed: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    decision: Decision,
    prefix: Option<Prefix>,
    path: Option<Token>,
    access: Option<Access>,
    tool: Option<String>,
    why: Option<String>,
    #[serde(rename = "match", default)]
    matches: Vec<String>,
    #[serde(default)]
    not_match: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Prefix {
    Line(String),
    Tokens(Vec<Token>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Token {
    One(String),
    Any(Vec<String>),
}

impl Layer {
    /// Reads the text of a file.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, LoadError> {
        let file = Arc::new(path.to_owned());
        let line_of = |at: usize| text[..at.min(text.len())].matches('\n').count() + 1;
        let fail = |line: Option<usize>, message: String| LoadError { file: path.to_owned(), line, message };
        let parsed: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| line_of(span.start));
            fail(line, error.message().to_owned())
        })?;
        let mut rules = Vec::new();
        for table in parsed.rule {
            let line = line_of(table.span().start);
            let place = Place { file: Arc::clone(&file), line };
            rules.push(rule(table.into_inner(), place).map_err(|message| fail(Some(line), message))?);
        }
        let AgentsTable { kill, input, others, unattended, confirmed } = parsed.agents;
        let agents = Agents { kill, input, others, unattended, confirmed };
        let answer_within = match parsed.answer_within {
            None => None,
            Some(text) => {
                let line = line_of(text.span().start);
                let within =
                    parse_duration(text.get_ref()).map_err(|failure| fail(Some(line), failure.message))?;
                Some(within)
            }
        };
        let mut layer = Self {
            file,
            default: parsed.default,
            rules,
            agents,
            guard: parsed.guard,
            answer_within,
            notes: Vec::new(),
        };
        layer.notes = layer.dead_rules();
        Ok(layer)
    }

    /// Rules that never decide anything, because another always decides before them.
    fn dead_rules(&self) -> Vec<String> {
        let covers = |other: &Rule, rule: &Rule| {
            let tools = (other.tool.is_none() || other.tool == rule.tool) && other.files == rule.files;
            let shorter =
                other.prefix.len() <= rule.prefix.len() && other.prefix.is_empty() == rule.prefix.is_empty();
            let words = other.prefix.iter().zip(&rule.prefix);
            tools
                && shorter
                && words.into_iter().all(|(all, some)| some.iter().all(|token| all.contains(token)))
        };
        let mut notes = Vec::new();
        for (i, rule) in self.rules.iter().enumerate() {
            let before = self.rules.iter().enumerate().find(|(j, other)| {
                let same =
                    other.decision == rule.decision && other.prefix == rule.prefix && other.tool == rule.tool;
                *j != i
                    && covers(other, rule)
                    && (other.decision > rule.decision
                        || (other.decision == rule.decision && (!same || *j < i)))
            });
            if let Some((_, other)) = before {
                notes.push(format!(
                    "{}: \"{}\" never decides: \"{}\" in line {} does before it",
                    rule.place,
                    rule.shown(),
                    other.shown(),
                    other.place.line
                ));
            } else if rule.decision == Decision::Allow
                && self.default == Decision::Allow
                && !self.rules.iter().any(|rule| rule.decision > Decision::Allow)
            {
                notes.push(format!(
                    "{}: \"{}\" never decides: everything is allowed anyway",
                    rule.place,
                    rule.shown()
                ));
            }
        }
        notes
    }
}

/// One rule, with its examples tried.
fn rule(table: RuleTable, place: Place) -> Result<Arc<Rule>, String> {
    let prefix: Vec<Vec<String>> = match &table.prefix {
        None => Vec::new(),
        Some(Prefix::Line(line)) => line.split_whitespace().map(|word| vec![word.to_owned()]).collect(),
        Some(Prefix::Tokens(tokens)) => tokens
            .iter()
            .map(|token| match token {
                Token::One(word) => vec![word.clone()],
                Token::Any(words) => words.clone(),
            })
            .collect(),
    };
    let tool = match &table.tool {
        None => None,
        Some(name) => Some(name.parse().map_err(|UnknownWord { known, .. }| {
            format!("there is no tool {name:?}; the tools are {}", known.join(", "))
        })?),
    };
    let files = match &table.path {
        Some(path) => Some(files(path, &table, &place)?),
        None if table.access.is_some() => return Err("access belongs to a rule with a path".into()),
        None => {
            check_words(&prefix, tool, &table)?;
            None
        }
    };
    let rule = Arc::new(Rule { decision: table.decision, prefix, tool, files, why: table.why, place });
    for example in &table.matches {
        if !findings(&rule, example).iter().any(|(strength, _)| *strength == Strength::Yes) {
            return Err(format!("the rule \"{}\" does not match its example {example:?}", rule.shown()));
        }
    }
    for example in &table.not_match {
        if let Some((_, finding)) = findings(&rule, example).into_iter().next() {
            return Err(format!(
                "the rule \"{}\" matches {example:?}, which it should not: {}",
                rule.shown(),
                finding.why
            ));
        }
    }
    Ok(rule)
}

/// The files of a rule with a path.
fn files(path: &Token, table: &RuleTable, place: &Place) -> Result<Files, String> {
    if table.prefix.is_some() || table.tool.is_some() {
        return Err("a rule is about files (path) or about commands (prefix, tool), not about both".into());
    }
    if !table.matches.is_empty() || !table.not_match.is_empty() {
        return Err("examples are commands: a rule about files can't have any".into());
    }
    if table.decision == Decision::Allow {
        return Err("a rule about files denies or asks: what no rule closes is open".into());
    }
    let written: &[String] = match path {
        Token::One(path) => std::slice::from_ref(path),
        Token::Any(paths) => paths,
    };
    if written.is_empty() {
        return Err("a rule about files needs a path, such as \".env\"".into());
    }
    let patterns = written.iter().map(|path| pattern(path, place)).collect::<Result<_, _>>()?;
    Ok(Files { patterns, access: table.access.unwrap_or_default() })
}

/// A pattern as a keeper understands it: a name, or an absolute path.
fn pattern(written: &str, place: &Place) -> Result<String, String> {
    if written.contains("**") || written.contains(['[', '{', '\\', '\0']) {
        return Err(format!(
            "{written:?}: only * and ? are wildcards; a name without a slash counts in every folder"
        ));
    }
    let trimmed = written.trim_end_matches('/');
    let is_odd = |part: &str| part == ".." || part == ".";
    if trimmed.is_empty()
        || trimmed.split('/').skip(1).any(|part| part.is_empty() || is_odd(part))
        || is_odd(trimmed)
    {
        return Err(format!("{written:?} names no file"));
    }
    if !trimmed.contains('/') && trimmed != "~" {
        return Ok(trimmed.to_owned());
    }
    if let Some(rest) = trimmed.strip_prefix('~') {
        let home = std::env::var("HOME").map_err(|_| format!("{written:?}: there is no HOME"))?;
        return Ok(format!("{}{rest}", home.trim_end_matches('/')));
    }
    if trimmed.starts_with('/') {
        return Ok(trimmed.to_owned());
    }
    match place.project() {
        Some(project) => Ok(project.join(trimmed.trim_start_matches("./")).to_string_lossy().into_owned()),
        None => Err(format!(
            "{written:?}: in your own policy a path begins with / or ~/; a name alone counts in every folder"
        )),
    }
}

fn check_words(prefix: &[Vec<String>], tool: Option<Tool>, table: &RuleTable) -> Result<(), String> {
    if prefix.is_empty() {
        if table.prefix.is_some() || tool.is_none() {
            return Err("a rule needs a prefix, such as [\"git\", \"push\"], a tool or a path".into());
        }
        if !table.matches.is_empty() || !table.not_match.is_empty() {
            return Err("examples are commands: a rule about a whole tool can't have any".into());
        }
        return Ok(());
    }
    if tool.is_some_and(|tool| tool != Tool::Run && tool != Tool::Send) {
        return Err("only run_shell_command and send_input have commands that a prefix can match".into());
    }
    for choice in prefix {
        if choice.is_empty() || choice.iter().any(String::is_empty) {
            return Err("a word of a prefix can't be empty".into());
        }
        if let Some(word) = choice.iter().find(|word| word.contains(char::is_whitespace)) {
            return Err(format!(
                "{word:?} would never match: a word has no blanks; write the words of a prefix one by one"
            ));
        }
        if let Some(word) = choice.iter().find(|word| word.contains(['*', '?', '$', '"', '\'', '`', '\\'])) {
            return Err(format!(
                "{word:?} would never match: words are compared as they are, without patterns and quotes"
            ));
        }
        if choice.iter().any(|word| word.starts_with('-') != choice[0].starts_with('-')) {
            return Err(format!("options and words can't be alternatives of each other: {choice:?}"));
        }
    }
    if prefix[0][0].starts_with('-') {
        return Err("a prefix begins with a program".into());
    }
    Ok(())
}

/// How a rule alone judges an example.
fn findings(rule: &Arc<Rule>, example: &str) -> Vec<(Strength, Finding)> {
    crate::judge::of_rule(rule, &Reading::of_line(example))
}
