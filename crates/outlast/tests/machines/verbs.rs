//! The verbs of the command line with jobs of another machine, reached by a command.

use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually};

use super::sandbox;
use super::wire::Wire;

/// Two homes on this machine: the near one knows the far one as `gpu1`.
fn two() -> (Sandbox, Wire) {
    let (near, wire) = (sandbox(), Wire::new(sandbox()));
    let reach = format!("command:exec {}", wire.command().join(" "));
    near.run(["host", "add", "gpu1", &reach, "--label", "gpu"]).ok();
    (near, wire)
}

#[test]
fn a_job_of_another_machine_goes_through_every_verb() {
    let (near, wire) = two();
    let tested = near.run(["host", "test", "gpu1"]).ok();
    assert!(tested.text().contains("gpu1 answers: outlast"), "{tested}");
    let listed = near.json(["host", "list"]);
    assert_eq!(listed["hosts"][0]["name"], "gpu1");
    let started = near
        .run([
            "run",
            "--on",
            "gpu1",
            "-d",
            "--name",
            "train",
            "--",
            "sh",
            "-c",
            "echo ready; read x; echo got $x; read y",
        ])
        .ok();
    assert_eq!(started.text().trim(), "gpu1/1");
    assert!(wire.far.job(1).is_dir() && !near.job(1).exists(), "it is there, and not here");
    near.run(["wait", "gpu1/train", "--pattern", "ready", "--since", "0"]).ok();
    let sent = near.run(["send", "gpu1/train", "you"]).ok();
    assert!(sent.text().contains("got you"), "{sent}");
    for verb in [["read", "gpu1/1"], ["logs", "gpu1/train"], ["screen", "gpu1/1"]] {
        let ran = near.run(verb).ok();
        assert!(ran.text().contains("got you"), "{verb:?}: {ran}");
    }
    let shown = near.run(["show", "gpu1/train"]).ok();
    assert!(shown.text().contains("gpu1/1"), "{shown}");
    let jobs = near.json(["jobs"]);
    assert_eq!(jobs["jobs"][0]["handle"], "gpu1/1", "{jobs}");
    assert_eq!(jobs["jobs"][0]["status"], "running");
    assert!(near.json(["jobs", "--on", "here"])["jobs"].as_array().unwrap().is_empty());
    near.run(["kill", "gpu1/train"]).ok();
    let ended = near.json(["jobs", "--on", "gpu1", "--all"]);
    assert_eq!(ended["jobs"][0]["status"], "killed", "{ended}");
    let again = near.run(["run", "--on", "gpu", "echo by label"]).ok();
    assert!(again.text().contains("by label"), "{again}");
    near.run(["rm", "gpu1/1"]).ok();
    assert!(!wire.far.job(1).exists());
}

#[test]
fn jobs_of_a_machine_that_is_away_are_shown_as_they_were_last_known() {
    let (near, wire) = two();
    near.run(["run", "--on", "gpu1", "-d", "sleep 1000"]).ok();
    near.run(["jobs"]).ok();
    wire.down(true);
    let table = near.run(["jobs"]).ok();
    assert!(table.text().contains("unreachable, last known"), "{table}");
    assert!(!table.text().contains("lost"), "{table}");
    let jobs = near.json(["jobs"]);
    assert_eq!(jobs["jobs"][0]["status"], "unreachable", "{jobs}");
    let read = near.run(["read", "gpu1/1"]);
    assert!(read.stderr.contains("gpu1: cannot be reached"), "{read}");
    wire.down(false);
    eventually("it is there again", TEST_TIMEOUT, || {
        let jobs = near.json(["jobs"]);
        if jobs["jobs"][0]["status"] == "running" { Ok(()) } else { Err(jobs) }
    });
    near.run(["kill", "gpu1/1"]).ok();
    near.run(["host", "remove", "gpu1"]).ok();
    assert!(near.run(["read", "gpu1/1"]).stderr.contains("there is no host gpu1"));
}

/// The rules of the host hold besides those of whoever asks.
#[test]
fn the_policy_of_the_host_decides_too() {
    let (near, wire) = two();
    let policy = wire.far.root().join("config/outlast/policy.toml");
    std::fs::create_dir_all(policy.parent().unwrap()).unwrap();
    std::fs::write(
        &policy,
        "[[rule]]\ndecision = \"deny\"\nprefix = [\"touch\"]\nwhy = \"not on this machine\"\n",
    )
    .unwrap();
    let file = wire.far.root().join("touched");
    let refused = near.run(["run", "--on", "gpu1", "--", "touch", file.to_str().unwrap()]);
    assert!(refused.stderr.contains("not on this machine"), "{refused}");
    assert!(!file.exists());
    let audit = std::fs::read_to_string(wire.far.home().join("audit.jsonl")).unwrap();
    assert!(audit.contains("touch"), "{audit}");
}
