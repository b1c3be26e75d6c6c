//! The suites: what each runs, and how many seconds it may take on two cores of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

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
        self == Size::Full || suite.runs.is_in_ci()
    }
}

/// The time limit of a suite at full size, where it does not have one of its own.
const FULL_SECONDS: u64 = 3600;

/// Tests that are run and counted together.
#[derive(Debug)]
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// Its budget on two cores. At full size, a suite that also runs in CI has [`FULL_SECONDS`].
    seconds: u64,
    runs: Runs,
}

#[derive(Debug)]
enum Runs {
    /// The unit tests of every crate.
    Units,
    /// The examples in the documentation of every crate.
    Docs,
    /// All files below `tests/` of a crate.
    Tests(&'static str),
    /// One of them.
    Test(&'static str, &'static str),
    /// A script of the repository, at full size only. It gets the program as its argument.
    Script(&'static str),
    /// A verb of this program that measures and writes its figures into `docs`, at full size only.
    Figures(&'static [&'static str]),
    /// A verb of this program that checks something.
    Check(&'static [&'static str]),
    /// One that takes too long for every change.
    FullCheck(&'static [&'static str]),
}

impl Runs {
    fn is_in_ci(&self) -> bool {
        match self {
            Runs::Units | Runs::Docs | Runs::Tests(_) | Runs::Test(..) | Runs::Check(_) => true,
            Runs::Script(_) | Runs::Figures(_) | Runs::FullCheck(_) => false,
        }
    }
}

/// All of them. The budgets of those that run in CI add up to at most half an hour.
pub(crate) const SUITES: &[Suite] = &[
    suite("units", "unit tests of every crate", 100, Runs::Units),
    suite("examples", "examples in the documentation", 120, Runs::Docs),
    suite("protocol", "the words in the documentation", 20, Runs::Tests("protocol")),
    suite("stream", "recordings, corpora and saved fuzz inputs", 40, Runs::Tests("stream")),
    suite("pty", "real programs that wait or work, ports", 150, Runs::Tests("pty")),
    suite("policy", "evasions, and the real bash as judge", 50, Runs::Tests("policy")),
    suite("remote", "the relay's frames, by the vectors that every SDK runs", 20, Runs::Tests("remote")),
    suite(
        "machines",
        "jobs on other machines, over links that are cut, and a fleet",
        110,
        Runs::Test("outlast", "machines"),
    ),
    suite("museum", "what 0.1.0 wrote and said", 40, Runs::Test("outlast", "museum")),
    suite("it", "jobs from the command line, faults", 170, Runs::Test("outlast", "it")),
    suite("terminal", "screens, keys, attaching", 100, Runs::Test("outlast", "terminal")),
    suite("tell", "events, wakes, tmux panes", 130, Runs::Test("outlast", "tell")),
    suite("guard", "sandbox, secrets, limits", 60, Runs::Test("outlast", "guard")),
    suite("attack", "evasions, escapes and leaks, a part of them", 50, Runs::Test("outlast", "attack")),
    suite("acp", "the ACP agent and the sidecar", 60, Runs::Test("outlast", "acp")),
    suite("mcp", "the MCP server", 90, Runs::Test("outlast", "mcp")),
    suite("web", "the web view, attacked and in a real browser", 90, Runs::Test("outlast", "web")),
    suite(
        "shells",
        "shells that remember, with the real shells as judges",
        60,
        Runs::Test("outlast", "shells"),
    ),
    suite("guide", "the commands and links of README and guide", 30, Runs::Test("outlast", "guide")),
    suite("book", "the book of docs, without dead links", 40, Runs::Check(&["book"])),
    suite(
        "packages",
        "packages, installed in empty prefixes",
        90,
        Runs::Check(&["dist", "--debug-binary", "--check"]),
    ),
    suite("faults-sample", "faults, each a few times", 120, Runs::Check(&["faults", "--sample"])),
    suite("sdk", "the clients for Python and TypeScript, and their pages", 60, Runs::Check(&["sdk"])),
    suite("dist", "the published packages, built and tried", 3600, Runs::FullCheck(&["dist", "--check"])),
    suite("plugins", "plugins, with each agent's own tools", 1200, Runs::Script("clients/plugins/run")),
    suite("pexpect", "pexpect's own tests with jobs behind them", 1200, Runs::Script("clients/sdk/pexpect")),
    suite("swerex", "SWE-ReX's own tests with jobs behind them", 1200, Runs::Script("clients/sdk/swerex")),
    suite(
        "inspect",
        "Inspect's own checks of a sandbox provider, with jobs behind it",
        1200,
        Runs::Script("clients/sdk/inspect"),
    ),
    suite(
        "sdk-bench",
        "the Python client beside pexpect and SWE-ReX, measured",
        1200,
        Runs::Script("clients/sdk/bench"),
    ),
    suite("clients", "public MCP clients and the conformance suite", 1800, Runs::Script("clients/run")),
    suite("editors", "public ACP clients", 1800, Runs::Script("clients/acp/run")),
    suite("agents", "real agents with a scripted model", 1800, Runs::Script("clients/agents/run")),
    suite("woken", "real agents that their jobs wake", 600, Runs::Script("clients/agents/wake")),
    suite(
        "panes",
        "real agents in tmux, and notices at random moments",
        10800,
        Runs::Script("clients/agents/panes"),
    ),
    suite(
        "telling",
        "the processes that tell are killed at random moments",
        7200,
        Runs::Script("clients/telling/run"),
    ),
    suite("lines", "several lines at once into twenty programs", 3600, Runs::Script("clients/lines/run")),
    suite(
        "lasting",
        "the shells of others, with the same commands",
        3600,
        Runs::Script("clients/shells/run"),
    ),
    suite("sidecar", "real ACP agents behind the sidecar", 1800, Runs::Script("clients/acp/sidecar")),
    suite(
        "workflows",
        "docs/guide/workflows.md, by doing what it describes",
        600,
        Runs::Figures(&["workflows"]),
    ),
    suite(
        "machines-net",
        "docs/machines.md, links cut in network namespaces",
        1800,
        Runs::Figures(&["machines"]),
    ),
    suite("fleet", "docs/fleet.md, a fleet mistreated and a large one", 2700, Runs::Figures(&["fleet"])),
    suite("faults", "docs/faults.md, counted", 7200, Runs::Figures(&["faults", "--write"])),
    suite("bench", "docs/performance.md, measured", 7200, Runs::Figures(&["bench", "--write"])),
];

/// A test program that cargo has built.
#[derive(Debug)]
pub(crate) struct Built {
    program: PathBuf,
    /// The folder of its crate: tests run there.
    folder: PathBuf,
    /// `lib`, `bin`, `test` …
    kind: String,
    name: String,
}

impl Built {
    /// Reads a message of cargo; none for what is not a test program.
    pub(crate) fn read(message: &serde_json::Value) -> Option<Self> {
        let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
        is_test.then_some(())?;
        let text = |value: &serde_json::Value| value.as_str().map(ToOwned::to_owned);
        let manifest = PathBuf::from(text(&message["manifest_path"])?);
        Some(Self {
            program: PathBuf::from(text(&message["executable"])?),
            folder: manifest.parent()?.to_owned(),
            kind: text(&message["target"]["kind"][0])?,
            name: text(&message["target"]["name"])?,
        })
    }

    fn is_of(&self, krate: &str) -> bool {
        self.folder.ends_with(Path::new("crates").join(krate))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

const fn suite(name: &'static str, what: &'static str, seconds: u64, runs: Runs) -> Suite {
    Suite { name, what, seconds, runs }
}

impl Suite {
    /// How long it may take.
    pub(crate) fn budget(&self, size: Size) -> Duration {
        let seconds = match size {
            Size::Full if self.runs.is_in_ci() => FULL_SECONDS,
            Size::Ci | Size::Full => self.seconds,
        };
        Duration::from_secs(seconds)
    }

    /// Whether it is made of test programs, which have options such as `--include-ignored`.
    pub(crate) fn is_of_test_programs(&self) -> bool {
        matches!(self.runs, Runs::Units | Runs::Tests(_) | Runs::Test(..))
    }

    /// What must be run, one after the other.
    pub(crate) fn commands(&self, built: &[Built], cargo: &Path, root: &Path) -> Vec<Command> {
        let chosen = |wanted: &dyn Fn(&Built) -> bool| {
            built.iter().filter(|built| wanted(built)).map(Built::command).collect()
        };
        match self.runs {
            Runs::Units => chosen(&|built| built.kind == "lib" || built.kind == "bin"),
            Runs::Docs => {
                let mut command = Command::new(cargo);
                command.args(["test", "--workspace", "--doc", "--quiet"]).current_dir(root);
                vec![command]
            }
            Runs::Tests(krate) => chosen(&|built| built.kind == "test" && built.is_of(krate)),
            Runs::Test(krate, name) => {
                chosen(&|built| built.kind == "test" && built.is_of(krate) && built.name == name)
            }
            Runs::Script(script) => {
                let mut command = Command::new(root.join(script));
                command.arg(root.join("target/debug/outlast")).current_dir(root);
                // Packages of npm and Python that it installs.
                command.env("CLIENTS_DIR", root.join("target/tools/clients"));
                vec![command]
            }
            Runs::Check(words) | Runs::FullCheck(words) | Runs::Figures(words) => vec![own_verb(words, root)],
        }
    }
}

/// A call of this program.
fn own_verb(words: &[&str], root: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "xtask".into()));
    command.args(words).current_dir(root);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test file that no suite names would never run.
    #[test]
    fn every_crate_with_tests_has_a_suite() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        for folder in std::fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path()) {
            let Ok(files) = std::fs::read_dir(folder.join("tests")) else { continue };
            let krate = folder.file_name().unwrap().to_str().unwrap();
            for file in files.map(|entry| entry.unwrap().path()) {
                let is_test =
                    file.extension().is_some_and(|end| end == "rs") || file.join("main.rs").is_file();
                let name = file.file_stem().unwrap().to_str().unwrap();
                let runs = |suite: &Suite| match suite.runs {
                    Runs::Tests(all_of) => all_of == krate,
                    Runs::Test(one_of, test) => one_of == krate && test == name,
                    Runs::Units
                    | Runs::Docs
                    | Runs::Script(_)
                    | Runs::Figures(_)
                    | Runs::Check(_)
                    | Runs::FullCheck(_) => false,
                };
                assert!(!is_test || SUITES.iter().any(runs), "no suite runs {}", file.display());
            }
        }
    }

    #[test]
    fn the_budgets_of_ci_leave_time_to_build() {
        let in_ci = SUITES.iter().filter(|suite| Size::Ci.includes(suite));
        let sum: Duration = in_ci.map(|suite| suite.budget(Size::Ci)).sum();
        assert!(sum <= Duration::from_secs(30 * 60), "{sum:?}");
    }

    #[test]
    fn every_script_for_clients_is_reachable_at_full_size() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for folder in ["clients", "clients/acp", "clients/agents", "clients/plugins", "clients/sdk"] {
            for file in std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap()) {
                let name = format!("{folder}/{}", file.file_name().to_str().unwrap());
                let is_script = file.file_type().unwrap().is_file() && !name.contains('.');
                let runs = |suite: &Suite| matches!(suite.runs, Runs::Script(script) if script == name);
                assert!(!is_script || SUITES.iter().any(runs), "no suite runs {name}");
            }
        }
    }
}
