//! Each row of the table of conditions can hold of a real job: for `run`, for `wait` and for a watch.

use outlast_protocol::Reason;
use outlast_protocol::condition::{CONDITIONS, ConditionWord, TakesValue};

use crate::sandbox;

/// A server on a port of its own.
const SERVER: &str = "exec python3 -m http.server 0 --bind 127.0.0.1";

/// A job of which a condition will hold, and the condition's value. A condition that is new has no line here, so this does
/// not compile without one.
fn example(reason: Reason) -> Option<(&'static str, &'static str)> {
    match reason {
        Reason::Exit => Some(("true", "")),
        Reason::Pattern => Some(("echo ready; sleep 1000", "re.dy")),
        Reason::AwaitingInput => Some(("read -p 'Name: ' x", "certain")),
        Reason::Quiet => Some(("echo hello; sleep 1000", "100ms")),
        Reason::Stable => Some(("echo hello; sleep 1000", "1")),
        Reason::Port => Some((SERVER, "")),
        Reason::Http => Some((SERVER, "/#200")),
        Reason::Output | Reason::Lines => Some(("read x; echo hello; sleep 1000", "")),
        Reason::Gone => Some(("echo hello; sleep 1000", "bye")),
        // These end a wait and are not conditions.
        Reason::Deadline | Reason::Started => None,
    }
}

/// The flag as it is given, with its value.
fn flag(row: &ConditionWord, value: &str) -> String {
    let flag = match row.reason {
        Reason::Quiet => "--quiet-for".to_owned(),
        _ => format!("--{}", row.word().replace('_', "-")),
    };
    match row.takes {
        TakesValue::No => flag,
        TakesValue::Optional if value.is_empty() => flag,
        TakesValue::Optional | TakesValue::Required => format!("{flag}={value}"),
    }
}

#[test]
fn every_condition_can_hold_of_a_job() {
    let sandbox = sandbox();
    for row in CONDITIONS {
        let (line, value) = example(row.reason).unwrap_or_else(|| panic!("{} has no example", row.word()));
        let flag = flag(row, value);
        let job = sandbox.start([line]).to_string();
        let waiting = sandbox.call(["--json", "wait", &job, &flag, "--deadline", "30s"]).spawn();
        // Those that print only then.
        if line.starts_with("read x") {
            sandbox.run(["send", &job, "", "--no-wait"]).ok();
        }
        let waited = waiting.wait().json();
        assert_eq!(waited["reason"], row.word(), "wait {flag}: {waited}");
        if row.reason == Reason::Exit {
            continue;
        }
        sandbox.run(["kill", &job]).ok();
        let line = line.strip_prefix("read x; ").unwrap_or(line);
        let ran = sandbox.call(["--json", "run", &flag, "--deadline", "30s", line]).run().json();
        assert_eq!(ran["reason"], row.word(), "run {flag}: {ran}");
        sandbox.run(["kill", &ran["handle"].to_string()]).ok();
    }
    sandbox.nothing_runs();
}
