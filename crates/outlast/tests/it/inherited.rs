//! What whoever starts us has set for itself: it is the job's too, and does not act on us.

use outlast_testkit::Sandbox;

use crate::sandbox;

/// Runs a line of the shell in which `$outlast` is the program.
fn shell(sandbox: &Sandbox, line: &str) -> outlast_testkit::Ran {
    sandbox.shell(line).env("outlast", sandbox.program()).run()
}

#[test]
fn umask_limits_and_priority_are_the_callers() {
    let sandbox = sandbox();
    let line = "umask 027; ulimit -S -n 300; ulimit -S -t 50; exec nice -n 3 \"$outlast\" run --pipe \
        'umask; ulimit -n; ulimit -t; nice'";
    assert_eq!(shell(&sandbox, line).ok().text(), "0027\n300\n50\n3\n");
    let limits = "ulimit -S -n 300; \"$outlast\" run -d --json 'read x'";
    let job = shell(&sandbox, limits).ok().json()["handle"].as_u64().unwrap();
    let keeper = std::fs::read_to_string(format!("/proc/{}/limits", sandbox.pid(job, "keeper"))).unwrap();
    let files = keeper.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_ne!(files.split_whitespace().nth(3), Some("300"), "{files}");
}

/// Symptom that this guards against: the log of a job ends where its caller's limit for files is.
#[test]
fn a_callers_limits_do_not_cut_the_log_or_end_the_keeper() {
    let sandbox = sandbox();
    let line = "ulimit -S -f 16; ulimit -S -t 1; \"$outlast\" run -d --pipe \
        'ulimit -S -t unlimited; seq 1 100000; exit 5'";
    shell(&sandbox, line).ok();
    assert_eq!(sandbox.wait_for_end(1)["exit_code"], 5);
    assert!(sandbox.log(1).ends_with(b"\n100000\n"), "{} bytes", sandbox.log_len(1));
    assert!(sandbox.info(1)["gone"].is_null(), "{}", sandbox.info(1));
}

/// The kernel ends something else first: a keeper knows how its job ended.
#[test]
fn a_keeper_is_not_the_first_to_go_when_memory_runs_out() {
    let sandbox = sandbox();
    let job = sandbox.start(["read x"]);
    let score = |role: &str| -> i32 {
        let path = format!("/proc/{}/oom_score_adj", sandbox.pid(job, role));
        std::fs::read_to_string(path).unwrap().trim().parse().unwrap()
    };
    assert!(score("keeper") < score("process") && score("heir") < score("process"));
}
