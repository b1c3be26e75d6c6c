//! As it is used: a pause of random length before every sample, in which everything goes to sleep, and a new job for each.
//!
//! Beside it the same without pauses. What is promised to users is the cold column: between two calls of an agent a model
//! thinks.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::report::Section;
use super::server::Server;
use super::stats::{Middle, middle, ms, ratios};
use super::{Bench, bare, monotonic_ns, own_program, progress};

/// How long a pause is.
const PAUSE: (u64, u64) = (50, 500);
/// How long a program is silent before it prints what is waited for.
const SILENCE: (u64, u64) = (50, 300);

/// Numbers that are the same in every run.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }

    /// Sleeps, as a caller does whose model thinks.
    pub(super) fn pause(&mut self) {
        std::thread::sleep(Duration::from_millis(self.between(PAUSE)));
    }

    fn between(&mut self, (low, high): (u64, u64)) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        low + self.0 % (high - low)
    }
}

/// The figure that a target is about, from the medians of ours and of the floor.
type Judged = fn(f64, f64) -> f64;

/// One way to measure something: with our server, and without anything between.
struct Case {
    name: &'static str,
    /// What the targets are about: the name, and the figure of ours and the floor's, cold.
    target: Option<(&'static str, Judged)>,
    ours: fn(&mut Server, &Bench, u64) -> Result<f64, String>,
    floor: fn(u64) -> Result<f64, String>,
}

const CASES: &[Case] = &[
    Case {
        name: "pattern printed by a new job to caller told, one call; floor: the caller's own read",
        target: Some(("pattern", |ours, floor| ours / floor)),
        ours: |server, _, silence| {
            let command = format!("exec '{}' mark-once {silence}", own_program());
            let asked =
                json!({"command": command, "ai_callback_pattern": r"MARK (\d+) \.", "pattern_timeout": 30});
            let answer = server.call("run_shell_command", &asked)?;
            since_mark(monotonic_ns(), answer["output"].as_str().unwrap_or_default())
        },
        floor: |silence| {
            let job = bare::Bare::start(&[&own_program(), "mark-once", &silence.to_string()], true)?;
            let text = job.read_text(" .");
            let now = monotonic_ns();
            job.read_until(None);
            job.reap();
            since_mark(now, &text)
        },
    },
    Case {
        name: "job started in the background, call to answer; floor: fork and exec",
        target: Some(("background", |ours, floor| ours - 1.5 * floor)),
        ours: |server, _, _| {
            let began = Instant::now();
            let answer = server.call("run_shell_command", &background("sleep 0.02"))?;
            let took = ms(began.elapsed());
            if answer["reason"] == "started" { Ok(took) } else { Err(format!("not started: {answer}")) }
        },
        floor: |_| {
            let began = Instant::now();
            let job = bare::Bare::start(&["bash", "-c", "sleep 0.02"], true)?;
            let took = ms(began.elapsed());
            job.read_until(None);
            job.reap();
            Ok(took)
        },
    },
    Case {
        name: "`echo hi`, with output and code; floor: `bash -c 'echo hi'` on a terminal",
        target: Some(("echo", |ours, floor| ours / floor)),
        ours: |server, _, _| {
            let began = Instant::now();
            let answer = server.call("run_shell_command", &json!({"command": "echo hi"}))?;
            let took = ms(began.elapsed());
            let told = answer["output"].as_str().is_some_and(|text| text.contains("hi"));
            if told && answer["exit_code"] == 0 { Ok(took) } else { Err(format!("not the answer: {answer}")) }
        },
        floor: |_| bare::round_trip(&["bash", "-c", "echo hi"]).map(|(took, _)| ms(took)),
    },
    Case {
        name: "a line typed into `python3 -i`, no pattern; floor: the caller knows what to look for",
        target: Some(("python", |ours, _| ours)),
        ours: |server, _, _| {
            let run = json!({"command": "exec python3 -i -q", "wait_for_output_seconds": 20});
            let handle = server.call("run_shell_command", &run)?["handle"].clone();
            std::thread::sleep(Duration::from_millis(PAUSE.0));
            let began = Instant::now();
            let answer = server.call("send_input", &json!({"handle": handle, "input": "41*1001"}))?;
            let took = ms(began.elapsed());
            server.call("kill", &json!({"handle": handle}))?;
            let told = answer["output"].as_str().is_some_and(|text| text.contains("41041"));
            if told { Ok(took) } else { Err(format!("not the answer: {answer}")) }
        },
        floor: |_| {
            let job = bare::Bare::start(&["python3", "-i", "-q"], true)?;
            job.read_until(Some(">>> "));
            std::thread::sleep(Duration::from_millis(PAUSE.0));
            let began = Instant::now();
            job.type_line("41*1001");
            job.read_until(Some("41041\r\n>>> "));
            let took = ms(began.elapsed());
            job.type_line("exit()");
            job.read_until(None);
            job.reap();
            Ok(took)
        },
    },
    Case {
        name: "`outlast run -- true`, whole process; floor: `true` on a terminal",
        target: None,
        ours: |_, bench, _| bench.whole_process("cold", &["run", "--", "true"]),
        floor: |_| bare::round_trip(&["true"]).map(|(took, _)| ms(took)),
    },
];

fn background(command: &str) -> Value {
    json!({"command": command, "is_background": true, "again": true})
}

/// How long ago the mark was printed, in milliseconds.
pub(super) fn since_mark(now: u64, text: &str) -> Result<f64, String> {
    let printed = text.split("MARK ").nth(1).and_then(|rest| rest.split(' ').next());
    let printed: u64 = printed.and_then(|digits| digits.parse().ok()).ok_or(format!("no mark: {text:?}"))?;
    Ok(now.saturating_sub(printed) as f64 / 1e6)
}

/// All cases, after pauses and without.
pub(super) fn cold(bench: &Bench) -> Result<Section, String> {
    let home = bench.home("cold")?;
    let mut server = Server::start(&bench.program, &home)?;
    let mut dice = Dice::new();
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    for case in CASES {
        progress(&format!("after pauses: {}", case.name));
        let mut row = vec![case.name.to_owned()];
        for pauses in [true, false] {
            let (ours, floor) = sample(bench, case, &mut server, (&mut dice, pauses))?;
            let (ours_ms, floor_ms): (Middle, Middle) = (middle(&ours), middle(&floor));
            if let Some((name, judged)) = case.target.filter(|_| pauses) {
                figures.push((name, judged(ours_ms.median, floor_ms.median)));
            }
            row.extend([ours_ms.to_string(), floor_ms.to_string(), ratios(&ours, &floor).to_string()]);
        }
        rows.push(row);
    }
    Ok(Section {
        title: "As it is used: after a pause",
        about: "Milliseconds, the median and the middle half. Cold: a pause of 50 to 500 ms before every sample, and a new job for each; hot: the same without the pause. Ours and the floor take turns.",
        head: vec!["what", "cold, ours", "cold, floor", "ratio", "hot, ours", "hot, floor", "ratio"],
        rows,
        figures,
        ..Section::default()
    })
}

fn sample(
    bench: &Bench,
    case: &Case,
    server: &mut Server,
    (dice, pauses): (&mut Dice, bool),
) -> Result<(Vec<f64>, Vec<f64>), String> {
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    // The first of each is not counted: files are read for the first time.
    for round in 0..=bench.samples.min(60) {
        for turn in 0..2 {
            if pauses {
                dice.pause();
            }
            let silence = dice.between(SILENCE);
            if (round + turn) % 2 == 0 {
                ours.push((case.ours)(server, bench, silence)?);
            } else {
                floor.push((case.floor)(silence)?);
            }
        }
    }
    Ok((ours.split_off(1), floor.split_off(1)))
}
