//! What can be decided, and about which tool.

use outlast_job::Failure;
use serde::{Deserialize, Serialize};

/// What may be done. The stricter is the greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// Go ahead.
    #[default]
    Allow,
    /// A person must agree.
    Ask,
    /// No.
    Deny,
}

impl Decision {
    /// The decision of a word.
    ///
    /// # Errors
    /// A usage failure that lists them.
    pub fn from_name(name: &str) -> Result<Self, Failure> {
        [Decision::Allow, Decision::Ask, Decision::Deny]
            .into_iter()
            .find(|decision| decision.name() == name)
            .ok_or_else(|| Failure::usage(format!("{name:?} is none of allow, ask and deny")))
    }

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Decision::Allow => "allow",
            Decision::Ask => "ask",
            Decision::Deny => "deny",
        }
    }
}

/// What is asked for, whatever the front door calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tool {
    /// Runs a command.
    Run,
    /// Types into a job.
    Send,
    /// Ends a job.
    Kill,
    /// Shows a screen.
    Screen,
    /// Reads what was printed.
    Read,
    /// Waits.
    Wait,
    /// Lists jobs.
    Jobs,
}

/// Each tool, and every name that it goes by in some profile or on the command line.
const NAMES: [(Tool, &[&str]); 7] = [
    (Tool::Run, &["run_shell_command", "run", "exec_command", "Bash"]),
    (Tool::Send, &["send_input", "send", "write_to_shell", "write_stdin"]),
    (Tool::Kill, &["kill", "KillShell"]),
    (Tool::Screen, &["read_shell", "screen"]),
    (Tool::Read, &["read_output", "read", "BashOutput", "read_background_output"]),
    (Tool::Wait, &["wait_for", "wait"]),
    (Tool::Jobs, &["jobs", "list_background_processes"]),
];

impl Tool {
    /// The tool of a name: another name for a tool is no way around its rules.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(_, names)| names.contains(&name)).map(|(tool, _)| *tool)
    }

    /// Its first name.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(tool, _)| *tool == self).map_or("", |(_, names)| names[0])
    }

    /// The first names of all tools.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        NAMES.iter().map(|(_, names)| names[0]).collect()
    }
}
