//! Behind the sidecar, a job's lines come on the agent's own tool call, which ends for the editor when the job ends.

use outlast_testkit::{Conversation, TEST_TIMEOUT, eventually};
use serde_json::{Value, json};

use super::sidecar::{SESSION, Stand};
use super::{gate, of_call, open_gate, prompt, updates, wait_until_noted};

fn text(update: &Value) -> &str {
    update["content"][0]["content"]["text"].as_str().unwrap_or_default()
}

fn ended(editor: &Conversation, call: &str) -> Vec<Value> {
    editor.wait_for("the call's end", |all| {
        let call = of_call(all, call);
        let over =
            call.last().is_some_and(|last| last["status"] != "in_progress" && last["status"] != "pending");
        over.then_some(call)
    })
}

#[test]
fn lines_come_on_the_call_that_started_the_job_until_it_has_ended() {
    let stand = Stand::new(&["--no-wake"]);
    let mut editor = stand.open();
    let gate = gate(&stand.sandbox);
    let turn =
        editor.ask("session/prompt", prompt(SESSION, "watch echo one; read x < gate; echo two; exit 3"));
    editor.answer(turn);
    editor.wait_for("the first line", |all| of_call(all, "call-1").get(2).cloned());
    // Another turn does not end it.
    editor.call("session/prompt", prompt(SESSION, "say hello"));
    open_gate(&gate);
    let call = ended(&editor, "call-1");
    let status: Vec<&str> = call.iter().filter_map(|update| update["status"].as_str()).collect();
    assert_eq!(status, ["pending", "in_progress", "in_progress", "in_progress", "failed"]);
    assert!(text(&call[1]).starts_with("job 1 "), "{call:?}");
    assert_eq!((text(&call[2]), text(&call[3])), ("one", "two"));
    assert_eq!(call[3]["_meta"]["gemini-cli/stream_output"], true);
    assert_eq!((text(&call[4]), &call[4]["rawOutput"]["exit_code"]), ("one\ntwo", &json!(3)));
    assert!(of_call(&editor.heard(), "outlast-job-1").is_empty(), "it is shown once");
    let sent = updates(&editor.heard()).iter().map(Value::to_string).collect::<String>();
    assert!(!sent.contains("outlast:1:"), "the tag is between the server and the sidecar: {sent}");
}

#[test]
fn a_call_whose_job_has_ended_passes_as_it_is_and_wakes_nobody() {
    // Events are gathered for longer than it takes to note what an answer has shown.
    let stand = Stand::new(&["--window", "300ms"]);
    let mut editor = stand.open();
    editor.call("session/prompt", prompt(SESSION, "call echo seen"));
    let call = ended(&editor, "call-1");
    assert_eq!(call.len(), 2);
    assert!(text(&call[1]).contains("seen"), "{call:?}");
    // A later event wakes; this one would have come before it.
    let gate = gate(&stand.sandbox);
    editor.call("session/prompt", prompt(SESSION, "watch echo first; read x < gate"));
    let line = editor.wait_for("the second job's line", |all| of_call(all, "call-2").get(2).cloned());
    assert_eq!(text(&line), "first");
    open_gate(&gate);
    let told = stand.prompted(3).pop().unwrap();
    assert!(told.contains("job 2 exit") && !told.contains("job 1 "), "{told}");
    assert!(of_call(&editor.heard(), "outlast-job-1").is_empty());
}

#[test]
fn output_that_quotes_a_tag_is_not_taken_for_one() {
    let stand = Stand::new(&["--no-wake"]);
    let mut editor = stand.open();
    editor.call("session/prompt", prompt(SESSION, "job sleep 300"));
    editor.wait_for("the job is shown", |all| of_call(all, "outlast-job-1").first().cloned());
    editor.call("session/prompt", prompt(SESSION, "call echo call outlast:1:0123456789abcdef"));
    let call = ended(&editor, "call-2");
    assert!(
        call[1]["status"] == "completed" && text(&call[1]).contains("outlast:1:0123456789abcdef"),
        "{call:?}"
    );
}

#[test]
fn a_resumed_session_goes_on_with_the_agents_call_and_repeats_nothing() {
    let stand = Stand::new(&["--no-wake"]);
    let mut editor = stand.open();
    let gate = gate(&stand.sandbox);
    editor.call("session/prompt", prompt(SESSION, "watch echo one; read x < gate; echo two"));
    editor.wait_for("the first line", |all| of_call(all, "call-1").get(2).cloned());
    wait_until_noted(&stand.sandbox, &[1]);
    editor.kill_dash_nine();
    let mut editor = stand.resume();
    open_gate(&gate);
    let call = ended(&editor, "call-1");
    assert_eq!(call.len(), 2, "{call:?}");
    assert_eq!((text(&call[0]), &call[1]["status"]), ("two", &json!("completed")));
    editor.call("session/prompt", prompt(SESSION, "say done"));
    assert!(of_call(&editor.heard(), "outlast-job-1").is_empty());
}

#[test]
fn an_agent_that_dies_over_what_it_was_told_and_forgets_it_is_told_again() {
    let mut stand = Stand::new(&["--window", "1ms"]);
    stand.told = "die";
    let mut editor = stand.open();
    let gate = gate(&stand.sandbox);
    editor.call("session/prompt", prompt(SESSION, "job read x < gate; exit 4"));
    open_gate(&gate);
    editor.wait_for("the agent's last words", |all| {
        super::chunks(all, "agent_message_chunk").iter().filter(|text| *text == "ok").count().checked_sub(1)
    });
    eventually("the sidecar has left with the agent", TEST_TIMEOUT, || {
        let state = std::fs::read_to_string(format!("/proc/{}/stat", editor.pid())).unwrap_or_default();
        if state.is_empty() || state.contains(") Z ") { Ok(()) } else { Err(state) }
    });
    drop(editor);
    stand.told = "say ok";
    let _editor = stand.load();
    assert!(stand.prompted(1)[0].contains("job 1 exit: failed: exit code 4"));
}
