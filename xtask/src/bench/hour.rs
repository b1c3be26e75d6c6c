//! What an agent's hour costs the machine: processor time, wakings and memory of all processes, beside tmux and a bare caller.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::report::Section;
use super::stats::figure;
use super::{Bench, progress};

/// The hour itself. It needs `getrusage` and a subreaper, which a script has at hand.
const SCRIPT: &str = include_str!("hour.py");
const TOOLS: &[&str] = &["bare", "outlast", "tmux"];

fn spend(bench: &Bench, tool: &str) -> Result<Value, String> {
    progress(&format!("an agent's hour with {tool}"));
    let mut command = Command::new("python3");
    command.arg("-").arg(tool).arg(bench.silence.as_secs().to_string()).arg(&bench.program);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("python3: {error}"))?;
    // Closed right away: the script's children must not read from it.
    child
        .stdin
        .take()
        .map_or(Ok(()), |mut stdin| stdin.write_all(SCRIPT.as_bytes()))
        .map_err(|e| e.to_string())?;
    let done = child.wait_with_output().map_err(|error| error.to_string())?;
    serde_json::from_slice(&done.stdout).map_err(|error| format!("{tool}: {error}"))
}

/// The same hour with each tool.
pub(super) fn hour(bench: &Bench) -> Result<Section, String> {
    let mut rows = Vec::new();
    let mut bare = (0.0, 0.0);
    for tool in TOOLS {
        let spent = spend(bench, tool)?;
        let of = |name: &str| spent[name].as_f64().unwrap_or(f64::NAN);
        if *tool == "bare" {
            bare = (of("cpu"), of("wakings"));
        }
        rows.push(vec![
            (*tool).to_owned(),
            figure(of("cpu")),
            figure(of("cpu") - bare.0),
            figure(of("wakings")),
            figure(of("wakings") - bare.1),
            figure(of("kib") / 1024.0),
            figure(of("processes")),
        ]);
    }
    Ok(Section {
        title: "An agent's hour",
        about: "200 commands with output and code, 20 servers that are waited for and go on printing, 3 interpreters with 30 lines each. The silences are shortened: what sleeps costs nothing (see idle jobs). Processor seconds and wakings (voluntary context switches) of all processes but the caller's, the commands included, and what is left of them without those of a caller that forks by itself; private memory of the tool's own processes at the end.",
        head: vec![
            "tool",
            "CPU s",
            "CPU s of its own",
            "wakings",
            "wakings of its own",
            "MiB at the end",
            "processes",
        ],
        rows,
        ..Section::default()
    })
}
