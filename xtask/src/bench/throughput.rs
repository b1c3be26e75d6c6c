//! Floods: wall time against a bare read loop in the same round, by kind of output.

use std::time::Instant;

use outlast_job::{Condition, JobSpec, Run, Streams, Wait};
use serde_json::json;

use super::report::Section;
use super::stats::{Middle, figure, middle, ratios};
use super::{Bench, bare, cpu_ms, emit, own_program, progress};

/// Twenty patterns that never match: what an anxious agent waits for.
pub(super) fn patterns() -> Vec<String> {
    let known = ["panicked at", r"error(\[E\d+\])?:", r"^\$ $", r"(?i)password:", r"listening on .*:(\d+)"];
    known
        .iter()
        .map(|&pattern| pattern.to_owned())
        .chain((5..20).map(|n| format!(r"\bword{n}\b.*done")))
        .collect()
}

/// What a flood cost the keeper.
struct Flood {
    seconds: f64,
    cpu_ms: f64,
    peak_kib: f64,
}

fn ours(bench: &Bench, kind: &str, bytes: usize, terminal: bool) -> Result<Flood, String> {
    let (outlast, emitter) = (bench.outlast()?, own_program());
    let mut spec = JobSpec::new(Run::Program(vec![emitter, "emit".into(), kind.into(), bytes.to_string()]));
    if !terminal {
        spec.streams = Streams::Pipes;
    }
    let say = |failure: outlast_job::Failure| failure.to_string();
    let began = Instant::now();
    let job = outlast.start(spec).map_err(say)?;
    let mut wait = Wait::for_pattern(emit::END);
    wait.until.extend(patterns().into_iter().map(Condition::Pattern));
    job.wait(&wait, None).map_err(say)?;
    // The clock stops when the screen and the last line were given rightly.
    if terminal {
        shows_end(&job)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    let keeper = job.info().map_err(say)?.keeper.ok_or("no keeper")?.pid;
    let (cpu_ms, peak_kib) = (cpu_ms(keeper), super::peak_kib(keeper));
    job.type_line("").map_err(say)?;
    job.wait(&Wait::for_exit(), None).map_err(say)?;
    // A flood's files are large: gone before the next.
    let _ = std::fs::remove_dir_all(job.files().folder);
    Ok(Flood { seconds, cpu_ms, peak_kib })
}

/// Whether screen and text have the last line of the flood.
fn shows_end(job: &outlast_job::Job) -> Result<(), String> {
    let shot = job.screen(false, 0).map_err(|failure| failure.to_string())?;
    let from = job.log_end().saturating_sub(1 << 10);
    let text = job.read_text(from, 4 << 10).map_err(|failure| failure.to_string())?;
    // Where the text begins within a full-screen program, rows that it drew may stand below the last line.
    let has_end = text.head.lines().any(|line| line.trim() == emit::END);
    if has_end && shot.rows.iter().any(|row| row == emit::END) {
        Ok(())
    } else {
        Err(format!("the end of the flood is not shown: {:?}, {:?}", shot.rows, text.head))
    }
}

fn compare(bench: &Bench, kind: &str, bytes: usize, terminal: bool) -> Result<Compared, String> {
    let emitter = own_program();
    let amount = bytes.to_string();
    let argv = [emitter.as_str(), "emit", kind, &amount];
    let mut compared = Compared::default();
    for round in 0..bench.rounds {
        progress(&format!("{kind}, {} MB, round {}", bytes / 1_000_000, round + 1));
        // Turn about, so that a busy spell does not fall on one side alone.
        for ours_first in [round % 2 == 0, round % 2 != 0] {
            if ours_first {
                let flood = ours(bench, kind, bytes, terminal)?;
                compared.ours.push(flood.seconds);
                compared.cpu.push(flood.cpu_ms);
                compared.peak.push(flood.peak_kib);
            } else {
                // On pipes, where reading costs next to nothing, the floor writes the bytes down, as we do.
                let kept = if terminal { None } else { Some(bench.scratch.path().join("floor")) };
                compared.bare.push(bare::flood(&argv, kept.as_deref(), emit::END)?.as_secs_f64());
            }
        }
    }
    Ok(compared)
}

#[derive(Default)]
struct Compared {
    bare: Vec<f64>,
    ours: Vec<f64>,
    cpu: Vec<f64>,
    peak: Vec<f64>,
}

impl Compared {
    fn row(&self, name: &str, bytes: usize) -> Vec<String> {
        let megabytes = bytes as f64 / 1e6;
        let speed = |seconds: &[f64]| figure(megabytes / middle(seconds).median);
        let ratio: Middle = ratios(&self.ours, &self.bare);
        vec![
            name.to_owned(),
            figure(megabytes),
            speed(&self.bare),
            speed(&self.ours),
            ratio.to_string(),
            figure(middle(&self.cpu).median / megabytes),
            figure(middle(&self.peak).median / 1024.0),
        ]
    }
}

const HEAD: &[&str] =
    &["output", "MB", "bare MB/s", "ours MB/s", "time, ours / bare", "keeper ms/MB", "keeper peak MiB"];

/// By kind of output, through a terminal.
pub(super) fn terminal(bench: &Bench) -> Result<Section, String> {
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    for (kind, name) in emit::KINDS {
        let bytes = if *kind == "log" { bench.flood } else { bench.flood / 4 };
        let compared = compare(bench, kind, bytes, true)?;
        figures.push((*kind, ratios(&compared.ours, &compared.bare).median));
        rows.push(compared.row(name, bytes));
    }
    Ok(Section {
        title: "Floods through a terminal",
        about: "Log, transcript, screen and 20 patterns, against a loop that only reads the same program's terminal. The clock stops when the screen and the last line were given.",
        head: HEAD.to_vec(),
        rows,
        figures,
        ..Section::default()
    })
}

/// What the server needs while a flood goes through one of its jobs.
pub(super) fn server(bench: &Bench) -> Result<Section, String> {
    progress("a flood over MCP");
    let home = bench.home("server")?;
    let mut server = super::Server::start(&bench.program, &home)?;
    let command = format!("'{}' emit log {}", own_program(), bench.flood);
    let began = Instant::now();
    let job = server.call("run_shell_command", &json!({"command": command, "is_background": true}))?;
    let handle = job["handle"].clone();
    let wait = json!({"handle": handle, "pattern": emit::END, "timeout": 45});
    while server.call("wait_for", &wait)?["reason"] == "deadline" {}
    let seconds = began.elapsed().as_secs_f64();
    server.call("read_output", &json!({"handle": handle, "tail": 200}))?;
    let peak = super::peak_kib(i32::try_from(server.pid()).unwrap_or(0));
    server.call("kill", &json!({"handle": handle}))?;
    Ok(Section {
        title: "The server during a flood",
        about: "MCP `run_shell_command`, `wait_for` with a pattern that comes last, and the tail: the output itself does not go through the server.",
        head: vec!["MB", "seconds", "server's peak MiB"],
        rows: vec![vec![figure(bench.flood as f64 / 1e6), figure(seconds), figure(peak / 1024.0)]],
        ..Section::default()
    })
}

/// The same on pipes.
pub(super) fn pipes(bench: &Bench) -> Result<Section, String> {
    let bytes = bench.flood;
    let compared = compare(bench, "log", bytes, false)?;
    Ok(Section {
        title: "Floods through pipes",
        about: "The same, with the command on pipes, against a loop that writes the same bytes to a file.",
        head: HEAD.to_vec(),
        rows: vec![compared.row("log lines", bytes)],
        figures: vec![("pipes", ratios(&compared.ours, &compared.bare).median)],
        ..Section::default()
    })
}
