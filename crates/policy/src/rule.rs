//! One rule of a file. What a `deny` or `ask` rule matches is decided in [`outlast_rules::matching`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::decision::{Decision, Tool};
use crate::word::{Word, base};
pub(crate) use outlast_rules::Strength;
use outlast_rules::files::Access;
use outlast_rules::forbids;

/// Where a rule is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: Arc<PathBuf>,
    /// The line, from 1.
    pub line: usize,
}

impl Place {
    /// The folder of the project that the file belongs to, if it does.
    pub(crate) fn project(&self) -> Option<&Path> {
        let folder = self.file.parent()?;
        (folder.file_name()? == ".outlast").then(|| folder.parent())?
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// A rule of a policy file.
#[derive(Clone, Debug)]
pub struct Rule {
    /// What it decides.
    pub decision: Decision,
    /// The words that a command must start with, each with its alternatives; empty for a rule about a tool.
    pub prefix: Vec<Vec<String>>,
    /// The only tool it applies to.
    pub tool: Option<Tool>,
    /// The files that it is about, for a rule about files.
    pub files: Option<Files>,
    /// The reason, in the words of its author.
    pub why: Option<String>,
    /// Where it is written.
    pub place: Place,
}

/// The files that a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// Names, or absolute paths; either may have wildcards.
    pub patterns: Vec<String>,
    /// What is not allowed.
    pub access: Access,
}

impl Rule {
    /// The rule as a person would write it.
    #[must_use]
    pub fn shown(&self) -> String {
        if let Some(Files { patterns, access }) = &self.files {
            let what = match access {
                Access::Read => "path",
                Access::Write => "changes of path",
            };
            return format!("{} {what} {}", self.decision.name(), patterns.join(", "));
        }
        let words: Vec<String> = self
            .prefix
            .iter()
            .map(
                |choice| {
                    if choice.len() == 1 { choice[0].clone() } else { format!("({})", choice.join("|")) }
                },
            )
            .collect();
        let about = match (self.tool, words.is_empty()) {
            (Some(tool), true) => format!("tool {}", tool.name()),
            (Some(tool), false) => format!("{} of {}", words.join(" "), tool.name()),
            (None, _) => words.join(" "),
        };
        format!("{} {about}", self.decision.name())
    }

    pub(crate) fn is_about(&self, tool: Tool) -> bool {
        self.tool.is_none_or(|mine| mine == tool)
    }

    /// Whether it applies to this command.
    pub(crate) fn speaks_of(&self, words: &[Word]) -> Strength {
        if self.prefix.is_empty() {
            return Strength::No;
        }
        if self.decision == Decision::Allow { self.allows(words) } else { forbids(&self.prefix, words) }
    }

    /// A command is only permitted if it is written exactly like the rule.
    fn allows(&self, words: &[Word]) -> Strength {
        let exact = |(choice, word): (&Vec<String>, &Word)| word.is_plain() && choice.contains(&word.text);
        let all = self.prefix.len() <= words.len() && self.prefix.iter().zip(words).all(exact);
        if all { Strength::Yes } else { Strength::No }
    }

    /// Whether a text of any kind, such as code or a message, has the rule's words in this order.
    pub(crate) fn is_mentioned_in(&self, text: &str) -> bool {
        if self.prefix.is_empty() || self.decision == Decision::Allow {
            return false;
        }
        let in_a_word = |c: char| c.is_alphanumeric() || "_.-+/".contains(c);
        let mut tokens = text.split(|c| !in_a_word(c)).filter(|token| !token.is_empty());
        let mut wanted = self.prefix.iter().filter(|choice| !choice[0].starts_with('-'));
        wanted.all(|choice| tokens.any(|token| choice.iter().any(|wanted| base(token) == base(wanted))))
    }
}

#[cfg(test)]
#[path = "rule_tests.rs"]
mod tests;
