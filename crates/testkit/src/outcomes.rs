//! Recorded runs of real tools, with what is true of each: `recordings/outcomes`.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

/// A run, and what is true of it.
#[derive(Debug)]
pub struct RecordedRun {
    /// Its set and name, for example `a/cargo-build-error`.
    pub name: String,
    /// The tool that its outcome is about.
    pub tool: String,
    /// The command, as it was given to a shell.
    pub command: String,
    /// The size of its terminal; none if it ran on pipes.
    pub size: Option<(u16, u16)>,
    /// Its exit code.
    pub exit_code: i64,
    /// What was counted; what is not there is none.
    pub counts: BTreeMap<String, u64>,
    /// What the first real error is known by.
    pub first_error: Option<String>,
    /// Whether the tool's own machine format agreed with the counts.
    pub judged: bool,
    /// What it wrote.
    pub log: Vec<u8>,
    /// On pipes: what it wrote to stderr.
    pub stderr: Vec<u8>,
}

/// The names of all sets, in order.
///
/// # Panics
/// When the recordings are not there.
#[must_use]
pub fn sets() -> Vec<String> {
    let files = std::fs::read_dir(folder()).expect("recordings/outcomes");
    let names = files.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut sets: Vec<String> =
        names.filter_map(|name| name.strip_suffix(".recipes").map(Into::into)).collect();
    sets.sort();
    sets
}

/// All runs of a set.
///
/// # Panics
/// When a recording cannot be read.
#[must_use]
pub fn recorded_runs(set: &str) -> Vec<RecordedRun> {
    let folder = folder().join(set);
    let Ok(files) = std::fs::read_dir(&folder) else { return Vec::new() };
    let mut names: Vec<String> = files
        .flatten()
        .filter_map(|entry| entry.file_name().to_string_lossy().strip_suffix(".json").map(ToOwned::to_owned))
        .collect();
    names.sort();
    names.iter().map(|name| run(&folder, set, name)).collect()
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings/outcomes")
}

fn run(folder: &Path, set: &str, name: &str) -> RecordedRun {
    let read = |end: &str| std::fs::read(folder.join(format!("{name}.{end}"))).unwrap_or_default();
    let facts: Value = serde_json::from_slice(&read("json")).expect(name);
    let text = |key: &str| facts[key].as_str().map(ToOwned::to_owned);
    let size = text("size").and_then(|size| {
        let (cols, rows) = size.split_once('x')?;
        Some((cols.parse().ok()?, rows.parse().ok()?))
    });
    let counts = facts["counts"].as_object().into_iter().flatten();
    RecordedRun {
        name: format!("{set}/{name}"),
        tool: text("tool").unwrap_or_default(),
        command: text("command").unwrap_or_default(),
        size: size.filter(|_| facts["pipe"] != true),
        exit_code: facts["exit_code"].as_i64().expect(name),
        counts: counts.map(|(word, count)| (word.clone(), count.as_u64().unwrap_or(0))).collect(),
        first_error: text("first_error"),
        judged: facts["judge"].is_string(),
        log: read("log"),
        stderr: read("stderr"),
    }
}
