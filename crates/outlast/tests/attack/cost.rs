//! What the walls cost: an exec under the guard, and the start of a job in a sandbox. Each beside the same without, in turns.
//!
//! `cargo xtask attack cost` runs only these; with an optimised build if there is one.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use serde_json::json;

use crate::client::{Client, PROGRAM, Sandbox};
use crate::is_full;

const TURNS: usize = 100;
const SPAWNS: usize = 100;
/// How many jobs are started of each kind.
const STARTS: usize = 100;

/// Spawns when it is told to, with a `PATH` of ten folders, and writes how long each took, in microseconds.
const SPAWNER: &str = r#"
import os, sys, time
os.environ["PATH"] = ":".join("/nonexistent/%d" % i for i in range(9)) + ":/usr/bin"
out = open(sys.argv[2], "w")
for line in open(sys.argv[1]):
    for _ in range(int(line)):
        begun = time.perf_counter_ns()
        pid = os.posix_spawnp("true", ["true"], os.environ)
        os.waitpid(pid, 0)
        out.write("%d\n" % ((time.perf_counter_ns() - begun) // 1000))
    out.write("end\n")
    out.flush()
"#;

/// The program that is measured.
fn program() -> PathBuf {
    std::env::var_os("OUTLAST_COST_PROGRAM").map_or_else(|| PROGRAM.into(), PathBuf::from)
}

/// A client of the program that is measured, in a folder of a home with these settings and this policy.
fn client(settings: &str, policy: &str) -> (Sandbox, Client) {
    let sandbox = Sandbox::new();
    let folder = sandbox.path().join(".config/outlast");
    let project = sandbox.path().join("project");
    for folder in [&folder, &project] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    std::fs::write(folder.join("policy.toml"), policy).unwrap();
    let mut command: Command = sandbox.of_environment(program());
    command.arg("mcp").current_dir(&project);
    let client = Client::start(command).initialized("2025-06-18", &json!({}));
    (sandbox, client)
}

/// Times of one kind, sorted, and what they are of.
struct Times {
    name: &'static str,
    all: Vec<f64>,
}

impl Times {
    /// The value that this share of 1000 is below.
    fn at(&self, share: usize) -> f64 {
        self.all[(self.all.len() * share / 1000).min(self.all.len() - 1)]
    }
}

/// Writes a table down where it was asked for, and shows it: the first kind is what the others are compared with.
fn measured(title: &str, kinds: &mut [Times]) {
    use std::io::Write;
    for kind in &mut *kinds {
        kind.all.sort_by(f64::total_cmp);
    }
    let first = &kinds[0];
    let row = |kind: &Times| {
        let values = [0, 100, 500, 990].map(|share| format!("{:.2}", kind.at(share)));
        let added = [0, 500, 990].map(|share| format!("{:+.2}", kind.at(share) - first.at(share)));
        format!("| {} | {} | {} |", kind.name, values.join(" | "), added.join(" | "))
    };
    let rows: Vec<String> = kinds.iter().map(row).collect();
    let build = if program() == std::path::Path::new(PROGRAM) { "unoptimised" } else { "optimised" };
    let count = first.all.len();
    let table = format!(
        "{title}, in ms, {count} of each in turns, {build} build:\n\n\
         | | least | a tenth | median | 99 % | added: least | median | 99 % |\n|---|---|---|---|---|---|---|---|\n{}\n",
        rows.join("\n")
    );
    eprintln!("{table}");
    if let Some(file) = std::env::var_os("OUTLAST_ATTACK_FILE") {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(file).unwrap();
        file.write_all(format!("{}\n", json!({"measured": table})).as_bytes()).unwrap();
    }
}

/// A job that spawns: where it is told to, and where it says how long that took.
fn spawner(policy: &str) -> (Sandbox, std::fs::File, PathBuf) {
    let (sandbox, mut client) = client("", policy);
    let project = sandbox.path().join("project");
    std::fs::write(project.join("spawner.py"), SPAWNER).unwrap();
    let line = project.join("orders");
    rustix::fs::mknodat(rustix::fs::CWD, &line, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let command = "python3 spawner.py orders times";
    client.tool("run_shell_command", json!({"command": command, "is_background": true, "pty": false}));
    client.hang_up();
    let orders = std::fs::OpenOptions::new().write(true).open(line).unwrap();
    (sandbox, orders, project.join("times"))
}

#[test]
fn the_guard_adds_little_to_an_exec() {
    use std::io::Write;
    if !is_full() {
        return;
    }
    let mut free = spawner("[[rule]]\ndecision = \"deny\"\ntool = \"prune\"\n");
    let mut guarded = spawner(
        "[[rule]]\ndecision = \"deny\"\nprefix = \"rm\"\n[[rule]]\ndecision = \"deny\"\nprefix = \"git push\"\n",
    );
    for turn in 1..=TURNS {
        for job in [&mut free, &mut guarded] {
            job.1.write_all(format!("{SPAWNS}\n").as_bytes()).unwrap();
            crate::client::eventually("it has spawned", || {
                std::fs::read_to_string(&job.2).is_ok_and(|text| text.matches("end").count() >= turn)
            });
        }
    }
    let times = |name: &'static str, file: &std::path::Path| {
        let text = std::fs::read_to_string(file).unwrap();
        let all = text.lines().filter_map(|line| line.parse::<f64>().ok()).map(|us| us / 1000.0).collect();
        Times { name, all }
    };
    let mut kinds = [times("without a rule", &free.2), times("with the exec guard", &guarded.2)];
    assert!(kinds.iter().all(|kind| kind.all.len() == TURNS * SPAWNS));
    measured("A spawn of `true` with a `PATH` of ten folders (ten calls are judged)", &mut kinds);
}

/// What a job is started in: a name, and settings.
const WALLS: &[(&str, &str)] = &[
    ("no sandbox", ""),
    ("kernel, no protected names, network on", "[agents.sandbox]\nprotect = \"off\"\nnetwork = \"on\"\n"),
    ("kernel, no protected names", "[agents.sandbox]\nprotect = \"off\"\n"),
    ("kernel, network on", "[agents.sandbox]\nnetwork = \"on\"\n"),
    ("kernel", "[agents.sandbox]\n"),
    ("bwrap, network on", "[agents.sandbox]\nby = \"bwrap\"\nnetwork = \"on\"\n"),
    ("bwrap", "[agents.sandbox]\nby = \"bwrap\"\n"),
];

#[test]
fn a_sandbox_adds_little_to_a_start() {
    if !is_full() {
        return;
    }
    let walls =
        WALLS.iter().filter(|(_, settings)| !settings.contains("bwrap") || outlast_testkit::has("bwrap"));
    let mut kinds: Vec<(Times, Sandbox, Client)> = walls
        .map(|(name, settings)| {
            let (sandbox, client) = client(settings, "");
            (Times { name, all: Vec::new() }, sandbox, client)
        })
        .collect();
    for round in 0..=STARTS {
        for (times, _, client) in &mut kinds {
            let began = Instant::now();
            let answer = client.call("run_shell_command", json!({"command": "true", "again": true}));
            let took = began.elapsed().as_secs_f64() * 1000.0;
            assert!(answer["isError"] != true, "{}: {answer}", times.name);
            // The first of each finds nothing ready.
            if round > 0 {
                times.all.push(took);
            }
        }
    }
    let mut kinds: Vec<Times> = kinds.into_iter().map(|(times, ..)| times).collect();
    measured("A call that runs `true` in a sandbox, from the order to the answer", &mut kinds);
}
