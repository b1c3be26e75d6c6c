//! Calls that a client lets go of: only where it says that it knows tasks, and known to any server.

use serde_json::{Value, json};

use crate::client::{Client, Sandbox, TEST_TIMEOUT, text};

fn capable() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

/// Calls a tool that becomes a task; its id.
fn task(client: &mut Client, tool: &str, arguments: Value) -> String {
    let result = client.call(tool, arguments);
    assert_eq!(result["resultType"], "task", "{result}");
    assert_eq!(result["status"], "working", "{result}");
    result["taskId"].as_str().unwrap().to_owned()
}

fn get(client: &mut Client, id: &str) -> Value {
    let answer = client.request("tasks/get", json!({"taskId": id}));
    assert!(answer.get("result").is_some(), "{answer}");
    answer["result"].clone()
}

/// Asks until it is over.
fn result(client: &mut Client, id: &str) -> Value {
    let until = std::time::Instant::now() + TEST_TIMEOUT;
    loop {
        let task = get(client, id);
        if task["status"] != "working" {
            return task;
        }
        assert!(std::time::Instant::now() < until, "{task}");
    }
}

/// A job that goes on until it is told to end.
const OBEYS: &str = "echo begun; read x; echo told $x; exit 4";

#[test]
fn a_long_call_becomes_a_task_that_the_next_server_knows() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.modern(capable());
    let run = json!({"command": "read -t 100 x < /dev/zero; echo unreachable", "ai_callback_delay": 0.1});
    assert_eq!(client.call("run_shell_command", run)["resultType"], "complete", "what is quick is answered");
    client.tool("run_shell_command", json!({"command": OBEYS}));
    let wait = json!({"handle": 2, "until": ["exit"], "timeout": 600});
    let id = task(&mut client, "wait_for", wait);
    let working = get(&mut client, &id);
    assert!(working["statusMessage"].as_str().unwrap().starts_with("job 2 goes on"), "{working}");
    client.hang_up();
    sandbox.outlast().job("2").unwrap().type_line("stop").unwrap();
    let mut client = sandbox.modern(capable());
    let ended = result(&mut client, &id);
    assert_eq!(ended["status"], "completed", "{ended}");
    let answer = &ended["result"];
    assert!(text(answer).starts_with("job 2 · exit 4"), "{answer}");
    assert!(answer["structuredContent"]["output"].as_str().unwrap().ends_with("told stop\n"), "{answer}");
    assert_eq!(&get(&mut client, &id), &ended, "however often it is asked for");
    assert_eq!(client.tool("read_output", json!({"handle": 2}))["output"], "", "it was shown");
}

#[test]
fn a_command_that_takes_long_is_a_task_and_its_time_can_be_up() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.modern(capable());
    let run = json!({"command": "echo begun; sleep 1000", "ai_callback_delay": 2.5});
    let id = task(&mut client, "run_shell_command", run);
    let ended = result(&mut client, &id);
    let facts = &ended["result"]["structuredContent"];
    assert_eq!((&facts["reason"], &facts["output"]), (&json!("deadline"), &json!("begun\n")), "{ended}");
}

#[test]
fn a_cancelled_task_leaves_the_job_alone_and_jobs_says_so() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.modern(capable());
    let id =
        task(&mut client, "run_shell_command", json!({"command": "sleep 1000", "ai_callback_delay": 100}));
    for _ in 0..2 {
        let cancelled = client.request("tasks/cancel", json!({"taskId": id}));
        assert_eq!(cancelled["result"]["resultType"], "complete", "{cancelled}");
        assert_eq!(get(&mut client, &id)["status"], "cancelled");
    }
    let jobs = client.call("jobs", json!({}));
    assert!(text(&jobs).contains("your call was cancelled, the job went on"), "{jobs}");
    assert_eq!(jobs["structuredContent"]["jobs"][0]["status"], "running");
    for method in ["tasks/get", "tasks/cancel"] {
        assert_eq!(client.request(method, json!({"taskId": "1-00"}))["error"]["code"], -32602, "{method}");
    }
}

#[test]
fn nobody_else_gets_one() {
    let sandbox = Sandbox::new();
    let run = json!({"command": "sleep 1000", "ai_callback_delay": 2.2, "again": true});
    let older = Client::start(sandbox.command(&[])).initialized("2025-11-25", &capable());
    for mut client in [sandbox.modern(json!({})), older] {
        let result = client.call("run_shell_command", run.clone());
        assert_eq!(result["structuredContent"]["reason"], "deadline", "{result}");
    }
    let mut client = sandbox.modern(json!({}));
    assert_eq!(client.request("tasks/get", json!({"taskId": "1-00"}))["error"]["code"], -32021);
}
