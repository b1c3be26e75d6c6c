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

#[test]
fn every_verb_has_help_with_an_example() {
    let sandbox = sandbox();
    for verb in ["run", "jobs", "read", "logs", "screen", "send", "wait", "kill", "prune", "completions"] {
        let help = sandbox.run([verb, "--help"]).ok().text();
        assert!(help.contains("Example") && help.contains(&format!("outlast {verb}")), "{help}");
    }
    let version = sandbox.run(["--version"]).ok().text();
    assert_eq!(version, format!("outlast {}\n", env!("CARGO_PKG_VERSION")));
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
