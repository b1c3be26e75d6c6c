//! Far jobs through the broker.

use outlast_testkit::{TEST_TIMEOUT, eventually};

use super::{Broker, Host, sees};
use crate::sandbox;

#[test]
fn a_job_of_the_fleet_goes_through_every_verb() {
    let Some(broker) = Broker::start() else { return };
    let user = sandbox();
    broker.tell(&user, "alice");
    let gpu1 = Host::join(&broker, "gpu1", &["--label", "gpu"]);
    let _box2 = Host::join(&broker, "box2", &[]);
    sees(&user, &["box2", "gpu1"]);
    let line = "echo ready; read x; echo got $x; read y";
    let started = user.run(["run", "--on", "gpu", "-d", "--name", "train", "--", "sh", "-c", line]).ok();
    assert_eq!(started.text().trim(), "gpu1/1");
    assert!(gpu1.box_.job(1).is_dir() && !user.job(1).exists(), "it is there, and not here");
    user.run(["wait", "gpu1/train", "--pattern", "ready", "--since", "0"]).ok();
    let sent = user.run(["send", "gpu1/train", "you"]).ok();
    assert!(sent.text().contains("got you"), "{sent}");
    for verb in [["read", "gpu1/1"], ["logs", "gpu1/train"], ["screen", "gpu1/1"]] {
        let ran = user.run(verb).ok();
        assert!(ran.text().contains("got you"), "{verb:?}: {ran}");
    }
    eventually("the job is told to the fleet, and that it asks", TEST_TIMEOUT, || {
        let jobs = user.json(["jobs", "--fleet"]);
        let row = &jobs["jobs"][0];
        let is_it = row["handle"] == "gpu1/1" && row["name"] == "train" && row["status"] == "running";
        if is_it && jobs["hosts"] == 2 { Ok(()) } else { Err(jobs) }
    });
    user.run(["kill", "gpu1/train"]).ok();
    eventually("its end is told", TEST_TIMEOUT, || {
        let jobs = user.json(["jobs", "--fleet", "--status", "killed"]);
        if jobs["jobs"][0]["status"] == "killed" { Ok(()) } else { Err(jobs) }
    });
    let shown = user.run(["show", "gpu1/train"]).ok();
    assert!(shown.text().contains("session test of alice@fleet"), "the receipt names who asked: {shown}");
    let missing = user.run(["read", "gpu9/1"]);
    assert!(missing.stderr.contains("not connected to the broker"), "{missing}");
}

#[test]
fn a_broker_that_is_gone_stops_no_local_work_and_everything_is_told_when_it_is_back() {
    let Some(mut broker) = Broker::start() else { return };
    let user = sandbox();
    broker.tell(&user, "alice");
    let host = Host::join(&broker, "gpu1", &[]);
    sees(&user, &["gpu1"]);
    broker.kill();
    host.box_.run(["run", "-d", "--name", "meanwhile", "echo done"]).ok();
    host.box_.run(["wait", "meanwhile"]).ok();
    let refused = user.run(["jobs", "--fleet"]);
    assert!(refused.stderr.contains("cannot reach the broker"), "{refused}");
    broker.run();
    eventually("what happened meanwhile is told", TEST_TIMEOUT, || {
        let jobs = user.json(["jobs", "--fleet"]);
        let row = &jobs["jobs"][0];
        if row["name"] == "meanwhile" && row["status"] == "completed" { Ok(()) } else { Err(jobs) }
    });
}

#[test]
fn a_host_that_does_not_answer_is_unreachable_and_its_jobs_are_not_lost() {
    let Some(broker) = Broker::start() else { return };
    let user = sandbox();
    broker.tell(&user, "alice");
    let host = Host::join(&broker, "gpu1", &[]);
    sees(&user, &["gpu1"]);
    user.run(["run", "--on", "gpu1", "-d", "--name", "long", "sleep 1000"]).ok();
    eventually("it is told", TEST_TIMEOUT, || {
        let jobs = user.json(["jobs", "--fleet"]);
        if jobs["jobs"][0]["name"] == "long" { Ok(()) } else { Err(jobs) }
    });
    host.signal(rustix::process::Signal::STOP);
    eventually("it is unreachable", TEST_TIMEOUT, || {
        let jobs = user.json(["jobs", "--fleet"]);
        if jobs["jobs"][0]["status"] == "unreachable" && jobs["unreachable"][0] == "gpu1" {
            Ok(())
        } else {
            Err(jobs)
        }
    });
    host.signal(rustix::process::Signal::CONT);
    sees(&user, &["gpu1"]);
    let jobs = user.json(["jobs", "--fleet"]);
    assert_eq!(jobs["jobs"][0]["status"], "running", "{jobs}");
    user.run(["kill", "gpu1/long"]).ok();
}
