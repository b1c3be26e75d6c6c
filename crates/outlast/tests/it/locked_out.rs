//! Ending a job always works: with all places at its keeper taken, and with a keeper that is stopped.

use std::time::{Duration, Instant};

use outlast_testkit::{Sandbox, Socket, TEST_TIMEOUT, eventually};
use serde_json::json;

use crate::{gate, open_gate, sandbox};

/// More clients than a keeper takes.
const CROWD: usize = 300;

/// A job that says when it gets `SIGINT`, and ends only when it is killed.
fn job_that_hears_int(sandbox: &Sandbox) -> u64 {
    let job = sandbox.start(["trap 'echo INT heard' INT; echo up; while :; do read -t 1 x; done"]);
    sandbox.wait_for_text(job, "up");
    job
}

fn is_signalled_and_killed(sandbox: &Sandbox, job: u64) {
    let job = job.to_string();
    let signalled = sandbox.json(["kill", &job, "-s", "INT"]);
    assert!(signalled["signalled"].as_u64() >= Some(1), "{signalled}");
    eventually("the job heard the signal", TEST_TIMEOUT, || {
        let log = String::from_utf8_lossy(&sandbox.log(1)).into_owned();
        if log.contains("INT heard") { Ok(()) } else { Err(log) }
    });
    let killed = sandbox.json(["kill", &job]);
    assert_eq!((&killed["status"], &killed["survivors"]), (&"killed".into(), &json!([])), "{killed}");
    assert_eq!(sandbox.info(1)["ended_by"]["who"], "kill", "the keeper did it, and knows who asked");
}

#[test]
fn idle_connections_do_not_keep_a_job_from_being_killed() {
    let sandbox = sandbox();
    let job = job_that_hears_int(&sandbox);
    let crowd: Vec<Socket> = (0..CROWD).map(|_| Socket::connect(&sandbox.job(job)).unwrap()).collect();
    // Whoever wants anything else is told why not, and at once.
    let asked = Instant::now();
    sandbox.run(["screen", "1"]).code(1).says("256 clients").says("outlast kill 1");
    assert!(asked.elapsed() < Duration::from_secs(9), "{:?}", asked.elapsed());
    is_signalled_and_killed(&sandbox, job);
    drop(crowd);
    sandbox.nothing_runs();
}

#[test]
fn waits_do_not_keep_a_job_from_being_killed() {
    let sandbox = sandbox();
    let job = job_that_hears_int(&sandbox);
    let mut crowd: Vec<Socket> = (0..CROWD).map(|_| Socket::connect(&sandbox.job(job)).unwrap()).collect();
    for socket in &mut crowd {
        // Past the limit the connection may be closed already.
        let _ = socket.say(b"{\"id\":7,\"verb\":\"wait\",\"exit\":true}\n");
    }
    is_signalled_and_killed(&sandbox, job);
    let mut answered = 0;
    for socket in &mut crowd {
        let mut lines = std::iter::from_fn(|| socket.hear()).skip(1);
        match lines.next() {
            Some(line) if line["reply"]["waited"]["reason"] == "exit" => answered += 1,
            Some(line) => assert_eq!(line["reply"]["error"]["kind"], "keeper", "{line}"),
            None => {}
        }
    }
    assert!(answered >= 250, "{answered} of those who waited were told of the end");
    sandbox.nothing_runs();
}

/// Starts a job and lets it stop its own keeper. `GO` in its command waits until it may.
fn job_that_stops_its_keeper(sandbox: &Sandbox, command: &str) -> u64 {
    let gate = gate(sandbox);
    let job = sandbox.start([command.replace("GO", &format!("cat '{gate}'"))]);
    let keeper = sandbox.pid(job, "keeper");
    open_gate(&gate);
    eventually("the keeper is stopped", TEST_TIMEOUT, || {
        let stat = std::fs::read_to_string(format!("/proc/{keeper}/stat")).unwrap();
        if stat.contains(") T ") { Ok(()) } else { Err(stat) }
    });
    job
}

#[test]
fn a_job_that_stops_its_keeper_is_killed_all_the_same() {
    let sandbox = sandbox();
    job_that_stops_its_keeper(&sandbox, "GO; kill -STOP $PPID; sleep 1000");
    let killed = sandbox.json(["kill", "1"]);
    assert_eq!((&killed["status"], &killed["survivors"]), (&"killed".into(), &json!([])), "{killed}");
    assert!(killed["note"].as_str().unwrap().contains("keeper was stopped"), "{killed}");
    sandbox.nothing_runs();
}

#[test]
fn a_keeper_that_stays_silent_is_done_without() {
    let sandbox = sandbox();
    // Deaf to everything but SIGKILL, with a child in a session of its own, and it never lets the keeper run.
    let command = "trap '' TERM HUP; GO; setsid sleep 1000 & while :; do kill -STOP $PPID; done";
    job_that_stops_its_keeper(&sandbox, command);
    let killed = sandbox.json(["kill", "1"]);
    assert_eq!(killed["survivors"], json!([]), "{killed}");
    assert!(killed["note"].is_string(), "it says that the keeper had to be passed by: {killed}");
    assert_eq!(sandbox.wait_for_end(1)["status"], "killed");
    sandbox.nothing_runs();
}
