//! Tests the clients for Python and TypeScript with the debug build: the relay's vectors, real jobs, and the examples in their pages.

use std::path::Path;
use std::process::Command;

use crate::test::tools::workspace;

/// # Errors
/// Tests that failed, or that could not be run.
pub(crate) fn run() -> Result<(), String> {
    let root = workspace();
    let home =
        tempfile::Builder::new().prefix("outlast-sdk-").tempdir().map_err(|error| error.to_string())?;
    let mut python = Command::new("python3");
    python.args(["-m", "unittest", "discover", "--start-directory", "tests", "--top-level-directory", "."]);
    let mut node = Command::new("node");
    node.args(["--test", "test/"]);
    let suites = [("sdk/python", python, ["Ran ", " test"]), ("sdk/typescript", node, ["# pass ", "\n"])];
    let (mut passed, mut failed) = (0, 0);
    for (folder, command, mark) in suites {
        match tests(&root, folder, command, mark, home.path()) {
            Ok(count) => passed += count,
            Err(why) => {
                failed += 1;
                println!("FAIL {folder}:\n{why}");
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { Ok(()) } else { Err("clients that do not work".into()) }
}

/// Runs the tests of a client; how many there were.
fn tests(
    root: &Path,
    folder: &str,
    mut command: Command,
    [before, after]: [&str; 2],
    home: &Path,
) -> Result<usize, String> {
    command.current_dir(root.join(folder)).env("OUTLAST_PROGRAM", root.join("target/debug/outlast"));
    command.env("OUTLAST_HOME", home.join("jobs")).env("PYTHONDONTWRITEBYTECODE", "1");
    let ran = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    let count = said.split(before).nth(1).and_then(|rest| rest.split(after).next());
    let count = count.and_then(|count| count.trim().parse().ok()).unwrap_or(0);
    if ran.status.success() && count > 0 {
        println!("ok   {folder}: {count} tests");
        return Ok(count);
    }
    Err(said)
}
