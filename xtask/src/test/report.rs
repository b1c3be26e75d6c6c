//! What came of the suites: a table on the terminal, and at full size a page of the documentation.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use outlast_testkit::NO_SKIPS;

use super::{LeftOut, Ran};
use crate::{bench, page};

const PAGE: &str = "docs/full-run.md";
const MARKS: (&str, &str) = ("<!-- run: cargo xtask test --full -->", "<!-- end of what was run -->");

/// So many tests that were left out for one reason are named; the others are counted.
const NAMED: usize = 3;

/// Prints what ran and what was left out.
///
/// # Errors
/// What went wrong, in one line.
pub(super) fn print(ran: &[Ran]) -> Result<(), String> {
    println!(
        "\n{:10} {:>7} {:>7} {:>9} {:>8} {:>8}",
        "suite", "passed", "failed", "left out", "took", "budget"
    );
    for Ran { suite, passed, failed, left_out, took, allowed, .. } in ran {
        println!(
            "{:10} {passed:>7} {failed:>7} {:>9} {:>7}s {:>7}s",
            suite.name,
            left_out.len(),
            took.as_secs(),
            allowed.as_secs()
        );
    }
    let left_out: Vec<&LeftOut> = ran.iter().flat_map(|ran| &ran.left_out).collect();
    if !left_out.is_empty() {
        println!("\n{}", left_out_table(&left_out));
    }
    let sum = |count: fn(&Ran) -> usize| ran.iter().map(count).sum::<usize>();
    println!(
        "\n{} passed, {} failed, {} left out",
        sum(|ran| ran.passed),
        sum(|ran| ran.failed),
        sum(|ran| ran.left_out.len())
    );
    let no_skips = std::env::var_os(NO_SKIPS).is_some_and(|value| value == "1");
    let trouble: Vec<String> = ran.iter().flat_map(|ran| trouble(ran, no_skips)).collect();
    if trouble.is_empty() { Ok(()) } else { Err(trouble.join("; ")) }
}

/// What is wrong with a suite.
fn trouble(ran: &Ran, no_skips: bool) -> Vec<String> {
    let Ran { suite, passed, failed, left_out, took, allowed, ended_well, killed } = ran;
    let name = suite.name;
    let mut trouble = Vec::new();
    if *killed {
        trouble.push(format!("{name} had not ended after {} s, and was ended", took.as_secs()));
    } else if !ended_well || *failed > 0 {
        trouble.push(format!("{name} failed"));
    } else if *passed == 0 {
        trouble.push(format!("{name} ran no test"));
    }
    if !killed && took > allowed {
        trouble.push(format!("{name} took {} s of its {} s", took.as_secs(), allowed.as_secs()));
    }
    if no_skips && !left_out.is_empty() {
        trouble.push(format!("{name} left out {}", left_out.len()));
    }
    trouble
}

/// Why tests were left out, how many and which, and the command that would change that.
fn left_out_table(left_out: &[&LeftOut]) -> String {
    let mut reasons: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for LeftOut { test, why, remedy } in left_out {
        reasons.entry((why, remedy)).or_default().push(test);
    }
    let title = "left out because";
    let width = reasons.keys().map(|(why, _)| why.len()).chain([title.len()]).max().unwrap_or_default();
    let mut table = format!("{title:width$}  {:>5}  to run them", "tests");
    for ((why, remedy), tests) in &reasons {
        let more = tests.len().saturating_sub(NAMED);
        let named = tests.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        let more = if more > 0 { format!(", {more} more") } else { String::new() };
        let _ = write!(table, "\n{why:width$}  {:>5}  {remedy}   ({named}{more})", tests.len());
    }
    table
}

/// Writes the table of a whole run at full size into the documentation.
///
/// # Errors
/// When the page cannot be written.
pub(super) fn write(root: &Path, ran: &[Ran]) -> Result<(), String> {
    let mut table = format!(
        "outlast {}, on {}.\n\n| suite | what | passed | failed | left out | took |\n|---|---|---|---|---|---|\n",
        env!("CARGO_PKG_VERSION"),
        bench::machine()
    );
    for Ran { suite, passed, failed, left_out, took, .. } in ran {
        let (name, what, left_out, took) = (suite.name, suite.what, left_out.len(), took.as_secs());
        let _ = writeln!(table, "| {name} | {what} | {passed} | {failed} | {left_out} | {took} s |");
    }
    page::fill(&root.join(PAGE), MARKS, &table)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::suites::SUITES;
    use super::*;

    fn ran() -> Ran {
        let (took, allowed) = (Duration::from_secs(1), Duration::from_secs(60));
        Ran { passed: 3, took, allowed, ..Ran::new(&SUITES[0]) }
    }

    #[test]
    fn a_suite_that_failed_hung_ran_nothing_or_was_late_is_trouble() {
        assert_eq!(trouble(&ran(), true), Vec::<String>::new());
        let late = Duration::from_secs(24 * 3600);
        for bad in [
            Ran { failed: 1, ..ran() },
            Ran { ended_well: false, ..ran() },
            Ran { killed: true, took: late, ..ran() },
            Ran { passed: 0, ..ran() },
            Ran { took: late, ..ran() },
        ] {
            assert_eq!(trouble(&bad, false).len(), 1);
        }
    }

    #[test]
    fn what_is_left_out_is_trouble_only_where_nothing_may_be() {
        let left_out =
            LeftOut { test: "t".into(), why: "no zsh".into(), remedy: "apt-get install zsh".into() };
        let ran = Ran { left_out: vec![left_out], ..ran() };
        assert_eq!(trouble(&ran, false), Vec::<String>::new());
        assert_eq!(trouble(&ran, true), ["units left out 1"]);
    }

    #[test]
    fn tests_left_out_for_one_reason_are_one_line() {
        let one = |test: &str, why: &str| LeftOut { test: test.into(), why: why.into(), remedy: "do".into() };
        let all = [one("a", "no x"), one("b", "no x"), one("c", "no x"), one("d", "no x"), one("e", "no yy")];
        let table = left_out_table(&all.iter().collect::<Vec<_>>());
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[1].trim_end(), "no x                  4  do   (a, b, c, 1 more)");
        assert_eq!(lines[2].trim_end(), "no yy                 1  do   (e)");
    }
}
