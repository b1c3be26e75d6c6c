//! How soon a caller is told that a program waits for input, and how soon a job is gone.

use std::time::{Duration, Instant};

use outlast_job::{JobSpec, Run};
use serde_json::json;

use super::report::Section;
use super::server::Server;
use super::stats::{middle, ms};
use super::{Bench, cold, monotonic_ns, own_program, progress};

/// Programs that wait, by what the caller can see of it; and the name of each for its target.
const WAITS: &[(&str, &str, &str)] = &[
    ("a question, `Continue? (y/n)`", "question", "told-question"),
    ("a prompt, `>>> `", "prompt", "told-prompt"),
    ("nothing: it just reads", "silent", "told-silent"),
];

/// `xtask ask KIND`: prints the time, perhaps a question, and reads.
///
/// # Errors
/// An unknown kind, or an output that is gone.
pub(crate) fn ask(kind: &str) -> Result<(), String> {
    use std::io::Write as _;
    let text = match kind {
        "question" => "Continue? (y/n) ",
        "prompt" => ">>> ",
        "silent" => "",
        _ => return Err("no such kind".into()),
    };
    let mut out = std::io::stdout().lock();
    write!(out, "MARK {} .\n{text}", monotonic_ns()).and_then(|()| out.flush()).map_err(|e| e.to_string())?;
    std::io::stdin().read_line(&mut String::new()).map_err(|error| error.to_string())?;
    Ok(())
}

/// From a program's own clock before it waits to the caller being told.
pub(super) fn waits(bench: &Bench) -> Result<Section, String> {
    let home = bench.home("waits")?;
    let mut server = Server::start(&bench.program, &home)?;
    let mut dice = cold::Dice::new();
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    for (name, kind, target) in WAITS {
        progress(&format!("waits for input: {name}"));
        let mut times = Vec::new();
        for _ in 0..=bench.samples.min(40) {
            dice.pause();
            let run = json!({"command": format!("exec '{}' ask {kind}", own_program()), "wait_for_output_seconds": 30, "again": true});
            let answer = server.call("run_shell_command", &run)?;
            let now = monotonic_ns();
            server.call("kill", &json!({"handle": answer["handle"]}))?;
            if answer["reason"] != "awaiting_input" {
                return Err(format!("not told that it waits: {answer}"));
            }
            times.push(cold::since_mark(now, answer["output"].as_str().unwrap_or_default())?);
        }
        let told = middle(&times[1..]);
        figures.push((*target, told.median));
        rows.push(vec![(*name).to_owned(), told.to_string()]);
    }
    Ok(Section {
        title: "Told that it waits for input",
        about: "MCP `run_shell_command` without a pattern, after a pause, a new job each time: milliseconds from the program's own clock before it waits.",
        head: vec!["what it shows", "told after ms"],
        rows,
        figures,
        ..Section::default()
    })
}

/// What is killed, with how much grace; and its name for its target.
const KILLS: &[(&str, &str, u64, &str)] = &[
    (
        "ignores SIGTERM and SIGHUP, as do its two children",
        "trap '' TERM HUP; sleep 1000 & setsid sleep 1000 & while :; do sleep 1; done",
        200,
        "kill-stubborn",
    ),
    ("obeys, as do its two children", "sleep 1000 & sleep 1000 & wait", 5000, "kill-obeying"),
];

/// From the call to the answer, when all of it is gone. For those that ignore signals, the grace is not counted.
pub(super) fn kills(bench: &Bench) -> Result<Section, String> {
    progress("kills");
    let outlast = bench.outlast_at(&bench.home("kills")?)?;
    let say = |failure: outlast_job::Failure| failure.to_string();
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    for (name, script, grace, target) in KILLS {
        let mut times = Vec::new();
        for _ in 0..bench.samples.min(20) {
            let job = outlast.start(JobSpec::new(Run::Shell((*script).to_owned()))).map_err(say)?;
            // Until it has set its traps and started its children.
            std::thread::sleep(Duration::from_millis(100));
            let began = Instant::now();
            job.kill(Duration::from_millis(*grace), "bench").map_err(say)?;
            let took = ms(began.elapsed());
            times.push(if *target == "kill-stubborn" { took - *grace as f64 } else { took });
        }
        let took = middle(&times);
        figures.push((*target, took.median));
        rows.push(vec![(*name).to_owned(), grace.to_string(), took.to_string()]);
    }
    Ok(Section {
        title: "Kills",
        about: "Milliseconds from the call to the answer, beyond the grace for what ignores it: all processes are gone then.",
        head: vec!["the job", "grace ms", "ms"],
        rows,
        figures,
        ..Section::default()
    })
}
