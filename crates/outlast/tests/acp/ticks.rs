//! The story that streams were made for: a watcher that ticks, started in one turn, heard through others.

use outlast_testkit::{TEST_TIMEOUT, eventually};
use serde_json::{Value, json};

use super::{gate, of_call, open, open_gate, prompt, sandbox};

const TICKS: usize = 30;

/// Ticks whenever it is let: no tick can be late, or come together with another.
const WATCHER: &str = "for i in $(seq 30); do read x < gate; echo TICK:$i; done &";

#[test]
fn thirty_ticks_reach_the_tool_call_that_began_them_through_two_more_turns() {
    let sandbox = sandbox();
    let file = sandbox.root().join("wire.jsonl");
    let gate = gate(&sandbox);
    let outlast = sandbox.program().to_str().unwrap();
    let (mut editor, session) =
        open(&sandbox, &["acp", "tap", "--out", file.to_str().unwrap(), "--", outlast, "acp", "agent"]);
    editor.call("session/prompt", prompt(&session, WATCHER));
    for tick in 1..=TICKS {
        match tick {
            3 => drop(editor.call("session/prompt", prompt(&session, "echo a haiku"))),
            10 => {
                // A turn that is cancelled is not the one that began it.
                let turn = editor.ask("session/prompt", prompt(&session, "sleep 300"));
                editor.wait_for("the third turn's call", |all| of_call(all, "job-3").first().cloned());
                editor.notify("session/cancel", json!({ "sessionId": session }));
                assert_eq!(editor.answer(turn)["result"]["stopReason"], "cancelled");
            }
            _ => {}
        }
        open_gate(&gate);
        editor.wait_for("the tick", |all| of_call(all, "job-1").get(tick).cloned());
    }
    editor.wait_for("the end", |all| of_call(all, "job-1").get(TICKS + 1).cloned());
    editor.call("session/prompt", prompt(&session, "/kill 3"));
    editor.hang_up();
    check(&recorded(&sandbox, file.to_str().unwrap()));
}

/// The recording as `tap --show` tells it.
fn recorded(sandbox: &outlast_testkit::Sandbox, file: &str) -> Vec<Value> {
    let shown = sandbox.run(["--json", "acp", "tap", "--show", file]).ok().text();
    shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn check(wire: &[Value]) {
    let prompts: Vec<usize> = (0..wire.len()).filter(|i| wire[*i]["method"] == "session/prompt").collect();
    assert_eq!(prompts.len(), 4);
    let calls: Vec<(usize, &Value)> = wire
        .iter()
        .enumerate()
        .filter(|(_, message)| message["update"]["tool_call"] == "job-1")
        .map(|(i, message)| (i, &message["update"]))
        .collect();
    assert_eq!(calls[0].1["update"], "tool_call");
    let ticks = &calls[1..=TICKS];
    for (tick, (_, update)) in ticks.iter().enumerate() {
        assert_eq!(update["status"], "in_progress");
        assert_eq!(update["text"], format!("TICK:{}", tick + 1));
        assert_eq!(update["meta"]["outlast.dev/stream_output"], true);
        assert_eq!(update["meta"]["gemini-cli/stream_output"], true);
        assert_eq!(update["meta"]["pid"], ticks[0].1["meta"]["pid"]);
    }
    // Some came after the second prompt, some after the third: on the call that began them.
    let between = |from: usize, to: usize| ticks.iter().filter(|(i, _)| *i > from && *i < to).count();
    assert_eq!((between(prompts[0], prompts[1]), between(prompts[1], prompts[2])), (2, 7));
    assert_eq!(between(prompts[2], prompts[3]), 21);
    let (_, end) = calls[TICKS + 1];
    assert_eq!(end["status"], "completed");
    assert_eq!(calls.len(), TICKS + 2, "nothing comes after the end");
}

#[test]
fn the_last_line_is_always_before_the_end() {
    let sandbox = sandbox();
    let (mut editor, session) = open(&sandbox, &["acp", "agent"]);
    for job in 1..=10 {
        editor.call("session/prompt", prompt(&session, "echo one; printf two &"));
        let call = eventually("the end", TEST_TIMEOUT, || {
            let call = of_call(&editor.heard(), &format!("job-{job}"));
            if call.last().is_some_and(|last| last["status"] == "completed") { Ok(call) } else { Err(call) }
        });
        let lines: Vec<&str> =
            call.iter().filter_map(|update| update["_meta"]["outlast.dev/lines"].as_str()).collect();
        assert_eq!(lines.join("\n"), "one\ntwo");
    }
}
