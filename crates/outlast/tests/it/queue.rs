//! Jobs that wait before they run: for a place in a slot, and for the end of others. Every job appends its name to a file when its
//! command really runs: that file is the judge of who ran when.

use std::time::Duration;

use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually, processes};
use serde_json::Value;

use crate::sandbox;

fn order_file(sandbox: &Sandbox) -> std::path::PathBuf {
    sandbox.root().join("ran")
}

fn ran(sandbox: &Sandbox) -> Vec<String> {
    let text = std::fs::read_to_string(order_file(sandbox)).unwrap_or_default();
    text.lines().map(ToOwned::to_owned).collect()
}

/// Starts a job in the background that notes its name when it runs, and runs until it is sent a line.
fn start(sandbox: &Sandbox, name: &str, how: &[&str]) -> Value {
    let line = format!("echo {name} >> {}; echo up; read go; exit $go", order_file(sandbox).display());
    let args = ["run", "-d"].into_iter().chain(how.iter().copied());
    sandbox.json(args.chain(["--name", name, &line]))
}

fn status(sandbox: &Sandbox, job: &str) -> Value {
    sandbox.json(["show", job])
}

fn until_runs(sandbox: &Sandbox, job: &str) {
    let within = TEST_TIMEOUT;
    eventually("the job runs", within, || {
        let shown = status(sandbox, job);
        if shown["status"] == "running" { Ok(()) } else { Err(shown) }
    });
}

/// Lets a job go on and waits for its end.
fn finish(sandbox: &Sandbox, job: &str, code: i32) {
    sandbox.run(["wait", job, "--pattern", "up", "--deadline", "60s"]).ok();
    sandbox.run(["send", job, &code.to_string(), "--no-wait"]).ok();
    sandbox.run(["wait", job, "--deadline", "60s"]).code(code);
}

#[test]
fn a_slot_gives_its_places_in_order_and_says_the_position() {
    let sandbox = sandbox();
    assert_eq!(start(&sandbox, "one", &["--slot", "build"])["status"], "running");
    let two = start(&sandbox, "two", &["--slot", "build"]);
    assert_eq!((&two["status"], &two["queued"]["position"]), (&"queued".into(), &1.into()), "{two}");
    assert_eq!(two["queued"]["held_by"], serde_json::json!([1]), "{two}");
    let three = start(&sandbox, "three", &["--slot", "build"]);
    assert_eq!(three["queued"]["position"], 2, "{three}");
    // Another slot has a line of its own.
    assert_eq!(start(&sandbox, "other", &["--slot", "test"])["status"], "running");
    let listed = sandbox.json(["jobs", "--all", "--status", "queued"]);
    assert_eq!(listed["jobs"].as_array().unwrap().len(), 2, "{listed}");
    let words = sandbox.run(["show", "three"]).ok().text();
    assert!(
        words.contains("queued, 2nd in line for a place in slot build (1 place, held by job 1)"),
        "{words}"
    );
    finish(&sandbox, "one", 0);
    until_runs(&sandbox, "two");
    assert_eq!(status(&sandbox, "three")["queued"]["position"], 1);
    finish(&sandbox, "two", 0);
    finish(&sandbox, "three", 0);
    let order: Vec<String> = ran(&sandbox).into_iter().filter(|name| name != "other").collect();
    assert_eq!(order, ["one", "two", "three"]);
    let events: Vec<Value> = sandbox.events(3).iter().map(|event| event["event"].clone()).collect();
    assert_eq!(events[..2], ["queued", "started"], "{events:?}");
    finish(&sandbox, "other", 0);
}

#[test]
fn the_settings_say_how_many_places_a_slot_has() {
    let sandbox = sandbox();
    let config = sandbox.root().join("config.toml");
    std::fs::write(&config, "[slots]\nbuild = 2\n").unwrap();
    let start = |name: &str| {
        let call = sandbox.call(["--json", "run", "-d", "--slot", "build", "--name", name, "read go"]);
        call.env("OUTLAST_CONFIG", &config).run().ok().json()
    };
    assert_eq!(start("a")["status"], "running");
    assert_eq!(start("b")["status"], "running");
    let third = start("c");
    assert_eq!((&third["status"], &third["queued"]["places"]), (&"queued".into(), &2.into()), "{third}");
    let refused = sandbox.call(["--json", "run", "-d", "--slot", "build", "--if-free", "true"]);
    let refused = refused.env("OUTLAST_CONFIG", &config).run().code(1);
    assert_eq!(refused.json()["error"]["kind"], "busy", "{refused}");
}

#[test]
fn a_queued_job_can_be_killed_and_is_not_run() {
    let sandbox = sandbox();
    start(&sandbox, "one", &["--slot", "build"]);
    start(&sandbox, "two", &["--slot", "build"]);
    start(&sandbox, "three", &["--slot", "build"]);
    sandbox.run(["send", "two", "x", "--no-wait"]).code(1).says("does not run yet");
    // A wait for silence is not over because it does not run.
    sandbox.run(["wait", "two", "--quiet-for", "100ms", "--deadline", "1s"]).code(4);
    sandbox.run(["kill", "two"]).ok();
    let ended = sandbox.wait_for_end(2);
    assert_eq!(ended["status"], "killed", "{ended}");
    assert_eq!(status(&sandbox, "three")["queued"]["position"], 1);
    finish(&sandbox, "one", 0);
    finish(&sandbox, "three", 0);
    assert_eq!(ran(&sandbox), ["one", "three"]);
}

#[test]
fn killed_keepers_free_places_and_an_heir_keeps_its_own() {
    let sandbox = sandbox();
    start(&sandbox, "one", &["--slot", "build"]);
    start(&sandbox, "two", &["--slot", "build"]);
    start(&sandbox, "three", &["--slot", "build"]);
    // Its heir takes over: it is queued on, in its old place.
    processes::kill_dash_nine(&sandbox.process(2, "keeper"));
    eventually("an heir keeps job 2", Duration::from_secs(60), || {
        let info = sandbox.info(2);
        if info["takeovers"] == 1 { Ok(()) } else { Err(info) }
    });
    assert_eq!(status(&sandbox, "two")["queued"]["position"], 1);
    // Of the first nobody is left who could give its place back.
    let (keeper, heir) = (sandbox.process(1, "keeper"), sandbox.process(1, "heir"));
    processes::kill_dash_nine(&heir);
    processes::kill_dash_nine(&keeper);
    until_runs(&sandbox, "two");
    // The holder's keeper dies: its heir holds the place on.
    finish(&sandbox, "two", 0);
    until_runs(&sandbox, "three");
    processes::kill_dash_nine(&sandbox.process(3, "keeper"));
    eventually("an heir keeps job 3", Duration::from_secs(60), || {
        let info = sandbox.info(3);
        if info["takeovers"] == 1 { Ok(()) } else { Err(info) }
    });
    assert_eq!(start(&sandbox, "four", &["--slot", "build"])["status"], "queued");
    finish(&sandbox, "three", 0);
    finish(&sandbox, "four", 0);
    assert_eq!(ran(&sandbox), ["one", "two", "three", "four"]);
}

#[test]
fn a_job_runs_after_others_have_succeeded() {
    let sandbox = sandbox();
    start(&sandbox, "build", &[]);
    start(&sandbox, "lint", &[]);
    // Its program is made by the job before it.
    let program = sandbox.root().join("app");
    let queued = sandbox.json([
        "run",
        "-d",
        "--after",
        "build",
        "--after",
        "lint",
        "--name",
        "app",
        "--",
        program.to_str().unwrap(),
    ]);
    assert_eq!(
        (&queued["status"], &queued["queued"]["after"]),
        (&"queued".into(), &serde_json::json!([1, 2])),
        "{queued}"
    );
    let line = format!("#!/bin/sh\necho app >> {}\n", order_file(&sandbox).display());
    std::fs::write(&program, line).unwrap();
    sandbox.shell(&format!("chmod +x {}", program.display())).run().ok();
    finish(&sandbox, "build", 0);
    eventually("only the other is waited for", TEST_TIMEOUT, || {
        let shown = status(&sandbox, "app");
        if shown["queued"]["after"] == serde_json::json!([2]) { Ok(()) } else { Err(shown) }
    });
    finish(&sandbox, "lint", 0);
    sandbox.run(["wait", "app", "--deadline", "60s"]).ok();
    assert_eq!(ran(&sandbox), ["build", "lint", "app"]);
}

#[test]
fn a_job_does_not_run_after_one_that_failed_unless_any_end_will_do() {
    let sandbox = sandbox();
    start(&sandbox, "build", &[]);
    let note = |name: &str| format!("echo {name} >> {}", order_file(&sandbox).display());
    let deploy = sandbox.json(["run", "-d", "--after", "build", "--name", "deploy", &note("deploy")]);
    assert_eq!(deploy["status"], "queued");
    sandbox.json(["run", "-d", "--after-any", "build", "--name", "clean", &note("clean")]);
    sandbox.json(["run", "-d", "--after", "deploy", "--name", "tell", &note("tell")]);
    finish(&sandbox, "build", 3);
    sandbox.run(["wait", "clean", "--deadline", "60s"]).ok();
    for (job, why) in [(2, "after job 1, and it failed: exit code 3"), (4, "after job 2, and it failed")] {
        let ended = sandbox.wait_for_end(job);
        assert_eq!(ended["status"], "failed", "{ended}");
        let info = sandbox.info(job);
        let said = info["error"]["message"].as_str().unwrap_or_default();
        assert!(said.contains(why), "{info}");
    }
    assert_eq!(ran(&sandbox), ["build", "clean"]);
    // One that has failed already is told at once.
    let refused = sandbox.run(["run", "-d", "--after", "build", "true"]).code(1);
    assert!(refused.stderr.contains("after job 1"), "{refused}");
    sandbox.run(["run", "-d", "--after", "99", "true"]).code(3);
}

#[test]
fn times_of_a_queued_job_begin_when_it_runs() {
    let sandbox = sandbox();
    start(&sandbox, "one", &["--slot", "build"]);
    let line = format!("echo two >> {}; echo up; read go", order_file(&sandbox).display());
    let how =
        ["run", "-d", "--slot", "build", "--timeout", "3s", "--inactivity-timeout", "2s", "--name", "two"];
    sandbox.json(how.into_iter().chain([line.as_str()]));
    // Longer than it may take.
    sandbox.run(["wait", "two", "--deadline", "4s"]).code(4);
    assert_eq!(status(&sandbox, "two")["status"], "queued");
    finish(&sandbox, "one", 0);
    let ended = sandbox.wait_for_end(2);
    assert_eq!(ended["status"], "killed", "{ended}");
    assert_eq!(ran(&sandbox), ["one", "two"]);
    assert_eq!(sandbox.info(2)["ended_by"]["who"], "inactivity");
}
