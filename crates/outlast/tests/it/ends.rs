//! Ends that must not get lost: told once whoever dies meanwhile, and seen whatever we inherited or whoever we are.

use outlast_testkit::{Dice, Sandbox, TEST_TIMEOUT, eventually, processes};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::sandbox;

const TRIES: usize = 60;

/// The job's entries about its end, in the session's outbox.
fn ends_told(sandbox: &Sandbox) -> Vec<u64> {
    let text = std::fs::read_to_string(sandbox.home().join("outbox/test/events.jsonl")).unwrap_or_default();
    let entries = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    entries.filter(|entry| entry["event"] == "exit").map(|entry| entry["job"].as_u64().unwrap()).collect()
}

/// Symptom that this guards against: the receipt is on the disk, and whoever waits for the event waits for ever.
#[test]
fn a_keeper_killed_right_after_the_receipt_has_still_told_the_end() {
    let sandbox = sandbox();
    let (mut jobs, mut dice) = (Vec::new(), Dice::new());
    for _ in 0..TRIES {
        let job = sandbox.fixture_job(&["says-when-told", "bye"]);
        let keeper = sandbox.process(job, "keeper");
        let record = sandbox.job(job).join("info.json");
        let mut socket = sandbox.socket(job);
        let sent = socket.ask(&json!({"id": 1, "verb": "send", "text": "x", "newline": true}));
        assert_eq!(sent["sent"]["queued"], 0, "{sent}");
        // As soon as the receipt is there, or up to half a millisecond later: so many looks at the clock.
        let looks = dice.below(10_000);
        while !std::fs::read_to_string(&record).unwrap_or_default().contains("ended_at") {
            std::hint::spin_loop();
        }
        for _ in 0..looks {
            std::hint::black_box(std::time::Instant::now());
        }
        processes::send(&keeper, Signal::KILL);
        jobs.push(job);
    }
    sandbox.nothing_runs();
    for job in &jobs {
        assert_eq!(sandbox.info(*job)["code"], 0);
        let ends = sandbox.events(*job).iter().filter(|event| event["event"] == "exit").count();
        assert_eq!(ends, 1, "job {job}: {:?}", sandbox.events(*job));
    }
    let mut told = ends_told(&sandbox);
    told.sort_unstable();
    assert_eq!(told, jobs, "each is told once");
}

/// Symptom that this guards against: whoever started us ignores `SIGCHLD`, and an heir never learns of its keeper's end.
#[test]
fn heirs_end_and_take_over_also_where_sigchld_was_ignored() {
    if !outlast_testkit::has("python3") {
        return;
    }
    let sandbox = sandbox();
    let ignoring = |arguments: &str| {
        let program = "import os, signal, sys\n\
                       signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n\
                       signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\n\
                       os.execv(sys.argv[1], sys.argv[1:])";
        sandbox.shell(&format!("exec python3 -c '{program}' \"$PROGRAM\" {arguments}")).run()
    };
    assert_eq!(ignoring("run 'echo up; exit 3'").code(3).text(), "up\n");
    sandbox.nothing_runs();

    let fixture = sandbox.fixture();
    ignoring(&format!("run -d -- '{fixture}' says-when-told bye")).ok();
    processes::kill_dash_nine(&sandbox.process(2, "keeper"));
    sandbox.run(["send", "2", "", "--no-wait"]).ok();
    let ended = sandbox.wait_for_end(2);
    assert_eq!((&ended["status"], &ended["exit_code"]), (&"completed".into(), &0.into()), "{ended}");
    assert_eq!(sandbox.info(2)["takeovers"], 1);
    sandbox.nothing_runs();
    assert_eq!(sandbox.json(["prune", "--all"])["removed"], json!([1, 2]));
}

/// The program as the first process of a container.
#[test]
fn as_the_first_process_of_a_container_it_leaves_no_zombie() {
    let sandbox = sandbox();
    let contained = |arguments: &str| {
        sandbox.shell(&format!("exec unshare -pf --mount-proc --kill-child \"$PROGRAM\" {arguments}"))
    };
    if sandbox.shell("unshare -pf --mount-proc true").run().code != Some(0) {
        outlast_testkit::left_out("a PID namespace cannot be made", "run it as root");
        return;
    }
    assert_eq!(contained("run 'echo up; exit 7'").run().code(7).text(), "up\n");

    let mut server = contained("mcp").converse();
    server.call(
        "initialize",
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
    );
    server.notify("notifications/initialized", json!({}));
    let mut run = |command: &str| {
        let call = json!({"name": "run_shell_command", "arguments": {"command": command}});
        server.call("tools/call", call)["content"][0]["text"].to_string()
    };
    for _ in 0..20 {
        let ended = run("exit 5");
        assert!(ended.contains("exit 5"), "{ended}");
    }
    eventually("ps sees no zombie", TEST_TIMEOUT, || {
        match run("ps -eo stat,comm | grep -c '^Z' | sed 's/^/n=/'") {
            text if text.contains("n=0") => Ok(()),
            text => Err(text),
        }
    });
    assert_eq!(server.hang_up(), Some(0), "and ends as the program does");
}

/// Runs a command to its end; returns who ended it.
fn ended_by(sandbox: &Sandbox, args: &[&str]) -> (String, Value) {
    let job = sandbox.start(args);
    (job.to_string(), sandbox.wait_for_end(job)["ended_by"].clone())
}

/// The receipt names the cause, where the kernel tells it.
#[test]
fn receipts_name_the_cause_and_not_somebody_outside() {
    let sandbox = sandbox();
    let (_, by) = ended_by(&sandbox, &["kill -PIPE $$"]);
    assert_eq!(by, "because nobody reads what it writes any more");
    let (_, by) = ended_by(&sandbox, &["ulimit -c 0; kill -SEGV $$"]);
    assert_eq!(by, "by a fault of its own");
    let (_, by) = ended_by(&sandbox, &["--cpu-time", "1s", "while :; do :; done"]);
    assert_eq!(by, "by its CPU limit of 1 s");
    let (_, by) = ended_by(&sandbox, &["kill -USR1 $$"]);
    assert_eq!(by, "by a signal from outside (sender unknown)");
}

#[test]
fn a_receipt_says_who_typed_the_key_that_ended_it() {
    let sandbox = sandbox();
    for (key, signal, name) in [("Ctrl-C", "SIGINT", "Ctrl-C"), ("Ctrl-\\", "SIGQUIT", "Ctrl-\\")] {
        let job = sandbox.fixture_job(&["says-and-sleeps", "up"]);
        sandbox.wait_for_text(job, "up");
        let call = sandbox.call(["send", &job.to_string(), "--no-wait", "--key", key]);
        call.env("OUTLAST_SESSION", "somebody").run().ok();
        let ended = sandbox.wait_for_end(job);
        assert_eq!(ended["signal"], signal, "{ended}");
        assert_eq!(ended["ended_by"], format!("by {name} typed by session somebody"), "{ended}");
    }
}
