//! Outlast over ACP, with the real program on both ends of real pipes: the agent, the tap, and the sidecar in front of
//! an agent of our own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agent;
mod agents_calls;
mod exactly_once;
mod flood;
mod leaving;
mod sidecar;
mod tap;
mod ticks;

use outlast_testkit::{Conversation, Sandbox, TEST_TIMEOUT, eventually};
use serde_json::{Value, json};

/// A fresh sandbox for the program under test.
fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_outlast"))
}

/// Opens a conversation with an agent; returns it and its session.
fn open(sandbox: &Sandbox, arguments: &[&str]) -> (Conversation, String) {
    open_with(sandbox, arguments, json!({}))
}

fn open_with(sandbox: &Sandbox, arguments: &[&str], capabilities: Value) -> (Conversation, String) {
    let mut editor = sandbox.call(arguments).converse();
    editor.call("initialize", json!({ "protocolVersion": 1, "clientCapabilities": capabilities }));
    let opened = editor.call("session/new", json!({ "cwd": sandbox.work(), "mcpServers": [] }));
    (editor, opened["sessionId"].as_str().unwrap().to_owned())
}

/// A prompt of one text.
fn prompt(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

/// The updates among messages.
fn updates(all: &[Value]) -> Vec<Value> {
    let updates = all.iter().filter(|message| message["method"] == "session/update");
    updates.map(|message| message["params"]["update"].clone()).collect()
}

/// The updates of one tool call.
fn of_call(all: &[Value], call: &str) -> Vec<Value> {
    updates(all).into_iter().filter(|update| update["toolCallId"] == call).collect()
}

/// The texts of message chunks of a kind, in order.
fn chunks(all: &[Value], kind: &str) -> Vec<String> {
    let chunks = updates(all).into_iter().filter(|update| update["sessionUpdate"] == kind);
    chunks.map(|update| update["content"]["text"].as_str().unwrap().to_owned()).collect()
}

/// A FIFO at which jobs and agents wait.
fn gate(sandbox: &Sandbox) -> String {
    use rustix::fs::{FileType, Mode, mknodat};
    let gate = sandbox.work().join("gate");
    mknodat(rustix::fs::CWD, &gate, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    gate.to_str().unwrap().to_owned()
}

/// Lets through whoever waits at a gate.
fn open_gate(gate: &str) {
    drop(std::fs::File::options().write(true).open(gate).unwrap());
}

/// Waits until it is on the disk that something of each job was shown: it is written down right after it was sent.
fn wait_until_noted(sandbox: &Sandbox, jobs: &[u64]) {
    eventually("what was shown is noted", TEST_TIMEOUT, || {
        let folder = sandbox.home().join("acp");
        let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let shown = files.filter(|file| file.file_name().to_string_lossy().starts_with("shown-"));
        let places: Vec<Value> =
            shown.filter_map(|file| serde_json::from_slice(&std::fs::read(file.path()).ok()?).ok()).collect();
        let is_noted = |job: &u64| {
            places.iter().any(|place| place[job.to_string()]["output"].as_u64().is_some_and(|to| to > 0))
        };
        if jobs.iter().all(is_noted) { Ok(()) } else { Err(places) }
    });
}
