//! What guards: secrets that nobody sees, jobs in a sandbox, and their limits, with the real program on the real kernel.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it skips"
)]

mod limits;
mod names;
mod sandbox;
mod secrets;
mod walls;

use outlast_testkit::Sandbox;

/// A fresh home for the program under test.
fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_outlast"))
}

/// Runs the program where it can make no namespaces, as a user can't on some machines; none where we can't make such a place.
fn without_namespaces(sandbox: &Sandbox, arguments: &[&str]) -> Option<outlast_testkit::Ran> {
    if !rustix::process::geteuid().is_root() || !outlast_testkit::has("setpriv") {
        return None;
    }
    // In a user namespace of its own, whose limit is nobody else's.
    let place =
        "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-sys_admin \"$@\"";
    let program = sandbox.program().display().to_string();
    let mut words = vec!["--user", "--map-root-user", "sh", "-c", place, "sh", &program];
    words.extend(arguments);
    Some(sandbox.call_other(std::path::Path::new("unshare"), words).run())
}
