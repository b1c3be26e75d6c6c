//! The sidecar in front of an agent: what passes, what is added, who is woken, and when not.

use outlast_testkit::{Conversation, Sandbox, TEST_TIMEOUT, eventually};
use serde_json::{Value, json};

use super::{chunks, gate, of_call, open_gate, prompt, sandbox, updates};

const MARK: &str = "[outlast events ";

/// An editor, the sidecar, and an agent that keeps its conversation in a file.
pub(super) struct Stand {
    pub(super) sandbox: Sandbox,
    pub(super) options: Vec<String>,
    /// What the agent does when it is told events.
    pub(super) told: &'static str,
}

pub(super) const SESSION: &str = "conversation";

impl Stand {
    pub(super) fn new(options: &[&str]) -> Self {
        let sandbox = sandbox();
        std::fs::write(sandbox.root().join("history"), "").unwrap();
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        Self { sandbox, options, told: "say ok" }
    }

    /// The sidecar in front of the agent.
    pub(super) fn sidecar(&self) -> outlast_testkit::Call {
        let agent = self.sandbox.example("acp_agent");
        let call = self.sandbox.call(["acp", "sidecar"]).args(&self.options).args(["--", &agent]);
        call.env("AGENT_HISTORY", self.sandbox.root().join("history")).env("AGENT_TOLD", self.told)
    }

    fn launch(&self) -> Conversation {
        let mut editor = self.sidecar().converse();
        editor.call("initialize", json!({ "protocolVersion": 1 }));
        editor
    }

    /// A new conversation.
    pub(super) fn open(&self) -> Conversation {
        let mut editor = self.launch();
        editor.call("session/new", json!({ "cwd": self.sandbox.work(), "mcpServers": [] }));
        editor
    }

    /// The same conversation with another sidecar and another process of the agent.
    pub(super) fn load(&self) -> Conversation {
        let mut editor = self.launch();
        editor.call(
            "session/load",
            json!({ "sessionId": SESSION, "cwd": self.sandbox.work(), "mcpServers": [] }),
        );
        editor
    }

    /// The same, without what was said before.
    pub(super) fn resume(&self) -> Conversation {
        let mut editor = self.launch();
        editor.call(
            "session/resume",
            json!({ "sessionId": SESSION, "cwd": self.sandbox.work(), "mcpServers": [] }),
        );
        editor
    }

    /// Who owns the conversation's jobs.
    pub(super) fn owner(&self) -> String {
        let folder = self.sandbox.home().join("acp");
        eventually("the conversation is written down", TEST_TIMEOUT, || {
            let files = std::fs::read_dir(&folder).map_err(|error| error.to_string())?;
            let saved = files.flatten().find_map(|file| {
                let saved: Value = serde_json::from_slice(&std::fs::read(file.path()).ok()?).ok()?;
                saved["owner"].as_str().map(ToOwned::to_owned)
            });
            saved.ok_or_else(|| "no state yet".to_owned())
        })
    }

    /// All that the agent was prompted with.
    pub(super) fn history(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.sandbox.root().join("history")).unwrap();
        // The agent may be writing the last line.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits until the agent was prompted so often.
    #[track_caller]
    pub(super) fn prompted(&self, times: usize) -> Vec<String> {
        eventually("the agent is prompted", TEST_TIMEOUT, || {
            let history = self.history();
            if history.len() >= times { Ok(history) } else { Err(history) }
        })
        .into_iter()
        .map(|entry| {
            assert_eq!(entry["overlaps"], false, "never two prompts in flight");
            entry["user"].as_str().unwrap().to_owned()
        })
        .collect()
    }
}

fn user(editor: &mut Conversation, text: &str) -> Value {
    editor.call("session/prompt", prompt(SESSION, text))
}

#[track_caller]
fn notice(editor: &Conversation, words: &str) -> String {
    editor.wait_for(words, |all| {
        chunks(all, "agent_message_chunk").into_iter().find(|text| text.contains(words))
    })
}

/// Waits until the outbox has the end of that job.
#[track_caller]
fn ended_event(sandbox: &Sandbox, job: u64) {
    eventually("the job's end is in the outbox", TEST_TIMEOUT, || {
        let all = sandbox.call(["--json", "events", "--all"]).run().ok().text();
        if all.contains(&format!("\"job\":{job}")) { Ok(()) } else { Err(all) }
    });
}

#[test]
fn a_job_is_shown_live_and_its_end_wakes_the_agent_once() {
    let stand = Stand::new(&["--window", "10ms"]);
    let mut editor = stand.open();
    let gate = gate(&stand.sandbox);
    user(&mut editor, "job echo working; read x < gate; exit 3");
    open_gate(&gate);
    let end = editor.wait_for("the job's end in the editor", |all| {
        of_call(all, "outlast-job-1").into_iter().find(|update| update["status"] == "failed")
    });
    assert_eq!(end["rawOutput"]["exit_code"], 3);
    let call = of_call(&editor.heard(), "outlast-job-1");
    assert_eq!(call[1]["_meta"]["outlast.dev/lines"], "working");
    let prompts = stand.prompted(2);
    assert!(
        prompts[1].starts_with(MARK) && prompts[1].contains("job 1 exit: failed: exit code 3"),
        "{prompts:?}"
    );
    let shown =
        editor.wait_for("what was injected", |all| chunks(all, "user_message_chunk").first().cloned());
    assert_eq!(shown, prompts[1]);
    user(&mut editor, "say more");
    let prompts = stand.prompted(3);
    assert_eq!(prompts[2], "say more", "nothing is told twice");
    assert_eq!(editor.hang_up(), Some(0));
}

#[test]
fn what_our_tools_have_listed_does_not_wake_it_and_what_it_was_told_is_not_mentioned_again() {
    let stand = Stand::new(&["--no-wake"]);
    let mut editor = stand.open();
    let gate = gate(&stand.sandbox);
    let mut say = |text: &str| {
        user(&mut editor, text);
        chunks(&editor.heard(), "agent_message_chunk").pop().unwrap()
    };
    say("job read x < gate");
    open_gate(&gate);
    // A list that comes between a job's end and its event shows that end, and then the event is not told.
    ended_event(&stand.sandbox, 1);
    let listed = say("jobs");
    assert!(listed.contains("job 1 exit"), "{listed}");
    say("job read x < gate");
    open_gate(&gate);
    eventually("the second job's event goes along", TEST_TIMEOUT, || {
        say("say hello");
        let last = stand.history().pop().unwrap()["user"].as_str().unwrap().to_owned();
        if last.contains("job 2 exit") && !last.contains("job 1 exit") { Ok(()) } else { Err(last) }
    });
    let listed = say("jobs");
    assert!(!listed.contains("job 2 exit"), "{listed}");
}

#[test]
fn what_the_agent_saw_in_an_answer_does_not_wake_it() {
    let stand = Stand::new(&["--no-wake"]);
    let mut editor = stand.open();
    user(&mut editor, "run echo seen");
    let gate = gate(&stand.sandbox);
    user(&mut editor, "job read x < gate");
    open_gate(&gate);
    ended_event(&stand.sandbox, 2);
    user(&mut editor, "say go on");
    let last = stand.prompted(3).pop().unwrap();
    assert!(last.starts_with("say go on\n[outlast events "), "the user's words come first: {last}");
    assert!(last.contains("job 2 exit") && !last.contains("job 1 "), "{last}");
}

#[test]
fn a_loop_of_agent_and_jobs_is_stopped_and_the_user_told() {
    let mut stand = Stand::new(&["--window", "1ms", "--turns", "3"]);
    stand.told = "loop";
    let mut editor = stand.open();
    user(&mut editor, "job sleep 0.3");
    let told = notice(&editor, "does not wake the agent any more");
    assert!(told.contains("3 times in a row") && told.contains("next prompt"), "{told}");
    let prompts = stand.prompted(4);
    assert_eq!(prompts.iter().filter(|text| text.starts_with(MARK)).count(), 3);
    // A word of the user takes the rest along, and begins a new row.
    user(&mut editor, "say enough");
    assert!(stand.prompted(5)[4].contains("job 4 exit"));
    let notices = chunks(&editor.heard(), "agent_message_chunk");
    assert_eq!(notices.iter().filter(|text| text.contains("any more")).count(), 1);
}

#[test]
fn every_line_of_a_burst_is_told_with_the_last_and_the_end_after_a_spent_budget() {
    let stand = Stand::new(&["--window", "10ms", "--per-minute", "1", "--per-hour", "1"]);
    let editor = stand.open();
    let gate = gate(&stand.sandbox);
    let command = "for i in 1 2 3 4 5 6 7 8 9 10; do echo NEW:$i; done; read x < gate; printf partial-end";
    let owner = stand.owner();
    let run = stand.sandbox.call(["run", "-d", "--notify", "lines,exit", command]);
    run.env("OUTLAST_SESSION", owner).run().ok();
    let told = stand.prompted(1)[0].clone();
    let lines: Vec<&str> = told.lines().filter_map(|line| line.trim().strip_prefix("NEW:")).collect();
    assert_eq!(lines, (1..=10).map(|n| n.to_string()).collect::<Vec<_>>(), "{told}");
    assert!(!told.contains("outlast read"), "an agent has tools, not a command line: {told}");
    // The one wake is spent; the end is told all the same, and the line without an end with it.
    open_gate(&gate);
    let told = stand.prompted(2)[1].clone();
    assert!(told.contains("partial-end") && told.contains("job 1 exit"), "{told}");
    drop(editor);
}

#[test]
fn prompts_go_one_by_one_and_what_waits_can_be_cancelled() {
    let stand = Stand::new(&[]);
    let mut editor = stand.open();
    let turns: Vec<u64> = ["hang", "say one", "say two"]
        .map(|text| editor.ask("session/prompt", prompt(SESSION, text)))
        .to_vec();
    editor.notify("$/cancel_request", json!({ "requestId": turns[1] }));
    assert_eq!(editor.answer(turns[1])["error"]["code"], -32800);
    editor.notify("session/cancel", json!({ "sessionId": SESSION }));
    for turn in [turns[0], turns[2]] {
        assert_eq!(editor.answer(turn)["result"]["stopReason"], "cancelled");
    }
    assert_eq!(stand.prompted(1), ["hang"]);
    let turns: Vec<u64> =
        ["say a", "say b", "say c"].map(|text| editor.ask("session/prompt", prompt(SESSION, text))).to_vec();
    turns.iter().for_each(|turn| drop(editor.answer(*turn)));
    assert_eq!(stand.prompted(4)[1..], ["say a", "say b", "say c"]);
}

#[test]
fn the_user_goes_first_and_a_cancelled_turn_of_ours_is_the_last() {
    let mut stand = Stand::new(&["--window", "1ms"]);
    stand.told = "hang";
    let mut editor = stand.open();
    let gate = gate(&stand.sandbox);
    user(&mut editor, "job read x < gate");
    open_gate(&gate);
    stand.prompted(2);
    let turn = editor.ask("session/prompt", prompt(SESSION, "say late"));
    editor.notify("session/cancel", json!({ "sessionId": SESSION }));
    assert_eq!(editor.answer(turn)["result"]["stopReason"], "cancelled");
    user(&mut editor, "/outlast status");
    assert!(notice(&editor, "Waking is").contains("paused until your next prompt, because you cancelled"));
    assert_eq!(stand.prompted(2).len(), 2, "neither the cancelled prompt nor ours reached the agent");
}

#[test]
fn waking_can_be_switched_off_and_on_also_for_the_next_sidecar() {
    let stand = Stand::new(&["--window", "1ms"]);
    let mut editor = stand.open();
    user(&mut editor, "/outlast off");
    notice(&editor, "does not wake the agent in this session");
    let gate = gate(&stand.sandbox);
    user(&mut editor, "job read x < gate");
    open_gate(&gate);
    stand.sandbox.wait_for_end(1);
    editor.hang_up();
    let mut editor = stand.load();
    user(&mut editor, "/outlast status");
    assert!(notice(&editor, "Waking is").contains("Waking is off"));
    assert_eq!(stand.history().len(), 1);
    user(&mut editor, "/outlast on");
    assert!(stand.prompted(2)[1].contains("job 1 exit"));
}

#[test]
fn an_agent_that_refuses_is_left_alone_and_told_with_the_next_prompt() {
    let mut stand = Stand::new(&["--window", "1ms"]);
    stand.told = "refuse";
    let mut editor = stand.open();
    let gate = gate(&stand.sandbox);
    user(&mut editor, "job read x < gate");
    open_gate(&gate);
    notice(&editor, "did not take what Outlast had to tell (not today)");
    user(&mut editor, "say hello");
    let prompts = stand.prompted(3);
    assert!(prompts[1].contains("job 1 exit") && prompts[2].contains("job 1 exit"), "{prompts:?}");
}

#[test]
fn an_agents_own_stream_wakes_it_too() {
    let stand = Stand::new(&["--window", "1ms"]);
    let mut editor = stand.open();
    user(&mut editor, "stream NEW: report.pdf");
    let prompts = stand.prompted(2);
    assert!(prompts[1].contains("your own command (shell-1) stream: NEW: report.pdf"), "{prompts:?}");
    let passed =
        |all: &[Value]| updates(all).iter().filter(|update| update["toolCallId"] == "shell-1").count();
    editor.wait_for("the agent's own update", |all| (passed(all) == 1).then_some(()));
}

#[test]
fn only_the_chosen_kinds_wake() {
    let stand = Stand::new(&["--window", "1ms", "--events", "pattern"]);
    let mut editor = stand.open();
    let gate = gate(&stand.sandbox);
    user(&mut editor, "job read x < gate");
    open_gate(&gate);
    user(&mut editor, "job read line; echo \"$line\"");
    stand.sandbox.wait_for_end(1);
    stand.sandbox.run(["watch", "2", "--pattern", "found"]).ok();
    stand.sandbox.run(["send", "2", "found it"]).ok();
    let told = stand.prompted(3).pop().unwrap();
    assert!(told.contains("job 2 pattern") && !told.contains("job 1"), "{told}");
}

#[test]
fn what_is_not_ours_passes_unchanged_both_ways() {
    let stand = Stand::new(&[]);
    let mut editor = stand.open();
    for odd in [
        "{ \"method\":\"_odd/note\" ,\"params\":{\"z\":1,\"a\":12345678901234567890123,\"t\":\"\\u00e9\\/\"}, \"jsonrpc\":\"2.0\" }",
        "{\"jsonrpc\":\"2.0\",\"method\":\"session/future\",\"params\":{\"sessionId\":\"conversation\",  \"x\":[ ]}}",
    ] {
        editor.say(odd);
        editor
            .wait_for("what the agent heard", |all| all.iter().find(|m| m["params"]["line"] == odd).cloned());
        editor.call("_fixture/odd", json!({ "line": odd }));
        assert!(editor.lines().contains(&odd.to_owned()), "the agent's line reaches the editor as it is");
    }
    let request = "{\"id\": \"a-b\",  \"jsonrpc\":\"2.0\",\"method\":\"session/set_mode\",\"params\":{\"modeId\":\"x\"}}";
    editor.say(request);
    let answer = editor.wait_for("the answer", |all| all.iter().find(|m| m["id"] == "a-b").cloned());
    assert_eq!(answer["result"]["line"], request);
}

#[test]
fn a_session_that_is_loaded_while_it_is_open_goes_on() {
    let stand = Stand::new(&["--window", "1ms"]);
    let mut editor = stand.open();
    let gate = gate(&stand.sandbox);
    user(&mut editor, "job read x < gate");
    let folder = stand.sandbox.work();
    editor.call("session/load", json!({ "sessionId": SESSION, "cwd": folder, "mcpServers": [] }));
    let calls = |all: &[Value]| {
        of_call(all, "outlast-job-1").into_iter().filter(|u| u["sessionUpdate"] == "tool_call").count()
    };
    editor.wait_for("the job is shown again", |all| (calls(all) == 2).then_some(()));
    open_gate(&gate);
    assert!(stand.prompted(2)[1].contains("job 1 exit"));
    let ends = editor.wait_for("its end", |all| {
        let call = of_call(all, "outlast-job-1");
        let ends = call.iter().filter(|update| update["status"] == "failed").count();
        (ends > 0).then_some(ends)
    });
    assert_eq!(ends, 1, "by one of the two that showed it");
    user(&mut editor, "/outlast status");
    assert!(notice(&editor, "Waking is").contains("Waking is on"));
}

#[test]
fn lines_of_a_job_wake_if_they_are_asked_for() {
    let stand = Stand::new(&["--window", "1ms"]);
    let mut editor = stand.open();
    let gate = gate(&stand.sandbox);
    user(&mut editor, "lines read x < gate; echo NEW: report.pdf; sleep 300");
    open_gate(&gate);
    let told = stand.prompted(2).pop().unwrap();
    assert!(told.contains("job 1 lines: [lines-1] NEW: report.pdf"), "{told}");
    editor.wait_for("the line in the editor", |all| {
        of_call(all, "outlast-job-1")
            .into_iter()
            .find(|u| u["_meta"]["outlast.dev/lines"] == "NEW: report.pdf")
    });
}
