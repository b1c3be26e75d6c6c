//! Orders to wake somebody outlast whoever was to deliver them, and are delivered at least once or said to have failed.

use std::path::Path;

use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually};
use serde_json::Value;

use super::{entries, entry, sandbox};

/// A wake that waits for a gate, and then adds the event to a file.
fn gated(sandbox: &Sandbox) -> String {
    let root = sandbox.root().display();
    // A pid for each try: which of them is at work can be seen from outside.
    format!(
        "exec:echo $PPID >> {root}/tries; while ! test -e {root}/gate; do sleep 0.05; done; cat >> {root}/got"
    )
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(ToOwned::to_owned).collect()
}

/// The helper of the last try, once there have been so many.
fn helper(sandbox: &Sandbox, tries: usize) -> i32 {
    eventually("a try", TEST_TIMEOUT, || {
        let seen = lines(&sandbox.root().join("tries"));
        if seen.len() >= tries { Ok(seen[tries - 1].parse().unwrap()) } else { Err(seen) }
    })
}

fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

fn got(sandbox: &Sandbox) -> Vec<Value> {
    eventually("a delivery", TEST_TIMEOUT, || {
        let got = lines(&sandbox.root().join("got"));
        if got.is_empty() { Err((got, entries(sandbox))) } else { Ok(got) }
    })
    .iter()
    .map(|line| serde_json::from_str(line).unwrap())
    .collect()
}

fn waiting(sandbox: &Sandbox) -> usize {
    sandbox.json(["wakes", "list"])["wakes"].as_array().unwrap().len()
}

#[test]
fn a_killed_helper_loses_nothing_and_its_repeat_is_marked() {
    let sandbox = sandbox();
    let job = sandbox.start(["--wake", &gated(&sandbox), "true"]);
    sandbox.wait_for_end(job);
    kill(helper(&sandbox, 1));
    let second = helper(&sandbox, 2);
    std::fs::write(sandbox.root().join("gate"), "").unwrap();
    let got = got(&sandbox);
    // The command of the dead helper may have gone on by itself: at least once, and the repeat says so.
    let repeat = got.iter().find(|event| event["again"] == true);
    assert!(repeat.is_some() || got.len() == 1, "{got:?}");
    assert!(got.iter().all(|event| event["n"] == 1 && event["event"] == "exit"), "{got:?}");
    assert!(second > 0 && !entries(&sandbox).iter().any(|entry| entry["event"] == "wake_failed"));
    sandbox.nothing_runs();
    assert_eq!(waiting(&sandbox), 0);
}

#[test]
fn the_keeper_stays_until_its_wakes_are_final_and_its_heir_goes_on() {
    let sandbox = sandbox();
    let job = sandbox.start(["--wake", &gated(&sandbox), "true"]);
    sandbox.wait_for_end(job);
    helper(&sandbox, 1);
    let keeper = sandbox.pid(job, "keeper");
    kill(keeper);
    eventually("the heir", TEST_TIMEOUT, || {
        let info = sandbox.info(job);
        if info["takeovers"] == 1 { Ok(()) } else { Err(info) }
    });
    // The helper is no part of the job, for the heir too.
    let answer = sandbox.json(["kill", &job.to_string()]);
    assert!(answer["signalled"].as_u64().unwrap_or(0) == 0, "{answer}");
    std::fs::write(sandbox.root().join("gate"), "").unwrap();
    assert_eq!(got(&sandbox)[0]["event"], "exit");
    sandbox.nothing_runs();
    assert_eq!((lines(&sandbox.root().join("tries")).len(), waiting(&sandbox)), (1, 0));
    assert_eq!(entries(&sandbox).iter().filter(|entry| entry["event"] == "exit").count(), 1);
}

#[test]
fn what_everybody_left_behind_is_delivered_by_the_next_process_of_the_home() {
    let sandbox = sandbox();
    let job = sandbox.start(["--wake", &gated(&sandbox), "true"]);
    sandbox.wait_for_end(job);
    let helper = helper(&sandbox, 1);
    for who in ["heir", "keeper"] {
        kill(sandbox.pid(job, who));
    }
    kill(helper);
    std::fs::write(sandbox.root().join("gate"), "").unwrap();
    eventually("the next process goes on with it", TEST_TIMEOUT, || {
        sandbox.json(["jobs"]);
        let got = lines(&sandbox.root().join("got"));
        let of_small = got.iter().any(|line| line.contains("\"environment\":\"small\""));
        if of_small { Ok(()) } else { Err(got) }
    });
    eventually("it is final", TEST_TIMEOUT, || if waiting(&sandbox) == 0 { Ok(()) } else { Err(()) });
    sandbox.nothing_runs();
}

#[test]
fn a_lost_job_is_told_and_wakes_by_whoever_finds_it_and_once() {
    let sandbox = sandbox();
    std::fs::write(sandbox.root().join("gate"), "").unwrap();
    let job = sandbox.start(["--wake", &gated(&sandbox), "sleep 1000"]);
    let command = sandbox.pid(job, "process");
    // Whom to wake is written down before the command begins: both may be killed at once after the answer.
    assert!(sandbox.job(job).join("wakes.json").exists());
    for who in ["heir", "keeper"] {
        kill(sandbox.pid(job, who));
    }
    kill(command);
    for _ in 0..3 {
        sandbox.json(["jobs"]);
    }
    let told = entry(&sandbox, "exit");
    assert!(told["text"].as_str().unwrap().starts_with("lost"), "{told}");
    let got = got(&sandbox);
    assert_eq!((got.len(), &got[0]["detail"]["status"]), (1, &"lost".into()), "{got:?}");
    assert_eq!(entries(&sandbox).iter().filter(|entry| entry["event"] == "exit").count(), 1);
    eventually("it is final", TEST_TIMEOUT, || if waiting(&sandbox) == 0 { Ok(()) } else { Err(()) });
}

#[test]
fn one_that_was_given_up_can_be_tried_again_and_one_that_waits_cancelled() {
    let sandbox = sandbox();
    let root = sandbox.root().display();
    let wake = format!("exec:test -e {root}/gate && cat >> {root}/got");
    let job = sandbox.start(["--wake", &wake, "true"]);
    let failed = entry(&sandbox, "wake_failed");
    let number = format!("{job}.1");
    assert_eq!(failed["more"], format!("outlast wakes retry {number}"), "{failed}");
    sandbox.nothing_runs();
    let list = sandbox.json(["wakes", "list"]);
    assert_eq!(
        (&list["wakes"][0]["state"], &list["wakes"][0]["tries"]),
        (&"failed".into(), &5.into()),
        "{list}"
    );
    std::fs::write(sandbox.root().join("gate"), "").unwrap();
    sandbox.run(["wakes", "retry", &number]).ok();
    assert_eq!(got(&sandbox).len(), 1);
    eventually("it is final", TEST_TIMEOUT, || if waiting(&sandbox) == 0 { Ok(()) } else { Err(()) });
    sandbox.run(["wakes", "retry", &number]).code(2).says("there is no wake");
    sandbox.run(["wakes", "pause"]).ok();
    let job = sandbox.start(["--wake", &wake, "true"]);
    eventually("it waits", TEST_TIMEOUT, || if waiting(&sandbox) == 1 { Ok(()) } else { Err(()) });
    sandbox.run(["wakes", "cancel", &format!("{job}.1")]).ok();
    sandbox.nothing_runs();
    assert_eq!((got(&sandbox).len(), waiting(&sandbox)), (1, 0));
}
