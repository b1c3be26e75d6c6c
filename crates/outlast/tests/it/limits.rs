//! Time limits, and who the receipt names.

use crate::sandbox;

#[test]
fn a_timeout_ends_the_job() {
    let sandbox = sandbox();
    let job = sandbox.start(["--timeout", "150ms", "--", &sandbox.fixture(), "says-and-sleeps", "up"]);
    let ended = sandbox.wait_for_end(job);
    assert_eq!((&ended["status"], &ended["signal"]), (&"killed".into(), &"SIGTERM".into()), "{ended}");
    assert_eq!(ended["ended_by"], "by its timeout of 0.15 s", "{ended}");
    assert_eq!(sandbox.info(job)["ended_by"], serde_json::json!({"who": "timeout", "limit_ms": 150}));
}

#[test]
fn a_timeout_ends_a_deaf_family_too() {
    let sandbox = sandbox();
    let job = sandbox.start(["--timeout", "1s", "--", &sandbox.fixture(), "family"]);
    let ended = sandbox.wait_for_end(job);
    assert!(ended["ended_by"].as_str().unwrap().contains("timeout"), "{ended}");
    sandbox.nothing_runs();
}

#[test]
fn silence_ends_the_job_and_output_postpones_it() {
    let sandbox = sandbox();
    // Prints for longer than the limit, a little at a time, and then falls silent.
    let line = format!("'{0}' counts 80 1 25 0; exec '{0}' says-and-sleeps quiet", sandbox.fixture());
    let job = sandbox.start(["--inactivity-timeout", "1500ms", &line]);
    let ended = sandbox.wait_for_end(job);
    assert!(ended["output"].as_str().unwrap().contains("quiet"), "output postpones it: {ended}");
    assert_eq!(ended["ended_by"], "by its inactivity limit of 1.5 s", "{ended}");
}

#[test]
fn a_job_that_ends_by_itself_is_nobody_elses() {
    let sandbox = sandbox();
    let job = sandbox.start([
        "--timeout",
        "1h",
        "--inactivity-timeout",
        "1h",
        "--",
        &sandbox.fixture(),
        "exits",
        "0",
    ]);
    let ended = sandbox.wait_for_end(job);
    assert_eq!((&ended["status"], &ended["ended_by"]), (&"completed".into(), &"by itself".into()), "{ended}");
    let info = sandbox.info(job);
    assert_eq!((&info["timeout_ms"], &info["inactivity_timeout_ms"]), (&3_600_000.into(), &3_600_000.into()));
}
