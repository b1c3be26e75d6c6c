//! The same tools under the names that a model was trained with.

use serde_json::json;

use crate::client::{Client, Sandbox, text};

fn with_profile(sandbox: &Sandbox, profile: &str) -> Client {
    Client::start(sandbox.command(&["--profile", profile])).initialized("2025-06-18", &json!({}))
}

#[test]
fn gemini_goes_by_pid() {
    let sandbox = Sandbox::new();
    let mut client = with_profile(&sandbox, "gemini");
    let run = json!({"command": "echo ready; read x; echo got $x; read y", "ai_callback_pattern": "ready"});
    let pid = client.tool("run_shell_command", run)["pid"].clone();
    client.tool("write_to_shell", json!({"pid": pid, "input": "abc\n"}));
    client.tool("wait_for", json!({"handle": 1, "pattern": "got abc", "offset": 0}));
    let screen = client.tool("read_shell", json!({"pid": pid}));
    assert_eq!(screen["screen"]["text"], "ready\nabc\ngot abc");
    let read = client.tool("read_background_output", json!({"pid": pid, "lines": 1}));
    assert_eq!(read["output"], "got abc\n");
    assert_eq!(client.tool("list_background_processes", json!({}))["jobs"][0]["pid"], pid);
}

#[test]
fn codex_execs_and_writes() {
    let sandbox = Sandbox::new();
    let mut client = with_profile(&sandbox, "codex");
    let done = text(&client.call("exec_command", json!({"cmd": "echo hi"})));
    assert!(done.contains("Process exited with code 0\nOutput:\nhi\n"), "{done}");
    let running =
        text(&client.call("exec_command", json!({"cmd": "read x; echo got $x", "yield_time_ms": 250})));
    assert!(running.contains("Process running with session ID 2"), "{running}");
    client.call("write_stdin", json!({"session_id": 2, "chars": "abc\n"}));
    let ended = client.tool("wait_for", json!({"handle": 2}));
    assert_eq!(ended["exit_code"], 0);
    let poll = text(&client.call("write_stdin", json!({"session_id": 2, "chars": ""})));
    assert!(poll.contains("Process exited with code 0"), "{poll}");
}

#[test]
fn claude_has_bash() {
    let sandbox = Sandbox::new();
    let mut client = with_profile(&sandbox, "claude");
    assert_eq!(client.tool("Bash", json!({"command": "echo hi"}))["output"], "hi\n");
    let run = json!({"command": "echo up; sleep 1000", "run_in_background": true});
    let id = client.tool("Bash", run)["handle"].to_string();
    client.tool("wait_for", json!({"handle": id, "pattern": "up"}));
    let read = client.tool("BashOutput", json!({"bash_id": id, "filter": "u."}));
    assert_eq!(read["output"], "1: up\n");
    assert_eq!(client.tool("KillShell", json!({"shell_id": id}))["status"], "killed");
}
