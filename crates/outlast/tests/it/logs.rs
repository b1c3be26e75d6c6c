//! `outlast logs`: once, and as it comes.

use outlast_testkit::{TEST_TIMEOUT, eventually};

use crate::sandbox;

#[test]
fn logs_shows_what_was_printed() {
    let sandbox = sandbox();
    let job = sandbox.start([r"printf '\033[31mred\033[0m\n50%%\r100%%\nlast'"]);
    sandbox.wait_for_end(job);
    assert_eq!(sandbox.run(["logs", "1"]).ok().text(), "red\n100%\nlast\n");
    assert_eq!(sandbox.run(["logs", "--tail", "1", "1"]).ok().text(), "last\n");
    assert_eq!(sandbox.run(["logs", "--raw", "1"]).ok().stdout, sandbox.log(1));
}

#[test]
fn following_shows_each_line_as_it_comes_and_ends_with_the_job() {
    let sandbox = sandbox();
    let job = sandbox.start(["--pipe", "--", &sandbox.fixture(), "says-when-told", "one", "two", "three"]);
    let mut following = sandbox.call(["logs", "-f", &job.to_string()]).spawn();
    let mut late = sandbox.call(["logs", "-f", "--tail", "0", &job.to_string()]).spawn();
    for (i, shown) in ["one\n", "one\ntwo\n"].into_iter().enumerate() {
        sandbox.run(["send", "1", "", "--no-wait"]).ok();
        eventually("the line is shown", TEST_TIMEOUT, || match following.stdout_so_far() {
            seen if seen == shown.as_bytes() => Ok(()),
            seen => Err(String::from_utf8(seen).unwrap()),
        });
        assert!(following.is_running() && late.is_running(), "round {i}");
    }
    sandbox.run(["send", "1", "", "--no-wait"]).ok();
    assert_eq!(following.wait().ok().text(), "one\ntwo\nthree\n");
    assert!(late.wait().ok().text().ends_with("three\n"));
}

#[test]
fn a_follower_whose_reader_is_gone_ends() {
    let sandbox = sandbox();
    sandbox.start(["--", &sandbox.fixture(), "counts", "100000", "10", "1", "0"]);
    // `head` takes one line and leaves.
    let ran = sandbox.shell("\"$PROGRAM\" logs -f 1 | head -n 1").run().ok();
    assert_eq!(ran.text(), "line 0\n");
    assert_eq!(sandbox.info(1)["status"], "running", "the job goes on");
}

#[test]
fn several_jobs_are_shown_line_by_line_in_the_order_of_their_times() {
    let sandbox = sandbox();
    let gate = crate::gate(&sandbox);
    sandbox.start(["--name", "web", &format!("echo one; cat {gate}; echo three")]);
    sandbox.wait_for_text(1, "one");
    sandbox.run(["run", "--name", "worker", "--pipe", "echo two >&2"]).ok();
    crate::open_gate(&gate);
    sandbox.wait_for_end(1);
    let text = sandbox.run(["logs", "web", "worker"]).ok().text();
    assert_eq!(text, "web    | one\nworker | two\nweb    | three\n");
    assert_eq!(sandbox.run(["logs", "-n", "1", "1", "2"]).ok().text(), "worker | two\nweb    | three\n");
    let json = sandbox.run(["--json", "logs", "1", "2"]).ok().text();
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[1]["line"], &lines[1]["stream"]), (&"two".into(), &"stderr".into()), "{json}");
    sandbox.run(["logs", "--raw", "1", "2"]).code(2);
}

#[test]
fn several_jobs_are_followed_to_their_ends() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture();
    sandbox.start(["--name", "a", "--pipe", "--", &fixture, "says-when-told", "one"]);
    sandbox.start(["--name", "b", "--pipe", "--", &fixture, "says-when-told", "two"]);
    let following = sandbox.call(["logs", "-f", "a", "b"]).spawn();
    sandbox.run(["send", "b", "", "--no-wait"]).ok();
    eventually("the line of the second", TEST_TIMEOUT, || match following.stdout_so_far() {
        seen if seen == b"b | two\n" => Ok(()),
        seen => Err(String::from_utf8(seen).unwrap()),
    });
    sandbox.run(["send", "a", "", "--no-wait"]).ok();
    assert_eq!(following.wait().ok().text(), "b | two\na | one\n");
}

/// Times are those at which a line was printed, and what is older can be left out.
#[test]
fn lines_have_their_times() {
    let sandbox = sandbox();
    sandbox.run(["run", "echo one"]).ok();
    let text = sandbox.call(["logs", "-t"]).env("TZ", "UTC").run().ok().text();
    let (time, line) = text.trim_end().split_once(' ').unwrap();
    assert_eq!(line, "one");
    let at = seconds_of_day(time);
    let started = sandbox.json(["show"])["started_at"].as_u64().unwrap() / 1000;
    assert!(at.abs_diff(started % 86400) <= 1, "{text} but it was started at {started}");
    assert_eq!(sandbox.run(["logs", "--since", "1h"]).ok().text(), "one\n");
    // As if it had been printed two hours ago.
    let mut info = sandbox.info(1);
    info["created_at"] = (info["created_at"].as_u64().unwrap() - 7_200_000).into();
    std::fs::write(sandbox.job(1).join("info.json"), info.to_string()).unwrap();
    assert_eq!(sandbox.run(["logs", "--since", "1h"]).ok().text(), "");
    assert_eq!(sandbox.run(["logs", "--since", "3h"]).ok().text(), "one\n");
}

/// Seconds of the day, of a time such as `2026-11-17T10:44:48.178+00:00`.
fn seconds_of_day(time: &str) -> u64 {
    assert!(time.ends_with("+00:00"), "{time}");
    let clock: Vec<u64> = time[11..19].split(':').map(|part| part.parse().unwrap()).collect();
    clock[0] * 3600 + clock[1] * 60 + clock[2]
}
