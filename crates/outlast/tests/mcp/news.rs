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
fn any_answer_tells_what_happened_and_once() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let job = ended_unseen(&sandbox, &mut client, "read -t 0.2 x; echo broken; exit 3");
    let other = client.call("run_shell_command", json!({"command": "true"}));
    assert!(text(&other).starts_with("job 2 · exit 0\njob 1 exit: failed: exit code 3: broken ["), "{other}");
    let event = &other["structuredContent"]["events"][0];
    assert_eq!((&event["handle"], &event["event"]), (&job, &json!("exit")));
    let again = client.call("run_shell_command", json!({"command": "true"}));
    assert_eq!(text(&again), "job 3 · exit 0");
    let list = client.call("jobs", json!({}));
    assert!(text(&list).starts_with("job "), "{list}");
    assert!(list["structuredContent"]["events"].is_null());
}

/// More than an answer tells is left for the next ones, in order, and none is lost.
#[test]
fn many_events_are_told_a_few_at_a_time() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    for i in 1..=5 {
        let command = format!("read x; exit {i}");
        let order = json!({"command": command, "is_background": true, "notify": ["exit"]});
        client.tool("run_shell_command", order);
    }
    let home = sandbox.outlast();
    for job in 1..=5 {
        home.job(&job.to_string()).unwrap().type_line("go").unwrap();
    }
    (1..=5).for_each(|job| told(&sandbox, EntryKind::Exit, &json!(job)));
    let mut said = String::new();
    for more in ["2 events more: jobs()", "job 7 · exit 0"] {
        let answer = text(&client.call("run_shell_command", json!({"command": "true"})));
        assert!(answer.contains(more), "{answer}");
        said.push_str(&answer);
    }
    for code in 1..=5 {
        assert_eq!(said.matches(&format!("failed: exit code {code}")).count(), 1, "{said}");
    }
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
    assert!(answer.ends_with("\n\nthread 7-8-9"), "{answer}");
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    client.meta["traceparent"] = trace.into();
    let traced = client.call("run_shell_command", json!({"command": "echo trace $TRACEPARENT"}));
    assert!(text(&traced).ends_with(&format!("trace {trace}")), "{traced}");
    assert_eq!(sandbox.outlast().jobs().last().unwrap().traceparent.as_deref(), Some(trace));
    client.meta["io.modelcontextprotocol/clientInfo"]["name"] = "another".into();
    assert_eq!(client.tool("run_shell_command", order)["output"], "thread\n");
}
