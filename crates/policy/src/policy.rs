//! All files that are in force, together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_job::Run;
use outlast_job::settings::{Settings, read_file};
use outlast_rules::exec::{ANSWER_WITHIN_MS, ExecDecision, ExecRule, ExecRules};
use outlast_rules::files::{Access, FileRule, could_name};

use crate::decision::{Decision, Tool, Unattended};
use crate::file::{Guard, Layer, LoadError};
use crate::judge::{Finding, Verdict};
use crate::reading::{FoundPiece, Piece, Reading};
use crate::rule::{Files, Rule, Strength};
use crate::word::{Word, plain_words};

/// Where a project keeps its policy.
const IN_PROJECT: &str = ".outlast/policy.toml";

/// More commands of one line than this are asked about again when they are executed.
const MAX_GRANTED: usize = 64;

/// What agents may do to jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForAgents {
    /// End jobs of their own session.
    pub kill: Decision,
    /// Type into jobs of their own session.
    pub input: Decision,
    /// End, or type into, jobs of other sessions.
    pub others: Decision,
    /// Whether somebody said whether agents may end jobs of their own: then that is a rule, and no default.
    pub kill_is_said: bool,
    /// The same for typing into them.
    pub input_is_said: bool,
    /// What they may do where nobody can be asked.
    pub unattended: Unattended,
    /// Whether a call that says that the user agreed counts, where nobody can be asked.
    pub confirmed: bool,
}

/// The policy in force.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    layers: Vec<Layer>,
    /// Whether the first layer is the user's own.
    has_user: bool,
}

impl Policy {
    /// The user's policy, and those of the projects that folders are in. Where there is no file, nothing is
    /// opened, and nothing is asked for.
    ///
    /// # Errors
    /// When a file can't be read, or is wrong.
    pub fn load(folders: &[&Path]) -> Result<Self, LoadError> {
        let mut policy = Self::default();
        if let Some(layer) = Self::user_file().map(|file| read(&file)).transpose()?.flatten() {
            policy.layers.push(layer);
            policy.has_user = true;
        }
        policy.add_projects(folders)?;
        policy.check_files(0)?;
        Ok(policy)
    }

    /// The same, and what the projects around other folders say. What is in force already stays as it was.
    ///
    /// # Errors
    /// When a file can't be read, or is wrong.
    pub fn at(&self, folders: &[&Path]) -> Result<Self, LoadError> {
        let mut policy = self.clone();
        policy.add_projects(folders)?;
        policy.check_files(self.layers.len())?;
        Ok(policy)
    }

    /// The same, with what the projects say that nested commands of a verdict would run in; none when there
    /// are none of those. Their folders are named from where the command runs.
    ///
    /// # Errors
    /// When a file can't be read, or is wrong.
    pub fn at_nested(&self, folder: &Path, verdict: &Verdict) -> Result<Option<Self>, LoadError> {
        if verdict.folders.is_empty() {
            return Ok(None);
        }
        let named = || verdict.folders.iter();
        let bases = std::iter::once(folder).chain(named().map(PathBuf::as_path));
        let folders: Vec<PathBuf> =
            bases.flat_map(|base| named().map(move |folder| base.join(folder))).collect();
        self.at(&folders.iter().map(PathBuf::as_path).collect::<Vec<_>>()).map(Some)
    }

    /// The policy of one text, as the user's own.
    ///
    /// # Errors
    /// When it is wrong.
    pub fn parse(path: &Path, text: &str) -> Result<Self, LoadError> {
        Ok(Self { layers: vec![Layer::parse(path, text)?], has_user: true })
    }

    /// A rule about files that this machine can't enforce does not load.
    fn check_files(&self, from: usize) -> Result<(), LoadError> {
        let about_files = |layer: &&Layer| layer.rules.iter().any(|rule| rule.files.is_some());
        let Some(layer) = self.layers[from..].iter().find(about_files) else { return Ok(()) };
        let Err(why) = outlast_job::sandbox::can_close_files() else { return Ok(()) };
        let line = layer.rules.iter().find(|rule| rule.files.is_some()).map(|rule| rule.place.line);
        let message = format!(
            "a rule about files can't be enforced here: it needs namespaces for processes and mounts, and {why}; \
             take the rule out, or allow user namespaces on this machine"
        );
        Err(LoadError { file: layer.file.to_path_buf(), line, message })
    }

    fn add_projects(&mut self, folders: &[&Path]) -> Result<(), LoadError> {
        let mut looked: Vec<PathBuf> = self.layers.iter().map(|layer| layer.file.to_path_buf()).collect();
        for folder in folders {
            // As it is, and as it really is: a link does not lead around a project's policy.
            let real = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
            for folder in folder.ancestors().chain(real.ancestors()) {
                let file = folder.join(IN_PROJECT);
                if looked.contains(&file) {
                    continue;
                }
                self.layers.extend(read(&file)?);
                looked.push(file);
            }
        }
        Ok(())
    }

    /// Where the user's own policy would be: `policy.toml` beside the settings.
    #[must_use]
    pub fn user_file() -> Option<PathBuf> {
        Settings::path().map(|settings| settings.with_file_name("policy.toml"))
    }

    /// The files in force.
    #[must_use]
    pub fn files(&self) -> Vec<&Path> {
        self.layers.iter().map(|layer| layer.file.as_path()).collect()
    }

    /// What is odd about the files, but no error: rules that never decide.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.layers.iter().flat_map(|layer| layer.notes.clone()).collect()
    }

    /// Whether there is no file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// Whether any command of a tool could be asked for or denied.
    #[must_use]
    pub fn can_restrict(&self, tool: Tool) -> bool {
        self.layers.iter().any(|layer| layer.can_restrict(tool))
    }

    /// What agents may do to jobs. Unless the user says otherwise a person is asked; a project can only
    /// tighten. `own` is what the server was started with for an agent's own jobs.
    #[must_use]
    pub fn for_agents(&self, own: Option<Decision>) -> ForAgents {
        let resolved = |default: Option<Decision>, said: fn(&Layer) -> Option<Decision>| {
            let (user, projects) = self.layers.split_at(usize::from(self.has_user));
            let user = default.or_else(|| user.first().and_then(said)).unwrap_or(Decision::Ask);
            projects.iter().filter_map(said).fold(user, Decision::max)
        };
        ForAgents {
            kill: resolved(own, |layer| layer.agents.kill),
            input: resolved(own, |layer| layer.agents.input),
            others: resolved(None, |layer| layer.agents.others),
            kill_is_said: own.is_some() || self.layers.iter().any(|layer| layer.agents.kill.is_some()),
            input_is_said: own.is_some() || self.layers.iter().any(|layer| layer.agents.input.is_some()),
            unattended: {
                let (user, projects) = self.layers.split_at(usize::from(self.has_user));
                let user = user.first().and_then(|layer| layer.agents.unattended).unwrap_or_default();
                projects.iter().filter_map(|layer| layer.agents.unattended).fold(user, Unattended::max)
            },
            // The user switches it on, and a project can only switch it off.
            confirmed: self.has_user
                && self.layers.first().is_some_and(|layer| layer.agents.confirmed == Some(true))
                && self.layers.iter().all(|layer| layer.agents.confirmed != Some(false)),
        }
    }

    /// What is said of a tool, whatever it is used for.
    #[must_use]
    pub fn judge_tool(&self, tool: Tool) -> Verdict {
        Verdict::of(self.layers.iter().flat_map(|layer| layer.judge_tool(tool)).collect())
    }

    /// What is said of a line for the shell.
    #[must_use]
    pub fn judge_line(&self, tool: Tool, line: &str) -> Verdict {
        if self.layers.is_empty() && !line.contains("outlast") {
            return Verdict::default();
        }
        self.judge(tool, &Reading::of_line(line))
    }

    /// What is said of a command, and of the variables that it is given besides those of its caller; `fed`
    /// when something that we do not see comes on its standard input.
    #[must_use]
    pub fn judge_run(&self, run: &Run, env: &BTreeMap<String, String>, fed: bool) -> Verdict {
        let mut verdict = match run {
            Run::Shell(line) if fed && !self.layers.is_empty() => {
                self.judge(Tool::Run, &Reading::of_fed_line(line))
            }
            Run::Shell(line) => self.judge_line(Tool::Run, line),
            Run::Program(argv)
                if self.layers.is_empty() && !argv.iter().any(|arg| arg.contains("outlast")) =>
            {
                Verdict::default()
            }
            Run::Program(argv) => self.judge(Tool::Run, &Reading::of_words(plain_words(argv), fed)),
        };
        if self.names_files() {
            let text = match run {
                Run::Shell(line) => line.clone(),
                Run::Program(argv) => argv.join(" "),
            };
            verdict = verdict.and(self.judge_named_files(&text));
        }
        if !self.layers.is_empty() {
            for (name, value) in env {
                verdict = verdict.and(self.judge(Tool::Run, &Reading::of_variable(name, value)));
            }
        }
        verdict
    }

    /// The rules for what an agent's job really executes; none where no rule denies or asks for a program.
    #[must_use]
    pub fn exec_rules(&self) -> Option<ExecRules> {
        let guarded = self.layers.iter().filter(|layer| layer.guard == Guard::On);
        let rules: Vec<ExecRule> =
            guarded.flat_map(|layer| &layer.rules).filter_map(|rule| exec_rule(rule)).collect();
        let shortest = self.layers.iter().filter_map(|layer| layer.answer_within).min();
        let answer_within_ms = shortest.map_or(ANSWER_WITHIN_MS, outlast_job::clock::millis);
        let files =
            self.layers.iter().flat_map(|layer| &layer.rules).flat_map(file_rules).collect::<Vec<_>>();
        let is_empty = rules.is_empty() && files.is_empty();
        (!is_empty).then_some(ExecRules { rules, granted: Vec::new(), answer_within_ms, files })
    }

    /// What is said of a text that could name a file: a person is asked, for nobody knows from here what is done with it.
    #[must_use]
    pub fn judge_named_files(&self, text: &str) -> Verdict {
        let about = |rule: &&Arc<Rule>| {
            rule.files.as_ref().is_some_and(|files| {
                files.access == Access::Read && files.patterns.iter().any(|pattern| could_name(pattern, text))
            })
        };
        let finding = |rule: &Arc<Rule>| Finding {
            decision: Decision::Ask,
            why: match rule.decision {
                Decision::Deny => format!(
                    "it could name a file that the rule \"{}\" closes, which a yes does not open",
                    rule.shown()
                ),
                Decision::Allow | Decision::Ask => {
                    format!(
                        "it could name a file of the rule \"{}\"; a yes opens it for this job",
                        rule.shown()
                    )
                }
            },
            rule: Some(Arc::clone(rule)),
            part: text.to_owned(),
        };
        Verdict::of(self.layers.iter().flat_map(|layer| &layer.rules).filter(about).map(finding).collect())
    }

    /// Whether a rule is about files.
    pub(crate) fn names_files(&self) -> bool {
        self.layers.iter().any(|layer| layer.rules.iter().any(|rule| rule.files.is_some()))
    }

    /// The commands of a line that a person is asked about, where it is certain what they are. Who agrees to the line agrees
    /// to each of them, once.
    pub(crate) fn asked_commands(&self, run: &Run) -> Vec<Vec<String>> {
        let reading = match run {
            Run::Shell(line) => Reading::of_line(line),
            Run::Program(argv) => Reading::of_words(plain_words(argv), false),
        };
        let rules: Vec<_> = self.layers.iter().flat_map(|layer| &layer.rules).collect();
        let is_asked = |words: &[Word]| {
            rules.iter().any(|rule| {
                rule.decision > Decision::Allow
                    && rule.is_about(Tool::Run)
                    && rule.speaks_of(words) > Strength::No
            })
        };
        let command = |found: &FoundPiece| match &found.piece {
            Piece::Command { words, .. } if is_asked(words) => {
                words.iter().map(|word| word.known().map(str::to_owned)).collect::<Option<Vec<_>>>()
            }
            Piece::Command { .. }
            | Piece::Write { .. }
            | Piece::Opaque { .. }
            | Piece::Mention { .. }
            | Piece::Outside { .. }
            | Piece::Bare
            | Piece::Tool { .. } => None,
        };
        reading.found.iter().filter_map(command).take(MAX_GRANTED).collect()
    }

    pub(crate) fn judge(&self, tool: Tool, reading: &Reading) -> Verdict {
        let mut verdict =
            Verdict::of(self.layers.iter().flat_map(|layer| layer.judge(tool, reading)).collect());
        verdict.reaches = reading
            .found
            .iter()
            .filter_map(|found| match found.piece {
                Piece::Tool { tool, acts: true } => Some(tool),
                Piece::Command { .. }
                | Piece::Write { .. }
                | Piece::Opaque { .. }
                | Piece::Mention { .. }
                | Piece::Outside { .. }
                | Piece::Bare
                | Piece::Tool { .. } => None,
            })
            .collect();
        verdict.folders.clone_from(&reading.folders);
        verdict
    }
}

/// A rule about programs, as a keeper is told of it; none for what is not a program.
fn exec_rule(rule: &Rule) -> Option<ExecRule> {
    let decision = match rule.decision {
        Decision::Allow => return None,
        Decision::Ask => ExecDecision::Ask,
        Decision::Deny => ExecDecision::Deny,
    };
    let is_about_programs = rule.prefix.first().is_some_and(|first| !first.iter().all(|word| word == ">"));
    is_about_programs.then(|| ExecRule {
        decision,
        prefix: rule.prefix.clone(),
        shown: rule.shown(),
        place: rule.place.to_string(),
        why: rule.why.clone(),
    })
}

/// A rule about files, as a keeper is told of it.
fn file_rules(rule: &Arc<Rule>) -> impl Iterator<Item = FileRule> {
    let below = rule.place.project().map(Path::to_owned);
    let place = rule.place.to_string();
    rule.files.iter().flat_map(move |Files { patterns, access }| {
        let (below, place, access) = (below.clone(), place.clone(), *access);
        patterns.iter().map(move |pattern| FileRule {
            pattern: pattern.clone(),
            access,
            below: below.clone(),
            place: place.clone(),
        })
    })
}

fn read(path: &Path) -> Result<Option<Layer>, LoadError> {
    use std::io::ErrorKind;
    match read_file(path) {
        Ok(text) => Layer::parse(path, &text).map(Some),
        // A folder above that we may not look into has no policy for us.
        Err(error)
            if [ErrorKind::NotFound, ErrorKind::NotADirectory, ErrorKind::PermissionDenied]
                .contains(&error.kind())
                && !path.exists() =>
        {
            Ok(None)
        }
        Err(error) => Err(LoadError {
            file: path.to_owned(),
            line: None,
            message: format!("it can't be read: {error}"),
        }),
    }
}
