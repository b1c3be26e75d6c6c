//! `outlast prune` and retention.

use outlast_testkit::Sandbox;
use serde_json::json;

use crate::{all_jobs, sandbox};

#[test]
fn what_is_past_retention_goes_and_running_jobs_stay() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture();
    for _ in 0..4 {
        let job = sandbox.fixture_job(&["says", "done"]);
        sandbox.wait_for_end(job);
    }
    sandbox.start(["--", &fixture, "says-and-sleeps", "up"]);
    // A finished job counts as finished when its keeper has gone, a moment after the result.
    outlast_testkit::eventually("four finished jobs", outlast_testkit::TEST_TIMEOUT, || {
        let would = sandbox.json(["prune", "--all", "--dry-run"]);
        if would["removed"] == serde_json::json!([1, 2, 3, 4]) { Ok(()) } else { Err(would) }
    });
    assert_eq!(all_jobs(&sandbox).len(), 5, "a dry run removes nothing");
    let nothing = sandbox.json(["prune"]);
    assert_eq!((&nothing["removed"], &nothing["kept"]), (&serde_json::json!([]), &4.into()), "{nothing}");
    let two = sandbox.json(["prune", "--keep", "2"]);
    assert_eq!(
        (&two["removed"], &two["kept"]),
        (&serde_json::json!([1, 2]), &2.into()),
        "the oldest go: {two}"
    );
    assert!(two["freed_bytes"].as_u64().unwrap() > 0, "{two}");
    assert!(!sandbox.job(1).exists());
    let small = sandbox.json(["prune", "--size", "0"]);
    assert_eq!(small["removed"], serde_json::json!([3, 4]), "{small}");
    assert!(sandbox.run(["prune", "--age", "0s"]).ok().text().contains("0 jobs removed"));
    assert_eq!(all_jobs(&sandbox)[0]["handle"], 5, "running ones stay");
}

#[test]
fn settings_limit_what_is_kept_without_being_asked() {
    let sandbox = sandbox();
    let settings = sandbox.root().join("settings.toml");
    std::fs::write(&settings, "[retention]\njobs = 3\nyoung = \"0s\"\n").unwrap();
    let fixture = sandbox.fixture();
    for _ in 0..10 {
        let call = sandbox.call(["run", "--", &fixture, "says", "done"]).env("OUTLAST_CONFIG", &settings);
        assert_eq!(call.run().ok().text(), "done\n");
    }
    // What was shown a moment after its keeper looked is taken by the next sweep, at the latest this one.
    outlast_testkit::eventually("the oldest have gone", outlast_testkit::TEST_TIMEOUT, || {
        sandbox.call(["prune"]).env("OUTLAST_CONFIG", &settings).run().ok();
        let jobs = all_jobs(&sandbox);
        if jobs.len() == 3 { Ok(()) } else { Err(jobs.len()) }
    });
    assert!(sandbox.job(10).is_dir());
    sandbox.nothing_runs();
}

/// Makes an ended job as old as that.
fn age(sandbox: &Sandbox, job: u64, days: u64) {
    let mut info = sandbox.info(job);
    info["ended_at"] = (outlast_job::clock::now_ms() - days * 86_400_000).into();
    std::fs::write(sandbox.job(job).join("info.json"), info.to_string()).unwrap();
}

/// Symptom that this guards against: of many jobs that end together, the first are gone before anybody could read them.
#[test]
fn what_nobody_has_read_is_not_removed_to_make_room() {
    let sandbox = sandbox();
    std::fs::create_dir(sandbox.root().join("config/outlast")).unwrap();
    std::fs::write(sandbox.root().join("config/outlast/config.toml"), "[retention]\njobs = 3\n").unwrap();
    for i in 1..=10 {
        sandbox.start([format!("echo result {i}")]);
    }
    sandbox.nothing_runs();
    let listed = sandbox.json(["jobs", "--all"]);
    assert_eq!(listed["jobs"].as_array().unwrap().len(), 10, "{listed}");
    let nothing = sandbox.json(["prune"]);
    assert_eq!((&nothing["removed"], &nothing["kept"]), (&json!([]), &10.into()), "{nothing}");
    // And the home says so, to whoever looks.
    assert_eq!(nothing["over_budget"]["jobs"], 10, "{nothing}");
    assert_eq!(sandbox.json(["jobs", "--all"])["over_budget"]["jobs"], 10);
    assert!(sandbox.run(["jobs", "--all"]).ok().stderr.contains("over its budget: 10 finished jobs"));
    assert!(sandbox.run(["doctor"]).code(1).text().contains("over its budget: 10 finished jobs"));
    for i in 1..=10 {
        assert_eq!(sandbox.run(["read", &i.to_string()]).ok().text(), format!("result {i}\n"));
    }
    assert_eq!(sandbox.json(["prune"])["removed"], json!([]), "and what is read is still young");
}

/// A day later: what was read in one way or another makes room, and a month later all the rest goes.
#[test]
fn what_was_read_makes_room_and_what_was_not_goes_after_a_month() {
    let sandbox = sandbox();
    std::fs::create_dir(sandbox.root().join("config/outlast")).unwrap();
    std::fs::write(sandbox.root().join("config/outlast/config.toml"), "[retention]\njobs = 0\n").unwrap();
    for _ in 1..=6 {
        sandbox.start(["true"]);
    }
    sandbox.nothing_runs();
    // A look at the outbox acknowledges nothing.
    assert_eq!(sandbox.run(["events"]).ok().text().lines().count(), 6);
    sandbox.wait_for_end(1);
    sandbox.run(["logs", "2"]).ok();
    // Of another session: otherwise its first answer tells of other ends too.
    let mut server = sandbox.call(["mcp"]).env("OUTLAST_SESSION", "another").converse();
    let client = json!({"name": "tests", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    server.call("initialize", hello);
    server.notify("notifications/initialized", json!({}));
    server.call("tools/call", json!({"name": "read_output", "arguments": {"handle": "3"}}));
    drop(server);
    for job in 1..=6 {
        age(&sandbox, job, 2);
    }
    let listed = all_jobs(&sandbox);
    assert_eq!(listed.len(), 6, "a list makes none of them read");
    assert_eq!(sandbox.json(["prune"])["removed"], json!([1, 2, 3]));
    sandbox.run(["events", "--ack-all"]).ok();
    assert_eq!(sandbox.json(["prune"])["removed"], json!([4, 5, 6]), "acknowledged");

    let unread = sandbox.start(["true"]);
    sandbox.nothing_runs();
    age(&sandbox, unread, 29);
    assert_eq!(sandbox.json(["prune"])["removed"], json!([]));
    age(&sandbox, unread, 31);
    assert_eq!(sandbox.json(["prune"])["removed"], json!([unread]));
}
