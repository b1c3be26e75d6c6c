//! From what a line does, and what the files say, to a decision with its reasons.
//!
//! Each file judges by itself, and the strictest decision wins. So a project can tighten what the user
//! allows, but never loosen it.

use std::path::PathBuf;
use std::sync::Arc;

use crate::decision::{Decision, Tool};
use crate::file::Layer;
use crate::reading::{FoundPiece, Piece, Reading, StdinSource};
use crate::rule::{Rule, Strength};
use crate::unwrap::{Inner, unwrap};
use crate::word::{Word, base};

/// A reason for a decision.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What it decides.
    pub decision: Decision,
    /// Why, in a sentence.
    pub why: String,
    /// The rule, if there is one.
    pub rule: Option<Arc<Rule>>,
    /// The part of the command that it is about.
    pub part: String,
}

/// A decision with its reasons, the strictest first.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The decision.
    pub decision: Decision,
    /// The reasons; empty if there are no objections.
    pub findings: Vec<Finding>,
    /// Our own tools that the command would act with.
    pub reaches: Vec<Tool>,
    /// Other folders that a nested command would run in.
    pub folders: Vec<PathBuf>,
}

impl Verdict {
    pub(crate) fn of(mut findings: Vec<Finding>) -> Self {
        findings.sort_by_key(|finding| (std::cmp::Reverse(finding.decision), finding.rule.is_none()));
        let decision = findings.first().map_or(Decision::Allow, |finding| finding.decision);
        Self { decision, findings, reaches: Vec::new(), folders: Vec::new() }
    }

    /// The stricter of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let mut both = Self::of([self.findings, other.findings].concat());
        both.reaches = [self.reaches, other.reaches].concat();
        both.folders = [self.folders, other.folders].concat();
        both
    }

    /// The reason that decided.
    #[must_use]
    pub fn first(&self) -> Option<&Finding> {
        self.findings.first()
    }
}

/// Files that are run later without being seen: by a shell at its start, by git or by cron; or that say what
/// is allowed.
const RUN_LATER_FILES: &[&str] = &[
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
const RUN_LATER_FOLDERS: &[&str] =
    &[".git/hooks/", "/etc/profile.d/", "/etc/cron", ".config/autostart/", ".config/systemd/", ".ssh/"];

fn is_run_later(target: &Word) -> bool {
    RUN_LATER_FILES.contains(&base(&target.text))
        || RUN_LATER_FOLDERS.iter().any(|folder| target.text.contains(folder))
}

impl Layer {
    /// Whether it could ask about or deny any command of a tool.
    pub(crate) fn can_restrict(&self, tool: Tool) -> bool {
        let restricts = |rule: &Arc<Rule>| {
            rule.decision > Decision::Allow && !rule.prefix.is_empty() && rule.is_about(tool)
        };
        self.default > Decision::Allow || self.rules.iter().any(restricts)
    }

    /// Judges the use of a tool, whatever it is used for.
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

    /// Judges what a line does.
    pub(crate) fn judge(&self, tool: Tool, reading: &Reading) -> Vec<Finding> {
        let rules: Vec<&Arc<Rule>> = self.rules.iter().filter(|rule| rule.is_about(tool)).collect();
        let mut allowed = vec![Permission::default(); reading.found.len()];
        let mut findings = Vec::new();
        for (i, found) in reading.found.iter().enumerate() {
            let of = found.of.map(|of| &allowed[of]);
            let permitted = of.is_some_and(|of| of.permitted.lifts(self.default));
            match &found.piece {
                Piece::Command { words, transparent } => {
                    allowed[i] = self.command(&rules, (words, *transparent), found, &mut findings);
                }
                Piece::Write { target } => {
                    let words = [Word::plain(">"), target.clone()];
                    let transparent = found.of.is_some() || self.default == Decision::Allow;
                    let by_rule = self.command(&rules, (&words, transparent), found, &mut findings);
                    let permitted = by_rule.permitted > Permitted::No || permitted;
                    if !permitted && self.can_restrict(tool) && is_run_later(target) {
                        findings.push(self.suspect("it writes a file that is run later", found));
                    }
                }
                // Where all else is refused, a rule lifts what it is suspicious of in its own words only.
                Piece::Opaque { why }
                    if self.can_restrict(tool)
                        && !(permitted
                            && (self.default == Decision::Allow
                                || of.is_some_and(|of| of.suspicions.contains(why)))) =>
                {
                    findings.push(self.suspect(why, found))
                }
                Piece::Mention { text } if !permitted => {
                    findings.extend(rules.iter().filter_map(|rule| mentioned(rule, text, found)));
                }
                Piece::Tool { tool, .. } => findings.extend(self.judge_tool(*tool)),
                // Not lifted by a rule: it is about what could be misread.
                Piece::Outside { why } if self.default > Decision::Allow => {
                    let why = format!("only plain lines can be allowed, and {why}");
                    findings.push(self.suspect(&why, found));
                }
                Piece::Outside { .. } => {}
                Piece::Bare if self.default > Decision::Allow => {
                    findings.push(self.suspect("it runs no program that a rule could allow", found));
                }
                Piece::Bare => {}
                Piece::Opaque { .. } | Piece::Mention { .. } => {}
            }
        }
        findings
    }

    /// Judges one command. Returns how far a rule permits it.
    fn command(
        &self,
        rules: &[&Arc<Rule>],
        (words, transparent): (&[Word], bool),
        found: &FoundPiece,
        findings: &mut Vec<Finding>,
    ) -> Permission {
        let mut permitted = Permitted::No;
        let mut suspicions = Vec::new();
        // Where all that is not allowed is refused, a wrapper must leave no doubt what it starts.
        let transparent = transparent && (self.default == Decision::Allow || is_plainly_wrapped(words));
        for rule in rules {
            match rule.speaks_of(words) {
                Strength::No => {}
                strength @ (Strength::Maybe | Strength::Yes) => {
                    if rule.decision == Decision::Allow {
                        permitted = permitted.max(Permitted::of(rule, words));
                        suspicions.extend(suspicions_about(words.get(..rule.prefix.len()).unwrap_or(words)));
                    }
                    findings.push(matched(rule, strength, found));
                }
            }
        }
        if permitted == Permitted::No && !transparent && self.default > Decision::Allow {
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
        Permission { permitted, suspicions }
    }

    fn suspect(&self, why: &str, found: &FoundPiece) -> Finding {
        Finding {
            decision: self.default.max(Decision::Ask),
            why: format!("{why}: a rule of {} could be about what it runs", self.file.display()),
            rule: None,
            part: found.shown.clone(),
        }
    }
}

/// What rules permit of a command.
#[derive(Clone, Debug, Default)]
struct Permission {
    permitted: Permitted,
    /// What is suspicious in the words of the rule itself: whoever wrote them meant that.
    suspicions: Vec<&'static str>,
}

/// What is suspicious about these words alone.
fn suspicions_about(words: &[Word]) -> Vec<&'static str> {
    let opaque = |inner: Inner| match inner {
        Inner::Opaque(why) => Some(why),
        Inner::Words(_)
        | Inner::Line(_)
        | Inner::Mention(_)
        | Inner::Write(_)
        | Inner::Output(_)
        | Inner::Unclear(_)
        | Inner::Tool(_)
        | Inner::Look(_)
        | Inner::Folder(_)
        | Inner::Set(..)
        | Inner::Transparent => None,
    };
    unwrap(words, &StdinSource::Outside).into_iter().filter_map(opaque).collect()
}

/// How far rules permit a command.
#[derive(Default, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Permitted {
    #[default]
    No,
    /// With options that the rule does not name.
    WithOptions,
    /// As the rule has it, with nothing but operands behind it.
    AsWritten,
}

impl Permitted {
    fn of(rule: &Rule, words: &[Word]) -> Self {
        let is_operand = |word: &Word| word.is_plain() && !word.text.starts_with('-');
        let more = words.get(rule.prefix.len()..).unwrap_or_default();
        if more.iter().all(is_operand) { Self::AsWritten } else { Self::WithOptions }
    }

    /// Whether a mere suspicion about the command is lifted. Where all else is refused, options that no rule names do not
    /// count as meant.
    fn lifts(self, default: Decision) -> bool {
        match self {
            Self::No => false,
            Self::WithOptions => default == Decision::Allow,
            Self::AsWritten => true,
        }
    }
}

fn is_plainly_wrapped(words: &[Word]) -> bool {
    // A file that is written by a redirection is not a program.
    if words.first().is_some_and(|word| word.text == ">") {
        return true;
    }
    let known: Option<Vec<&str>> = words.iter().map(Word::known).collect();
    known.is_some_and(|words| crate::grammar::is_plain_wrapper(&words))
}

fn matched(rule: &Arc<Rule>, strength: Strength, found: &FoundPiece) -> Finding {
    let (decision, why) = match strength {
        Strength::Yes => (rule.decision, format!("the rule \"{}\" matches it", rule.shown())),
        Strength::No | Strength::Maybe => {
            (Decision::Ask, format!("the rule \"{}\" could be about it", rule.shown()))
        }
    };
    Finding { decision, why, rule: Some(Arc::clone(rule)), part: found.shown.clone() }
}

fn mentioned(rule: &Arc<Rule>, text: &str, found: &FoundPiece) -> Option<Finding> {
    rule.is_mentioned_in(text).then(|| Finding {
        decision: Decision::Ask,
        why: format!("it mentions what the rule \"{}\" is about, and could run it", rule.shown()),
        rule: Some(Arc::clone(rule)),
        part: found.shown.clone(),
    })
}

/// What one rule by itself says about what a line does.
pub(crate) fn of_rule(rule: &Arc<Rule>, reading: &Reading) -> Vec<(Strength, Finding)> {
    let one = |found: &FoundPiece| match &found.piece {
        Piece::Command { words, .. } => match rule.speaks_of(words) {
            Strength::No => None,
            strength @ (Strength::Maybe | Strength::Yes) => Some((strength, matched(rule, strength, found))),
        },
        Piece::Write { target } => match rule.speaks_of(&[Word::plain(">"), target.clone()]) {
            Strength::No => None,
            strength @ (Strength::Maybe | Strength::Yes) => Some((strength, matched(rule, strength, found))),
        },
        Piece::Mention { text } => mentioned(rule, text, found).map(|finding| (Strength::Maybe, finding)),
        Piece::Opaque { .. } | Piece::Outside { .. } | Piece::Tool { .. } | Piece::Bare => None,
    };
    reading.found.iter().filter_map(one).collect()
}
