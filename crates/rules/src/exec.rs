//! Rules for what a job's programs really execute.
//!
//! Only what a rule denies or asks for counts here; defaults and `allow` rules are for the text of a command. The rules
//! come as data: the enforcing side knows nothing of policy files.

use serde::{Deserialize, Serialize};

use crate::files::FileRule;
use crate::matching::{Strength, forbids};
use crate::word::{Word, base};

/// What a rule decides. The stricter is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecDecision {
    /// A person must agree.
    Ask,
    /// No.
    Deny,
}

/// A rule about programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRule {
    /// What it decides.
    pub decision: ExecDecision,
    /// The words that a command must start with, each with its alternatives. The first names the program.
    pub prefix: Vec<Vec<String>>,
    /// The rule as a person would write it.
    pub shown: String,
    /// Where it is written.
    pub place: String,
    /// The reason, in the words of its author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// All rules in force for a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRules {
    /// The rules.
    pub rules: Vec<ExecRule>,
    /// Commands that a person has agreed to, each once: the program's name, and its arguments.
    #[serde(default)]
    pub granted: Vec<Vec<String>>,
    /// How long a question waits for its answer, in milliseconds. No answer is a no.
    #[serde(default = "answer_within")]
    pub answer_within_ms: u64,
    /// Files that are closed to the job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRule>,
}

fn answer_within() -> u64 {
    ANSWER_WITHIN_MS
}

/// How long a question waits, where nobody says otherwise: ten minutes.
pub const ANSWER_WITHIN_MS: u64 = 600_000;

/// What is said of an execution that a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecFinding<'a> {
    /// What is decided.
    pub decision: ExecDecision,
    /// The rule.
    pub rule: &'a ExecRule,
}

impl ExecRules {
    /// What the rules say of an execution, the strictest first; none if no rule is about it. `commands` is what it could be
    /// called: under its own name, as the program that it is a copy of, as what it hands on.
    #[must_use]
    pub fn judge<'a>(&'a self, commands: &[Vec<Word>]) -> Option<ExecFinding<'a>> {
        let one = |rule: &'a ExecRule| {
            let strength = commands.iter().map(|words| forbids(&rule.prefix, words)).max()?;
            let decision = match strength {
                Strength::No => return None,
                Strength::Maybe => ExecDecision::Ask,
                Strength::Yes => rule.decision,
            };
            Some(ExecFinding { decision, rule })
        };
        self.rules.iter().filter_map(one).max_by_key(|finding| finding.decision)
    }

    /// The programs that rules name.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().filter_map(|rule| rule.prefix.first()).flatten().map(String::as_str)
    }

    /// Which grant covers one of these commands, by its index. Grants that are `used` up do not count.
    #[must_use]
    pub fn grant_for(&self, commands: &[Vec<Word>], used: impl Fn(usize) -> bool) -> Option<usize> {
        let covers = |grant: &[String], words: &[Word]| {
            grant.len() == words.len()
                && grant.iter().zip(words).enumerate().all(|(i, (granted, word))| match word.known() {
                    Some(text) if i == 0 => base(text) == base(granted),
                    Some(text) => text == granted,
                    None => false,
                })
        };
        self.granted
            .iter()
            .enumerate()
            .filter(|(index, _)| !used(*index))
            .find(|(_, grant)| commands.iter().any(|words| covers(grant, words)))
            .map(|(index, _)| index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::word::plain_words;

    fn rule(decision: ExecDecision, line: &str) -> ExecRule {
        let prefix = line.split(' ').map(|word| vec![word.to_owned()]).collect();
        ExecRule { decision, prefix, shown: line.into(), place: "policy.toml:1".into(), why: None }
    }

    fn words(line: &str) -> Vec<Word> {
        plain_words(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_strictest_rule_about_any_of_its_names_decides() {
        let rules = ExecRules {
            rules: vec![rule(ExecDecision::Ask, "git"), rule(ExecDecision::Deny, "git push")],
            ..ExecRules::default()
        };
        let decided = |lines: &[&str]| {
            rules.judge(&lines.iter().map(|line| words(line)).collect::<Vec<_>>()).map(|found| found.decision)
        };
        assert_eq!(decided(&["git status"]), Some(ExecDecision::Ask));
        assert_eq!(decided(&["/usr/bin/git -C x push"]), Some(ExecDecision::Deny));
        assert_eq!(decided(&["x push", "git push"]), Some(ExecDecision::Deny));
        assert_eq!(decided(&["ls"]), None);
        // What was cut off could be anything.
        let mut cut = words("git");
        cut.push(Word::dynamic());
        assert_eq!(rules.judge(&[cut]).map(|found| found.decision), Some(ExecDecision::Ask));
    }

    #[test]
    fn a_grant_covers_the_same_arguments_once() {
        let rules = ExecRules { granted: vec![vec!["git".into(), "push".into()]], ..ExecRules::default() };
        assert_eq!(rules.grant_for(&[words("/usr/bin/git push")], |_| false), Some(0));
        assert_eq!(rules.grant_for(&[words("git push -f")], |_| false), None);
        assert_eq!(rules.grant_for(&[words("git push")], |_| true), None);
    }
}
