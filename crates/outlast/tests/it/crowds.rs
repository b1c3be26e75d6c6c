//! Many jobs at once: handles are never given twice, and nobody is in anybody's way.

use std::collections::BTreeSet;

use outlast_testkit::Sandbox;

use crate::{all_jobs, sandbox};

fn start_at_once(sandbox: &Sandbox, count: u64) -> BTreeSet<u64> {
    let calls: Vec<_> = (0..count)
        .map(|i| {
            let code = (i % 7).to_string();
            sandbox.call(["--json", "run", "-d", "--", &sandbox.fixture(), "exits", &code]).spawn()
        })
        .collect();
    calls.into_iter().map(|call| call.wait().ok().json()["handle"].as_u64().unwrap()).collect()
}

#[test]
fn two_hundred_runs_at_the_same_moment() {
    let sandbox = sandbox();
    let handles = start_at_once(&sandbox, 200);
    assert_eq!(handles, (1..=200).collect(), "200 handles, none twice, none left out");
    for handle in &handles {
        sandbox.wait_for_end(*handle);
    }
    let jobs = all_jobs(&sandbox);
    assert_eq!(jobs.len(), 200);
    let codes: u64 = jobs.iter().map(|job| job["exit_code"].as_u64().expect("a receipt with a code")).sum();
    assert_eq!(codes, (0..200).map(|i| i % 7).sum::<u64>(), "each with its own code");
    sandbox.nothing_runs();
}

#[test]
fn handles_are_not_used_again_after_prune() {
    let sandbox = sandbox();
    for handle in start_at_once(&sandbox, 3) {
        sandbox.wait_for_end(handle);
    }
    sandbox.nothing_runs();
    assert_eq!(sandbox.json(["prune", "--all"])["removed"], serde_json::json!([1, 2, 3]));
    assert_eq!(start_at_once(&sandbox, 2), BTreeSet::from([4, 5]));
    sandbox.run(["read", "2"]).code(3).says("pruned").says("outlast jobs");
}
