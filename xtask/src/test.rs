//! `cargo xtask test`: all tests, each suite within its budget, and at the end a table of what ran and what was left
//! out, why, and the command that would install what is missing.
//!
//! Packages of npm that tests judge with are fetched into `target/tools`. Debian's packages are installed only when
//! asked for (`--fetch`, or in CI), and only as root.

mod suites;
mod tools;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use outlast_testkit::{LEFT_OUT_FILE, NO_SKIPS};
use suites::{Built, SUITES, Size, Suite};

use crate::choice::Choice;

/// What one suite did.
struct Ran {
    suite: &'static Suite,
    passed: usize,
    failed: usize,
    left_out: Vec<LeftOut>,
    took: Duration,
    /// The suite ended as it should: tests may have failed all the same.
    ended_well: bool,
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
            println!("{:10} {:>3} min  {}", suite.name, suite.minutes, suite.what);
        }
        return Ok(());
    }
    let in_ci = std::env::var_os("CI").is_some();
    let root = tools::workspace();
    if choice.has("--fetch") || in_ci {
        tools::install_debian_packages(&root)?;
    }
    tools::fetch_npm_packages(&root)?;
    let built = build()?;
    let chosen = SUITES.iter().filter(|suite| choice.wants(suite.name) && size.includes(suite));
    let ran: Vec<Ran> =
        chosen.map(|suite| run_suite(suite, &built, size, &root)).collect::<Result<_, _>>()?;
    report(&ran, size)
}

/// Builds every test at once, so that a suite's budget is for its tests alone, and so that all are built with the same
/// features: `cargo test -p` would build again.
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
    let notes = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    let began = Instant::now();
    let mut ran =
        Ran { suite, passed: 0, failed: 0, left_out: Vec::new(), took: Duration::ZERO, ended_well: true };
    for mut command in suite.commands(built, &cargo(), root) {
        command.env(LEFT_OUT_FILE, notes.path()).stdin(Stdio::null()).stdout(Stdio::piped());
        if size == Size::Full {
            command.env("OUTLAST_LONG_TESTS", "1");
        }
        let mut child =
            command.spawn().map_err(|error| format!("cannot run suite {}: {error}", suite.name))?;
        for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
            let line = line.map_err(|error| error.to_string())?;
            let (passed, failed) = counts(&line).unwrap_or((0, 0));
            ran.passed += passed;
            ran.failed += failed;
            // Whoever reads the output may have left.
            let _ = writeln!(std::io::stdout(), "{line}");
        }
        ran.ended_well &= child.wait().is_ok_and(|status| status.success());
    }
    let left_out = std::fs::read_to_string(notes.path()).unwrap_or_default();
    ran.left_out = left_out.lines().filter_map(LeftOut::parse).collect();
    ran.took = began.elapsed();
    Ok(ran)
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

fn report(ran: &[Ran], size: Size) -> Result<(), String> {
    let no_skips = std::env::var_os(NO_SKIPS).is_some_and(|value| value == "1");
    let mut trouble = Vec::new();
    println!(
        "\n{:10} {:>7} {:>7} {:>9} {:>8} {:>8}",
        "suite", "passed", "failed", "left out", "took", "budget"
    );
    for Ran { suite, passed, failed, left_out, took, ended_well } in ran {
        let budget = Duration::from_secs(60 * suite.minutes);
        println!(
            "{:10} {passed:>7} {failed:>7} {:>9} {:>7}s {:>7}s",
            suite.name,
            left_out.len(),
            took.as_secs(),
            budget.as_secs()
        );
        if !ended_well || *failed > 0 {
            trouble.push(format!("{} failed", suite.name));
        } else if *passed == 0 {
            trouble.push(format!("{} ran no test", suite.name));
        }
        if size == Size::Ci && *took > budget {
            trouble.push(format!("{} took {} s of its {} s", suite.name, took.as_secs(), budget.as_secs()));
        }
        if no_skips && !left_out.is_empty() {
            trouble.push(format!("{} left out {}", suite.name, left_out.len()));
        }
    }
    let left_out: Vec<&LeftOut> = ran.iter().flat_map(|ran| &ran.left_out).collect();
    if !left_out.is_empty() {
        println!("\nleft out:");
        for LeftOut { test, why, remedy } in left_out {
            println!("  {test}: {why}; to run it: {remedy}");
        }
    }
    let sum = |count: fn(&Ran) -> usize| ran.iter().map(count).sum::<usize>();
    println!("\n{} passed, {} failed", sum(|ran| ran.passed), sum(|ran| ran.failed));
    if trouble.is_empty() { Ok(()) } else { Err(trouble.join("; ")) }
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
