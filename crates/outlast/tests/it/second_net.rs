//! Keepers that die again and again: what goes on, what a receipt then says, and what is found of a job that nobody keeps.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use outlast_testkit::processes::{self, kill_dash_nine};
use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually};
use rustix::process::Signal;
use serde_json::Value;

use crate::{all_jobs, assert_same, counted, sandbox};

const LINES: u64 = 1500;

/// Kills the keeper of a job, and waits until another has taken over; or until the job has ended.
fn kill_keeper(sandbox: &Sandbox, job: u64) {
    let before = sandbox.info(job);
    kill_dash_nine(&sandbox.process(job, "keeper"));
    eventually("another took over", TEST_TIMEOUT, || {
        let info = sandbox.info(job);
        let taken = info["takeovers"].as_u64() > before["takeovers"].as_u64();
        if taken || info["ended_at"].is_number() { Ok(()) } else { Err(info) }
    });
}

/// Symptom that this guards against: after one take-over there was nobody left to take over, and the second kill lost the job.
#[test]
fn a_job_on_pipes_goes_on_however_often_its_keeper_is_killed() {
    let sandbox = sandbox();
    let (fixture, lines) = (sandbox.fixture(), LINES.to_string());
    let job = sandbox.start(["--pipe", "--", &fixture, "counts", &lines, "20", "40", "7"]);
    for kills in 1..=4 {
        eventually("it prints on", TEST_TIMEOUT, || match sandbox.log_len(job) {
            grown if grown >= kills * 1000 => Ok(()),
            short => Err(short),
        });
        kill_keeper(&sandbox, job);
    }
    let ended = sandbox.wait_for_end(job);
    assert_eq!((&ended["exit_code"], &ended["status"]), (&7.into(), &"failed".into()), "{ended}");
    let wanted = String::from_utf8(counted(LINES)).unwrap().replace("\r\n", "\n");
    assert_same(&sandbox.log(job), wanted.as_bytes());
    assert_eq!(sandbox.info(job)["takeovers"], 4);
    sandbox.nothing_runs();
}

/// The kernel hangs up a terminal when the leader of its session dies, and an heir leads it.
#[test]
fn a_job_on_a_terminal_then_ends_by_hang_up_and_the_receipt_says_so() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says-and-sleeps", "up"]);
    sandbox.wait_for_text(job, "up");
    kill_keeper(&sandbox, job);
    assert!(sandbox.info(job)["heir"].is_object(), "it has a second heir");
    kill_keeper(&sandbox, job);
    let ended = sandbox.wait_for_end(job);
    assert_eq!((&ended["status"], &ended["signal"]), (&"killed".into(), &"SIGHUP".into()), "{ended}");
    assert!(ended["ended_by"].as_str().unwrap().contains("heir"), "{ended}");
    assert_eq!(sandbox.events(job).iter().filter(|event| event["event"] == "exit").count(), 1);
    sandbox.nothing_runs();
}

#[test]
fn a_job_that_nobody_is_a_parent_of_can_be_typed_at_and_killed() {
    let sandbox = sandbox();
    let job = sandbox.start(["--pipe", "setsid sleep 1000 </dev/null >/dev/null 2>&1 & cat; sleep 1000"]);
    let name = job.to_string();
    kill_keeper(&sandbox, job);
    kill_keeper(&sandbox, job);
    sandbox.run(["send", &name, "hello"]).ok();
    sandbox.wait_for_text(job, "hello");
    sandbox.run(["send", &name, "--eof"]).ok();
    let killed = sandbox.json(["kill", &name]);
    assert_eq!(killed["survivors"], serde_json::json!([]), "{killed}");
    assert_eq!(sandbox.info(job)["ended_by"]["who"], "kill");
    sandbox.nothing_runs();
}

/// The process that a job which has ended left running.
fn left_behind(sandbox: &Sandbox, job: u64) -> outlast_pty::procfs::Proc {
    let left = eventually("its receipt names what it left", TEST_TIMEOUT, || {
        let info = sandbox.info(job);
        let left = info["left_behind"][0].clone();
        if left.is_object() { Ok(left) } else { Err(info) }
    });
    let pid = i32::try_from(left["pid"].as_i64().unwrap()).unwrap();
    processes::alive(pid, left["started"].as_u64().unwrap()).unwrap()
}

/// Symptom that this guards against: keepers that stay for ever. All was done and told, what the job had left ended
/// together with its keeper, and nothing woke the one that took over any more.
#[test]
fn one_that_takes_over_when_all_is_done_leaves() {
    let sandbox = sandbox();
    let job = sandbox.start(["setsid sleep 1000 </dev/null >/dev/null 2>&1 & sleep 0.2; exit 3"]);
    let left = left_behind(&sandbox, job);
    let keeper = sandbox.process(job, "keeper");
    processes::send(&keeper, Signal::STOP);
    processes::send(&left, Signal::KILL);
    processes::send(&keeper, Signal::KILL);
    sandbox.nothing_runs();
    assert_eq!(sandbox.info(job)["code"], 3);
}

/// Symptom that this guards against: what a job had left ended, and its keeper, who was not the parent of that, was not told.
#[test]
fn one_that_is_nobodys_parent_leaves_with_the_last_process_of_its_job() {
    let sandbox = sandbox();
    let job = sandbox.start(["--pipe", "setsid sleep 1000 </dev/null >/dev/null 2>&1 & cat; exit 3"]);
    kill_keeper(&sandbox, job);
    kill_keeper(&sandbox, job);
    sandbox.run(["send", &job.to_string(), "--eof"]).ok();
    processes::send(&left_behind(&sandbox, job), Signal::KILL);
    sandbox.nothing_runs();
    assert_eq!(sandbox.info(job)["code"], 3);
}

/// Symptom that this guards against: keeper and client are killed while the job is being ended, and it runs on for ever.
#[test]
fn an_heir_goes_on_with_a_kill_that_had_begun() {
    let sandbox = sandbox();
    let job = sandbox.start(["trap '' TERM HUP; echo up; while :; do sleep 0.1; done"]);
    sandbox.wait_for_text(job, "up");
    let killing = sandbox.call(["kill", &job.to_string(), "--grace", "3s"]).spawn();
    eventually("the kill has begun", TEST_TIMEOUT, || match sandbox.info(job) {
        info if info["ending"].is_object() => Ok(()),
        info => Err(info),
    });
    let keeper = sandbox.process(job, "keeper");
    killing.kill_dash_nine();
    kill_dash_nine(&keeper);
    let ended = sandbox.wait_for_end(job);
    assert_eq!(ended["signal"], "SIGKILL", "{ended}");
    assert_eq!(sandbox.info(job)["ended_by"]["who"], "kill");
    sandbox.nothing_runs();
}

/// Symptom that this guards against: `kill` of a lost job leaves what has left its session and holds none of its ends.
#[test]
fn what_a_lost_job_left_is_found_by_its_mark() {
    let sandbox = sandbox();
    let job = sandbox.start(["setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo up; sleep 1000"]);
    sandbox.wait_for_text(job, "up");
    let both = ["heir", "keeper"].map(|role| sandbox.process(job, role));
    // Stopped first, so that neither sees the other die.
    both.iter().for_each(|process| processes::send(process, Signal::STOP));
    both.iter().for_each(kill_dash_nine);
    let left = eventually("the stray is listed", TEST_TIMEOUT, || {
        let jobs = all_jobs(&sandbox);
        let left = jobs[0]["left_behind"].as_array().cloned().unwrap_or_default();
        if left.iter().any(|process| process["program"] == "sleep") { Ok(left) } else { Err(jobs) }
    });
    let killed = sandbox.json(["kill", &job.to_string()]);
    assert_eq!(killed["survivors"], Value::Array(Vec::new()), "{killed} of {left:?}");
    sandbox.nothing_runs();
}

/// Symptom that this guards against: where `/proc` hides other users' processes, `kill` of a lost job says that nothing is left of it.
#[test]
fn kill_says_what_it_cannot_see_where_proc_hides_processes() {
    let sandbox = sandbox();
    if !rustix::process::geteuid().is_root() || !outlast_testkit::has("setpriv") {
        outlast_testkit::left_out("only root can run something as another user", "run it as root");
        return;
    }
    std::fs::set_permissions(sandbox.root(), std::fs::Permissions::from_mode(0o711)).unwrap();
    let home = sandbox.root().join("another");
    std::fs::create_dir(&home).unwrap();
    std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o700)).unwrap();
    chown(&home, Some(65534), Some(65534)).unwrap();
    let run = |arguments: &str| {
        let user = "setpriv --reuid 65534 --regid 65534 --clear-groups";
        let hidden = format!("mount -t proc -o hidepid=2 proc /proc && exec {user} \"$PROGRAM\" {arguments}");
        let call = sandbox.shell(&format!("exec unshare -m sh -c '{hidden}'"));
        call.env("OUTLAST_HOME", &home).cwd("/").run()
    };
    run("run -d \"sleep 1000\"").ok();
    let info: Value = serde_json::from_slice(&std::fs::read(home.join("jobs/1/info.json")).unwrap()).unwrap();
    let both = ["heir", "keeper"].map(|role| i32::try_from(info[role]["pid"].as_i64().unwrap()).unwrap());
    let both = both.map(|pid| rustix::process::Pid::from_raw(pid).unwrap());
    for signal in [Signal::STOP, Signal::KILL] {
        both.iter().for_each(|pid| rustix::process::kill_process(*pid, signal).unwrap());
    }
    let line = run("kill 1").ok().says("can't be seen here").text();
    assert!(!line.contains("nothing is left"), "{line}");
    sandbox.nothing_runs();
}

/// Symptom that this guards against: a start that nobody heard of, or that was reported failed, happens later, and a second
/// one runs the command twice.
#[test]
fn what_nobody_waits_for_any_more_is_not_started() {
    let sandbox = sandbox();
    let in_work = |name: &str| sandbox.work().join(name);
    // A keeper that begins when it is told to: its order lies ready by then.
    let keeper = in_work("keeper");
    let program = sandbox.program().display();
    let work = sandbox.work().display().to_string();
    let script = format!(
        "#!/bin/sh\ntouch '{work}/here'\nuntil test -e '{work}/go'; do sleep 0.02; done\nexec '{program}' \"$@\"\n"
    );
    std::fs::write(&keeper, script).unwrap();
    std::fs::set_permissions(&keeper, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (keeper, home) = (keeper.display().to_string(), sandbox.home().display().to_string());
    let made = in_work("made");
    let line = format!("touch '{}'", made.display());
    let client =
        sandbox.call_other(Path::new(&sandbox.fixture()), ["starts-a-job", &keeper, &home, &line]).spawn();
    eventually("the keeper is at its gate, and the client waits for its answer", TEST_TIMEOUT, || {
        let state = std::fs::read_to_string(format!("/proc/{}/stat", client.pid())).unwrap();
        let sleeps = state.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" S"));
        if sleeps && in_work("here").exists() { Ok(()) } else { Err(state) }
    });
    client.kill_dash_nine();
    std::fs::write(in_work("go"), "").unwrap();
    sandbox.nothing_runs();
    assert!(!made.exists(), "nobody was told that it was started");
    let jobs = all_jobs(&sandbox);
    assert!(jobs.iter().all(|job| job["status"] != "running"), "{jobs:?}");
}

/// Symptom that this guards against: bytes or a request that kill a keeper kill every heir too, and the job is lost. The test build
/// dies of a text that is planted for this.
#[test]
fn what_kills_a_keeper_does_not_kill_its_heir() {
    let sandbox = sandbox();
    let poison = "OUTLAST-PLANTED-PANIC";
    let job = sandbox
        .start(["--pipe", "echo before; read x; echo OUTLAST-PLANTED-\"PANIC\"; read y; echo after; exit 6"]);
    let name = job.to_string();
    sandbox.wait_for_text(job, "before");
    sandbox.run(["send", &name, "x", "--no-wait"]).ok();
    let taken = || match sandbox.info(job) {
        info if info["takeovers"] == 1 => Ok(()),
        info => Err(info),
    };
    eventually("its heir took over", TEST_TIMEOUT, taken);
    sandbox.run(["send", &name, "y", "--no-wait"]).ok();
    assert_eq!(sandbox.wait_for_end(job)["exit_code"], 6);
    let log = String::from_utf8(sandbox.log(job)).unwrap();
    assert!(log.contains(poison), "the bytes are in the log: {log}");
    let text = sandbox.run(["read", &name]).ok().text();
    assert!(text.contains("before") && text.contains("after") && !text.contains(poison), "{text}");
    let took_over = sandbox.events(job).into_iter().find(|event| event["event"] == "took_over").unwrap();
    assert!(took_over["unreadable"].is_array(), "{took_over}");
    assert_eq!(sandbox.info(job)["takeovers"], 1, "its heir lives on");
}

#[test]
fn a_request_that_kills_a_keeper_is_answered_by_its_heir_with_an_error() {
    let sandbox = sandbox();
    let job = sandbox.start(["read x"]);
    let request =
        r#"{"key":"poison-1","id":3,"verb":"signal","signal":"OUTLAST-PLANTED-PANIC","session":"t"}"#;
    let mut socket = sandbox.socket(job);
    socket.say(format!("{request}\n").as_bytes()).unwrap();
    eventually("its heir took over", TEST_TIMEOUT, || match sandbox.info(job) {
        info if info["takeovers"] == 1 => Ok(()),
        info => Err(info),
    });
    let mut again = sandbox.socket(job);
    again.say(format!("{request}\n").as_bytes()).unwrap();
    let answer = again.hear().expect("an answer")["reply"].clone();
    assert_eq!((&answer["id"], &answer["error"]["kind"]), (&3.into(), &"outcome_unknown".into()), "{answer}");
    assert_eq!(sandbox.info(job)["takeovers"], 1, "its heir lives on");
}
