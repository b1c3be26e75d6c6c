//! What the doors share about orders: through which door one comes, which tool it is for the rules of a
//! policy, and what holds when it does not say.

use std::time::Duration;

use crate::words::words;

/// How long a job may take to end by itself when it is ended, unless the order says otherwise.
pub const KILL_GRACE: Duration = Duration::from_millis(200);
/// How long a person at a terminal lets a job take to end by itself, as `docker stop` does.
pub const KILL_GRACE_AT_TERMINAL: Duration = Duration::from_secs(10);

words! {
    /// Through which door an order comes.
    pub enum Door ("door") {
        /// `outlast` on the command line: a person, as a rule.
        CommandLine = "cli",
        /// An agent over MCP.
        Mcp = "mcp",
        /// An agent over ACP.
        Acp = "acp",
        /// A person in a browser.
        Web = "web",
    }
}

impl Door {
    /// Whether it is an agent that comes through it.
    #[must_use]
    pub fn is_agents(self) -> bool {
        match self {
            Self::CommandLine | Self::Web => false,
            Self::Mcp | Self::Acp => true,
        }
    }
}

words! {
    /// What an order does, as rules of a policy name it. The other names are those of the verb on the command
    /// line and of the tool in the profiles of the MCP server: another name for a tool does not lead around its
    /// rules.
    pub enum Tool ("tool") {
        /// Runs a command.
        Run = "run_shell_command" | "run" | "exec_command" | "Bash",
        /// Types into a job.
        Send = "send_input" | "send" | "write_to_shell" | "write_stdin",
        /// Ends a job, or sends it a signal.
        Kill = "kill" | "KillShell",
        /// Shows a screen.
        Screen = "read_shell" | "screen",
        /// Reads what was printed.
        Read = "read_output" | "read" | "BashOutput" | "read_background_output",
        /// Waits.
        Wait = "wait_for" | "wait",
        /// Lists jobs.
        Jobs = "jobs" | "list_background_processes",
        /// Reads what a session was told, and notes how far.
        Events = "events",
        /// Sets and removes watches.
        Watch = "watch",
        /// Gives a terminal another size.
        Resize = "resize",
        /// Removes finished jobs.
        Prune = "prune",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_means_two_tools() {
        let mut names: Vec<&str> = Tool::ALL
            .iter()
            .flat_map(|tool| std::iter::once(tool.name()).chain(tool.older().iter().copied()))
            .collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
