//! A job again: at a moment, at its speed, as a recording, as a picture.

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

/// What version 2 says differs only in its header and in what times are counted from.
#[test]
fn a_recording_is_asciicast_version_2_too() {
    let sandbox = sandbox();
    let job = recorded(&sandbox);
    let text = sandbox.run(["replay", "recorded", "--export", "cast2"]).ok().text();
    let mut values = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let header = values.next().unwrap();
    assert_eq!(
        (&header["version"], &header["width"], &header["height"]),
        (&2.into(), &60.into(), &10.into())
    );
    let (mut output, mut last) = (String::new(), 0.0);
    for event in values {
        let [time, code, data] = event.as_array().unwrap().as_slice() else { panic!("{event}") };
        assert!(time.as_f64().unwrap() >= last, "{event}");
        last = time.as_f64().unwrap();
        match code.as_str().unwrap() {
            "o" => output.push_str(data.as_str().unwrap()),
            "r" => assert_eq!(data, "50x8"),
            other => panic!("version 2 has no event {other}"),
        }
    }
    assert_eq!(output.as_bytes(), sandbox.log(job));
    assert!(last > 0.35, "{last}");
}

/// Keys are for the player, and none of them is seen.
#[test]
fn a_player_is_held_moved_and_ended_by_keys() {
    let sandbox = sandbox();
    recorded(&sandbox);
    let slow = ["replay", "recorded", "--speed", "0.02"];
    let person = Person::calls(&sandbox, (60, 10), &slow);
    person.sees("first");
    person.types(b" xy");
    person.types(b"q");
    assert_eq!(person.is_back_in_the_shell(), 0);
    person.terminal_is_restored();
    assert!(!person.got().contains("xy"), "{:?}", person.got());
    let person = Person::calls(&sandbox, (60, 10), &slow);
    person.sees("first");
    person.types(b"\x1b[C");
    assert_eq!(person.is_back_in_the_shell(), 0, "past the end");
    assert!(person.got().contains("green"), "{:?}", person.got());
    let person = Person::calls(&sandbox, (60, 10), &slow);
    person.sees("first");
    person.types(b"\x03");
    assert_eq!(person.is_back_in_the_shell(), 130);
}

/// Reads a picture with an XML parser that is not ours: the rows of its first screen, and how many elements of which
/// name it has.
const READ_SVG: &str = r##"
import json, sys, unicodedata, xml.etree.ElementTree as tree
ns = "{http://www.w3.org/2000/svg}"
root = tree.fromstring(sys.stdin.buffer.read())
rows = {g.get("id"): g for g in root.iter(ns + "g") if g.get("id")}
names = {}
for element in root.iter():
    name = element.tag.removeprefix(ns)
    names[name] = names.get(name, 0) + 1
body = root.find(ns + "svg").find(ns + "g")
first = body.find(ns + "g") if body.get("class") else body
lines = {}
for use in first.findall(ns + "use"):
    if use.get("href") == "#c": continue
    line, col = "", 0
    for text in rows[use.get("href")[1:]].findall(ns + "text"):
        at = round(float(text.get("x")) / 8.4)
        line += " " * (at - col) + text.text
        col = at + sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text.text)
    lines[round(float(use.get("y")) / 18)] = line.rstrip()
height = max(lines) + 1 if lines else 0
print(json.dumps({"lines": [lines.get(i, "") for i in range(height)], "names": names}))
"##;

fn read_svg(sandbox: &Sandbox, svg: &str) -> Value {
    sandbox.call_other(std::path::Path::new("python3"), ["-c", READ_SVG]).stdin(svg).run().ok().json()
}

/// The text of a picture is that of xterm.js's cells for the same bytes, in the same columns.
#[test]
fn a_picture_has_the_text_of_the_screen_and_nothing_that_acts() {
    let sandbox = sandbox();
    let script = r"printf 'plain \033[1;31mred\033[0m after\n\343\201\202\346\227\245 wide \033[44m on blue \033[0m|\n\n';
        printf '\033[38;5;208m<script>alert(1)</script> & \033[38;2;1;2;3mrgb\033[0m\n\033[10;40Hfar off\033[12;1H'; cat";
    let job = sandbox.start(["--size", "80x24", "--name", "paint", script]);
    sandbox.wait_for_text(job, "far off");
    crate::wait_to_show(&sandbox, job, "far off");
    let svg = sandbox.run(["screen", "paint", "--svg"]).ok().text();
    let read = read_svg(&sandbox, &svg);
    let bytes = sandbox.root().join("bytes");
    std::fs::write(&bytes, sandbox.log(job)).unwrap();
    if let Some(shown) = crate::judges::xterm(&bytes, (80, 24)) {
        let wanted: Vec<&str> =
            shown["lines"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
        let lines: Vec<&str> =
            read["lines"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
        assert_eq!(lines, wanted[..lines.len()], "{svg}");
        assert!(wanted[lines.len()..].iter().all(|line| line.is_empty()), "{wanted:?}");
    }
    for colour in ["#e06c75", "#61afef", "#ff8700", "#010203"] {
        assert!(svg.contains(colour), "{colour} is missing: {svg}");
    }
    for name in ["script", "image", "foreignObject", "a"] {
        assert!(read["names"].get(name).is_none(), "{name}: {}", read["names"]);
    }
    sandbox.run(["kill", "paint"]).ok();
    let ended = read_svg(&sandbox, &sandbox.run(["screen", "paint", "--svg"]).ok().text());
    assert_eq!(ended["lines"][0], read["lines"][0], "the same after its end");
}

#[test]
fn a_recording_is_a_picture_that_plays() {
    let sandbox = sandbox();
    recorded(&sandbox);
    let svg = sandbox.run(["replay", "recorded", "--export", "svg", "--idle-limit", "100ms"]).ok().text();
    let read = read_svg(&sandbox, &svg);
    assert!(read["names"]["use"].as_u64().unwrap() >= 6, "{}", read["names"]);
    assert!(svg.contains("@keyframes p{0%") && svg.contains("infinite"), "{svg}");
    // 400 ms of silence became 100, and the last screen stays for 3 s.
    let seconds: f64 = svg.split("animation:p ").nth(1).unwrap().split('s').next().unwrap().parse().unwrap();
    assert!((3.1..3.5).contains(&seconds), "{seconds}");
    assert!(svg.len() < 6000, "{} bytes", svg.len());
    let one = sandbox.run(["replay", "recorded", "--export", "svg", "--offset", "5"]).ok().text();
    assert_eq!(read_svg(&sandbox, &one)["lines"], serde_json::json!(["first"]));
    sandbox.run(["replay", "recorded", "--export", "cast", "--offset", "5"]).code(2).says("no single moment");
}
