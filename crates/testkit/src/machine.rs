//! What is on the machine that the tests run on.

/// Whether a real program is on this machine; a test that needs it has nothing to do without, and says so.
#[must_use]
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        #[expect(clippy::print_stderr, reason = "a test says what it leaves out")]
        {
            eprintln!("{program} is not on this machine: nothing is tried with it");
        }
    }
    found
}
