//! One job as a whole: `show`, `rerun`, `pin`, `rm`, `kill --all`, and the job that is meant when none is named.

use serde_json::json;

use crate::{all_jobs, sandbox};

#[test]
fn show_says_what_became_of_a_job() {
    let sandbox = sandbox();
    let ran = sandbox.call(["run", "--name", "build", "--description", "a test", "--timeout", "5m"]);
    ran.arg("echo out; exit 3").run().code(3);
    let shown = sandbox.json(["show", "build"]);
    let work = sandbox.work();
    let wanted = json!({
        "handle": 1, "name": "build", "status": "failed", "exit_code": 3, "command": "echo out; exit 3",
        "description": "a test", "cwd": work, "mine": true, "timeout_ms": 300_000, "pinned": false, "ended_by": "by itself"
    });
    for (field, value) in wanted.as_object().unwrap() {
        assert_eq!(&shown[field], value, "{field}: {shown}");
    }
    let number = |field: &str| shown[field].as_u64().unwrap_or_else(|| panic!("{field}: {shown}"));
    assert_eq!(number("ended_at") - number("started_at"), number("duration_ms"));
    assert!(number("memory_bytes") > 100_000 && number("disk_bytes") > 0, "{shown}");
    let text = sandbox.run(["status", "1"]).ok().text();
    for said in
        ["job 1 build: failed, exit code 3", "for        a test", "limits     ends after 300s", "took "]
    {
        assert!(text.contains(said), "{said:?} is missing:\n{text}");
    }
}

#[test]
fn show_says_what_a_running_job_uses() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says-and-sleeps", "up"]);
    sandbox.wait_for_text(job, "up");
    let shown = sandbox.json(["show", "1"]);
    assert_eq!((&shown["status"], &shown["ended_at"]), (&"running".into(), &json!(null)), "{shown}");
    assert_eq!(shown["processes"][0]["program"], "fixture", "{shown}");
    assert!(shown["memory_bytes"].as_u64().unwrap() > 100_000, "{shown}");
    assert!(sandbox.run(["show"]).ok().text().contains("processes  fixture ("));
}

#[test]
fn without_a_name_the_last_job_of_the_session_is_meant() {
    let sandbox = sandbox();
    sandbox.run(["logs"]).code(3).says("this session has no job yet");
    sandbox.run(["run", "echo first"]).ok();
    sandbox.run(["run", "echo second"]).ok();
    sandbox.call(["run", "echo elsewhere"]).env("OUTLAST_SESSION", "other").run().ok();
    for verb in ["read", "logs", "screen"] {
        assert_eq!(sandbox.run([verb]).ok().text(), "second\n", "{verb}");
    }
    assert_eq!(sandbox.json(["show"])["handle"], 2);
    assert_eq!(sandbox.json(["wait"])["handle"], 2);
    sandbox.run(["attach"]).code(3).says("no job of this session runs");
    for verb in ["kill", "rm", "send", "secret", "pin"] {
        sandbox.run([verb]).code(2);
    }
}

#[test]
fn a_job_is_run_again_with_the_same_name_folder_and_bounds() {
    let sandbox = sandbox();
    let below = sandbox.work().join("below");
    std::fs::create_dir(&below).unwrap();
    let run = ["run", "--name", "build", "--pipe", "--timeout", "90s", "--description", "again", "--cwd"];
    sandbox.call(run).arg(&below).arg("pwd; echo $WHO; exit 4").run().code(4);
    let again = sandbox.call(["rerun", "build", "-e", "WHO=me"]).run().code(4);
    assert_eq!(again.text(), format!("{}\nme\n", below.display()));
    let (first, second) = (sandbox.json(["show", "1"]), sandbox.json(["show", "build"]));
    assert_eq!(second["handle"], 2);
    for field in ["command", "cwd", "description", "timeout_ms", "terminal", "name", "log_cap"] {
        assert_eq!(first[field], second[field], "{field}");
    }
    // Without a name, the last one; as JSON, with its answer.
    let third = sandbox.call(["--json", "rerun"]).run().code(4).json();
    assert_eq!((&third["handle"], &third["exit_code"]), (&3.into(), &4.into()), "{third}");
}

#[test]
fn what_still_runs_is_ended_before_it_runs_again_but_only_if_it_was_named() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture();
    sandbox.start(["--name", "web", "--", &fixture, "says-and-sleeps", "up"]);
    sandbox.run(["rerun", "-d"]).code(2).says("outlast rerun 1");
    assert_eq!(sandbox.info(1)["status"], "running");
    sandbox.run(["restart", "-d", "web"]).ok();
    assert_eq!(
        (&sandbox.info(1)["status"], &sandbox.info(2)["status"]),
        (&"killed".into(), &"running".into())
    );
    assert_eq!(sandbox.json(["show", "web"])["handle"], 2);
}

#[test]
fn an_ended_job_is_removed_and_a_running_one_is_not() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture();
    sandbox.run(["run", "--name", "done", "--", &fixture, "exits", "0"]).ok();
    sandbox.start(["--name", "up", "--", &fixture, "says-and-sleeps", "up"]);
    sandbox.run(["rm", "done", "up"]).code(2).says("outlast rm --force 2");
    assert_eq!(all_jobs(&sandbox).len(), 2, "nothing was removed");
    assert_eq!(sandbox.json(["rm", "done"])["removed"], true);
    assert!(!sandbox.job(1).exists());
    sandbox.run(["show", "done"]).code(3);
    sandbox.run(["rm", "--force", "up"]).ok();
    assert!(all_jobs(&sandbox).is_empty());
    sandbox.nothing_runs();
}

/// A job's record is often on the disk before its keeper has gone.
#[test]
fn a_job_can_be_removed_at_once_after_its_end() {
    let sandbox = sandbox();
    for job in 1..=8 {
        sandbox.run(["run", "echo hi"]).ok();
        sandbox.run(["rm", &job.to_string()]).ok();
    }
    assert!(all_jobs(&sandbox).is_empty());
}

#[test]
fn a_pinned_job_stays_until_it_is_let_go() {
    let sandbox = sandbox();
    sandbox.run(["run", "echo kept"]).ok();
    sandbox.run(["run", "echo gone"]).ok();
    assert_eq!(sandbox.json(["pin", "1"]), json!({"handle": 1, "pinned": true}));
    sandbox.nothing_runs();
    assert_eq!(sandbox.json(["prune", "--all"])["removed"], json!([2]));
    sandbox.run(["rm", "1"]).code(2).says("outlast pin --remove 1");
    assert_eq!(all_jobs(&sandbox)[0]["pinned"], true);
    sandbox.run(["pin", "--remove", "1"]).ok();
    sandbox.run(["rm", "1"]).ok();
}

#[test]
fn all_jobs_of_this_session_are_ended_and_no_others() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture();
    for _ in 0..2 {
        sandbox.start(["--", &fixture, "says-and-sleeps", "up"]);
    }
    let other = ["run", "-d", "--", &fixture, "says-and-sleeps", "up"];
    sandbox.call(other).env("OUTLAST_SESSION", "other").run().ok();
    sandbox.run(["kill", "--all"]).ok();
    let states: Vec<_> = (1..=3).map(|job| sandbox.info(job)["status"].clone()).collect();
    assert_eq!(states, ["killed", "killed", "running"]);
    sandbox.run(["kill", "--all"]).ok().says("no job of this session runs");
    sandbox.run(["kill", "--all", "3"]).code(2);
}
