//! `cargo xtask bench-peers`: the built program beside other tools, by a harness that is not part of this repository.
//!
//! `OUTLAST_PEER_BENCH` names its folder: it has a `run.py` that writes a file of results, and a `report.py` that makes tables
//! of one. The program is what its `BENCH_PRODUCT` names. It never runs in CI: all of it takes hours.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{built_program, machine, progress, root};
use crate::page;

/// The variable that names the folder of the harness.
const FOLDER: &str = "OUTLAST_PEER_BENCH";
const MARKS: (&str, &str) = ("<!-- measured: cargo xtask bench-peers -->", "<!-- end of the peers -->");

/// `cargo xtask bench-peers [--write] [OPTION...]`; options are those of the harness, such as `--measures m1,m2`.
///
/// # Errors
/// No harness, or one that fails.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return Err(format!("{FOLDER} names no folder with the harness"));
    };
    let (ours, theirs): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| **word == "--write");
    let program = built_program()?;
    let results = root().join("target/bench-peers.json");
    progress("the harness runs");
    let ran = python(&folder, "run.py")
        .args(theirs)
        .arg("--out")
        .arg(&results)
        .env("BENCH_PRODUCT", format!("{} mcp", program.display()))
        .env("BENCH_PRODUCT_VERSION", env!("CARGO_PKG_VERSION"))
        .status();
    if !ran.is_ok_and(|status| status.success()) {
        return Err("the harness failed".into());
    }
    let tables = python(&folder, "report.py").arg(&results).output().map_err(|error| error.to_string())?;
    if !tables.status.success() {
        return Err(String::from_utf8_lossy(&tables.stderr).into_owned());
    }
    let tables = String::from_utf8_lossy(&tables.stdout);
    println!("{tables}");
    if ours.is_empty() {
        return Ok(());
    }
    let text = format!("{}\n\n{}\n", machine(), below(tables.trim_end()));
    page::fill(&root().join("docs/performance.md"), MARKS, &text)
}

fn python(folder: &Path, script: &str) -> Command {
    let mut command = Command::new("python3");
    command.arg(folder.join(script)).current_dir(folder);
    command
}

/// The tables with headings that are below the section they stand in.
fn below(text: &str) -> String {
    let deeper = |line: &str| if line.starts_with('#') { format!("##{line}") } else { line.to_owned() };
    text.lines().map(deeper).collect::<Vec<_>>().join("\n")
}
