//! The ways to wake somebody, by name.

use crate::job::Run;
use crate::words::{UnknownWord, words};

words! {
    /// A way to wake somebody.
    pub enum WakeKind ("way to wake somebody") {
        /// Run a line in a shell.
        Exec = "exec",
        /// Post to a URL.
        Webhook = "webhook",
        /// Type a notice into a tmux pane.
        Tmux = "tmux",
        /// Wake the agent that the job belongs to, by its own means.
        Agent = "agent",
        /// Queue a message for a Codex thread.
        Codex = "codex",
        /// Append a line to a file.
        File = "file",
    }
}

impl WakeKind {
    /// How it is written after `--wake`.
    #[must_use]
    pub const fn usage(self) -> &'static str {
        match self {
            Self::Exec => "exec:COMMAND",
            Self::Webhook => "webhook:URL",
            Self::Tmux => "tmux:PANE",
            Self::Agent => "agent",
            Self::Codex => "codex[:THREAD]",
            Self::File => "file:PATH",
        }
    }

    /// All of them as they are written, for help and hints.
    #[must_use]
    pub fn usages() -> String {
        Self::ALL.iter().map(|kind| kind.usage()).collect::<Vec<_>>().join(", ")
    }
}

/// What a wake does besides telling somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WakeEffect {
    /// It runs a line in a shell.
    RunsLine(String),
    /// It appends to a file.
    WritesFile(String),
    /// Nothing: it only tells.
    Tells,
}

impl WakeEffect {
    /// What `KIND:TARGET` does, as it is written after `--wake`.
    ///
    /// # Errors
    /// An unknown kind.
    pub fn of(words: &str) -> Result<Self, UnknownWord> {
        let (kind, target) = words.split_once(':').unwrap_or((words, ""));
        Ok(match kind.parse()? {
            WakeKind::Exec => Self::RunsLine(target.to_owned()),
            WakeKind::File => Self::WritesFile(target.to_owned()),
            WakeKind::Webhook | WakeKind::Tmux | WakeKind::Agent | WakeKind::Codex => Self::Tells,
        })
    }

    /// A command that does the same, for rules that are about commands.
    #[must_use]
    pub fn as_command(self) -> Option<Run> {
        match self {
            Self::RunsLine(line) => Some(Run::Shell(line)),
            Self::WritesFile(path) => Some(Run::Program(vec!["tee".into(), "-a".into(), path])),
            Self::Tells => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_wake_runs_or_writes_is_a_command_for_rules() {
        let command = |words: &str| WakeEffect::of(words).unwrap().as_command().map(|run| run.display());
        assert_eq!(command("exec:rm -rf x").as_deref(), Some("rm -rf x"));
        assert_eq!(command("file:/etc/x y").as_deref(), Some("tee -a '/etc/x y'"));
        for tells in ["webhook:http://x", "tmux:%3", "agent", "codex"] {
            assert_eq!(command(tells), None, "{tells}");
        }
        assert!(WakeEffect::of("carrier:pigeon").is_err());
    }
}
