//! Help that teaches by example, and does not change by accident.

use std::path::Path;

use crate::sandbox;

/// Compares with a file beside this one; `OUTLAST_BLESS=1` writes it anew.
#[track_caller]
pub(crate) fn compare(name: &str, seen: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help").join(name);
    if std::env::var_os("OUTLAST_BLESS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, seen).unwrap();
    }
    let wanted = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(seen == wanted, "{name} has changed; if that is meant: OUTLAST_BLESS=1 cargo test help\n{seen}");
}

#[test]
fn the_help_is_as_it_was() {
    let sandbox = sandbox();
    let help = sandbox.run(["--help"]).ok();
    assert!(help.stderr.is_empty(), "{help}");
    compare("outlast.txt", &help.text());
}

/// Every verb and sub-verb that is listed, as words.
fn verbs() -> Vec<Vec<String>> {
    fn below(command: &clap::Command, path: &[String], all: &mut Vec<Vec<String>>) {
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let path = [path, &[verb.get_name().to_owned()]].concat();
            below(verb, &path, all);
            all.push(path);
        }
    }
    let mut all = Vec::new();
    below(&<outlast_cli::Cli as clap::CommandFactory>::command(), &[], &mut all);
    all
}

#[test]
fn every_verb_has_help_with_an_example() {
    let sandbox = sandbox();
    let verbs = verbs();
    assert!(verbs.len() > 30, "{verbs:?}");
    for verb in verbs {
        let help = sandbox.call(&verb).arg("--help").run().ok().text();
        let call = format!("outlast {}", verb.join(" "));
        let example =
            help.split("Example").nth(1).unwrap_or_else(|| panic!("{call} has no example:\n{help}"));
        assert!(example.contains(&call), "no example calls {call}:\n{help}");
    }
    let version = sandbox.run(["--version"]).ok().text();
    assert_eq!(version, format!("outlast {}\n", env!("CARGO_PKG_VERSION")));
}

/// Wider lines are broken where the terminal ends, and then the columns of the examples are gone.
#[test]
fn no_example_is_wider_than_a_terminal() {
    fn check(command: &clap::Command) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
        }
        command.get_subcommands().for_each(check);
    }
    check(&<outlast_cli::Cli as clap::CommandFactory>::command());
}

/// As `man` itself shows a page: the columns of examples are those of the help, and the sections are there.
#[test]
fn man_pages_keep_the_columns_of_examples_and_have_the_usual_sections() {
    let sandbox = sandbox();
    let folder = sandbox.root().join("man");
    let made = sandbox.call(["--json", "man"]).arg(&folder).run().ok().json();
    let names: Vec<&str> =
        made["files"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(names.len(), verbs().len() + 1, "{names:?}");
    assert!(names.contains(&"outlast-tmux-submit.1"), "{names:?}");
    if !outlast_testkit::has("man") {
        return outlast_testkit::left_out("man is not installed", "apt-get install man-db");
    }
    for (page, line) in [
        ("outlast.1", "outlast send web 'rs'                      type a line into it"),
        ("outlast-run.1", r"outlast run --pattern 'listening on \S+:(\d+)' --deadline 20s node server.js"),
        ("outlast-logs.1", "                            several at once, each line with its job's name"),
        ("outlast-wait.1", "outlast wait a b c --exit               the first of three"),
    ] {
        let shown = sandbox
            .call_other(std::path::Path::new("man"), [folder.join(page)])
            .env("MANWIDTH", "120")
            .env("LC_ALL", "C")
            .run()
            .ok()
            .text();
        assert!(shown.contains(line), "{page} has not {line:?}:\n{shown}");
        for section in
            ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS", "FILES", "ENVIRONMENT"]
        {
            assert!(shown.lines().any(|line| line == section), "{page} has no {section}:\n{shown}");
        }
        assert!(!shown.contains("EXTRA"), "{shown}");
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let own = words.contains("Here: the job's own when its end was waited for");
        assert_eq!(own, page == "outlast-wait.1", "{shown}");
    }
}

#[test]
fn completions_and_man_pages_are_made() {
    let sandbox = sandbox();
    for shell in ["bash", "zsh", "fish"] {
        assert!(sandbox.run(["completions", shell]).ok().text().contains("outlast"));
    }
    let folder = sandbox.root().join("man");
    sandbox.call(["man"]).arg(&folder).run().ok();
    assert!(std::fs::read_dir(folder).unwrap().count() > 10);
    assert!(!sandbox.home().exists(), "and no home is made for it");
}

#[test]
fn the_doctor_finds_this_machine_well() {
    let sandbox = sandbox();
    let report = sandbox.json(["doctor"]);
    assert_eq!(report["ok"], true, "{report}");
    let checks = report["checks"].as_array().unwrap();
    assert!(checks.iter().any(|check| check["check"] == "a job"), "{report}");
    assert_eq!(sandbox.run(["doctor"]).ok().text().matches("ok  ").count(), checks.len());
}

#[test]
fn the_doctor_names_jobs_that_another_build_keeps() {
    let sandbox = sandbox();
    let older = sandbox.root().join("older-outlast");
    // By another process: a file that a thread of ours has open to write cannot be executed by a child of another.
    assert!(std::process::Command::new("cp").arg(sandbox.program()).arg(&older).status().unwrap().success());
    let job =
        sandbox.call_other(&older, ["--json", "run", "-d", "sleep 600"]).run().ok().json()["handle"].clone();
    let own = sandbox.start(["sleep 600"]);
    let report = sandbox.json(["doctor"]);
    let builds =
        report["checks"].as_array().unwrap().iter().find(|check| check["check"] == "builds").unwrap();
    assert_eq!(builds["detail"], format!("kept by another build of outlast until they end: {job}"));
    for job in [job.to_string(), own.to_string()] {
        sandbox.run(["kill", &job]).ok();
    }
}

#[test]
fn the_version_as_json_names_formats_and_verbs() {
    let sandbox = sandbox();
    for words in [["--version", "--json"], ["--json", "-V"]] {
        let about = sandbox.run(words).ok().json();
        assert_eq!(about["version"], env!("CARGO_PKG_VERSION"));
        assert!(about["formats"]["keeper"].as_u64() >= Some(2), "{about}");
        assert!(about["features"].as_array().unwrap().iter().any(|verb| verb == "relay"), "{about}");
    }
    assert!(!sandbox.home().exists(), "and no home is made for it");
}
