//! Formats: what an old version wrote stays readable, what a newer one wrote is told and disturbs nobody.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use outlast_testkit::Sandbox;

use crate::{all_jobs, sandbox};

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

fn museum(piece: &str) -> Sandbox {
    let sandbox = sandbox();
    copy_home(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/museum").join(piece), sandbox.home());
    sandbox
}

#[test]
fn a_home_of_format_1_is_readable() {
    let sandbox = museum("v1");
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
    assert_eq!(sandbox.json(["prune", "--all"])["removed"], serde_json::json!([1, 2, 3, 4, 5]));
}

#[test]
fn fields_that_a_later_version_added_are_passed_over() {
    let sandbox = museum("v1");
    let file = sandbox.job(1).join("info.json");
    let mut info = sandbox.info(1);
    info["colour"] = "green".into();
    info["ended_by"] = serde_json::json!({"who": "a_power_cut", "volts": 0});
    std::fs::write(&file, info.to_string()).unwrap();
    let ended = sandbox.run(["--json", "wait", "1"]).code(3).json();
    assert_eq!(ended["exit_code"], 3, "{ended}");
    assert!(ended["ended_by"].as_str().unwrap().contains("does not know"), "{ended}");
}

#[test]
fn a_future_format_is_a_clear_error_and_breaks_nothing_else() {
    let sandbox = museum("v1");
    let newer = serde_json::json!({"format": 2, "everything": "is different"});
    std::fs::write(sandbox.job(2).join("info.json"), newer.to_string()).unwrap();
    for verb in [&["read", "2"][..], &["wait", "2"], &["logs", "2"], &["kill", "2"]] {
        sandbox.run(verb).code(1).says("format 2").says("newer outlast");
    }
    let error = sandbox.call(["--json", "read", "2"]).run().code(1).json();
    assert_eq!(error["error"]["kind"], "unknown_format", "{error}");
    let handles: Vec<_> = all_jobs(&sandbox).iter().map(|job| job["handle"].as_u64().unwrap()).collect();
    assert_eq!(handles.len(), 3, "the others are listed: {handles:?}");
    let pruned = sandbox.json(["prune", "--all"]);
    assert_eq!(pruned["removed"], serde_json::json!([1, 3, 4]), "what is not understood is not removed");
    assert!(sandbox.job(2).join("output.log").exists());
}
