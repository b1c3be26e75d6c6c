//! Limits hold, and the receipt says who ended a job that was over one.

use crate::sandbox;

#[test]
fn memory_of_each_process_is_limited_where_there_is_no_control_group() {
    let sandbox = sandbox();
    let hog = "import sys\nb=[]\ntry:\n  for i in range(400): b.append(bytearray(1<<20))\nexcept MemoryError:\n  sys.exit(9)";
    let ran = sandbox.run(["--json", "run", "--memory", "150MiB", "--", "python3", "-c", hog]).json();
    let info = sandbox.info(ran["handle"].as_u64().unwrap());
    if info["limited_by"] == "each_process" {
        assert_eq!(ran["exit_code"], 9, "{ran}");
    } else {
        assert_eq!(ran["signal"], "SIGKILL", "{ran}");
        assert_eq!(info["ended_by"]["who"], "oom_killer", "{info}");
    }
}

#[test]
fn cpu_time_is_limited() {
    let sandbox = sandbox();
    let ran =
        sandbox.run(["--json", "run", "--cpu-time", "1s", "--", "bash", "-c", "while :; do :; done"]).json();
    assert_eq!(ran["signal"], "SIGXCPU", "{ran}");
}

#[test]
fn a_fork_bomb_is_held_where_processes_can_be_limited() {
    let sandbox = sandbox();
    let start = sandbox.run([
        "--json",
        "run",
        "-d",
        "--processes",
        "40",
        "--",
        "bash",
        "-c",
        "f() { f | f & }; f; sleep 1000",
    ]);
    if start.code != Some(0) {
        eprintln!("processes can't be limited here, so no bomb is set off: {}", start.json());
        assert!(start.text().contains("control group"), "{}", start.text());
        return;
    }
    let job = start.json()["handle"].as_u64().unwrap();
    sandbox.wait_for_text(job, "(?i)resource temporarily unavailable|retry");
    let killed = sandbox.json(["kill", &job.to_string(), "--grace", "0s"]);
    assert_eq!(killed["status"], "killed", "{killed}");
    sandbox.nothing_runs();
}

#[test]
fn a_limit_that_can_not_be_had_starts_nothing() {
    let sandbox = sandbox();
    let ran = sandbox.run(["--json", "run", "-d", "--cpu", "0.5", "--", "sleep", "1000"]);
    if ran.code == Some(0) {
        let info = sandbox.info(ran.json()["handle"].as_u64().unwrap());
        assert!(info["limited_by"]["cgroup"].is_string(), "{info}");
        return;
    }
    let refused = ran.json();
    assert!(refused["error"]["hint"].as_str().unwrap().contains("--cpu-time"), "{refused}");
}
