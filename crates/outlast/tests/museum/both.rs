//! The real program of 0.1.0 beside this one: each as the client of the other's keepers. What is done, and what the
//! client must answer, is what the recordings say.

use std::path::PathBuf;
use std::time::Duration;

use outlast_testkit::recorded::{Action, Scene, missing};
use outlast_testkit::{Sandbox, Stage, TEST_TIMEOUT, eventually, processes};
use serde_json::Value;

use crate::{PROGRAM, recording, recordings, sandbox};

/// Names the program of 0.1.0; `cargo xtask test --full` builds it.
const MUSEUM_PROGRAM: &str = "OUTLAST_MUSEUM_PROGRAM";

fn old() -> PathBuf {
    std::env::var_os(MUSEUM_PROGRAM).map_or_else(|| panic!("{MUSEUM_PROGRAM} is not set"), PathBuf::from)
}

/// Plays every recording with a keeper and a client, and returns what the client's answers lack.
fn play(keeper: &std::path::Path, client: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for name in recordings() {
        let mut stage = Stage::new(keeper, client, &sandbox().fixture());
        let mut shown = String::new();
        for Scene { action, answer, .. } in recording(&name) {
            let new = stage.perform(&action);
            // Lines that were said by hand are judged by the other tests.
            if let Action::Call(_) | Action::Tool(..) = action
                && new.len() != answer.len()
            {
                found.push(format!("{name}: {action:?}: {new:?}; it was {answer:?}"));
            }
            for (new, old) in new.iter().zip(&answer) {
                let value = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
                let (mut old, new) = (value(old), value(new));
                // What an answer has shown is not repeated any more; 0.1.0 did, with a wait for a pattern.
                let output = old["structuredContent"]["output"].as_str().unwrap_or_default().to_owned();
                if new["structuredContent"]["output"] == "" && shown.contains(&output) {
                    old["structuredContent"]["output"] = "".into();
                }
                shown.push_str(&output);
                for what in missing(&old, &new) {
                    found.push(format!("{name}: {action:?}: {what}"));
                }
            }
        }
    }
    found
}

#[test]
#[ignore = "full size: needs the program of 0.1.0, which cargo xtask test --full builds"]
fn a_client_of_0_1_0_and_a_new_keeper() {
    let found = play(PROGRAM.as_ref(), &old());
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
#[ignore = "full size: needs the program of 0.1.0, which cargo xtask test --full builds"]
fn a_new_client_and_a_keeper_of_0_1_0() {
    let found = play(&old(), PROGRAM.as_ref());
    assert!(found.is_empty(), "{found:#?}");
}

/// The recordings are of two processes of 0.1.0: should it answer otherwise than it did, the tests above say nothing.
#[test]
#[ignore = "full size: needs the program of 0.1.0, which cargo xtask test --full builds"]
fn a_client_and_a_keeper_of_0_1_0() {
    let found = play(&old(), &old());
    assert!(found.is_empty(), "{found:#?}");
}

/// The numbers of the entries that `events` of a program tells, and of which jobs they are.
fn entries(sandbox: &Sandbox, program: &std::path::Path, arguments: &[&str]) -> Vec<(u64, u64)> {
    let text = sandbox.call_other(program, ["--json", "events"]).args(arguments).run().ok().text();
    let number = |entry: &Value, field: &str| entry[field].as_u64().unwrap();
    let entries = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    entries.map(|entry| (number(&entry, "n"), number(&entry, "job"))).collect()
}

/// One outbox, written by keepers of both versions and read by readers of both.
#[test]
#[ignore = "full size: needs the program of 0.1.0, which cargo xtask test --full builds"]
fn both_write_and_read_one_outbox() {
    let sandbox = sandbox();
    let (old, new) = (old(), PathBuf::from(PROGRAM));
    let programs = [&old, &new, &old, &new];
    for (program, job) in programs.into_iter().zip(1_u64..) {
        let run = ["run", "-d", "--notify", "exit", "exit 3"];
        drop(sandbox.call_other(program, run).run().ok());
        for reader in [&old, &new] {
            let told = eventually("the end is told", TEST_TIMEOUT, || {
                let told = entries(&sandbox, reader, &[]);
                if told.len() as u64 == job { Ok(told) } else { Err(told) }
            });
            assert_eq!(told, (1..=job).map(|n| (n, n)).collect::<Vec<_>>());
        }
    }
    drop(sandbox.call_other(&new, ["events", "--ack", "2"]).run().ok());
    assert_eq!(entries(&sandbox, &old, &[]), [(3, 3), (4, 4)]);
    // A reader with a name goes on where the other version was.
    assert_eq!(entries(&sandbox, &old, &["--reader", "r"]).len(), 2);
    assert_eq!(entries(&sandbox, &new, &["--reader", "r"]).len(), 0);
    // Each lists the other's jobs, and reads their receipts.
    for program in [&old, &new] {
        let jobs = sandbox.call_other(program, ["--json", "jobs", "--all"]).run().ok().json();
        let ends: Vec<_> =
            jobs["jobs"].as_array().unwrap().iter().map(|job| job["exit_code"].as_i64()).collect();
        assert_eq!(ends, [Some(3); 4], "{jobs}");
    }
}

/// The heir of a keeper of one version takes over, and a client of the other goes on with it.
#[test]
#[ignore = "full size: needs the program of 0.1.0, which cargo xtask test --full builds"]
fn heirs_of_both_are_taken_up_by_clients_of_both() {
    let (old, new) = (old(), PathBuf::from(PROGRAM));
    for (keeper, client) in [(&old, &new), (&new, &old)] {
        let sandbox = Sandbox::new(keeper);
        let job = sandbox.start(["while read x; do echo got $x; done; exit 5"]);
        let call =
            |arguments: &[&str]| sandbox.call_other(client, arguments).limit(Duration::from_secs(90)).run();
        drop(call(&["watch", "1", "--pattern", "got (two)", "--id", "w"]).ok());
        drop(call(&["send", "1", "one", "--pattern", "got one"]).ok());
        // A wait that is going on when the keeper dies ends when the heir sees what was waited for.
        let wait = sandbox.call_other(client, ["--json", "wait", "1", "--pattern", "got two"]).spawn();
        processes::kill_dash_nine(&sandbox.process(job, "keeper"));
        eventually("the heir types what it is sent", TEST_TIMEOUT, || {
            let sent = call(&["send", "1", "two", "--no-wait"]);
            if sent.code == Some(0) { Ok(()) } else { Err(sent.stderr) }
        });
        assert_eq!(wait.wait().ok().json()["reason"], "pattern");
        let watches = call(&["--json", "watch", "1", "--list"]).ok().json();
        let told = eventually("the watch tells", TEST_TIMEOUT, || {
            let told = call(&["--json", "events"]).ok().text();
            if told.contains("[w] got two") { Ok(told) } else { Err(told) }
        });
        assert!(told.contains("\"captures\":[\"two\"]"), "{told} {watches}");
        drop(call(&["send", "1", "--eof", "--no-wait"]).ok());
        assert_eq!(call(&["--json", "wait", "1"]).json()["exit_code"], 5);
    }
}
