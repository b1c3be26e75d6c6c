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

#[test]
fn output_and_small_files_are_copied_whole() {
    let (near, wire) = two();
    let bytes: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    let (here, there) = (near.root().join("bytes"), wire.far.root().join("there bytes"));
    std::fs::write(&here, &bytes).unwrap();
    let far = format!("gpu1:{}", there.display());
    near.run(["cp", here.to_str().unwrap(), &far]).ok();
    assert!(std::fs::read(&there).unwrap() == bytes, "it came as it was");
    let back = near.root().join("back");
    near.run(["cp", &far, back.to_str().unwrap()]).ok();
    assert!(std::fs::read(&back).unwrap() == bytes, "and back");
    let missing = near.run(["cp", "gpu1:/nowhere/at all", back.to_str().unwrap()]).code(1);
    assert!(missing.stderr.contains("No such file"), "{missing}");
    assert!(std::fs::read(&back).unwrap() == bytes, "what was there is left alone");
    let left = near.json(["jobs", "--on", "gpu1", "--all"]);
    assert!(left["jobs"].as_array().unwrap().iter().all(|job| job["status"] == "failed"), "{left}");
    near.run(["run", "--on", "gpu1", "--pipe", "echo out; echo err >&2"]).ok();
    let job = near.json(["jobs", "--on", "gpu1", "--all"])["jobs"][0]["handle"].as_str().unwrap().to_owned();
    assert_eq!(near.run(["cp", &job, "-"]).ok().text(), "out\n");
    near.run(["cp", "--stderr", &job, near.root().to_str().unwrap()]).ok();
    let log = near.root().join(format!("{}.log", job.replace('/', "-")));
    assert_eq!(std::fs::read_to_string(log).unwrap(), "err\n");
    near.run(["cp", "nothing", "-"]).code(3);
}

#[test]
fn events_of_another_machine_are_followed_and_acknowledged_there() {
    let (near, wire) = two();
    near.run(["run", "--on", "gpu1", "-d", "--name", "one", "exit 3"]).ok();
    eventually("its end is told", TEST_TIMEOUT, || {
        let told = near.run(["events", "--on", "gpu1"]).ok().text();
        if told.contains("job gpu1/1 (one) exit") && told.contains("read gpu1/1") {
            Ok(())
        } else {
            Err(told)
        }
    });
    near.run(["events", "--on", "gpu1", "--ack-all"]).ok();
    assert_eq!(near.run(["events", "--on", "gpu1"]).ok().text(), "");
    let follows = near.call(["events", "--on", "gpu1", "--follow", "--json"]).spawn();
    wire.cut();
    near.run(["run", "--on", "gpu1", "-d", "--name", "two", "true"]).ok();
    let seen = eventually("its end is told", TEST_TIMEOUT, || {
        let seen = String::from_utf8(follows.stdout_so_far()).unwrap();
        if seen.contains("\"exit\"") { Ok(seen) } else { Err(seen) }
    });
    follows.kill_dash_nine();
    let events: Vec<serde_json::Value> =
        seen.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 1, "each once: {seen}");
    assert_eq!(events[0]["job"], "gpu1/2", "{seen}");
}

#[test]
fn a_job_waits_for_another_of_its_host_by_its_whole_name() {
    let (near, _wire) = two();
    near.run(["run", "--on", "gpu1", "-d", "--name", "first", "read x; exit 0"]).ok();
    let second =
        near.json(["run", "--on", "gpu1", "-d", "--name", "second", "--after", "gpu1/first", "echo ran"]);
    assert_eq!(
        (&second["status"], &second["queued"]["after"]),
        (&"queued".into(), &serde_json::json!([1])),
        "{second}"
    );
    let elsewhere = near.run(["run", "-d", "--after", "gpu1/first", "true"]);
    assert!(elsewhere.stderr.contains("gpu1/first is a job of another host"), "{elsewhere}");
    near.run(["send", "gpu1/first", "--no-wait", "go"]).ok();
    near.run(["wait", "gpu1/second", "--exit"]).ok();
    assert_eq!(near.run(["read", "gpu1/second"]).ok().text(), "ran\n");
}

#[test]
fn a_label_takes_the_host_with_a_free_place_and_queues_where_there_is_none() {
    let (near, one, two) = (sandbox(), Wire::new(sandbox()), Wire::new(sandbox()));
    for (name, wire) in [("gpu1", &one), ("gpu2", &two)] {
        let reach = format!("command:exec {}", wire.command().join(" "));
        near.run(["host", "add", name, &reach, "--label", "gpu", "--slots", "1"]).ok();
    }
    let start = || near.json(["run", "--on", "gpu", "-d", "read x"]);
    let (first, second, third) = (start(), start(), start());
    let host =
        |job: &serde_json::Value| job["handle"].as_str().unwrap().split('/').next().unwrap().to_owned();
    assert_eq!((&first["status"], &second["status"]), (&"running".into(), &"running".into()));
    assert_ne!(host(&first), host(&second), "{first} {second}");
    assert_eq!((&third["status"], &third["queued"]["position"]), (&"queued".into(), &1.into()), "{third}");
    near.run(["kill", first["handle"].as_str().unwrap(), second["handle"].as_str().unwrap()]).ok();
    let third = third["handle"].as_str().unwrap();
    eventually("it has its place", TEST_TIMEOUT, || {
        let shown = near.json(["show", third]);
        if shown["status"] == "running" { Ok(()) } else { Err(shown) }
    });
    near.run(["kill", third]).ok();
}

/// Each question that is waited for costs the time of a way there and back: over ssh a call has three, and two of them are taken by opening a
/// channel and by an order, which is not sent before the relay is there.
#[test]
fn a_call_asks_its_host_once_or_twice_and_moves_little() {
    let (near, wire) = two();
    let cost = |words: &[&str]| {
        let (asked, back) = (wire.asked(), wire.bytes_back());
        let ran = near.run(words.iter().copied());
        (ran, wire.asked() - asked, wire.bytes_back() - back)
    };
    let (ran, asked, _) = cost(&["run", "--on", "gpu1", "-d", "--name", "j", "seq 100000; read x; exit 7"]);
    assert_eq!((ran.ok().text().as_str(), asked), ("gpu1/1\n", 2), "what wakes it, and the start");
    near.run(["wait", "gpu1/j", "--pattern", "^100000$", "--since", "0"]).ok();
    let looks: &[&[&str]] = &[
        &["show", "gpu1/j"],
        &["show", "gpu1/j", "--json"],
        &["screen", "gpu1/j"],
        &["read", "gpu1/j", "--tail", "200"],
        &["read", "gpu1/j", "--tail", "200", "--json"],
        &["read", "gpu1/j", "--tail", "3", "--raw"],
        &["read", "gpu1/j", "--grep", "^99999$"],
        &["jobs", "--on", "gpu1"],
    ];
    for words in looks {
        let (ran, asked, back) = cost(words);
        assert_eq!(asked, 1, "{words:?}: {ran}");
        assert!(back < 64 << 10, "{words:?} moved {back} bytes");
        ran.ok();
    }
    let (tail, ..) = cost(looks[3]);
    let wanted: Vec<String> = (99_801..=100_000).map(|number| number.to_string()).collect();
    assert_eq!(tail.ok().text().lines().collect::<Vec<_>>(), wanted);
    let (ran, asked, _) = cost(&["logs", "gpu1/j", "--tail", "2"]);
    assert_eq!((ran.ok().text().as_str(), asked), ("99999\n100000\n", 2));
    let (ran, asked, _) = cost(&["send", "gpu1/j", "--no-wait", "go"]);
    ran.ok();
    assert_eq!(asked, 2, "who it is, and the order");
    let (waited, asked, _) = cost(&["wait", "gpu1/j", "--exit"]);
    assert_eq!((waited.code(7).text().as_str(), asked), ("gpu1/1 exit\n", 2));
    near.run(["run", "--on", "gpu1", "-d", "--name", "k", "sleep 1000"]).ok();
    let (killed, asked, _) = cost(&["kill", "gpu1/k"]);
    assert!(killed.ok().text().contains("nothing is left"));
    assert_eq!(asked, 2, "who it is, and the order");
    let (removed, asked, _) = cost(&["rm", "gpu1/k"]);
    removed.ok();
    assert_eq!(asked, 2);
    // How often a run in the foreground asks depends on when its output and its end come.
    let (ran, ..) = cost(&["run", "--on", "gpu1", "echo hi; exit 5"]);
    assert_eq!(ran.code(5).text(), "hi\n", "what came along was not older than its end");
}
