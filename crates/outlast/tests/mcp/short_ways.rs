//! How far an answer has to go: counted, because times on a busy machine say nothing.
//!
//! Each thread that has to be woken between a program's print and the caller costs about as much as the caller's own read, when
//! everything has gone to sleep. So what is between is counted as the kernel sees it.

use serde_json::json;

use crate::client::{Client, Sandbox, eventually};

/// The most calls to the kernel that the keeper makes between a program's print and its word to the server. Twelve would do
/// today; a third more is a regression.
const MOST_OF_KEEPER: usize = 16;
/// The most that the server makes between the keeper's word and its answer.
const MOST_OF_SERVER: usize = 60;
/// How many samples are taken: a look at the program may fall into one.
const SAMPLES: usize = 4;

/// A line of a trace: whose, and what. What only a debug build asks is left out.
fn calls(trace: &str) -> Vec<(&str, &str)> {
    let calls = trace.lines().filter_map(|line| line.split_once(' '));
    calls
        .map(|(thread, call)| (thread, call.trim_start()))
        .filter(|(_, call)| !call.contains("F_GETFD"))
        .collect()
}

/// How many calls of a thread begin in a part of a trace.
fn begun(calls: &[(&str, &str)], thread: &str) -> usize {
    calls.iter().filter(|(whose, call)| *whose == thread && !call.starts_with("<...")).count()
}

/// The number of calls of the keeper, and of the server, between each print and its answer.
fn ways(trace: &str) -> Vec<(usize, usize)> {
    let calls = calls(trace);
    let mut ways = Vec::new();
    let is_print = |call: &str| call.starts_with("write(1, \"MARK");
    for (printed, _) in calls.iter().enumerate().filter(|(_, (_, call))| is_print(call)) {
        let rest = &calls[printed..];
        let find = |from: usize, what: &dyn Fn(&str) -> bool| {
            rest[from..].iter().position(|(_, call)| what(call)).map(|at| at + from)
        };
        let told = |call: &str| call.contains("\\\"reason\\\":\\\"pattern\\\"");
        let Some(said) = find(0, &|call| call.starts_with("sendto(") && told(call)) else { continue };
        let Some(heard) = find(said + 1, &|call| call.contains("recvfrom") && told(call)) else { continue };
        let out = |call: &str| call.starts_with("write(1, \"{\\\"jsonrpc");
        let Some(answered) = find(heard, &out) else { continue };
        assert_eq!(
            rest[heard].0,
            rest[answered].0,
            "the thread that hears the keeper answers: {:#?}",
            &rest[heard..=answered]
        );
        ways.push((begun(&rest[..said], rest[said].0), begun(&rest[heard..answered], rest[heard].0)));
    }
    ways
}

#[test]
fn a_pattern_is_told_by_the_thread_that_hears_of_it() {
    if !outlast_testkit::has("strace") {
        return;
    }
    let sandbox = Sandbox::new();
    let trace = sandbox.path().join("trace");
    let mut server = sandbox.of_environment("strace");
    server.args(["-f", "-s", "400", "-o"]).arg(&trace).arg(crate::client::PROGRAM).arg("mcp");
    let mut client = Client::start(server).initialized("2025-06-18", &json!({}));
    for i in 0..SAMPLES {
        let command = format!("sleep 0.3; echo MARK {i}; sleep 1000");
        let run =
            json!({"command": command, "ai_callback_pattern": format!("MARK {i}"), "pattern_timeout": 40});
        assert_eq!(client.tool("run_shell_command", run)["reason"], "pattern");
    }
    let read = || std::fs::read_to_string(&trace).unwrap_or_default();
    eventually("all of it is in the trace", || ways(&read()).len() == SAMPLES);
    let ways = ways(&read());
    let keeper = ways.iter().map(|way| way.0).min().unwrap_or(0);
    let server = ways.iter().map(|way| way.1).min().unwrap_or(0);
    assert!(keeper <= MOST_OF_KEEPER, "the keeper: {ways:?}");
    assert!(server <= MOST_OF_SERVER, "the server: {ways:?}");
}
