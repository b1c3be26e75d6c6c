//! `outlast prune` and retention.

use crate::{all_jobs, sandbox};

#[test]
fn what_is_past_retention_goes_and_running_jobs_stay() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture();
    for _ in 0..4 {
        let job = sandbox.fixture_job(&["says", "done"]);
        sandbox.wait_for_end(job);
    }
    sandbox.start(["--", &fixture, "says-and-sleeps", "up"]);
    // A finished job counts as finished when its keeper has gone, a moment after the result.
    outlast_testkit::eventually("four finished jobs", outlast_testkit::PATIENCE, || {
        let would = sandbox.json(["prune", "--all", "--dry-run"]);
        if would["removed"] == serde_json::json!([1, 2, 3, 4]) { Ok(()) } else { Err(would) }
    });
    assert_eq!(all_jobs(&sandbox).len(), 5, "a dry run removes nothing");
    let nothing = sandbox.json(["prune"]);
    assert_eq!((&nothing["removed"], &nothing["kept"]), (&serde_json::json!([]), &4.into()), "{nothing}");
    let two = sandbox.json(["prune", "--keep", "2"]);
    assert_eq!(
        (&two["removed"], &two["kept"]),
        (&serde_json::json!([1, 2]), &2.into()),
        "the oldest go: {two}"
    );
    assert!(two["freed_bytes"].as_u64().unwrap() > 0, "{two}");
    assert!(!sandbox.job(1).exists());
    let small = sandbox.json(["prune", "--size", "0"]);
    assert_eq!(small["removed"], serde_json::json!([3, 4]), "{small}");
    assert!(sandbox.run(["prune", "--age", "0s"]).ok().text().contains("0 jobs removed"));
    assert_eq!(all_jobs(&sandbox)[0]["handle"], 5, "running ones stay");
}

#[test]
fn settings_limit_what_is_kept_without_being_asked() {
    let sandbox = sandbox();
    let settings = sandbox.root().join("settings.toml");
    std::fs::write(&settings, "[retention]\njobs = 3\n").unwrap();
    let fixture = sandbox.fixture();
    for _ in 0..10 {
        let call = sandbox.call(["run", "--", &fixture, "says", "done"]).env("OUTLAST_CONFIG", &settings);
        assert_eq!(call.run().ok().text(), "done\n");
    }
    outlast_testkit::eventually("the oldest have gone", outlast_testkit::PATIENCE, || {
        let jobs = all_jobs(&sandbox);
        // One that is just leaving may be missed by the one that sweeps.
        if jobs.len() <= 5 { Ok(()) } else { Err(jobs.len()) }
    });
    assert!(sandbox.job(10).is_dir());
    sandbox.nothing_runs();
}
