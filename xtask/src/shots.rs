//! `cargo xtask shots` and `cargo xtask web-figures`: pictures of the web view for the guide, and what it costs, from real jobs in a home
//! of their own and a real browser.

use std::process::{Command, Stdio};

use crate::page;
use crate::test::tools::{fetch_npm_packages, workspace};

/// Where the figures go, and between which marks.
const FIGURES: &str = "docs/web-figures.md";
const MARKS: (&str, &str) =
    ("<!-- measured: cargo xtask web-figures -->", "<!-- end of what was measured -->");

/// Makes the pictures anew.
///
/// # Errors
/// When there is no browser, or a picture cannot be made.
pub(crate) fn run() -> Result<(), String> {
    in_a_browser("shots", "target/debug/outlast", &[]).map(|_| ())
}

/// Measures, and writes the table; with the release build if that is there.
///
/// # Errors
/// When there is no browser, or something cannot be measured.
pub(crate) fn figures() -> Result<(), String> {
    let root = workspace();
    let (program, build) = if root.join("target/release/outlast").is_file() {
        ("target/release/outlast", "release")
    } else {
        ("target/debug/outlast", "debug")
    };
    let sizes = ["JOBS", "FULL_SCREEN", "SECONDS", "LOG_MIB", "MOMENTS_MIB"];
    let said = in_a_browser("figures", program, &sizes)?;
    let table = said.split_once("figures\n").map_or("", |(_, table)| table);
    let table = table.split("\nok ").next().unwrap_or_default().trim();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    page::fill(&root.join(FIGURES), MARKS, &format!("{table} A {build} build, {cores} cores.\n"))
}

/// Runs a script of `clients/web`; returns what it printed. These variables of ours are handed on.
fn in_a_browser(script: &str, program: &str, variables: &[&str]) -> Result<String, String> {
    let root = workspace();
    fetch_npm_packages(&root)?;
    let home = tempfile::tempdir().map_err(|error| error.to_string())?;
    let folder = |name: &str| {
        let path = home.path().join(name);
        std::fs::create_dir_all(&path).map(|()| path).map_err(|error| error.to_string())
    };
    let program = root.join(program);
    let mut node = Command::new("node");
    node.arg(root.join(format!("clients/web/{script}.mjs")))
        .arg(script)
        .env_clear()
        .envs(variables.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder("user")?)
        .env("XDG_CONFIG_HOME", folder("config")?)
        .env("OUTLAST_HOME", home.path().join("home"))
        .env("OUTLAST_SESSION", "agent-1")
        .env("PROGRAM", &program)
        .env("TOOLS", root.join("target/tools/web"))
        .env("SHOTS", root.join("docs/guide/images"))
        .stderr(Stdio::inherit())
        .current_dir(folder("orders")?);
    let made = node.output().map_err(|error| format!("node: {error}"))?;
    let mut end = Command::new(&program);
    end.args(["kill", "--all"])
        .env("OUTLAST_HOME", home.path().join("home"))
        .env("OUTLAST_SESSION", "agent-1");
    let _ = end.output();
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    print!("{said}");
    if made.status.success() { Ok(said) } else { Err(format!("clients/web/{script}.mjs: {}", made.status)) }
}
