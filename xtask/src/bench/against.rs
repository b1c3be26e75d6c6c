//! `cargo xtask bench --against PROGRAM`: two versions of the program turn about, by the doors that both have.
//!
//! What got slower shows as a ratio above one; more than a twentieth is marked.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::report::Section;
use super::server::Server;
use super::stats::{figure, middle, ms, ratios};
use super::{Bench, emit, own_program, progress};

/// What is slower by more than this is marked.
const ALLOWED: f64 = 1.05;

/// One version, with a home of its own.
struct Side {
    program: PathBuf,
    home: PathBuf,
    server: Server,
    /// A job that prints a mark for each line, and an interpreter.
    marks: Value,
    python: Value,
    /// How many samples were taken: commands and lines differ from each other.
    count: usize,
}

type Sample = fn(&mut Side) -> Result<f64, String>;
const CASES: &[(&str, Sample)] = &[
    ("MCP `echo hi`, with output and code, ms", Side::echo),
    ("MCP start in the background and kill, ms", Side::background),
    ("a pattern, printed to told, ms", Side::pattern),
    ("a line typed into `python3 -i`, ms", Side::line),
    ("`outlast run -- true`, whole process, ms", |side| side.whole(&["run", "--", "true"])),
    ("`outlast --version`, ms", |side| side.whole(&["--version"])),
    ("`outlast jobs --all --json`, ms", |side| side.whole(&["jobs", "--all", "--json"])),
];

impl Side {
    fn start(program: &Path, home: PathBuf) -> Result<Self, String> {
        let mut server = Server::start(program, &home)?;
        let mark = format!("stty -echo; exec '{}' mark", own_program());
        let marks =
            server.call("run_shell_command", &json!({"command": mark, "is_background": true}))?["handle"]
                .take();
        let run = json!({"command": "python3 -i -q", "wait_for_output_seconds": 10});
        let python = server.call("run_shell_command", &run)?["handle"].take();
        Ok(Self { program: program.to_owned(), home, server, marks, python, count: 0 })
    }

    fn echo(&mut self) -> Result<f64, String> {
        let command = format!("echo hi{}", self.count);
        let began = Instant::now();
        let answer = self.server.call("run_shell_command", &json!({"command": command}))?;
        let took = ms(began.elapsed());
        if answer["exit_code"] == 0 { Ok(took) } else { Err(format!("not the answer: {answer}")) }
    }

    fn background(&mut self) -> Result<f64, String> {
        let command = format!("sleep 1000{}", self.count);
        let began = Instant::now();
        let job =
            self.server.call("run_shell_command", &json!({"command": command, "is_background": true}))?;
        self.server.call("kill", &json!({"handle": job["handle"]}))?;
        Ok(ms(began.elapsed()))
    }

    fn pattern(&mut self) -> Result<f64, String> {
        let send = json!({"handle": self.marks, "input": "x", "ai_callback_pattern": r"MARK (\d+) \.", "pattern_timeout": 30});
        let answer = self.server.call("send_input", &send)?;
        super::cold::since_mark(super::monotonic_ns(), answer["output"].as_str().unwrap_or_default())
    }

    fn line(&mut self) -> Result<f64, String> {
        let line = format!("{}+1000", self.count);
        let began = Instant::now();
        let answer = self.server.call("send_input", &json!({"handle": self.python, "input": line}))?;
        let took = ms(began.elapsed());
        let told =
            answer["output"].as_str().is_some_and(|text| text.contains(&(self.count + 1000).to_string()));
        if told { Ok(took) } else { Err(format!("not the answer: {answer}")) }
    }

    fn whole(&mut self, arguments: &[&str]) -> Result<f64, String> {
        let mut command = Command::new(&self.program);
        command.args(arguments).env("OUTLAST_HOME", &self.home);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let began = Instant::now();
        match command.status() {
            Ok(status) if status.success() => Ok(ms(began.elapsed())),
            Ok(status) => Err(format!("{arguments:?}: {status}")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Seconds until the last line of a flood was told; the keeper has 20 patterns to look for besides.
    fn flood(&mut self, kind: &str, bytes: usize) -> Result<f64, String> {
        let command = format!("'{}' emit {kind} {bytes}", own_program());
        let began = Instant::now();
        let job =
            self.server.call("run_shell_command", &json!({"command": command, "is_background": true}))?;
        let wait = json!({"handle": job["handle"], "pattern": emit::END, "timeout": 45});
        while self.server.call("wait_for", &wait)?["reason"] == "deadline" {}
        let took = began.elapsed().as_secs_f64();
        self.server.call("kill", &json!({"handle": job["handle"]}))?;
        Ok(took)
    }
}

/// Measures both, and says whether nothing got slower by more than is allowed.
pub(super) fn compare(bench: &Bench, other: &Path) -> Result<Section, String> {
    let mut sides = [
        Side::start(&bench.program, bench.home("against-new")?)?,
        Side::start(other, bench.home("against-old")?)?,
    ];
    let mut rows = Vec::new();
    let mut row = |name: String, times: [Vec<f64>; 2]| {
        let [new, old] = times;
        let ratio = ratios(&new, &old);
        let mark = if ratio.median > ALLOWED { " **slower**" } else { "" };
        rows.push(vec![
            name,
            figure(middle(&new).median),
            figure(middle(&old).median),
            format!("{ratio}{mark}"),
        ]);
    };
    for (name, sample) in CASES {
        progress(name);
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..=bench.samples {
            for turn in [round % 2, 1 - round % 2] {
                let side = &mut sides[turn];
                side.count += 1;
                let took = sample(side)?;
                // The first of each reads files for the first time.
                if round > 0 {
                    times[turn].push(took);
                }
            }
        }
        row((*name).to_owned(), times);
    }
    for (kind, name) in emit::KINDS {
        progress(name);
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..bench.rounds {
            for turn in [round % 2, 1 - round % 2] {
                times[turn].push(sides[turn].flood(kind, bench.flood / 8)?);
            }
        }
        row(format!("flood of {name}, s"), times);
    }
    Ok(Section {
        title: "Against another version",
        about: "Turn about, over MCP and the command line, the median of each and of the paired ratios.",
        head: vec!["what", "new", "other", "new / other"],
        rows,
        ..Section::default()
    })
}
