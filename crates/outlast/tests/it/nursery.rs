//! Keepers that are forked for a client that starts many jobs.

use std::time::Duration;

use outlast_job::{Job, JobSpec, Outlast, Wait};
use outlast_testkit::processes::kill_dash_nine;
use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually};

use super::sandbox;

fn ready(sandbox: &Sandbox) -> Outlast {
    let outlast = Outlast::at(sandbox.home()).unwrap().kept_by(sandbox.program());
    make_ready(&outlast);
    outlast
}

#[track_caller]
fn make_ready(outlast: &Outlast) {
    eventually("a keeper is ready", TEST_TIMEOUT, || {
        outlast.get_ready();
        if outlast.is_ready() { Ok(()) } else { Err("nobody") }
    });
}

#[track_caller]
fn says(job: &Job, text: &str) {
    job.wait(&Wait::for_exit(), Some(TEST_TIMEOUT)).unwrap();
    assert_eq!(job.read_text(0, 1 << 14).unwrap().head, format!("{text}\n"));
}

#[test]
fn its_keepers_are_nobodys_children_and_it_ends_with_its_client() {
    let sandbox = sandbox();
    let outlast = ready(&sandbox);
    let job = outlast.start(JobSpec::shell("read x")).unwrap();
    let heir = sandbox.process(job.handle().number(), "heir");
    let relatives = sandbox.processes();
    assert!(relatives.iter().all(|process| Some(process.pid) != heir.ppid), "{heir:?} in {relatives:?}");
    assert_ne!(heir.ppid, Some(rustix::process::getpid()), "the client could end it with its children");
    make_ready(&outlast);
    drop(outlast);
    eventually("only the job is left", TEST_TIMEOUT, || match sandbox.processes() {
        left if left.len() == 2 => Ok(()),
        left => Err(left),
    });
    eventually("what was made ready is gone", TEST_TIMEOUT, || {
        match std::fs::read_dir(sandbox.home().join("jobs")).unwrap().count() {
            1 => Ok(()),
            folders => Err(folders),
        }
    });
    job.kill(Duration::ZERO, "test").unwrap();
    sandbox.nothing_runs();
}

#[test]
fn a_dead_nursery_is_not_missed() {
    let sandbox = sandbox();
    let outlast = ready(&sandbox);
    let first = outlast.start(JobSpec::shell("read x; echo $x")).unwrap();
    make_ready(&outlast);
    let kept = ["keeper", "heir"].map(|role| sandbox.process(first.handle().number(), role).pid);
    for process in sandbox.processes().iter().filter(|process| !kept.contains(&process.pid)) {
        kill_dash_nine(process);
    }
    says(&outlast.start(JobSpec::shell("echo again")).unwrap(), "again");
    make_ready(&outlast);
    says(&outlast.start(JobSpec::shell("echo and again")).unwrap(), "and again");
    first.type_line("still here").unwrap();
    says(&first, "still here\nstill here");
    drop(outlast);
    sandbox.nothing_runs();
}
