//! What happened while nobody asked is told with the answers that a session gets anyway, and once.

use serde_json::{Value, json};

use outlast_job::EntryKind;

use crate::client::{Client, Sandbox, eventually, text};

/// Runs a command in the background, and waits until its outbox tells that it has ended.
fn ended_unseen(sandbox: &Sandbox, client: &mut Client, command: &str) -> Value {
    let job = client.tool("run_shell_command", json!({"command": command, "is_background": true}));
    told(sandbox, EntryKind::Exit, &job["handle"]);
    job["handle"].clone()
}

/// Waits until some outbox has an entry.
fn told(sandbox: &Sandbox, event: EntryKind, job: &Value) {
    let home = sandbox.outlast();
    eventually(&format!("{event} is told"), || {
        let boxes = outlast_job::outbox::Outbox::all(home.home());
        let entries = boxes.iter().flat_map(|outbox| outbox.entries(0));
        entries.into_iter().any(|entry| entry.event == event && json!(entry.job) == *job)
    });
}

#[test]
fn any_answer_says_that_events_wait_and_jobs_shows_them_once() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let job = ended_unseen(&sandbox, &mut client, "read -t 0.2 x; echo broken; exit 3");
    let other = client.call("run_shell_command", json!({"command": "true"}));
    assert!(text(&other).contains("note: 1 event waiting, jobs() shows what happened"), "{other}");
    assert_eq!(other["structuredContent"]["events_waiting"], 1);
    let list = client.call("jobs", json!({}));
    let words = text(&list);
    assert!(
        words.starts_with(
            "1 event new since you were last told:\n  job 1 exit: failed: exit code 3: broken ["
        ),
        "{words}"
    );
    let event = &list["structuredContent"]["events"][0];
    assert_eq!((&event["handle"], &event["event"]), (&job, &json!("exit")));
    let again = client.call("jobs", json!({}));
    assert!(text(&again).starts_with("job "), "{again}");
    assert!(again["structuredContent"]["events"].is_null());
}

#[test]
fn what_an_answer_has_shown_is_no_news() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let ended = client.tool("run_shell_command", json!({"command": "echo x; exit 1"}));
    told(&sandbox, EntryKind::Exit, &ended["handle"]);
    let asks = client.tool("run_shell_command", json!({"command": "read -p 'Sure? ' x; sleep 100"}));
    assert_eq!(asks["reason"], "awaiting_input");
    told(&sandbox, EntryKind::AwaitingInput, &asks["handle"]);
    assert!(client.tool("jobs", json!({}))["events"].is_null());
}

#[test]
fn a_session_chooses_what_is_told() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let command = "read -t 0.2 x; echo ERROR 7; sleep 100";
    let order = json!({"command": command, "is_background": true, "notify": ["pattern=ERROR \\d"]});
    let answer = client.call("run_shell_command", order);
    assert!(text(&answer).contains("nothing calls you by itself"), "{answer}");
    told(&sandbox, EntryKind::Pattern, &json!(1));
    let events = client.tool("jobs", json!({}))["events"].clone();
    assert_eq!(events.as_array().map(Vec::len), Some(1), "{events}");
    assert!(events[0]["text"].as_str().unwrap().contains("ERROR 7"), "{events}");
    let bad = json!({"command": "true", "notify": ["smoke"]});
    assert!(client.refused("run_shell_command", bad).contains("smoke"));
}

#[test]
fn after_a_kill_dash_nine_the_next_server_has_the_output_whole_and_the_event_waiting() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let command = "for i in $(seq 2000); do echo line $i; done; read -t 1 x; echo last; exit 5";
    client.ask(
        "tools/call",
        json!({"name": "run_shell_command", "arguments": {"command": command, "ai_callback_delay": 30}}),
    );
    eventually("the job prints", || sandbox.outlast().job("1").is_ok_and(|job| job.log_end() > 1000));
    // Drop kills the server with SIGKILL, in the middle of its call.
    drop(client);
    told(&sandbox, EntryKind::Exit, &json!(1));
    let mut client = sandbox.client();
    let list = client.call("jobs", json!({}));
    let words = text(&list);
    assert!(words.contains("  job 1 exit: failed: exit code 5: last ["), "{words}");
    assert_eq!(list["structuredContent"]["jobs"][0]["status"], "failed");
    let read = client.tool("read_output", json!({"handle": 1, "max_output_size": 100_000}));
    let whole: String = (1..=2000).map(|i| format!("line {i}\n")).chain(["last\n".to_owned()]).collect();
    assert_eq!(read["output"], whole);
}

#[test]
fn a_job_of_a_codex_thread_can_wake_that_thread() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.modern(json!({}));
    client.meta["io.modelcontextprotocol/clientInfo"]["name"] = "codex-mcp-client".into();
    client.meta["threadId"] = "7-8-9".into();
    let order = json!({"command": "echo thread $CODEX_THREAD_ID"});
    let answer = text(&client.call("run_shell_command", order.clone()));
    assert!(answer.contains("\nthread 7-8-9\n"), "{answer}");
    client.meta["io.modelcontextprotocol/clientInfo"]["name"] = "another".into();
    assert_eq!(client.tool("run_shell_command", order)["output"], "thread\n");
}
