//! `--json` of every verb: one line that parses, with the fields that the contract names.

use serde_json::Value;

use crate::sandbox;

const ANSWER: &[&str] = &[
    "handle",
    "pid",
    "status",
    "exit_code",
    "signal",
    "offset",
    "omitted_bytes",
    "output_file",
    "transcript_file",
];

#[track_caller]
fn has(value: &Value, fields: &[&str]) {
    for field in fields {
        assert!(value.get(field).is_some(), "{field} is missing: {value}");
    }
}

#[test]
fn answers_have_the_fields_of_the_contract() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture();
    let asks = ["run", "--name", "n", "--input", "--deadline", "30s", "--", &fixture, "asks"];
    let run = sandbox.json(asks);
    has(&run, ANSWER);
    has(&run, &["name", "reason", "output", "awaiting_input"]);
    has(&run["awaiting_input"], &["level", "kind", "prompt", "evidence"]);
    assert_eq!(run["reason"], "awaiting_input", "{run}");
    assert!(std::path::Path::new(run["output_file"].as_str().unwrap()).is_file());
    assert!(std::path::Path::new(run["transcript_file"].as_str().unwrap()).is_file());

    let started = sandbox.json(["run", "-d", "--", &fixture, "says-and-sleeps", "up"]);
    has(&started, ANSWER);
    assert_eq!((&started["reason"], &started["status"]), (&"started".into(), &"running".into()));

    let screen = sandbox.json(["screen", "n"]);
    has(&screen, &["size", "rows", "cursor", "title", "alternate", "offset"]);
    assert_eq!(screen["cursor"], serde_json::json!({"row": 0, "col": 19, "visible": true}), "{screen}");

    let sent = sandbox.json(["send", "n", "Ada"]);
    has(&sent, ANSWER);
    has(&sent, &["reason", "output"]);
    let quick = sandbox.json(["send", "2", "x", "--no-wait"]);
    has(&quick, &["handle", "offset", "taken", "queued"]);

    let waited = sandbox.json(["wait", "n", "--pattern", "Hello"]);
    has(&waited, ANSWER);
    has(&waited, &["reason", "output", "match", "already", "elapsed_ms", "at_offset"]);
    let read = sandbox.json(["read", "n"]);
    has(&read, ANSWER);
    has(&read, &["output"]);
    has(&sandbox.json(["read", "n", "--grep", "Hello"]), &["output", "offset", "omitted_bytes"]);

    let killed = sandbox.json(["kill", "2"]);
    has(&killed, ANSWER);
    has(&killed, &["signalled", "survivors", "already_ended", "ended_by"]);
    has(&sandbox.json(["jobs"]), &["jobs"]);
    sandbox.nothing_runs();
    has(&sandbox.json(["screen", "n"]), &["rows", "ended"]);
    has(&sandbox.json(["prune", "--all"]), &["removed", "freed_bytes", "kept", "dry_run"]);
    has(&sandbox.json(["doctor"]), &["ok", "checks"]);
}

#[test]
fn a_foreground_run_answers_when_it_has_ended() {
    let sandbox = sandbox();
    let ran = sandbox.call(["--json", "run", "--", &sandbox.fixture(), "exits", "5"]).run().code(5);
    let answer = ran.json();
    assert!(ran.stderr.is_empty(), "{ran}");
    assert_eq!(
        (&answer["reason"], &answer["exit_code"], &answer["status"]),
        (&"exit".into(), &5.into(), &"failed".into())
    );
    let ran = sandbox.call(["--json", "run", "--", "no-such-program-anywhere", "x"]).run().code(127);
    let error = ran.json();
    assert_eq!(error["error"]["kind"], "cannot_start", "{error}");
    has(&error["error"], &["message", "hint"]);
}
