//! The table of programs that wait or work, played beside 0.1.0: `clients/waiting.py` plays it and writes the page.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{museum, test::tools};

/// Builds what is needed, and writes `docs/awaiting-input-table.md` by playing the table.
pub(crate) fn run() -> Result<(), String> {
    let root = tools::workspace();
    tools::fetch_asking(&root)?;
    let old = museum::program(&root)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(&cargo).args(["build", "--package", "outlast"]).status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("the program does not build".into());
    }
    let table = table_binary(&cargo)?;
    let mut command = Command::new("python3");
    command.arg(root.join("clients/waiting.py")).arg(table).arg(root.join("target/debug/outlast")).arg(old);
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| format!("python3: {error}"))?;
    if !output.status.success() {
        return Err(format!("clients/waiting.py: {}", output.status));
    }
    let page = root.join("docs/awaiting-input-table.md");
    std::fs::write(&page, output.stdout).map_err(|error| format!("{}: {error}", page.display()))
}

/// The test binary that has the table.
fn table_binary(cargo: &std::ffi::OsStr) -> Result<PathBuf, String> {
    let mut command = Command::new(cargo);
    command.args(["test", "--package", "outlast-pty", "--test", "awaiting", "--no-run"]);
    command.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("cargo: {error}"))?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let mut executable = messages.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_table = message["target"]["name"] == "awaiting";
        is_table.then(|| message["executable"].as_str().map(|path| Path::new(path).to_owned()))?
    });
    executable.next_back().ok_or_else(|| "the table does not build".into())
}
