//! How soon: a short command, a pattern, a line typed into an interpreter.

use std::process::Command;
use std::time::Instant;

use serde_json::json;

use super::plot::Plot;
use super::report::Section;
use super::server::Server;
use super::stats::{Middle, figure, middle, ms, ratios};
use super::{Bench, bare, own_program, progress};

/// Times two things turn about.
fn interleaved(
    times: usize,
    mut one: impl FnMut() -> Result<f64, String>,
    mut other: impl FnMut() -> Result<f64, String>,
) -> Result<(Vec<f64>, Vec<f64>), String> {
    let (mut ones, mut others) = (Vec::new(), Vec::new());
    for round in 0..times {
        if round % 2 == 0 {
            ones.push(one()?);
            others.push(other()?);
        } else {
            others.push(other()?);
            ones.push(one()?);
        }
    }
    Ok((ones, others))
}

fn row(name: &str, ours: &[f64], floor: &[f64]) -> Vec<String> {
    let (ours_ms, floor_ms): (Middle, Middle) = (middle(ours), middle(floor));
    vec![name.to_owned(), ours_ms.to_string(), floor_ms.to_string(), ratios(ours, floor).to_string()]
}

/// Short commands, and the program itself.
pub(super) fn round_trips(bench: &Bench) -> Result<Section, String> {
    progress("round trips");
    let home = bench.home("round-trips")?;
    let mut server = Server::start(&bench.program, &home)?;
    let echo = |n: &mut usize, server: &mut Server| {
        *n += 1;
        let began = Instant::now();
        let answer = server.call("run_shell_command", &json!({"command": format!("echo hi{n}")}))?;
        let took = ms(began.elapsed());
        let told = answer["output"].as_str().is_some_and(|text| text.contains(&format!("hi{n}")));
        if told && answer["exit_code"] == 0 { Ok(took) } else { Err(format!("not the answer: {answer}")) }
    };
    let floor = || match bare::round_trip(&["bash", "-c", "echo hi"])? {
        (_, 0) => Err("the floor read nothing".to_owned()),
        (took, _) => Ok(ms(took)),
    };
    let mut n = 0;
    for _ in 0..5 {
        echo(&mut n, &mut server)?;
        floor()?;
    }
    let (echoes, floors) = interleaved(bench.samples, || echo(&mut n, &mut server), floor)?;
    let silent = |arguments: &[&str]| bench.whole_process("round-trips", arguments);
    let truth = || {
        let began = Instant::now();
        let _ = Command::new("true").status();
        Ok(ms(began.elapsed()))
    };
    let (runs, run_floors) = interleaved(
        bench.samples,
        || silent(&["run", "--", "true"]),
        || bare::round_trip(&["true"]).map(|(took, _)| ms(took)),
    )?;
    let (versions, trues) = interleaved(bench.samples, || silent(&["--version"]), truth)?;
    let start = || {
        let began = Instant::now();
        let server = Server::start(&bench.program, &home)?;
        let took = ms(began.elapsed());
        drop(server);
        Ok(took)
    };
    let (servers, more_trues) = interleaved(bench.samples / 4 + 1, start, truth)?;
    Ok(Section {
        title: "Round trips",
        about: "Milliseconds, the median and the middle half. The floor of a command forks, executes and reads by itself, on a terminal too.",
        head: vec!["what", "ours ms", "floor ms", "ours / floor"],
        rows: vec![
            row(
                "MCP `run_shell_command` `echo hi`, with output and code; floor: `bash -c 'echo hi'`",
                &echoes,
                &floors,
            ),
            row("`outlast run -- true`, whole process; floor: `true`", &runs, &run_floors),
            row("`outlast --version`; floor: `true`", &versions, &trues),
            row("`outlast mcp` started and shaken hands with; floor: `true`", &servers, &more_trues),
        ],
        figures: vec![("run-true", ratios(&runs, &run_floors).median)],
        ..Section::default()
    })
}

/// From the program's own clock to the caller's, behind logs of growing size.
pub(super) fn patterns(bench: &Bench) -> Result<Section, String> {
    let mut rows = Vec::new();
    let mut curve = Vec::new();
    for &before in bench.log_sizes {
        progress(&format!("patterns behind {before} bytes"));
        let home = bench.home(&format!("patterns-{before}"))?;
        let mut server = Server::start(&bench.program, &home)?;
        let emitter = own_program();
        let command = format!(
            "stty -echo; head -c {before} /dev/zero | tr '\\0' 'x' | fold -w 99; exec '{emitter}' mark"
        );
        let job = server.call("run_shell_command", &json!({"command": command, "is_background": true}))?;
        let handle = job["handle"].clone();
        // The flood is over when the first mark comes.
        server.call(
            "send_input",
            &json!({"handle": handle, "input": "", "ai_callback_pattern": "MARK", "pattern_timeout": 45}),
        )?;
        let mut times = Vec::new();
        for _ in 0..bench.samples.min(60) {
            let answer = server.call(
                "send_input",
                &json!({"handle": handle, "input": "x", "ai_callback_pattern": r"MARK (\d+) \.", "pattern_timeout": 30}),
            )?;
            let now = super::monotonic_ns();
            let text = answer["output"].as_str().unwrap_or_default();
            let printed: u64 = text
                .split("MARK ")
                .nth(1)
                .and_then(|rest| rest.split(' ').next())
                .and_then(|digits| digits.parse().ok())
                .ok_or_else(|| format!("no mark: {answer}"))?;
            times.push((now - printed) as f64 / 1e6);
        }
        server.call("kill", &json!({"handle": handle}))?;
        let told = middle(&times);
        rows.push(vec![size(before), told.to_string()]);
        curve.push((before as f64, told.median));
    }
    Ok(Section {
        title: "A pattern, printed to told",
        about: "Milliseconds from the program's own clock just before it prints to the MCP client having the answer.",
        head: vec!["log before it", "told after ms"],
        rows,
        plots: vec![Plot {
            name: "pattern-latency",
            title: "Printed to told, by size of the log before",
            x: "bytes in the log",
            y: "ms",
            lines: vec![("told", curve)],
        }],
        ..Section::default()
    })
}

/// A line typed into an interpreter, without a pattern.
pub(super) fn interpreter(bench: &Bench) -> Result<Section, String> {
    progress("python3 -i");
    let home = bench.home("interpreter")?;
    let mut server = Server::start(&bench.program, &home)?;
    let job = server
        .call("run_shell_command", &json!({"command": "python3 -i -q", "wait_for_output_seconds": 10}))?;
    let handle = job["handle"].clone();
    let floor = bare::Bare::start(&["python3", "-i", "-q"], true)?;
    floor.read_until(Some(">>> "));
    let (mut n, mut m) = (0, 0);
    let typed = || {
        n += 1;
        let began = Instant::now();
        let answer = server.call("send_input", &json!({"handle": handle, "input": format!("{n}+1000")}))?;
        let took = ms(began.elapsed());
        let told = answer["output"].as_str().is_some_and(|text| text.contains(&format!("{}", n + 1000)));
        if told { Ok(took) } else { Err(format!("not the answer: {answer}")) }
    };
    let bare_typed = || {
        m += 1;
        let began = Instant::now();
        floor.type_line(&format!("{m}+1000"));
        floor.read_until(Some(&format!("{}\r\n>>> ", m + 1000)));
        Ok(ms(began.elapsed()))
    };
    let (ours, floors) = interleaved(bench.samples.min(60), typed, bare_typed)?;
    floor.type_line("exit()");
    floor.read_until(None);
    floor.reap();
    server.call("kill", &json!({"handle": handle}))?;
    Ok(Section {
        title: "A line typed into `python3 -i`",
        about: "MCP `send_input` without a pattern, until the answer is there and the interpreter waits again. The floor knows what the answer and the prompt look like, and reads until it sees them.",
        head: vec!["what", "ours ms", "floor ms", "ours / floor"],
        rows: vec![row("`send_input`", &ours, &floors)],
        ..Section::default()
    })
}

/// Bytes as people write them.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 30 => format!("{} GiB", figure(b as f64 / f64::from(1 << 30))),
        b if b >= 1 << 20 => format!("{} MiB", figure(b as f64 / f64::from(1 << 20))),
        b => format!("{} KiB", figure(b as f64 / 1024.0)),
    }
}
