//! A job that does nothing costs nothing.

use std::time::{Duration, Instant};

use outlast_testkit::processes::{cpu_ticks, private_dirty_kib};
use outlast_testkit::{TEST_TIMEOUT, eventually};

use crate::sandbox;

#[test]
fn a_quiet_job_uses_no_processor_and_little_memory() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says-and-sleeps", "up"]);
    sandbox.wait_for_text(job, "up");
    let (keeper, heir) = (sandbox.pid(job, "keeper"), sandbox.pid(job, "heir"));
    let used = || cpu_ticks(keeper) + cpu_ticks(heir);
    // Settled is when nothing was used for a while; looks at a job that went quiet get rare, but do not stop.
    let mut before = (Instant::now(), used());
    let quiet = eventually("two seconds with at most one tick", TEST_TIMEOUT, || {
        let now = used();
        if now > before.1 + 1 {
            before = (Instant::now(), now);
        }
        let length = before.0.elapsed();
        if length >= Duration::from_secs(2) { Ok(now - before.1) } else { Err((length, now)) }
    });
    assert!(quiet <= 1, "{quiet} ticks in two seconds");
    // Pages of the program itself are shared by all keepers; what each has written to is its own.
    match private_dirty_kib(keeper).zip(private_dirty_kib(heir)) {
        Some((keeper, heir)) => {
            assert!(keeper + heir <= 2048, "they have {keeper} and {heir} KiB of their own")
        }
        None => {
            assert!(!rustix::process::geteuid().is_root());
            eprintln!("only root may look into a keeper's memory: its size is not tried");
        }
    }
}
