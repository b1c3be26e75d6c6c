//! What is installed on the machine that runs the tests, and what a test skips because of it.

use std::io::Write;

/// Names a file to which each skipped test adds a line. `cargo xtask test` shows them as a table.
pub const LEFT_OUT_FILE: &str = "OUTLAST_LEFT_OUT";

/// Set to 1 if nothing may be skipped: then such a test fails.
pub const NO_SKIPS: &str = "OUTLAST_NO_SKIPS";

/// The Debian package of a program, if it has another name.
const PACKAGES: &[(&str, &str)] = &[
    ("bwrap", "bubblewrap"),
    ("cc", "gcc"),
    ("gcc", "gcc"),
    ("node", "nodejs"),
    ("octave-cli", "octave"),
    ("/usr/bin/python3", "python3"),
    ("sqlite3", "sqlite3"),
];

/// Whether a program is installed. If not, the test that needs it is skipped, and [says so](left_out).
#[must_use]
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        let package =
            PACKAGES.iter().find(|(name, _)| *name == program).map_or(program, |(_, package)| package);
        left_out(&format!("{program} is not installed"), &format!("apt-get install {package}"));
    }
    found
}

/// Records that the running test is skipped: why, and how to change that.
///
/// # Panics
/// If [`NO_SKIPS`] is set.
pub fn left_out(why: &str, remedy: &str) {
    test_left_out(std::thread::current().name().unwrap_or("a test"), why, remedy);
}

/// As [`left_out`], for a test with the given name.
///
/// # Panics
/// If [`NO_SKIPS`] is set.
#[expect(clippy::panic, reason = "a test that may not be left out fails")]
pub fn test_left_out(test: &str, why: &str, remedy: &str) {
    assert!(
        std::env::var_os(NO_SKIPS).is_none_or(|value| value != "1"),
        "{test} would be left out: {why}; to run it: {remedy}"
    );
    // Past the test harness, which would keep it to itself for a test that passes.
    let _ = writeln!(std::io::stderr(), "left out: {test}: {why}; to run it: {remedy}");
    let Some(file) = std::env::var_os(LEFT_OUT_FILE) else { return };
    let line = format!("{test}\t{why}\t{remedy}\n");
    let written = std::fs::OpenOptions::new().append(true).create(true).open(file);
    if let Err(error) = written.and_then(|mut file| file.write_all(line.as_bytes())) {
        panic!("cannot note that {test} was left out: {error}");
    }
}
