//! No call hangs, and no job is lost with one.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{Client, Sandbox, eventually, text};

#[test]
fn a_long_call_is_cut_and_says_so() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&[]);
    command.env("OUTLAST_MCP_LONGEST_CALL", "0.3");
    let mut client = Client::start(command).initialized("2025-06-18", &json!({}));
    let began = Instant::now();
    let result = client.call("run_shell_command", json!({"command": "sleep 1000", "ai_callback_delay": 600}));
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(result["structuredContent"]["reason"], "deadline");
    assert_eq!(result["structuredContent"]["status"], "running");
    let words = text(&result);
    assert!(words.contains("cut at 0.3 s of 600 s"), "{words}");
}

#[test]
fn progress_is_reported_when_it_was_asked_for() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let call = json!({
        "name": "run_shell_command",
        "arguments": {"command": "sleep 1000", "ai_callback_delay": 30},
        "_meta": {"progressToken": "mine"},
    });
    let id = client.ask("tools/call", call);
    for _ in 0..3 {
        // On a busy machine the first may come before the job is there.
        let told = client.hear_until("progress of job 1", |message| {
            let says = message["params"]["message"].as_str().unwrap_or_default();
            message["method"] == "notifications/progress" && says.contains("job 1")
        });
        assert_eq!(told["params"]["progressToken"], "mine");
    }
    sandbox.outlast().job("1").unwrap().kill(Duration::ZERO, "tests").unwrap();
    assert_eq!(client.answer(id)["result"]["structuredContent"]["reason"], "exit");
}

#[test]
fn a_cancelled_call_leaves_the_job_running_and_its_output_unread() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let call = json!({"name": "run_shell_command", "arguments": {"command": "echo up; sleep 1000", "ai_callback_delay": 30}});
    let id = client.ask("tools/call", call);
    eventually("the job speaks", || sandbox.outlast().job("1").is_ok_and(|job| job.log_end() > 0));
    client.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    let mut words = String::new();
    eventually("the cancelled call is noted", || {
        words = text(&client.call("jobs", json!({})));
        words.contains("your call was cancelled, the job went on")
    });
    assert!(words.starts_with("job 1 · ") && words.contains(" · running for "), "{words}");
    assert_eq!(client.tool("read_output", json!({"handle": 1}))["output"], "up\n");
    assert!(!text(&client.call("jobs", json!({}))).contains("cancelled"), "it is told once");
    assert!(client.aside.iter().all(|message| message["id"] != id), "a cancelled call is not answered");
}

#[test]
fn other_calls_are_answered_while_one_waits() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let long =
        json!({"name": "run_shell_command", "arguments": {"command": "sleep 1000", "ai_callback_delay": 30}});
    let id = client.ask("tools/call", long);
    eventually("the job runs", || sandbox.outlast().job("1").is_ok());
    assert_eq!(client.tool("run_shell_command", json!({"command": "echo hi"}))["output"], "hi\n");
    assert_eq!(client.tool("kill", json!({"handle": 1}))["status"], "killed");
    assert_eq!(client.answer(id)["result"]["structuredContent"]["status"], "killed");
}

#[test]
fn a_killed_server_loses_nothing() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let command = "echo before; until [ -e go ]; do sleep 0.02; done; read x; echo after $x";
    let call = json!({"name": "run_shell_command", "arguments": {"command": command, "name": "keep", "ai_callback_delay": 30}});
    client.ask("tools/call", call);
    eventually("the job speaks", || sandbox.outlast().job("1").is_ok_and(|job| job.log_end() > 0));
    let killed = Command::new("kill").args(["-9", &client.pid().to_string()]).status().unwrap();
    assert!(killed.success());
    drop(client);

    let mut client = sandbox.client();
    let jobs = client.tool("jobs", json!({}));
    assert_eq!((&jobs["jobs"][0]["name"], &jobs["jobs"][0]["status"]), (&json!("keep"), &json!("running")));
    assert_eq!(client.tool("read_output", json!({"handle": "keep"}))["output"], "before\n");
    std::fs::write(sandbox.path().join("go"), "").unwrap();
    let sent = client
        .tool("send_input", json!({"handle": "keep", "input": "all", "ai_callback_pattern": "after all"}));
    assert!(sent["output"].as_str().unwrap().contains("after all"), "{sent}");
    assert_eq!(client.tool("wait_for", json!({"handle": "keep"}))["status"], "completed");
}

#[test]
fn a_client_that_hangs_up_leaves_its_jobs_running() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    client.tool("run_shell_command", json!({"command": "sleep 1000", "is_background": true}));
    client.hang_up();
    assert_eq!(sandbox.outlast().jobs()[0].state.name(), "running");
}
