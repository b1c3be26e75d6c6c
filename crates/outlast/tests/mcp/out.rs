//! An answer counts as given once it is out of the server: what a killed server did not say, the next one does.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use outlast_job::outbox::Outbox;
use outlast_job::{EntryKind, Handle};
use serde_json::{Value, json};

use crate::client::{Sandbox, eventually, text};

/// Waits until the outbox tells that each of these jobs has ended; the numbers of these entries.
fn ends(sandbox: &Sandbox, jobs: &[u64]) -> Vec<u64> {
    let home = sandbox.outlast();
    let told = || -> BTreeMap<u64, u64> {
        let entries = Outbox::all(home.home()).into_iter().flat_map(|outbox| outbox.entries(0));
        let ends = entries.filter(|entry| entry.event == EntryKind::Exit);
        ends.map(|entry| (entry.job.number(), entry.n)).collect()
    };
    eventually("the ends are told", || jobs.iter().all(|job| told().contains_key(job)));
    jobs.iter().map(|job| told()[job]).collect()
}

/// The answer is larger than a pipe and nobody reads it, so it is never out.
#[test]
fn what_a_server_was_killed_over_is_told_by_the_next_with_a_mark() {
    let sandbox = Sandbox::new();
    let mut first = sandbox.client();
    for command in ["stty -echo; read x; seq 1 20000; sleep 100", "read -t 0.2 x; exit 3"] {
        first.tool("run_shell_command", json!({"command": command, "is_background": true}));
    }
    let number = ends(&sandbox, &[2])[0];
    sandbox.outlast().job("1").unwrap().type_line("go").unwrap();
    eventually("all is printed", || sandbox.outlast().job("1").is_ok_and(|job| job.log_end() >= 128_894));
    first.hang_up();

    let mut command = sandbox.command(&[]);
    let mut killed = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let client = json!({"name": "tests", "version": "1"});
    let began = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let read = json!({"handle": "1", "max_output_size": 120_000});
    let mut said = String::new();
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": began}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "read_output", "arguments": read}}),
    ] {
        said.push_str(&format!("{message}\n"));
    }
    killed.stdin.as_mut().unwrap().write_all(said.as_bytes()).unwrap();
    let mut answers = BufReader::new(killed.stdout.take().unwrap());
    answers.read_line(&mut String::new()).unwrap();
    // The first bytes of the answer: it is made, and on its way.
    answers.read_exact(&mut [0; 100]).unwrap();
    killed.kill().unwrap();
    killed.wait().unwrap();

    let mut next = sandbox.client();
    let list = next.call("jobs", json!({}));
    let event = &list["structuredContent"]["events"][0];
    assert_eq!((&event["number"], &event["again"]), (&json!(number), &json!(true)), "{list}");
    assert!(text(&list).contains("perhaps told before]"), "{list}");
    let unread = next.tool("read_output", json!({"handle": 1, "max_output_size": 200_000}));
    let whole: String = (1..=20_000).map(|line| format!("{line}\n")).collect();
    let shown = unread["output"].as_str().unwrap();
    assert!(
        shown == whole,
        "what was never seen is new: {} of {} bytes, {:?}…",
        shown.len(),
        whole.len(),
        &shown[..40]
    );
    assert!(next.tool("jobs", json!({}))["events"].is_null(), "once");
}

#[test]
fn two_servers_of_a_session_tell_each_event_once() {
    let sandbox = Sandbox::new();
    let (mut one, mut other) = (sandbox.client(), sandbox.client());
    let mut told: Vec<Value> = Vec::new();
    let mut expected = Vec::new();
    for round in 0..6_u64 {
        let jobs: Vec<u64> = (1..=3).map(|job| round * 3 + job).collect();
        for _ in &jobs {
            let order =
                json!({"command": "read x", "is_background": true, "again": true, "notify": ["exit"]});
            one.tool("run_shell_command", order);
        }
        for job in &jobs {
            sandbox.outlast().job(&Handle::new(*job).to_string()).unwrap().type_line("go").unwrap();
        }
        expected.extend(ends(&sandbox, &jobs));
        // Both are asked before either has answered.
        let call = json!({"name": "jobs", "arguments": {}});
        let asked = (one.ask("tools/call", call.clone()), other.ask("tools/call", call));
        for answer in [one.answer(asked.0), other.answer(asked.1)] {
            let events = answer["result"]["structuredContent"]["events"].as_array().cloned();
            told.extend(events.unwrap_or_default());
        }
    }
    let mut numbers: Vec<u64> = told.iter().map(|event| event["number"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    expected.sort_unstable();
    assert_eq!(numbers, expected, "{told:?}");
    assert!(told.iter().all(|event| event["again"].is_null()), "{told:?}");
}
