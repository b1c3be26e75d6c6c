//! The ways to wake somebody, by name.

use crate::words::words;

words! {
    /// A way to wake somebody.
    pub enum WakeKind ("way to wake somebody") {
        /// Run a line in a shell.
        Exec = "exec",
        /// Post to a URL.
        Webhook = "webhook",
        /// Type a notice into a tmux pane.
        Tmux = "tmux",
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
