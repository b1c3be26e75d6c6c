//! A job again: at a moment, at its speed, as a recording.

use std::time::{Duration, Instant};

use outlast_testkit::Sandbox;
use serde_json::Value;

use crate::person::Person;
use crate::{ends_with, sandbox};

/// A job that prints, waits, is resized, and prints again.
fn recorded(sandbox: &Sandbox) -> u64 {
    let script =
        "echo first; read x; echo second; read y; printf 'caf\\303\\251 \\033[32mgreen\\033[0m\\n'; exit 3";
    let job = sandbox.start(["--size", "60x10", "--name", "recorded", "--", "sh", "-c", script]);
    sandbox.wait_for_text(job, "first");
    // A pause that a recording shows.
    sandbox.run(["wait", "recorded", "--quiet-for", "400ms"]).ok();
    sandbox.run(["send", "recorded", "--no-wait", "a"]).ok();
    sandbox.wait_for_text(job, "second");
    sandbox.run(["resize", "recorded", "50x8"]).ok();
    sandbox.run(["send", "recorded", "--no-wait", "b"]).ok();
    ends_with(sandbox, job, 3);
    job
}

#[test]
fn the_screen_as_it_was_at_a_moment() {
    let sandbox = sandbox();
    let job = recorded(&sandbox);
    sandbox.wait_for_end(job);
    assert_eq!(sandbox.run(["replay", "recorded", "--offset", "5"]).ok().text(), "first\n");
    assert_eq!(sandbox.run(["replay", "recorded", "--offset", "3"]).ok().text(), "fir\n");
    assert_eq!(sandbox.run(["replay", "recorded", "--at", "200ms"]).ok().text(), "first\n");
    let last = sandbox.run(["replay", "recorded", "--at", "1h"]).ok().text();
    assert_eq!(last, "first\na\nsecond\nb\ncaf\u{e9} green\n");
    let shot = sandbox.json(["replay", "recorded", "--at", "1h"]);
    assert_eq!(shot["size"]["cols"], 50);
    assert_eq!(shot["rows"].as_array().unwrap().len(), 8);
    assert_eq!(shot["offset"], sandbox.log_len(job));
}

#[test]
fn a_recording_is_asciicast_version_3() {
    let sandbox = sandbox();
    let job = recorded(&sandbox);
    let text = sandbox.run(["replay", "recorded", "--export", "cast"]).ok().text();
    let mut values = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let header = values.next().unwrap();
    assert_eq!(header["version"], 3);
    assert_eq!(header["term"], serde_json::json!({ "cols": 60, "rows": 10, "type": "xterm-256color" }));
    assert_eq!(header["title"], "recorded");
    assert!(header["timestamp"].as_u64().unwrap() > 1_700_000_000);
    assert!(header["command"].as_str().unwrap().starts_with("sh -c"));
    let (mut output, mut sizes, mut exits, mut total) = (String::new(), Vec::new(), Vec::new(), 0.0);
    for event in values {
        let [interval, code, data] = event.as_array().unwrap().as_slice() else { panic!("{event}") };
        // Version 3 counts from the event before, not from the start.
        let interval = interval.as_f64().unwrap();
        assert!((0.0..60.0).contains(&interval), "{event}");
        total += interval;
        assert!(exits.is_empty(), "nothing comes after the end: {event}");
        match code.as_str().unwrap() {
            "o" => output.push_str(data.as_str().unwrap()),
            "r" => sizes.push(data.as_str().unwrap().to_owned()),
            "x" => exits.push(data.as_str().unwrap().to_owned()),
            other => panic!("{other}"),
        }
    }
    assert_eq!(output.as_bytes(), sandbox.log(job));
    assert_eq!(sizes, ["50x8"]);
    assert_eq!(exits, ["3"]);
    assert!(total > 0.35, "{total}");
}

#[test]
fn playing_takes_its_time_unless_told_otherwise() {
    let sandbox = sandbox();
    let job = recorded(&sandbox);
    let timed = |args: &[&str]| {
        let begin = Instant::now();
        let ran = sandbox.call(["replay", "recorded"]).args(args).run().ok();
        assert_eq!(ran.stdout, sandbox.log(job));
        begin.elapsed()
    };
    let own = timed(&[]);
    assert!(own >= Duration::from_millis(350), "{own:?}");
    // Both leave out most of the pause: how fast that is depends on the machine.
    assert!(timed(&["--idle-limit", "10ms"]) < own);
    assert!(timed(&["--speed", "50"]) < own);
    sandbox.run(["replay", "recorded", "--speed", "0"]).code(2).says("more than 0");
}

#[test]
fn a_person_sees_it_and_has_the_terminal_back() {
    let sandbox = sandbox();
    let job = sandbox.start([
        "--size",
        "80x24",
        "--",
        "sh",
        "-c",
        "echo on paper; printf '\\033]52;c;eA==\\007\\033[?1049h\\033[?25lpicture'; exit 0",
    ]);
    sandbox.wait_for_end(job);
    let person = Person::calls(&sandbox, (80, 24), &["replay", &job.to_string(), "--speed", "100"]);
    assert_eq!(person.is_back_in_the_shell(), 0);
    person.terminal_is_restored();
    let got = person.got();
    assert!(got.contains("picture") && !got.contains("\x1b]52"), "{got:?}");
}

#[test]
fn a_job_that_runs_can_be_played_as_far_as_it_is() {
    let sandbox = sandbox();
    let job = sandbox.start(["--", "sh", "-c", "echo so far; read x"]);
    sandbox.wait_for_text(job, "so far");
    assert_eq!(sandbox.run(["replay", &job.to_string(), "--speed", "100"]).ok().text(), "so far\r\n");
    let cast = sandbox.run(["replay", &job.to_string(), "--export", "cast"]).ok().text();
    assert!(!cast.contains("\"x\""), "{cast}");
}
