//! `cargo xtask attack`: all attacks of `crates/outlast/tests/attack`, tried against the built program and counted; and what
//! the walls cost. `cargo xtask attack cost` only measures that, which wants a quiet machine.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::page;

const PAGE: &str = "docs/attacks.md";
const MEASURED: (&str, &str) =
    ("<!-- measured: cargo xtask attack cost -->", "<!-- end of what was measured -->");
const MARKS: (&str, &str) = ("<!-- counted: cargo xtask attack -->", "<!-- end of what was counted -->");

/// One kind of attack, as the tests write it down.
struct Counted {
    kind: String,
    tried: u64,
    through: Vec<String>,
}

/// `cargo xtask attack [cost] [--write]`
///
/// # Errors
/// When something got through, or could not be tried.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let (only_cost, write) = match words {
        [] => (false, false),
        ["--write"] => (false, true),
        ["cost"] => (true, false),
        ["cost", "--write"] => (true, true),
        _ => return Err("cargo xtask attack [cost] [--write]".into()),
    };
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("counted");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut tests = Command::new(cargo);
    tests
        .args([
            "test",
            "-p",
            "outlast",
            "--test",
            "attack",
            "--no-fail-fast",
            "--",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("OUTLAST_ATTACK", "full")
        .env("OUTLAST_ATTACK_FILE", &file);
    tests.args(if only_cost { &["cost::"][..] } else { &[] });
    if let Ok(optimised) = Path::new("target/release/outlast").canonicalize() {
        tests.env("OUTLAST_COST_PROGRAM", optimised);
    }
    let done = tests.status().map_err(|error| error.to_string())?;
    let text = std::fs::read_to_string(&file).map_err(|error| format!("nothing was counted: {error}"))?;
    let measured = text.lines().filter_map(measured_in).collect::<Vec<_>>().join("\n");
    if write && !measured.is_empty() {
        page::fill(Path::new(PAGE), MEASURED, &measured)?;
    }
    if only_cost {
        print!("{measured}");
        return if done.success() { Ok(()) } else { Err("it could not be measured".into()) };
    }
    let counts = text.lines().filter(|line| measured_in(line).is_none());
    let counted = counts.map(parse).collect::<Result<Vec<_>, _>>()?;
    let mut table = String::from("| attack | tried | through |\n|---|---|---|\n");
    for Counted { kind, tried, through } in &counted {
        let _ = writeln!(table, "| {kind} | {tried} | {} |", through.len());
    }
    for Counted { kind, through, .. } in counted.iter().filter(|counted| !counted.through.is_empty()) {
        let _ = writeln!(table, "\nThrough, {kind}:\n");
        for attack in through {
            let _ = writeln!(table, "    {}", attack.replace('\n', "\\n"));
        }
    }
    print!("{table}");
    if write {
        page::fill(Path::new(PAGE), MARKS, &table)?;
    }
    if done.success() { Ok(()) } else { Err("something got through, or could not be tried".into()) }
}

/// The table in a line that has one.
fn measured_in(line: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    value["measured"].as_str().map(str::to_owned)
}

fn parse(line: &str) -> Result<Counted, String> {
    let value: serde_json::Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let through = value["through"].as_array().into_iter().flatten();
    Ok(Counted {
        kind: value["kind"].as_str().unwrap_or_default().to_owned(),
        tried: value["tried"].as_u64().unwrap_or(0),
        through: through.filter_map(|attack| attack.as_str().map(str::to_owned)).collect(),
    })
}
