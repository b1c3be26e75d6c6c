//! `cargo xtask attack`: all attacks of `crates/outlast/tests/attack`, tried against the built program and counted.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::page;

const MARKS: (&str, &str) = ("<!-- counted: cargo xtask attack -->", "<!-- end of what was counted -->");

/// One kind of attack, as the tests write it down.
struct Counted {
    kind: String,
    tried: u64,
    through: Vec<String>,
}

/// `cargo xtask attack [--write]`
///
/// # Errors
/// When something got through, or could not be tried.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let write = match words {
        [] => false,
        ["--write"] => true,
        _ => return Err("cargo xtask attack [--write]".into()),
    };
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("counted");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let done = Command::new(cargo)
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
        .env("OUTLAST_ATTACK_FILE", &file)
        .status()
        .map_err(|error| error.to_string())?;
    let text = std::fs::read_to_string(&file).map_err(|error| format!("nothing was counted: {error}"))?;
    let counted = text.lines().map(parse).collect::<Result<Vec<_>, _>>()?;
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
        page::fill(Path::new("docs/attacks.md"), MARKS, &table)?;
    }
    if done.success() { Ok(()) } else { Err("something got through, or could not be tried".into()) }
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
