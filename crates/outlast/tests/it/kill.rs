//! `outlast kill`: everything the job started, proved; signals by name; who did it.

use outlast_testkit::{TEST_TIMEOUT, eventually};

use crate::{gate, open_gate, sandbox};

#[test]
fn nothing_of_a_family_is_left() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["family"]);
    sandbox.wait_for_text(job, "family complete");
    let command = sandbox.pid(job, "process");
    let fixtures = sandbox.processes().iter().filter(|process| process.comm == "fixture").count();
    assert_eq!(fixtures, 5, "the command, a deaf child, one in its own session with a child, and a daemon");
    let ran = sandbox.run(["kill", &job.to_string()]).ok();
    assert!(ran.text().contains("nothing is left"), "{ran}");
    assert!(!ran.text().contains("left behind"), "{ran}");
    let left =
        sandbox.processes().into_iter().filter(|process| process.comm == "fixture").collect::<Vec<_>>();
    assert!(left.is_empty(), "gone when kill says so: {left:?}");
    let info = sandbox.info(job);
    assert_eq!((&info["status"], &info["ended_by"]["who"]), (&"killed".into(), &"kill".into()), "{info}");
    assert_eq!(info["ended_by"]["session"], "test", "{info}");
    assert_eq!(info["process"]["pid"], command, "{info}");
    sandbox.nothing_runs();
}

#[test]
fn kill_as_json_counts_and_proves() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["family"]).to_string();
    sandbox.wait_for_text(1, "family complete");
    let killed = sandbox.json(["kill", &job]);
    assert_eq!(killed["signalled"], 5, "{killed}");
    assert_eq!(killed["survivors"], serde_json::json!([]), "{killed}");
    assert_eq!((&killed["status"], &killed["already_ended"]), (&"killed".into(), &false.into()), "{killed}");
    let again = sandbox.json(["kill", &job]);
    assert_eq!(again["already_ended"], true, "ended already is no error: {again}");
    assert!(sandbox.run(["kill", &job]).ok().text().contains("had already ended"));
}

#[test]
fn a_child_left_behind_does_not_hold_the_result_back() {
    let sandbox = sandbox();
    let gate = gate(&sandbox);
    let job = sandbox.fixture_job(&["leaves-child", "3", &gate]);
    let ended = sandbox.wait_for_end(job);
    assert_eq!((&ended["status"], &ended["exit_code"]), (&"failed".into(), &3.into()), "{ended}");
    assert_eq!(ended["left_behind"][0]["program"], "fixture", "{ended}");
    // Its output still arrives.
    open_gate(&gate);
    eventually("the child's words are in the log", TEST_TIMEOUT, || {
        match sandbox.run(["read", "1"]).ok().text() {
            text if text == "leaving\nstill here\n" => Ok(()),
            text => Err(text),
        }
    });
    let listed = sandbox.json(["jobs"])["jobs"][0].clone();
    assert_eq!(listed["left_behind"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(sandbox.json(["prune", "--all"])["removed"], serde_json::json!([]), "it is not pruned yet");
    sandbox.run(["send", "1", "x"]).code(1).says("has ended");
    let killed = sandbox.json(["kill", "1"]);
    assert_eq!(killed["signalled"], 1, "{killed}");
    sandbox.nothing_runs();
    let listed = sandbox.json(["jobs"])["jobs"][0].clone();
    assert_eq!(listed["left_behind"], serde_json::json!([]), "nothing is left any more: {listed}");
    assert_eq!(listed["exit_code"], 3, "the result stays: {listed}");
    assert!(sandbox.events(1).iter().any(|event| event["event"] == "all_gone"));
}

#[test]
fn a_child_left_behind_that_ends_by_itself_lets_the_keeper_go() {
    let sandbox = sandbox();
    let gate = gate(&sandbox);
    let job = sandbox.fixture_job(&["leaves-child", "0", &gate]);
    sandbox.wait_for_end(job);
    open_gate(&gate);
    eventually("the child's words are in the log", TEST_TIMEOUT, || {
        match sandbox.run(["read", "1"]).ok().text() {
            text if text.ends_with("still here\n") => Ok(()),
            text => Err(text),
        }
    });
    open_gate(&gate);
    sandbox.nothing_runs();
    assert_eq!(sandbox.info(job)["status"], "completed");
}

#[test]
fn signals_by_name_reach_the_job_and_the_receipt() {
    let sandbox = sandbox();
    for (handle, given, named, number) in
        [(1, "HUP", "SIGHUP", 1), (2, "sigusr1", "SIGUSR1", 10), (3, "9", "SIGKILL", 9)]
    {
        let job = sandbox.fixture_job(&["says-and-sleeps", "up"]);
        assert_eq!(job, handle);
        sandbox.wait_for_text(job, "up");
        let sent = sandbox.json(["kill", &job.to_string(), "--signal", given]);
        assert_eq!(sent["signalled"], 1, "{sent}");
        let ended = sandbox.wait_for_end(job);
        assert_eq!((&ended["status"], &ended["signal"]), (&"killed".into(), &named.into()), "{ended}");
        let by = ended["ended_by"].as_str().unwrap();
        assert_eq!(by, format!("by kill ({named}) from session test"), "{number}");
    }
}

#[test]
fn a_signal_from_outside_is_named_as_such() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says-and-sleeps", "up"]);
    sandbox.wait_for_text(job, "up");
    outlast_testkit::processes::send(&sandbox.process(job, "process"), rustix::process::Signal::KILL);
    let ended = sandbox.wait_for_end(job);
    assert_eq!(ended["signal"], "SIGKILL", "{ended}");
    assert!(ended["ended_by"].as_str().unwrap().contains("outside"), "{ended}");
}

#[test]
fn a_stopped_job_shows_it_and_can_be_continued_and_ended() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says-and-sleeps", "up"]);
    sandbox.wait_for_text(job, "up");
    let activity = |wanted: &str| {
        eventually(wanted, TEST_TIMEOUT, || match sandbox.json(["jobs"])["jobs"][0].clone() {
            row if (row["activity"] == "stopped") == (wanted == "stopped") => Ok(()),
            row => Err(row),
        });
    };
    sandbox.json(["kill", "1", "--signal", "STOP"]);
    activity("stopped");
    assert!(sandbox.run(["jobs"]).ok().text().contains("  stopped  "));
    sandbox.json(["kill", "1", "--signal", "CONT"]);
    activity("continued");
    sandbox.json(["kill", "1", "--signal", "STOP"]);
    activity("stopped");
    let killed = sandbox.json(["kill", "1", "--grace", "20s"]);
    assert_eq!(killed["signal"], "SIGTERM", "a stopped job can end by itself: {killed}");
}

#[test]
fn several_jobs_at_once_and_none_when_one_is_unknown() {
    let sandbox = sandbox();
    for _ in 0..2 {
        sandbox.fixture_job(&["says-and-sleeps", "up"]);
    }
    sandbox.run(["kill", "1", "7", "2"]).code(3).says("7");
    assert_eq!(sandbox.json(["jobs", "--running"])["jobs"].as_array().unwrap().len(), 2);
    let ran = sandbox.run(["kill", "1", "2"]).ok();
    assert_eq!(ran.text().lines().count(), 2, "{ran}");
    sandbox.nothing_runs();
}

#[test]
fn two_who_kill_at_once_are_both_answered() {
    let sandbox = sandbox();
    sandbox.fixture_job(&["family"]);
    sandbox.wait_for_text(1, "family complete");
    let calls: Vec<_> = (0..4).map(|_| sandbox.call(["--json", "kill", "1"]).spawn()).collect();
    for call in calls {
        let killed = call.wait().ok().json();
        assert_eq!(
            (&killed["status"], &killed["survivors"]),
            (&"killed".into(), &serde_json::json!([])),
            "{killed}"
        );
    }
}

#[test]
fn what_is_never_the_same_process_for_long_is_ended_too() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["respawns"]);
    let ended = sandbox.wait_for_end(job);
    assert_eq!(ended["exit_code"], 0, "the command itself ends at once: {ended}");
    eventually("it has got going", TEST_TIMEOUT, || match sandbox.run(["read", "1"]).ok().text() {
        text if text.contains("twenty generations") => Ok(()),
        text => Err(text),
    });
    let killed = sandbox.json(["kill", "1"]);
    assert_eq!(killed["survivors"], serde_json::json!([]), "{killed}");
    let left =
        sandbox.processes().into_iter().filter(|process| process.comm == "fixture").collect::<Vec<_>>();
    assert!(left.is_empty(), "{left:?}");
    sandbox.nothing_runs();
}
