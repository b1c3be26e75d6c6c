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
    // Every tool takes it, also those that go by handle.
    assert_eq!(client.tool("kill", json!({"handle": pid}))["handle"], 1);
}

#[test]
fn codex_execs_and_writes() {
    let sandbox = Sandbox::new();
    let mut client = with_profile(&sandbox, "codex");
    let done = text(&client.call("exec_command", json!({"cmd": "echo hi"})));
    assert!(done == "Process exited with code 0\n\nhi", "{done}");
    let running =
        text(&client.call("exec_command", json!({"cmd": "read x; echo got $x", "yield_time_ms": 250})));
    assert!(running.contains("Process running with session ID 2"), "{running}");
    client.call("write_stdin", json!({"session_id": 2, "chars": "abc\n"}));
    let ended = text(&client.call("wait_for", json!({"handle": 2})));
    assert!(ended.starts_with("job 2 · exit 0"), "{ended}");
    let poll = text(&client.call("write_stdin", json!({"session_id": 2, "chars": ""})));
    assert!(poll.contains("Process exited with code 0"), "{poll}");
    let asks = text(&client.call("exec_command", json!({"cmd": "read -p 'Sure? ' x"})));
    assert!(asks == "Process running with session ID 3 · awaiting input\n\nSure? ", "{asks}");
}

#[test]
fn claude_has_bash() {
    let sandbox = Sandbox::new();
    let mut client = with_profile(&sandbox, "claude");
    let done = text(&client.call("Bash", json!({"command": "echo hi"})));
    assert!(done == "job 1 · exit 0\n\nhi", "{done}");
    let run = json!({"command": "echo up; sleep 1000", "run_in_background": true});
    let started = text(&client.call("Bash", run));
    assert!(started.starts_with("job 2 · started"), "{started}");
    client.call("wait_for", json!({"handle": "2", "pattern": "up"}));
    let read = text(&client.call("BashOutput", json!({"bash_id": "2", "filter": "u."})));
    assert!(read.ends_with("\n\n1: up"), "{read}");
    let killed = text(&client.call("KillShell", json!({"shell_id": "2"})));
    assert!(killed.starts_with("job 2 · SIGTERM, ended by kill"), "{killed}");
}

/// Clients that would hand their model the facts instead of the words get the words alone, and are promised no facts.
#[test]
fn some_clients_get_words_alone() {
    let sandbox = Sandbox::new();
    let look = |client: &mut Client| {
        let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
        let promised =
            tools.as_array().unwrap().iter().filter(|tool| !tool["outputSchema"].is_null()).count();
        (promised, client.call("jobs", json!({}))["structuredContent"].is_null())
    };
    for (profile, promised, alone) in
        [("plain", 7, false), ("gemini", 0, false), ("codex", 0, true), ("claude", 0, true)]
    {
        assert_eq!(look(&mut with_profile(&sandbox, profile)), (promised, alone), "{profile}");
    }
    for (name, alone) in [("claude-code", true), ("codex-mcp-client", true), ("another", false)] {
        let mut client = sandbox.modern(json!({}));
        client.meta["io.modelcontextprotocol/clientInfo"]["name"] = name.into();
        assert_eq!(look(&mut client).1, alone, "{name}");
    }
}

/// Symptom that this guards against: a name like `Cmd-C` ends the job's keepers, and the job with them.
#[test]
fn a_wrong_key_name_harms_nothing() {
    let sandbox = Sandbox::new();
    let mut client = with_profile(&sandbox, "gemini");
    let pid = client.tool("run_shell_command", json!({"command": "cat"}))["pid"].clone();
    let keys = json!(["Enter", "Cmd-C", "Entr"]);
    for said in [
        client.refused("send_input", json!({"handle": "1", "input": "no", "special_keys": keys})),
        client.refused("write_to_shell", json!({"pid": pid, "input": "no", "special_keys": keys})),
    ] {
        assert!(said.starts_with("error (usage): there are no keys \"Cmd-C\", \"Entr\""), "{said}");
        assert!(said.contains("nothing was typed") && said.contains("PageDown"), "{said}");
    }
    let answer = client.tool("send_input", json!({"handle": "1", "input": "yes"}));
    assert_eq!((&answer["status"], &answer["output"]), (&"running".into(), &"yes\nyes\n".into()), "{answer}");
}
