//! Shells that remember: a shell is a job, and each command in it is a step.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::words::words;

words! {
    /// Which shell it is.
    pub enum ShellKind ("shell") {
        /// GNU bash.
        Bash = "bash",
        /// The Z shell.
        Zsh = "zsh",
        /// Fish.
        Fish = "fish",
        /// A shell as small as POSIX asks for: each step is a fresh one, with the state of the one before.
        Dash = "dash",
    }
}

/// A shell that remembers, as it is asked for and as a record has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shell {
    /// What it is called.
    pub name: String,
    /// Whose it is: an agent's session; empty for the user's own shells.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// Which shell it is.
    pub kind: ShellKind,
    /// Whether it has read the user's own startup files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rc: bool,
    /// Whether nothing of its state is written to the disk.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_memory: bool,
    /// What it got back of a shell of the same name that is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<String>,
}

impl Shell {
    /// A shell of this name, without the user's startup files.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: ShellKind) -> Self {
        Self { name: name.into(), scope: String::new(), kind, rc: false, in_memory: false, restored: None }
    }

    /// Checks its name.
    ///
    /// # Errors
    /// A usage failure.
    pub fn check(&self) -> Result<(), Failure> {
        let name = &self.name;
        let fits = name.len() <= 64
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
            && name.starts_with(|c: char| c.is_ascii_alphabetic());
        if fits {
            return Ok(());
        }
        Err(Failure::usage(format!("{name:?} can't be a shell's name")).hint(
            "give a letter, then letters, digits, '.', '_' or '-', at most 64 in all; for example main",
        ))
    }
}

/// A command for a shell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepOrder {
    /// The command, as it would be typed.
    pub command: String,
    /// The folder for this step alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Variables for this step alone: a value to set, or none to remove it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Option<String>>,
    /// End it after this long, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Refuse it when another step runs, instead of letting it wait.
    pub if_idle: bool,
    /// The session that asks.
    pub session: String,
}

impl StepOrder {
    /// Checks what can be checked before a shell is asked.
    ///
    /// # Errors
    /// A usage failure.
    pub fn check(&self) -> Result<(), Failure> {
        if self.command.trim().is_empty() {
            return Err(Failure::usage("the command is empty"));
        }
        let texts = self.env.iter().flat_map(|(name, value)| [Some(name), value.as_ref()]);
        let mut texts = texts.chain([Some(&self.command), self.folder.as_ref()]).flatten();
        if texts.any(|text| text.contains('\0')) {
            return Err(Failure::usage("a command or environment can't contain a NUL byte")
                .hint("write the data to a file, and give the command that file's name"));
        }
        let is_name = |name: &String| {
            !name.is_empty()
                && !name.starts_with(|c: char| c.is_ascii_digit())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        match self.env.keys().find(|name| !is_name(name)) {
            Some(name) => Err(Failure::usage(format!("{name:?} can't be the name of a variable of a shell"))),
            None => Ok(()),
        }
    }
}

words! {
    /// How a step is.
    pub enum StepState ("state of a step") {
        /// It waits for the steps before it.
        Queued = "queued",
        /// It runs.
        Running = "running",
        /// It has ended.
        Ended = "ended",
        /// It never ran, because the shell ended before.
        NotRun = "not_run",
    }
}

/// A command in a shell: what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its number, from 1 in each shell.
    pub step: u64,
    /// The command.
    pub command: String,
    /// How it is.
    pub state: StepState,
    /// Who asked for it: a session.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Where in the log what it printed begins.
    pub from: u64,
    /// Where that ends, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The exit codes of its last pipeline, if that had several parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pipeline: Vec<i32>,
    /// When it began, in milliseconds since 1970.
    #[serde(default)]
    pub started_at: u64,
    /// How long it took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// The folder in which it began.
    #[serde(default)]
    pub folder_before: String,
    /// The folder in which it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Names of variables, functions, aliases and options that were found changed after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Processes that its shell has in the background after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<i32>,
    /// What else is to be said of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Step {
    /// Whether it has ended, or never will begin.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match self.state {
            StepState::Queued | StepState::Running => false,
            StepState::Ended | StepState::NotRun => true,
        }
    }

    /// The folder that it changed to, if it did.
    #[must_use]
    pub fn new_folder(&self) -> Option<&str> {
        self.folder.as_deref().filter(|folder| *folder != self.folder_before)
    }
}

/// The step that a shell runs, as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningStep {
    /// Its number.
    pub step: u64,
    /// The first line of its command.
    pub command: String,
}

/// How a shell is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellStatus {
    /// The folder it is in.
    pub folder: String,
    /// The last steps, oldest first.
    pub steps: Vec<Step>,
    /// What it remembers besides its folder, by names: a kind of thing, and what was changed since it was made.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub changed: BTreeMap<String, Vec<String>>,
    /// Whether a person sits at its prompt: steps of others wait.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub seated: bool,
}
