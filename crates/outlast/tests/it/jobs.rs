//! `outlast jobs`: what needs attention comes first.

use crate::sandbox;

#[test]
fn an_empty_home_has_no_jobs() {
    let sandbox = sandbox();
    let ran = sandbox.run(["jobs"]).ok().says("no jobs");
    assert!(ran.stdout.is_empty(), "stdout is data: {ran}");
    assert_eq!(sandbox.json(["jobs"]), serde_json::json!({"jobs": []}));
}

#[test]
fn what_asks_comes_before_what_runs_before_what_failed() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture();
    sandbox.start(["--name", "good", "--", &fixture, "exits", "0"]);
    sandbox.start(["--name", "bad", "--", &fixture, "exits", "1"]);
    sandbox.start(["--name", "asking", "--", &fixture, "asks"]);
    sandbox.start(["--name", "sleeping", "--", &fixture, "says-and-sleeps", "up"]);
    sandbox.wait_for_end(1);
    sandbox.wait_for_end(2);
    sandbox.json(["wait", "asking", "--input", "--deadline", "30s"]);
    sandbox.wait_for_text(4, "up");
    let rows = sandbox.json(["jobs"])["jobs"].as_array().unwrap().clone();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["asking", "sleeping", "bad", "good"]);
    assert_eq!(rows[0]["awaiting_input"]["prompt"], "What is your name?", "{}", rows[0]);
    assert_eq!(rows[1]["last_line"], "up", "{}", rows[1]);
    assert_eq!(rows[2]["exit_code"], 1, "{}", rows[2]);
    for row in &rows {
        for field in [
            "handle",
            "status",
            "command",
            "session",
            "age_ms",
            "duration_ms",
            "started_at",
            "pinned",
            "log_bytes",
            "ports",
            "cwd",
            "mine",
        ] {
            assert!(!row[field].is_null(), "{field}: {row}");
        }
    }
    let table = sandbox.run(["jobs"]).ok().text();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 5, "{table}");
    assert!(lines[0].starts_with("JOB") && lines[1].contains("asks for input  "), "{table}");
    assert!(lines[1].contains("? What is your name?"), "{table}");
    assert!(lines[3].contains("failed (1)"), "{table}");
    assert!(!table.contains('\u{1b}'), "no colours into a file: {table}");
}

#[test]
fn a_command_with_control_characters_does_no_harm() {
    let sandbox = sandbox();
    sandbox.start(["--", &sandbox.fixture(), "says-and-sleeps", "\u{1b}]0;title\u{7}\u{1b}[2Jx\ny"]);
    sandbox.wait_for_text(1, "y");
    let table = sandbox.run(["jobs"]).ok().text();
    assert!(!table.contains('\u{1b}') && table.lines().count() == 2, "{table:?}");
}

#[test]
fn ports_are_listed() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["listens"]);
    let answer = sandbox.json(["wait", &job.to_string(), "--port", "--deadline", "30s"]);
    assert_eq!(answer["reason"], "port", "{answer}");
    let said = sandbox.wait_for_text(job, r"listening on (\d+)")["match"]["captures"][0].clone();
    assert_eq!(answer["port"].to_string(), said.as_str().unwrap());
    assert_eq!(sandbox.json(["jobs"])["jobs"][0]["ports"], serde_json::json!([answer["port"]]));
}

/// Keepers are asked all at once: those that do not answer cost one moment together, not one each.
#[test]
fn keepers_that_are_stopped_do_not_hold_up_the_list() {
    let sandbox = sandbox();
    let jobs: Vec<u64> = (0..6).map(|_| sandbox.fixture_job(&["says-and-sleeps", "up"])).collect();
    let signal = |signal| {
        for job in &jobs[..5] {
            let keeper = rustix::process::Pid::from_raw(sandbox.pid(*job, "keeper")).unwrap();
            rustix::process::kill_process(keeper, signal).unwrap();
        }
    };
    sandbox.wait_for_text(jobs[5], "up");
    signal(rustix::process::Signal::STOP);
    let began = std::time::Instant::now();
    let list = sandbox.json(["jobs"]);
    let took = began.elapsed();
    signal(rustix::process::Signal::CONT);
    let known = |job: &&serde_json::Value| !job["activity"].is_null();
    let all = list["jobs"].as_array().unwrap();
    assert_eq!((all.len(), all.iter().filter(known).count()), (6, 1), "{list}");
    assert!(took < std::time::Duration::from_secs(4), "five that are stopped took {took:?}");
}

#[test]
fn jobs_are_chosen_by_name_folder_state_session_and_number() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture();
    let below = sandbox.work().join("below");
    std::fs::create_dir(&below).unwrap();
    sandbox.start(["--name", "web-a", "--", &fixture, "exits", "0"]);
    sandbox.start(["--name", "web-b", "--", &fixture, "exits", "1"]);
    sandbox.start([
        "--name",
        "db",
        "--cwd",
        below.to_str().unwrap(),
        "--",
        &fixture,
        "says-and-sleeps",
        "up",
    ]);
    sandbox.call(["run", "-d", "--", &fixture, "exits", "0"]).env("OUTLAST_SESSION", "other").run().ok();
    for job in [1, 2, 4] {
        sandbox.wait_for_end(job);
    }
    let chosen = |args: &[&str]| {
        let text = sandbox.call(["jobs", "-q"]).args(args).run().ok().text();
        let mut handles: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
        handles.sort_unstable();
        handles
    };
    assert_eq!(chosen(&[]), [1, 2, 3]);
    assert_eq!(chosen(&["--all"]), [1, 2, 3, 4]);
    assert_eq!(chosen(&["--name", "web*"]), [1, 2]);
    assert_eq!(chosen(&["--cwd", "below"]), [3]);
    assert_eq!(chosen(&["--cwd", "."]), [1, 2, 3]);
    assert_eq!(chosen(&["--status", "failed"]), [2]);
    assert_eq!(chosen(&["--status", "running,completed"]), [1, 3]);
    assert_eq!(chosen(&["--session", "other"]), [4]);
    assert_eq!(chosen(&["--all", "-n", "2"]), [3, 4]);
    sandbox.run(["jobs", "--status", "lost"]).ok().says("no such jobs");
}

/// Changes are told as they happen: a start and an end.
#[test]
fn a_watched_list_tells_of_a_start_and_of_an_end() {
    let sandbox = sandbox();
    let watching = sandbox.call(["--json", "jobs", "--watch"]).spawn();
    let until = |what: &str, found: &dyn Fn(&str) -> bool| {
        outlast_testkit::eventually(what, outlast_testkit::TEST_TIMEOUT, || {
            let seen = String::from_utf8(watching.stdout_so_far()).unwrap();
            if seen.lines().any(found) { Ok(()) } else { Err(seen) }
        });
    };
    until("the empty list", &|line| line == r#"{"jobs":[]}"#);
    let gate = crate::gate(&sandbox);
    sandbox.start(["--name", "soon", &format!("cat {gate}")]);
    until("the start", &|line| line.contains(r#""name":"soon","status":"running""#));
    crate::open_gate(&gate);
    until("the end", &|line| line.contains(r#""name":"soon","status":"completed""#));
    watching.signal(rustix::process::Signal::INT);
    watching.wait().ok();
}
