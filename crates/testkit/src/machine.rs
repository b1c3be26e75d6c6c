//! What is on the machine that the tests run on, and what a test leaves out because of it.

use std::io::Write;

/// Names a file: each test that is left out adds a line to it. `cargo xtask test` shows them as a table.
pub const LEFT_OUT_FILE: &str = "OUTLAST_LEFT_OUT";

/// Set to 1 where nothing may be left out: a test that would be fails instead.
pub const NO_SKIPS: &str = "OUTLAST_NO_SKIPS";

/// Debian's package of a program, where it is not called like the program.
const PACKAGES: &[(&str, &str)] = &[
    ("bwrap", "bubblewrap"),
    ("cc", "gcc"),
    ("gcc", "gcc"),
    ("node", "nodejs"),
    ("octave-cli", "octave"),
    ("/usr/bin/python3", "python3"),
    ("sqlite3", "sqlite3"),
];

/// Whether a real program is on this machine. A test that needs it is left out without it, and [says so](left_out).
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

/// Says that the running test does nothing here: why, and what would change that.
///
/// # Panics
/// Where [`NO_SKIPS`] is set.
#[expect(clippy::print_stderr, clippy::panic, reason = "a test says what it leaves out, or fails")]
pub fn left_out(why: &str, remedy: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    assert!(
        std::env::var_os(NO_SKIPS).is_none_or(|value| value != "1"),
        "{test} would be left out: {why}; to run it: {remedy}"
    );
    eprintln!("left out: {why}; to run it: {remedy}");
    let Some(file) = std::env::var_os(LEFT_OUT_FILE) else { return };
    let line = format!("{test}\t{why}\t{remedy}\n");
    let written = std::fs::OpenOptions::new().append(true).create(true).open(file);
    if let Err(error) = written.and_then(|mut file| file.write_all(line.as_bytes())) {
        panic!("cannot note that {test} was left out: {error}");
    }
}
