//! The agent: turns are shell work, and jobs outlast them.

use outlast_protocol::Tool;
use serde_json::json;

use super::{chunks, gate, of_call, open, open_gate, open_with, prompt, sandbox, updates, wait_until_noted};

#[test]
fn a_command_is_a_tool_call_with_its_output_and_its_end() {
    let sandbox = sandbox();
    let (mut editor, session) = open(&sandbox, &["acp", "agent"]);
    let turn = editor.call("session/prompt", prompt(&session, "printf '\\033[31mred\\033[0m\\n'; exit 3"));
    assert_eq!(turn["stopReason"], "end_turn");
    let call = of_call(&editor.heard(), "job-1");
    assert_eq!(call[0]["sessionUpdate"], "tool_call");
    assert_eq!((&call[0]["kind"], &call[0]["status"]), (&json!("execute"), &json!("in_progress")));
    assert_eq!(call[1]["content"][0]["content"]["text"], "red");
    let meta = &call[1]["_meta"];
    assert!(meta["outlast.dev/stream_output"].is_null(), "the turn waits for it: {meta}");
    assert!(meta["gemini-cli/stream_output"].is_null(), "{meta}");
    assert_eq!((&meta["handle"], &meta["from"], &meta["to"]), (&json!(1), &json!(0), &json!(14)));
    assert_eq!(meta["pid"], sandbox.info(1)["process"]["pid"]);
    assert_eq!((&call[2]["status"], &call[2]["rawOutput"]["exit_code"]), (&json!("failed"), &json!(3)));
    assert_eq!(call[2]["content"][0]["content"]["text"], "red", "the final update carries all of it");
    assert_eq!(call.len(), 3);
    assert_eq!(editor.hang_up(), Some(0));
}

#[test]
fn the_commands_are_announced_and_do_their_work() {
    let sandbox = sandbox();
    let (mut editor, session) = open(&sandbox, &["acp", "agent"]);
    let announced = editor.wait_for("the commands", |all| {
        updates(all).into_iter().find(|update| update["sessionUpdate"] == "available_commands_update")
    });
    let names: Vec<&str> = announced["availableCommands"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|c| c["name"].as_str())
        .collect();
    assert_eq!(names, ["send", "keys", "jobs", "read", "wait", "kill"]);
    let mut say = |text: &str| {
        let before = editor.heard().len();
        editor.call("session/prompt", prompt(&session, text));
        chunks(&editor.heard()[before..], "agent_message_chunk").concat()
    };
    let asked = say("printf 'Name? '; read name; echo \"hello $name\"; read more");
    assert!(asked.contains("waits for input (line) at \"Name?\""), "{asked}");
    let reply = say("/send 1 world");
    assert!(reply.contains("hello world"), "{reply}");
    assert!(say("/jobs").contains("1: running: printf"));
    assert!(say("/read 1 1").contains("hello world"));
    assert!(say("/keys 1 Ctrl-C").contains("SIGINT"));
    assert!(say("/wait 1 20s").contains("SIGINT"));
    assert!(say("sleep 300 &").contains("runs in the background"));
    assert!(say("/kill 2").contains("SIGTERM"));
    assert!(say("/kill 99").contains("there is no job 99"));
    editor.wait_for("the killed job's end", |all| {
        of_call(all, "job-2").last().filter(|last| last["status"] == "failed").cloned()
    });
}

#[test]
fn a_cancelled_turn_ends_and_its_job_goes_on() {
    let sandbox = sandbox();
    let (mut editor, session) = open(&sandbox, &["acp", "agent"]);
    let turn = editor.ask("session/prompt", prompt(&session, "echo begun; sleep 300"));
    editor.wait_for("its first line", |all| of_call(all, "job-1").get(1).cloned());
    editor.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(editor.answer(turn)["result"]["stopReason"], "cancelled");
    assert_eq!(sandbox.info(1)["status"], "running");
    let call = of_call(&editor.heard(), "job-1");
    assert!(call.iter().all(|update| update["status"] == "in_progress"), "{call:?}");
    editor.call("session/prompt", prompt(&session, "/kill 1"));
    editor.wait_for("its end", |all| {
        of_call(all, "job-1").into_iter().find(|update| update["status"] == "failed")
    });
}

#[test]
fn a_session_is_seen_again_by_another_process() {
    let sandbox = sandbox();
    let (mut editor, session) = open(&sandbox, &["acp", "agent"]);
    editor.call("session/prompt", prompt(&session, "echo first"));
    let gate = gate(&sandbox);
    editor.call("session/prompt", prompt(&session, "echo second; read x < gate; echo third &"));
    editor.kill_dash_nine();
    let mut editor = sandbox.call(["acp", "agent"]).converse();
    editor.call("initialize", json!({ "protocolVersion": 1 }));
    let listed = editor.call("session/list", json!({}));
    assert_eq!(listed["sessions"][0]["sessionId"], session.as_str());
    let wrong = editor.ask("session/load", json!({ "sessionId": "../x", "cwd": "/", "mcpServers": [] }));
    assert!(editor.answer(wrong).get("error").is_some());
    editor.call("session/load", json!({ "sessionId": session, "cwd": sandbox.work(), "mcpServers": [] }));
    let past = of_call(&editor.heard(), "job-1");
    assert_eq!(
        (&past[0]["status"], &past[0]["content"][0]["content"]["text"]),
        (&json!("completed"), &json!("first"))
    );
    editor.wait_for("the running job's lines so far", |all| of_call(all, "job-2").get(1).cloned());
    open_gate(&gate);
    let last = editor.wait_for("the running job's end", |all| {
        of_call(all, "job-2").into_iter().find(|update| update["status"] == "completed")
    });
    assert_eq!(last["rawOutput"]["exit_code"], 0);
    let lines: Vec<_> = of_call(&editor.heard(), "job-2")
        .iter()
        .filter_map(|update| update["_meta"]["outlast.dev/lines"].as_str().map(ToOwned::to_owned))
        .collect();
    assert_eq!(lines.join("\n"), "second\nthird");
}

#[test]
fn what_a_background_job_prints_is_marked_and_comes_once() {
    let sandbox = sandbox();
    let (mut editor, session) = open(&sandbox, &["acp", "agent"]);
    let gate = gate(&sandbox);
    let turn = editor.ask(
        "session/prompt",
        prompt(&session, "echo one; read x < gate; echo two; read x < gate; echo three"),
    );
    editor.wait_for("the first line", |all| of_call(all, "job-1").get(1).cloned());
    editor.notify("session/cancel", json!({ "sessionId": session }));
    editor.answer(turn);
    for n in 2..=3 {
        open_gate(&gate);
        editor.wait_for("the next line", |all| of_call(all, "job-1").get(n).cloned());
    }
    let call = editor.wait_for("the end", |all| {
        Some(of_call(all, "job-1")).filter(|call| call.last().unwrap()["status"] == "completed")
    });
    let text = |update: &serde_json::Value| update["content"][0]["content"]["text"].clone();
    assert_eq!(call[1..].iter().map(text).collect::<Vec<_>>(), ["one", "two", "three", "one\ntwo\nthree"]);
    assert_eq!(call[3]["_meta"]["outlast.dev/output"], "one\ntwo\nthree");
    let marked: Vec<bool> =
        call.iter().map(|update| update["_meta"]["gemini-cli/stream_output"] == true).collect();
    assert_eq!(marked, [false, false, true, true, false], "only while no turn waits for it");
}

#[test]
fn a_resumed_session_goes_on_and_repeats_nothing() {
    let sandbox = sandbox();
    let (mut editor, session) = open(&sandbox, &["acp", "agent"]);
    let gate = gate(&sandbox);
    for (job, wait) in [(1, "read x < gate"), (2, "stty -echo; read x")] {
        let command = format!("echo first; {wait}; echo second; exit 3 &");
        editor.call("session/prompt", prompt(&session, &command));
        editor.wait_for("its first line", |all| of_call(all, &format!("job-{job}")).get(1).cloned());
    }
    wait_until_noted(&sandbox, &[1, 2]);
    editor.kill_dash_nine();
    // One of them ends while nobody looks.
    open_gate(&gate);
    sandbox.wait_for_end(1);
    let mut editor = sandbox.call(["acp", "agent"]).converse();
    editor.call("initialize", json!({ "protocolVersion": 1 }));
    editor.call("session/resume", json!({ "sessionId": session, "cwd": sandbox.work(), "mcpServers": [] }));
    let finished = |editor: &outlast_testkit::Conversation, job: u64| {
        editor.wait_for("its end", |all| {
            let call = of_call(all, &format!("job-{job}"));
            call.last().is_some_and(|last| last["status"] == "failed").then_some(call)
        })
    };
    let mut calls = vec![finished(&editor, 1)];
    sandbox.run(["send", "2", "go"]).ok();
    calls.push(finished(&editor, 2));
    for call in calls {
        assert_eq!(call.len(), 2, "{call:?}");
        assert_eq!(call[0]["sessionUpdate"], "tool_call_update", "the client knows the call");
        assert_eq!(lines_of(&call), ["second"]);
        let whole = call[1]["content"][0]["content"]["text"].as_str().unwrap();
        assert!(whole.starts_with("[... earlier output: /read ") && whole.ends_with("\nsecond"), "{whole}");
    }
}

#[test]
fn touching_a_job_of_another_session_asks_and_no_answer_is_a_no() {
    let sandbox = sandbox();
    let other = sandbox.fixture_job(&["asks"]);
    let (mut editor, session) = open(&sandbox, &["acp", "agent"]);
    for (option, allowed) in [("reject", false), ("allow", true)] {
        let before = editor.heard().len();
        let turn = editor.ask("session/prompt", prompt(&session, &format!("/kill {other}")));
        let request = editor.wait_for("a permission request", |all| {
            all[before..].iter().find(|message| message["method"] == "session/request_permission").cloned()
        });
        let question = request["params"]["toolCall"]["content"][0]["content"]["text"].as_str().unwrap();
        assert!(question.contains("belongs to another session (test)"), "{question}");
        let outcome = json!({ "outcome": { "outcome": "selected", "optionId": option } });
        editor.say(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": outcome }).to_string());
        editor.answer(turn);
        let said = chunks(&editor.heard()[before..], "agent_message_chunk").concat();
        assert_eq!(said.contains("has ended"), allowed, "{said}");
        assert_eq!(sandbox.json(["jobs", "--all"])["jobs"][0]["status"] == "running", !allowed);
    }
}

#[test]
fn a_client_with_terminals_gets_what_is_drawn() {
    let sandbox = sandbox();
    let capabilities = json!({ "_meta": { "terminal_output": true } });
    let (mut editor, session) = open_with(&sandbox, &["acp", "agent"], capabilities);
    editor.call("session/prompt", prompt(&session, "printf '\\033[31mred\\033[0m\\n\\033]0;title\\007'"));
    let call = of_call(&editor.heard(), "job-1");
    assert_eq!(call[0]["content"][0], json!({ "type": "terminal", "terminalId": "job-1" }));
    assert_eq!(call[0]["_meta"]["terminal_info"]["terminal_id"], "job-1");
    let drawn: String =
        call.iter().filter_map(|update| update["_meta"]["terminal_output"]["data"].as_str()).collect();
    assert_eq!(drawn, "\u{1b}[31mred\u{1b}[0m\r\n");
    assert_eq!(call.last().unwrap()["_meta"]["terminal_exit"]["exit_code"], 0);
}

#[test]
fn a_flood_becomes_bounded_batches_and_misses_nothing_silently() {
    let sandbox = sandbox();
    let (mut editor, session) = open(&sandbox, &["acp", "agent"]);
    editor.call("session/prompt", prompt(&session, "seq 1 300000"));
    let call = of_call(&editor.heard(), "job-1");
    assert_eq!(call.last().unwrap()["status"], "completed");
    let (mut at, mut lines) = (0, 0);
    for meta in call.iter().map(|update| &update["_meta"]).filter(|meta| meta["lines"].is_u64()) {
        assert_eq!(meta["from"], at, "batches join without a gap");
        at = meta["to"].as_u64().unwrap();
        lines += meta["lines"].as_u64().unwrap() + meta["left_out"]["lines"].as_u64().unwrap_or(0);
        assert!(meta["outlast.dev/lines"].as_str().unwrap().len() < 270_000);
    }
    assert_eq!((at, lines), (sandbox.log_len(1), 300_000));
    let text =
        call.iter().filter_map(|update| update["_meta"]["outlast.dev/lines"].as_str()).next_back().unwrap();
    assert!(text.ends_with("\n300000"));
}

/// The new lines of each update of a job.
fn lines_of(call: &[serde_json::Value]) -> Vec<String> {
    let batches = call.iter().filter_map(|update| update["_meta"]["outlast.dev/lines"].as_str());
    batches.flat_map(|text| text.split('\n').map(ToOwned::to_owned)).collect()
}

#[test]
fn long_lines_are_cut_by_characters_and_told_with_the_others() {
    let sandbox = sandbox();
    let (mut editor, session) = open(&sandbox, &["acp", "agent"]);
    let script = "import sys; sys.stdout.write('short\\n' + 'a'*65536 + '\\n' + chr(0x1f642)*65537 + '\\n' + 'b'*40000 + '\\nend')";
    editor.call("session/prompt", prompt(&session, &format!("python3 -c \"{script}\"")));
    let call = of_call(&editor.heard(), "job-1");
    assert!(call.iter().all(|update| update["_meta"]["left_out"].is_null()), "nothing is left out");
    let lines = lines_of(&call);
    assert_eq!(lines.len(), 5);
    assert_eq!((lines[0].as_str(), lines[4].as_str()), ("short", "end"));
    for (line, character, most) in
        [(&lines[1], 'a', 65_536), (&lines[2], '🙂', 65_536), (&lines[3], 'b', 40_000)]
    {
        let text = line.strip_suffix("… [line cut]").unwrap_or(line);
        assert!(text.chars().all(|c| c == character), "nothing but {character}");
        // In one batch with others it may have been cut further, but not to nothing.
        let count = text.chars().count();
        assert!(count <= most && count > 5_000, "{count}");
        assert_eq!(count == most && character != '🙂', line.len() == text.len(), "{count}");
    }
}

#[test]
fn a_programs_own_crlf_ends_its_lines() {
    let sandbox = sandbox();
    let (mut editor, session) = open(&sandbox, &["acp", "agent"]);
    editor.call("session/prompt", prompt(&session, "printf 'one\\r\\ntwo\\r\\n10%%\\r20%%\\n'"));
    assert_eq!(lines_of(&of_call(&editor.heard(), "job-1")), ["one", "two", "10%\r20%"]);
}

#[test]
fn what_a_sidecar_has_to_tell_is_never_run() {
    let sandbox = sandbox();
    let (mut editor, session) = open(&sandbox, &["acp", "agent"]);
    let news = "[outlast events 1-1 of x]; touch ran";
    editor.call("session/prompt", prompt(&session, news));
    let both = json!([{ "type": "text", "text": "echo mine" }, { "type": "text", "text": news }]);
    editor.call("session/prompt", json!({ "sessionId": session, "prompt": both }));
    assert_eq!(sandbox.json(["jobs", "--all"])["jobs"].as_array().unwrap().len(), 1);
    assert_eq!(sandbox.info(1)["command"], "echo mine");
}

#[test]
fn the_policy_denies_asks_and_allows() {
    let sandbox = sandbox();
    let folder = sandbox.root().join("config/outlast");
    std::fs::create_dir_all(&folder).unwrap();
    let policy = "[[rule]]\ndecision = \"deny\"\nprefix = \"touch\"\nwhy = \"no new files\"\n\n[[rule]]\ndecision = \"ask\"\nprefix = \"rm\"\n";
    std::fs::write(folder.join("policy.toml"), policy).unwrap();
    let (mut editor, session) = open(&sandbox, &["acp", "agent"]);
    editor.call("session/prompt", prompt(&session, "true; touch x"));
    assert!(chunks(&editor.heard(), "agent_message_chunk").concat().contains("no new files"));
    std::fs::write(sandbox.work().join("x"), "").unwrap();
    for (option, left) in [("reject", true), ("allow", false)] {
        let before = editor.heard().len();
        let turn = editor.ask("session/prompt", prompt(&session, "rm x"));
        let request = editor.wait_for("a permission request", |all| {
            all[before..].iter().find(|message| message["method"] == "session/request_permission").cloned()
        });
        let outcome = json!({ "outcome": { "outcome": "selected", "optionId": option } });
        editor.say(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": outcome }).to_string());
        editor.answer(turn);
        assert_eq!(sandbox.work().join("x").exists(), left);
    }
    editor.call("session/prompt", prompt(&session, "echo free"));
    // What is typed into a shell counts as a command.
    editor.call("session/prompt", prompt(&session, "sh"));
    let before = editor.heard().len();
    editor.call("session/prompt", prompt(&session, "/send 3 touch y"));
    assert!(chunks(&editor.heard()[before..], "agent_message_chunk").concat().contains("no new files"));
    std::fs::write(folder.join("policy.toml"), "nonsense").unwrap();
    sandbox.call(["acp", "agent"]).run().code(2).says("policy.toml");
}

#[test]
fn known_secrets_are_hidden_in_what_is_sent() {
    let sandbox = sandbox();
    let mut editor = sandbox.call(["acp", "agent"]).env("API_TOKEN", "blue-giraffe-77").converse();
    editor.call("initialize", json!({ "protocolVersion": 1 }));
    let opened = editor.call("session/new", json!({ "cwd": sandbox.work(), "mcpServers": [] }));
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    editor.call("session/prompt", prompt(&session, "echo \"it is $API_TOKEN\""));
    let text = &of_call(&editor.heard(), "job-1")[1]["_meta"]["outlast.dev/lines"];
    assert_eq!(text, "it is ***************");
    editor.call("session/prompt", prompt(&session, "/read 1"));
    assert!(!editor.lines().concat().contains("giraffe"));
}

#[test]
fn a_session_in_a_folder_outside_the_users_roots_runs_nothing() {
    let sandbox = sandbox();
    let config = sandbox.root().join("config/outlast");
    let keys = sandbox.root().join("user/.ssh");
    for folder in [&config, &keys] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::write(config.join("config.toml"), "[agents.sandbox]\n").unwrap();
    let mut editor = sandbox.call(["acp", "agent"]).converse();
    editor.call("initialize", json!({ "protocolVersion": 1 }));
    let opened = editor.call("session/new", json!({ "cwd": keys, "mcpServers": [] }));
    let session = opened["sessionId"].as_str().unwrap();
    editor.call("session/prompt", prompt(session, "echo evil > authorized_keys"));
    let said = chunks(&editor.heard(), "agent_message_chunk").concat();
    assert!(said.contains("[agents.sandbox] roots"), "{said}");
    assert!(!keys.join("authorized_keys").exists());
}

#[test]
fn every_command_is_judged_and_a_denied_one_does_nothing() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says-and-sleeps", "up"]);
    let file = sandbox.root().join("config/outlast/policy.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let rule = |tool: &Tool| format!("[[rule]]\ndecision = \"deny\"\ntool = \"{tool}\"\n");
    std::fs::write(file, Tool::ALL.iter().map(rule).collect::<String>()).unwrap();
    let (mut editor, session) = open(&sandbox, &["acp", "agent"]);
    let commands = [
        ("touch here".to_owned(), Tool::Run),
        (format!("/send {job} typed"), Tool::Send),
        (format!("/keys {job} Ctrl-C"), Tool::Send),
        (format!("/kill {job}"), Tool::Kill),
        (format!("/read {job}"), Tool::Read),
        (format!("/wait {job} 1s"), Tool::Wait),
        ("/jobs".to_owned(), Tool::Jobs),
    ];
    for (i, (command, tool)) in commands.iter().enumerate() {
        let before = editor.heard().len();
        editor.call("session/prompt", prompt(&session, command));
        let said = chunks(&editor.heard()[before..], "agent_message_chunk").concat();
        assert!(said.contains("denied") && said.contains(&format!("tool {tool}")), "{command}: {said}");
        let audit = std::fs::read_to_string(sandbox.home().join("audit.jsonl")).unwrap();
        assert_eq!(audit.lines().count(), i + 1, "{command} is judged once");
    }
    assert_eq!(sandbox.info(job)["status"], "running");
    assert!(!sandbox.work().join("here").exists());
}
