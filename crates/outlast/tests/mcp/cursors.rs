//! What was returned once is not returned again.

use serde_json::{Value, json};

use crate::client::{Client, Sandbox, eventually};

/// A job that says each line when it is told to.
fn parrot(client: &mut Client) {
    let command = "stty -echo; echo ready; while read x; do echo $x.; done";
    client.tool("run_shell_command", json!({"command": command, "ai_callback_pattern": "ready\\s"}));
}

/// Makes it say something, behind the client's back.
fn say(sandbox: &Sandbox, line: &str) {
    let job = sandbox.outlast().job("1").unwrap();
    let before = job.log_end();
    job.type_line(line).unwrap();
    let end = before + line.len() as u64 + 3;
    eventually("the parrot has spoken", || job.log_end() >= end);
}

fn new_output(client: &mut Client) -> Value {
    client.tool("read_output", json!({"handle": 1}))["output"].clone()
}

#[test]
fn reading_goes_on_where_it_left_off_also_after_a_restart() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    parrot(&mut client);
    assert_eq!(new_output(&mut client), "");
    say(&sandbox, "one");
    assert_eq!(new_output(&mut client), "one.\n");
    say(&sandbox, "two");
    client.hang_up();
    let mut client = sandbox.client();
    assert_eq!(new_output(&mut client), "two.\n");
    assert_eq!(new_output(&mut client), "");
    assert_eq!(
        client.tool("read_output", json!({"handle": 1, "offset": 0}))["output"],
        "ready\none.\ntwo.\n"
    );
}

#[test]
fn looking_elsewhere_does_not_move_it_and_jobs_tells_what_is_unread() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    parrot(&mut client);
    say(&sandbox, "one");
    say(&sandbox, "two");
    client.tool("read_output", json!({"handle": 1, "tail": 1}));
    client.tool("read_output", json!({"handle": 1, "pattern": "two"}));
    assert_eq!(client.tool("jobs", json!({}))["jobs"][0]["unread_bytes"], 12);
    assert_eq!(new_output(&mut client), "one.\ntwo.\n");
}

#[test]
fn each_session_has_its_own() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    parrot(&mut client);
    let mut other =
        Client::start(sandbox.command(&["--session", "other"])).initialized("2025-06-18", &json!({}));
    assert_eq!(new_output(&mut other), "ready\n");
    assert_eq!(new_output(&mut client), "");
}

#[test]
fn a_wait_begins_behind_what_was_shown() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    parrot(&mut client);
    say(&sandbox, "built");
    assert_eq!(new_output(&mut client), "built.\n");
    let wait = json!({"handle": 1, "pattern": "built", "timeout": 0.3});
    let result = client.call("wait_for", wait.clone());
    assert_eq!(result["structuredContent"]["reason"], "deadline");
    assert!(crate::client::text(&result).contains("in output you were shown before"), "{result}");
    say(&sandbox, "built again");
    let found = client.tool("wait_for", wait);
    assert_eq!((&found["reason"], &found["output"]), (&json!("pattern"), &json!("built again.\n")));
    let all = client.tool("wait_for", json!({"handle": 1, "pattern": "ready", "offset": 0}));
    assert_eq!(all["reason"], "pattern");
}

#[test]
fn what_came_before_the_input_is_not_lost() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    parrot(&mut client);
    say(&sandbox, "unseen");
    let result = client.call("send_input", json!({"handle": 1, "input": "x", "ai_callback_pattern": "x\\."}));
    assert_eq!(result["structuredContent"]["output"], "x.\n");
    let words = crate::client::text(&result);
    assert!(words.contains("read_output(handle=\"1\", offset=7, until=16)"), "{words}");
}
