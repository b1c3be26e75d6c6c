//! From what a line does, and what the files say, to a decision with its reasons.
//!
//! Each file judges for itself, and the strictest wins: so a project can tighten what the user allows, and never
//! loosen it.

use std::sync::Arc;

use crate::decision::{Decision, Tool};
use crate::file::Layer;
use crate::reading::{Found, Piece, Reading};
use crate::rule::{Rule, Strength};
use crate::word::{Word, base};

/// A reason for a decision.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What it asks for.
    pub decision: Decision,
    /// Why, in a sentence.
    pub why: String,
    /// The rule, if it is one.
    pub rule: Option<Arc<Rule>>,
    /// The part of the command that it is about.
    pub part: String,
}

/// A decision, with its reasons: the strictest first.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// What is decided.
    pub decision: Decision,
    /// Why; empty when nothing speaks against it.
    pub findings: Vec<Finding>,
    /// Our own tools that the command would use.
    pub reaches: Vec<Tool>,
}

impl Verdict {
    pub(crate) fn of(mut findings: Vec<Finding>) -> Self {
        findings.sort_by_key(|finding| (std::cmp::Reverse(finding.decision), finding.rule.is_none()));
        let decision = findings.first().map_or(Decision::Allow, |finding| finding.decision);
        Self { decision, findings, reaches: Vec::new() }
    }

    /// Both together: the stricter.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let mut both = Self::of([self.findings, other.findings].concat());
        both.reaches = [self.reaches, other.reaches].concat();
        both
    }

    /// The reason that decided.
    #[must_use]
    pub fn first(&self) -> Option<&Finding> {
        self.findings.first()
    }
}

/// Files that are run later, unseen: by a shell that starts, by git, by cron, or that say what is allowed.
const LATER: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".kshrc",
    ".inputrc",
    ".gitconfig",
    "config.fish",
    "authorized_keys",
    "crontab",
    "sudoers",
    "policy.toml",
    ".tmux.conf",
    ".vimrc",
    ".envrc",
];
const LATER_FOLDERS: &[&str] =
    &[".git/hooks/", "/etc/profile.d/", "/etc/cron", ".config/autostart/", ".config/systemd/", ".ssh/"];

fn is_run_later(target: &Word) -> bool {
    LATER.contains(&base(&target.text)) || LATER_FOLDERS.iter().any(|folder| target.text.contains(folder))
}

impl Layer {
    /// Whether it has anything against any command of a tool.
    pub(crate) fn has_teeth(&self, tool: Tool) -> bool {
        let bites = |rule: &Arc<Rule>| {
            rule.decision > Decision::Allow && !rule.prefix.is_empty() && rule.is_about(tool)
        };
        self.default > Decision::Allow || self.rules.iter().any(bites)
    }

    /// What it says of the tool itself.
    pub(crate) fn judge_tool(&self, tool: Tool) -> Vec<Finding> {
        let about = |rule: &&Arc<Rule>| rule.prefix.is_empty() && rule.tool == Some(tool);
        let finding = |rule: &Arc<Rule>| Finding {
            decision: rule.decision,
            why: format!("the rule \"{}\" is about this tool", rule.shown()),
            rule: Some(Arc::clone(rule)),
            part: tool.name().to_owned(),
        };
        self.rules.iter().filter(about).map(finding).collect()
    }

    /// What it says of what a line does.
    pub(crate) fn judge(&self, tool: Tool, reading: &Reading) -> Vec<Finding> {
        let rules: Vec<&Arc<Rule>> = self.rules.iter().filter(|rule| rule.is_about(tool)).collect();
        let mut allowed = vec![false; reading.found.len()];
        let mut findings = Vec::new();
        for (i, found) in reading.found.iter().enumerate() {
            let leave = found.of.is_some_and(|of| allowed[of]);
            match &found.piece {
                Piece::Command { words, transparent } => {
                    allowed[i] = self.command(&rules, (words, *transparent), found, &mut findings);
                }
                Piece::Write { target } => {
                    let words = [Word::plain(">"), target.clone()];
                    let transparent = found.of.is_some() || self.default == Decision::Allow;
                    let leave = self.command(&rules, (&words, transparent), found, &mut findings) || leave;
                    if !leave && self.has_teeth(tool) && is_run_later(target) {
                        findings.push(self.suspect("it writes a file that is run later", found));
                    }
                }
                Piece::Opaque { why } if !leave && self.has_teeth(tool) => {
                    findings.push(self.suspect(why, found))
                }
                Piece::Mention { text } if !leave => {
                    findings.extend(rules.iter().filter_map(|rule| mentioned(rule, text, found)));
                }
                Piece::Tool { tool } => findings.extend(self.judge_tool(*tool)),
                Piece::Bare if self.default > Decision::Allow => {
                    findings.push(self.suspect("it runs no program that a rule could allow", found));
                }
                Piece::Bare => {}
                Piece::Opaque { .. } | Piece::Mention { .. } => {}
            }
        }
        findings
    }

    /// Judges one command; says whether it has leave of its own.
    fn command(
        &self,
        rules: &[&Arc<Rule>],
        (words, transparent): (&[Word], bool),
        found: &Found,
        findings: &mut Vec<Finding>,
    ) -> bool {
        let mut leave = false;
        for rule in rules {
            match rule.speaks_of(words) {
                Strength::No => {}
                strength => {
                    leave |= rule.decision == Decision::Allow;
                    findings.push(spoken(rule, strength, found));
                }
            }
        }
        if !leave && !transparent && self.default > Decision::Allow {
            findings.push(Finding {
                decision: self.default,
                why: format!(
                    "no rule allows it, and the default of {} is {}",
                    self.file.display(),
                    self.default.name()
                ),
                rule: None,
                part: found.shown.clone(),
            });
        }
        leave
    }

    fn suspect(&self, why: &str, found: &Found) -> Finding {
        Finding {
            decision: self.default.max(Decision::Ask),
            why: format!("{why}: a rule of {} could be about what it runs", self.file.display()),
            rule: None,
            part: found.shown.clone(),
        }
    }
}

fn spoken(rule: &Arc<Rule>, strength: Strength, found: &Found) -> Finding {
    let (decision, why) = match strength {
        Strength::Yes => (rule.decision, format!("the rule \"{}\" matches it", rule.shown())),
        _ => (Decision::Ask, format!("the rule \"{}\" could be about it", rule.shown())),
    };
    Finding { decision, why, rule: Some(Arc::clone(rule)), part: found.shown.clone() }
}

fn mentioned(rule: &Arc<Rule>, text: &str, found: &Found) -> Option<Finding> {
    rule.is_mentioned_in(text).then(|| Finding {
        decision: Decision::Ask,
        why: format!("it mentions what the rule \"{}\" is about, and could run it", rule.shown()),
        rule: Some(Arc::clone(rule)),
        part: found.shown.clone(),
    })
}

/// What one rule alone says of what a line does.
pub(crate) fn of_rule(rule: &Arc<Rule>, reading: &Reading) -> Vec<(Strength, Finding)> {
    let one = |found: &Found| match &found.piece {
        Piece::Command { words, .. } => match rule.speaks_of(words) {
            Strength::No => None,
            strength => Some((strength, spoken(rule, strength, found))),
        },
        Piece::Write { target } => match rule.speaks_of(&[Word::plain(">"), target.clone()]) {
            Strength::No => None,
            strength => Some((strength, spoken(rule, strength, found))),
        },
        Piece::Mention { text } => mentioned(rule, text, found).map(|finding| (Strength::Maybe, finding)),
        Piece::Opaque { .. } | Piece::Tool { .. } | Piece::Bare => None,
    };
    reading.found.iter().filter_map(one).collect()
}
