//! `cargo xtask test`: all tests, each suite within its budget, and at the end a table of what ran and what
//! was left out, why, and the command that would install what is missing.
//!
//! Packages of npm and Python that tests judge with are fetched into `target/tools`. Debian's packages are installed
//! only when asked for (`--fetch`, or in CI), and only as root. A suite that hangs is ended when its time is up.
//!
//! With `--full` tests run at full length, with those that are too long for every change, and figures go into `docs`.

mod others;
mod report;
mod running;
mod suites;
pub(crate) mod tools;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use others::Cpu;
use outlast_testkit::LEFT_OUT_FILE;
use running::End;
use suites::{Built, SUITES, Size, Suite};

use crate::choice::Choice;
use crate::{book, museum};

/// What one suite did.
struct Ran {
    suite: &'static Suite,
    passed: usize,
    failed: usize,
    left_out: Vec<LeftOut>,
    took: Duration,
    /// Its budget, and the time that other work on the machine took.
    allowed: Duration,
    /// The suite ended as it should: tests may have failed all the same.
    ended_well: bool,
    /// It had not ended when its time was up.
    killed: bool,
}

struct LeftOut {
    test: String,
    why: String,
    remedy: String,
}

/// # Errors
/// A suite that failed, ran longer than its budget, or left out what may not be left out.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let known: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
    let choice = Choice::read(words, &["--fetch", "--full", "--list"], "suite", &known)?;
    let size = if choice.has("--full") { Size::Full } else { Size::Ci };
    if choice.has("--list") {
        for suite in SUITES {
            let seconds = suite.budget(size).as_secs();
            let when = if Size::Ci.includes(suite) { "" } else { " (only with --full)" };
            println!("{:10} {seconds:>5} s  {}{when}", suite.name, suite.what);
        }
        return Ok(());
    }
    let in_ci = std::env::var_os("CI").is_some();
    let root = tools::workspace();
    if choice.has("--fetch") || in_ci {
        tools::install_debian_packages(&root, size)?;
    }
    tools::fetch_npm_packages(&root)?;
    tools::fetch_nats_server(&root)?;
    if size == Size::Full {
        tools::fetch_asking(&root)?;
    }
    // By name, a suite of full size runs at any size.
    let is_chosen = |suite: &&Suite| choice.wants(suite.name) && (size.includes(suite) || !choice.is_all());
    let chosen: Vec<&'static Suite> = SUITES.iter().filter(is_chosen).collect();
    if chosen.iter().any(|suite| suite.name == "book") {
        book::mdbook(&root)?;
    }
    let built = build()?;
    let ran: Vec<Ran> =
        chosen.into_iter().map(|suite| run_suite(suite, &built, size, &root)).collect::<Result<_, _>>()?;
    let result = report::print(&ran);
    if size == Size::Full && choice.is_all() {
        report::write(&root, &ran)?;
    }
    result
}

/// Builds every test at once, so that a suite's budget is for its tests alone, and so that all are built with
/// the same features: `cargo test -p` would build again.
fn build() -> Result<Vec<Built>, String> {
    println!("building all tests");
    let mut command = Command::new(cargo());
    command.args(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]);
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("the tests do not build: {}", output.status));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    Ok(messages.lines().filter_map(|line| Built::read(&serde_json::from_str(line).ok()?)).collect())
}

fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

fn run_suite(suite: &'static Suite, built: &[Built], size: Size, root: &Path) -> Result<Ran, String> {
    println!("\n== {}: {}", suite.name, suite.what);
    let say = |error: std::io::Error| error.to_string();
    let notes = tempfile::NamedTempFile::new().map_err(say)?;
    let scratch = tempfile::Builder::new().prefix("outlast-suite-").tempdir().map_err(say)?;
    // Some tests run programs as another user.
    std::fs::set_permissions(scratch.path(), PermissionsExt::from_mode(0o1777)).map_err(say)?;
    let mut ran = Ran::new(suite);
    let full_size = if size == Size::Full { full_size(&mut ran, root) } else { Vec::new() };
    let (began, cpu) = (Instant::now(), Cpu::now());
    let deadline = began + others::longest(suite.budget(size));
    for mut command in suite.commands(built, &cargo(), root) {
        command.env(LEFT_OUT_FILE, notes.path());
        if size == Size::Full && suite.is_of_test_programs() && !full_size.is_empty() {
            command.arg("--include-ignored").envs(full_size.iter().cloned());
        }
        let mut counted = None;
        let end = running::run(command, scratch.path(), deadline, |line| {
            counted = counts(line).or(counted);
            let (passed, failed) = counts(line).unwrap_or((0, 0));
            ran.passed += passed;
            ran.failed += failed;
            // The reader of the output may have left.
            let _ = writeln!(std::io::stdout(), "{line}");
        })?;
        // What has no closing line of its own is one test.
        if counted.is_none() && !suite.is_of_test_programs() {
            ran.passed += usize::from(end == End::Ended(true));
            ran.failed += usize::from(end != End::Ended(true));
        }
        ran.ended_well &= end == End::Ended(true);
        ran.killed |= end == End::Killed;
    }
    ran.took = began.elapsed();
    ran.allowed = Cpu::now().allowed(cpu, ran.took, suite.budget(size));
    let left_out = std::fs::read_to_string(notes.path()).unwrap_or_default();
    ran.left_out.extend(left_out.lines().filter_map(LeftOut::parse));
    Ok(ran)
}

/// What tests at full size find in their environment; nothing for a suite that cannot run at full size here.
fn full_size(ran: &mut Ran, root: &Path) -> Vec<(&'static str, PathBuf)> {
    let mut set = vec![("OUTLAST_LONG_TESTS", PathBuf::from("1"))];
    match ran.suite.name {
        "museum" => match museum::program(root) {
            Ok(program) => set.push(("OUTLAST_MUSEUM_PROGRAM", program)),
            Err(why) => {
                let remedy = "git fetch --unshallow".into();
                ran.left_out.push(LeftOut { test: "the real program of 0.1.0".into(), why, remedy });
                set.clear();
            }
        },
        // The page in the documentation is written by `cargo xtask waiting`.
        "pty" => set.push(("OUTLAST_TABLE", root.join("target/awaiting-input-table.md"))),
        _ => {}
    }
    set
}

impl Ran {
    fn new(suite: &'static Suite) -> Self {
        Self {
            suite,
            passed: 0,
            failed: 0,
            left_out: Vec::new(),
            took: Duration::ZERO,
            allowed: Duration::ZERO,
            ended_well: true,
            killed: false,
        }
    }
}

impl LeftOut {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.splitn(3, '\t').map(ToOwned::to_owned);
        Some(Self { test: fields.next()?, why: fields.next()?, remedy: fields.next()? })
    }
}

/// How many tests passed and failed, from a closing line of `cargo test` or of a script of ours.
fn counts(line: &str) -> Option<(usize, usize)> {
    let number_before = |word: &str| {
        let before = line[..line.find(word)?].trim_end();
        before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    let closes = line.starts_with("test result:") || line.split(' ').next()?.parse::<usize>().is_ok();
    closes.then_some(())?;
    Some((number_before(" passed")?, number_before(" failed")?))
}

#[cfg(test)]
mod tests {
    use super::counts;

    #[test]
    fn closing_lines_are_counted_and_other_lines_are_not() {
        let cargo =
            "test result: ok. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        assert_eq!(counts(cargo), Some((12, 3)));
        assert_eq!(counts("73 passed, 0 failed"), Some((73, 0)));
        assert_eq!(counts("it says that 2 passed, 1 failed"), None);
        assert_eq!(counts("running 4 tests"), None);
    }
}
