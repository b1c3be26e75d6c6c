//! The suites: what each runs, and how many minutes it may take on two cores.

use std::path::Path;
use std::process::Command;

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// What runs with every change.
    Ci,
    /// Everything, with long tests at their full length.
    Full,
}

impl Size {
    pub(crate) fn includes(self, suite: &Suite) -> bool {
        self == Size::Full || matches!(suite.runs, Runs::Cargo(_))
    }
}

/// Tests that are run and counted together.
#[derive(Debug)]
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// Its budget in CI.
    pub(crate) minutes: u64,
    runs: Runs,
}

#[derive(Debug)]
enum Runs {
    /// Arguments of `cargo test`.
    Cargo(&'static [&'static str]),
    /// A script of the repository, at full size only. It gets the program as its argument.
    Script(&'static str),
}

/// All of them. The budgets of those that run in CI add up to 30 minutes.
pub(crate) const SUITES: &[Suite] = &[
    suite("units", "unit tests of every crate", 4, Runs::Cargo(&["--workspace", "--lib", "--bins"])),
    suite("examples", "examples in the documentation", 2, Runs::Cargo(&["--workspace", "--doc"])),
    suite(
        "stream",
        "recordings, corpora and saved fuzz inputs",
        2,
        Runs::Cargo(&["-p", "outlast-stream", "--tests"]),
    ),
    suite("pty", "real programs that wait or work, ports", 4, Runs::Cargo(&["-p", "outlast-pty", "--tests"])),
    suite(
        "policy",
        "evasions, and the real bash as judge",
        2,
        Runs::Cargo(&["-p", "outlast-policy", "--tests"]),
    ),
    suite("it", "jobs from the command line, faults", 5, Runs::Cargo(&["-p", "outlast", "--test", "it"])),
    suite("terminal", "screens, keys, attaching", 3, Runs::Cargo(&["-p", "outlast", "--test", "terminal"])),
    suite("tell", "events, wakes, tmux panes", 3, Runs::Cargo(&["-p", "outlast", "--test", "tell"])),
    suite("guard", "sandbox, secrets, limits", 2, Runs::Cargo(&["-p", "outlast", "--test", "guard"])),
    suite("acp", "the ACP agent and the sidecar", 1, Runs::Cargo(&["-p", "outlast", "--test", "acp"])),
    suite("mcp", "the MCP server", 2, Runs::Cargo(&["-p", "outlast-mcp", "--tests"])),
    suite("clients", "public MCP clients and the conformance suite", 30, Runs::Script("clients/run")),
    suite("editors", "public ACP clients", 30, Runs::Script("clients/acp/run")),
    suite("agents", "real agents with a scripted model", 30, Runs::Script("clients/agents/run")),
];

const fn suite(name: &'static str, what: &'static str, minutes: u64, runs: Runs) -> Suite {
    Suite { name, what, minutes, runs }
}

impl Suite {
    pub(crate) fn command(&self, cargo: &Path, root: &Path) -> Command {
        let mut command = match self.runs {
            Runs::Cargo(arguments) => {
                let mut command = Command::new(cargo);
                command.args(["test", "--quiet", "--no-fail-fast"]).args(arguments);
                command
            }
            Runs::Script(script) => {
                let mut command = Command::new(root.join(script));
                command.arg(root.join("target/debug/outlast"));
                command
            }
        };
        command.current_dir(root);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budgets_of_ci_fit_into_half_an_hour() {
        let minutes: u64 =
            SUITES.iter().filter(|suite| Size::Ci.includes(suite)).map(|suite| suite.minutes).sum();
        assert!(minutes <= 30, "{minutes} minutes");
    }
}
