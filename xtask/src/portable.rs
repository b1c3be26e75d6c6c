//! `cargo xtask portable`: the suites of `pty`, `job` and the command line with the portable twins of what only Linux has
//! (`--cfg outlast_portable`). What is weaker by nature is listed in `portable/weaker.txt` and must fail; everything else must pass.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::choice::Choice;
use crate::test::tools::workspace;

/// Tests that fail with the twins, each with its reason: `SUITE NAME  # reason`.
const WEAKER: &str = include_str!("portable/weaker.txt");

/// Suites, and how cargo runs them.
const SUITES: [(&str, &[&str]); 3] = [
    ("pty", &["--package", "outlast-pty", "--lib"]),
    ("job", &["--package", "outlast-job", "--lib"]),
    ("it", &["--package", "outlast", "--test", "it"]),
];

/// # Errors
/// Tests that fail and are not listed, or are listed and pass.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let choice = Choice::read(words, &[], "suite", &SUITES.map(|(name, _)| name))?;
    let weaker = listed(WEAKER);
    let mut wrong = Vec::new();
    for (suite, arguments) in SUITES.into_iter().filter(|(name, _)| choice.wants(name)) {
        let results = tests(arguments)?;
        let expected = weaker.get(suite).cloned().unwrap_or_default();
        let failed: BTreeSet<&String> =
            results.iter().filter(|(_, passed)| !**passed).map(|(name, _)| name).collect();
        println!(
            "{suite}: {} passed, {} failed as listed",
            results.len() - failed.len(),
            failed.iter().filter(|name| expected.contains(**name)).count()
        );
        let unlisted = failed.iter().filter(|name| !expected.contains(**name));
        wrong.extend(unlisted.map(|name| format!("{suite} {name} fails and is not listed")));
        let passing = expected.iter().filter(|name| results.get(*name) == Some(&true));
        wrong.extend(passing.map(|name| format!("{suite} {name} passes: take it off the list")));
        let gone = expected.iter().filter(|name| !results.contains_key(*name));
        wrong.extend(gone.map(|name| format!("{suite} {name} is listed, and there is no such test")));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// The listed names of each suite.
fn listed(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut suites: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
        if let Some((suite, name)) = line.split_once(' ') {
            suites.entry(suite.to_owned()).or_default().insert(name.trim().to_owned());
        }
    }
    suites
}

/// Runs a suite to its end; each test with whether it passed.
fn tests(arguments: &[&str]) -> Result<BTreeMap<String, bool>, String> {
    let root = workspace();
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--quiet", "--locked"]).args(arguments).args(["--", "--format", "pretty"]);
    // Only our own crates are compiled anew: cargo keeps what a wrapper made apart from the ordinary build.
    cargo.current_dir(&root).env("RUSTC_WORKSPACE_WRAPPER", root.join("xtask/src/portable/rustc"));
    for name in ["CARGO", "CARGO_MANIFEST_DIR", "CARGO_ENCODED_RUSTFLAGS"] {
        cargo.env_remove(name);
    }
    let ran = cargo.output().map_err(|error| format!("{cargo:?}: {error}"))?;
    let said = String::from_utf8_lossy(&ran.stdout);
    let results = results(&said);
    if results.is_empty() {
        return Err(format!("{cargo:?}: {}\n{said}{}", ran.status, String::from_utf8_lossy(&ran.stderr)));
    }
    Ok(results)
}

/// The lines of libtest: `test NAME ... ok`.
fn results(said: &str) -> BTreeMap<String, bool> {
    let line = |line: &str| {
        let (name, result) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
        let name = name.split(" - should panic").next().unwrap_or(name);
        match result.split_whitespace().next()? {
            "ok" => Some((name.to_owned(), true)),
            "FAILED" => Some((name.to_owned(), false)),
            _ => None,
        }
    };
    said.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::{WEAKER, listed, results};

    #[test]
    fn every_listed_test_has_a_reason() {
        for line in WEAKER.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            let (test, reason) = line.split_once('#').unwrap_or((line, ""));
            assert_eq!(test.split_whitespace().count(), 2, "{line}");
            assert!(!reason.trim().is_empty(), "{line}");
        }
        assert_eq!(listed("it a::b  # why\n# it c\n")["it"].len(), 1);
    }

    #[test]
    fn results_are_read_from_what_the_test_program_prints() {
        let read = results("running 3 tests\ntest a::b ... ok\ntest c ... FAILED\ntest d ... ignored\n");
        assert_eq!(read.into_iter().collect::<Vec<_>>(), [("a::b".into(), true), ("c".into(), false)]);
    }
}
