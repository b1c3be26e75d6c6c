//! Formats: what an old version wrote stays readable, what a newer one wrote is told and disturbs nobody.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use outlast_testkit::Sandbox;
use serde_json::json;

use crate::{all_jobs, museum, sandbox};

/// Copies a home, with the modes that it must have.
fn copy_home(from: &Path, to: &Path) {
    let mode = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    std::fs::create_dir_all(to).unwrap();
    mode(to, 0o700);
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_home(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
            mode(&target, 0o600);
        }
    }
}

fn home_of(piece: &str) -> Sandbox {
    let sandbox = sandbox();
    copy_home(&museum(piece), sandbox.home());
    sandbox
}

#[test]
fn a_home_of_format_1_is_readable() {
    let sandbox = home_of("v1");
    let jobs = all_jobs(&sandbox);
    let status = |handle: u64| &jobs.iter().find(|job| job["handle"] == handle).unwrap()["status"];
    assert_eq!([status(1), status(2), status(3), status(4)], ["failed", "completed", "killed", "lost"]);

    assert_eq!(sandbox.run(["read", "greeter"]).ok().text(), "hello, what is your name? Ada\nbye Ada\n");
    let raw = sandbox.run(["read", "--raw", "1"]).ok();
    assert_eq!(raw.text(), "\u{1b}[1mhello\u{1b}[0m, what is your name? Ada\r\nbye Ada\r\n");
    assert!(sandbox.run(["screen", "1"]).ok().text().contains("bye Ada"));
    let ended = sandbox.run(["--json", "wait", "1"]).code(3).json();
    assert_eq!((&ended["reason"], &ended["exit_code"]), (&"exit".into(), &3.into()), "{ended}");
    let found = sandbox.json(["wait", "1", "--pattern", r"hello, (\w+)"]);
    assert_eq!(
        (&found["reason"], &found["match"]["captures"][0]),
        (&"pattern".into(), &"what".into()),
        "{found}"
    );
    assert_eq!(sandbox.run(["logs", "-f", "1"]).ok().text(), "hello, what is your name? Ada\nbye Ada\n");

    assert_eq!(sandbox.run(["read", "2"]).ok().text(), "out\n");
    assert_eq!(sandbox.run(["read", "2", "--stderr"]).ok().text(), "err\n");
    let killed = sandbox.run(["--json", "wait", "3"]).code(128 + 15).json();
    assert_eq!((&killed["signal"], &killed["exit_code"]), (&"SIGTERM".into(), &serde_json::Value::Null));
    assert_eq!(killed["ended_by"], "by kill (SIGTERM) from session museum");

    // Its keeper is of another boot: whatever has its pids today is not touched.
    assert_eq!(sandbox.json(["kill", "4"])["signalled"], 0);
    assert_eq!(sandbox.run(["read", "4"]).ok().text(), "up\n");
    assert_eq!(sandbox.start(["true"]), 5);
    sandbox.wait_for_end(5);
    sandbox.nothing_runs();
    assert_eq!(sandbox.json(["prune", "--all"])["removed"], json!([1, 2, 3, 4, 5]));
}

#[test]
fn fields_that_a_later_version_added_are_passed_over() {
    let sandbox = home_of("v1");
    let file = sandbox.job(1).join("info.json");
    let mut info = sandbox.info(1);
    info["colour"] = "green".into();
    info["ended_by"] = json!({"who": "a_power_cut", "volts": 0});
    std::fs::write(&file, info.to_string()).unwrap();
    let ended = sandbox.run(["--json", "wait", "1"]).code(3).json();
    assert_eq!(ended["exit_code"], 3, "{ended}");
    assert!(ended["ended_by"].as_str().unwrap().contains("does not know"), "{ended}");
}

/// The keeper of job 4 is gone, so the first who asks writes a new record.
#[test]
fn fields_that_a_later_version_added_stay_in_a_record_that_is_written_again() {
    let sandbox = home_of("v1");
    let file = sandbox.job(4).join("info.json");
    let mut info = sandbox.info(4);
    assert_eq!(info["status"], "running");
    info["colour"] = "green".into();
    std::fs::write(&file, info.to_string()).unwrap();
    all_jobs(&sandbox);
    let written = sandbox.info(4);
    assert_eq!((&written["status"], &written["colour"]), (&"lost".into(), &"green".into()), "{written}");
}

#[test]
fn a_future_format_is_a_clear_error_and_breaks_nothing_else() {
    let sandbox = home_of("v1");
    let newer = json!({"format": 2, "everything": "is different"});
    std::fs::write(sandbox.job(2).join("info.json"), newer.to_string()).unwrap();
    for verb in [&["read", "2"][..], &["wait", "2"], &["logs", "2"], &["kill", "2"]] {
        sandbox.run(verb).code(1).says("format 2").says("newer outlast");
    }
    let error = sandbox.call(["--json", "read", "2"]).run().code(1).json();
    assert_eq!(error["error"]["kind"], "unknown_format", "{error}");
    let handles: Vec<_> = all_jobs(&sandbox).iter().map(|job| job["handle"].as_u64().unwrap()).collect();
    assert_eq!(handles.len(), 3, "the others are listed: {handles:?}");
    let pruned = sandbox.json(["prune", "--all"]);
    assert_eq!(pruned["removed"], json!([1, 3, 4]), "what is not understood is not removed");
    assert!(sandbox.job(2).join("output.log").exists());
}

/// The entries of the outbox that 0.1.0 left, read with more arguments of `events`.
fn old_entries(sandbox: &Sandbox, arguments: &[&str]) -> Vec<(u64, u64, String)> {
    #[derive(serde::Deserialize)]
    struct Entry {
        n: u64,
        job: u64,
        text: String,
    }
    let ran = sandbox.call(["--json", "events", "--session", "museum"]).args(arguments).run().ok();
    let entries = ran.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Entry>>();
    entries.into_iter().map(|entry| (entry.n, entry.job, entry.text)).collect()
}

#[test]
fn an_outbox_of_0_1_0_is_read_and_goes_on() {
    let sandbox = home_of("0.1.0");
    let entries = old_entries(&sandbox, &[]);
    let told: Vec<(u64, u64, &str)> =
        entries.iter().map(|(n, job, text)| (*n, *job, text.as_str())).collect();
    // Number 1 is acknowledged.
    let all = [
        (2, 1, "it no longer waits for input"),
        (3, 1, "[pattern-1] done"),
        (4, 1, "failed: exit code 3: done green"),
        (5, 2, "[lines-1] up"),
        (6, 2, "[digits] got 1"),
        (7, 2, "[lines-1] 2"),
        (8, 2, "[digits] got 2"),
        (9, 2, "[still] its screen stands still"),
    ];
    assert_eq!(told, all);
    let unread = old_entries(&sandbox, &["--reader", "agent"]);
    assert_eq!(unread.iter().map(|entry| entry.0).collect::<Vec<_>>(), [7, 8, 9], "{unread:?}");

    let new =
        sandbox.call(["--json", "run", "-d", "exit 4"]).env("OUTLAST_SESSION", "museum").run().ok().json();
    sandbox.wait_for_end(new["handle"].as_u64().unwrap());
    let added = outlast_testkit::eventually("the end is told", outlast_testkit::TEST_TIMEOUT, || {
        let entries = old_entries(&sandbox, &["--since", "9"]);
        entries.first().cloned().ok_or(entries)
    });
    assert_eq!((added.0, added.1), (10, 3), "{added:?}");
    assert_eq!(old_entries(&sandbox, &["--reader", "agent"]).len(), 1);
}

#[test]
fn an_mcp_server_goes_on_where_one_of_0_1_0_was() {
    let sandbox = home_of("0.1.0");
    let mut server = sandbox.call(["mcp", "--session", "museum", "--own", "allow"]).converse();
    let info = json!({"name": "museum", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
    server.call("initialize", hello);
    let mut unread = |job: &str| {
        let read = json!({"name": "read_output", "arguments": {"handle": job}});
        server.call("tools/call", read)["structuredContent"]["output"].clone()
    };
    assert_eq!([unread("asker"), unread("server")], ["", "2\ngot 2\n"]);
}

/// Watches are kept on the disk for the heir, which may be of another version than the keeper that wrote them.
#[test]
fn an_heir_takes_up_watches_of_0_1_0() {
    let sandbox = sandbox();
    let job = sandbox.start(["while read x; do echo got $x; done"]);
    std::fs::copy(museum("0.1.0/jobs/2/watches.json"), sandbox.job(job).join("watches.json")).unwrap();
    outlast_testkit::processes::kill_dash_nine(&sandbox.process(job, "keeper"));
    let name = job.to_string();
    let listed = outlast_testkit::eventually("the heir answers", outlast_testkit::TEST_TIMEOUT, || {
        let ran = sandbox.run(["--json", "watch", &name, "--list"]);
        if ran.code == Some(0) { Ok(ran.json()) } else { Err(ran.stderr) }
    });
    let ids: Vec<&str> =
        listed["watches"].as_array().unwrap().iter().map(|watch| watch["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["lines-1", "digits", "rest"]);
    // Its patterns begin where the old job's log ended then.
    sandbox.run(["send", &name, "x\n7", "--no-wait"]).ok();
    let told = outlast_testkit::eventually("a watch tells", outlast_testkit::TEST_TIMEOUT, || {
        let entries = sandbox.call(["--json", "events"]).run().ok().text();
        let found = entries.lines().find(|line| line.contains("[digits] got 7")).map(ToOwned::to_owned);
        found.ok_or(entries)
    });
    assert!(told.contains("\"captures\":[\"7\"]"), "{told}");
}
