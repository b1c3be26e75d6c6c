//! Bad input: a clear message, the right exit code, nothing left behind.

use crate::sandbox;

#[test]
fn unknown_handles_and_names() {
    let sandbox = sandbox();
    let verbs: [&[&str]; 7] = [
        &["read", "99"],
        &["logs", "99"],
        &["screen", "99"],
        &["send", "99", "x"],
        &["wait", "99"],
        &["kill", "99"],
        &["read", "no-such-name"],
    ];
    for args in verbs {
        let ran = sandbox.run(args).code(3).says("there is no job").says("outlast jobs");
        assert!(ran.stdout.is_empty(), "{ran}");
        let error = sandbox.call(["--json"]).args(args).run().code(3).json();
        assert_eq!(error["error"]["kind"], "no_such_job", "{error}");
        assert!(error["error"]["hint"].is_string(), "{error}");
    }
    for odd in ["0", "-1", "../1", "..", ".", "1/../1", "18446744073709551616", "", "a/b", "\u{1b}[31m"] {
        sandbox.call(["read", "--"]).arg(odd).run().code(3);
    }
}

#[test]
fn a_finished_job_says_so() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says", "done"]);
    sandbox.wait_for_end(job);
    sandbox.nothing_runs();
    sandbox.run(["send", "1", "x"]).code(1).says("does not run any more").says("outlast read 1");
    sandbox.run(["send", "1", "--key", "Enter"]).code(1);
    assert_eq!(sandbox.json(["kill", "1", "--signal", "HUP"])["already_ended"], true);
    assert_eq!(sandbox.json(["kill", "1"])["already_ended"], true);
    assert_eq!(sandbox.json(["wait", "1"])["already"], true);
    assert_eq!(sandbox.run(["logs", "-f", "1"]).ok().text(), "done\n");
    assert_eq!(sandbox.run(["screen", "1"]).ok().text(), "done\n");
}

#[test]
fn usage_errors_have_code_two_and_leave_nothing() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture();
    let long_name = "x".repeat(65);
    let cases: Vec<Vec<&str>> = vec![
        vec!["run", "--size", "0x0", "--", "true"],
        vec!["run", "--size", "0x10", "--", "true"],
        vec!["run", "--size", "70000x10", "--", "true"],
        vec!["run", "--size", "wide", "--", "true"],
        vec!["run"],
        vec!["run", ""],
        vec!["run", "   "],
        vec!["run", "--name", "7", "--", "true"],
        vec!["run", "--name", "../x", "--", "true"],
        vec!["run", "--name", "", "--", "true"],
        vec!["run", "--name", &long_name, "--", "true"],
        vec!["run", "--timeout", "soon", "--", "true"],
        vec!["run", "--timeout", "-5s", "--", "true"],
        vec!["run", "--log-cap", "much", "--", "true"],
        vec!["run", "--env", "=x", "--", "true"],
        vec!["run", "--pipe", "--size", "10x10", "--", "true"],
        vec!["run", "-d", "--pattern", "x", "--", "true"],
        vec!["frobnicate"],
        vec!["prune", "--age", "old"],
    ];
    for args in cases {
        let ran = sandbox.run(&args).code(2);
        assert!(ran.stdout.is_empty() && !ran.stderr.is_empty(), "{ran}");
        assert!(!ran.stderr.contains("panicked"), "{ran}");
    }
    assert!(!sandbox.job(1).exists(), "no job is left");
    sandbox.run(["wait"]).code(3).says("no job yet");

    sandbox.start(["--", &fixture, "says-and-sleeps", "up"]);
    sandbox.wait_for_text(1, "up");
    sandbox.run(["kill", "1", "--signal", "NONSENSE"]).code(2).says("NONSENSE").says("HUP");
    sandbox.run(["kill", "1", "--signal", "0"]).code(2);
    sandbox.run(["kill", "1", "--signal", "99"]).code(2);
    sandbox.run(["send", "1"]).code(2).says("nothing to type");
    sandbox.run(["send", "1", "--key", "Entre"]).code(2).says("Entre").says("Enter");
    sandbox.run(["wait", "1", "--since", "yesterday"]).code(2).says("yesterday");
    assert_eq!(sandbox.json(["jobs"])["jobs"][0]["status"], "running", "none of it touched the job");
    assert_eq!(sandbox.run(["read", "1"]).ok().text(), "up\n");
}

#[test]
fn a_nul_in_a_command_is_refused_by_the_library() {
    use outlast_job::{JobSpec, Kind, Outlast, Run};
    let sandbox = sandbox();
    let outlast = Outlast::at(sandbox.home()).unwrap().kept_by(sandbox.program());
    let nul_in_env = {
        let mut spec = JobSpec::shell("true");
        spec.set_env("A", "x\0y");
        spec
    };
    let specs = [
        JobSpec::shell("echo a\0b"),
        JobSpec::new(Run::Program(vec!["echo".into(), "a\0b".into()])),
        JobSpec::new(Run::Program(vec![])),
        nul_in_env,
    ];
    for spec in specs {
        let failure = outlast.start(spec).unwrap_err();
        assert_eq!(failure.kind, Kind::Usage, "{failure}");
        assert!(failure.hint.is_some(), "{failure}");
    }
    assert!(!sandbox.job(1).exists(), "no job is left");
}

#[test]
fn a_command_line_of_300_kilobytes_runs_or_says_why_not() {
    let sandbox = sandbox();
    // The system takes at most 128 KiB in one argument, but many more in all.
    let words = vec!["x".repeat(1000); 300];
    let job =
        sandbox.call(["--json", "run", "-d", "--", &sandbox.fixture(), "echo-args"]).args(&words).run().ok();
    assert_eq!(job.json()["handle"], 1);
    sandbox.wait_for_end(1);
    assert_eq!(sandbox.run(["read", "1"]).ok().text().lines().count(), 300);
    assert!(sandbox.run(["jobs"]).ok().text().len() < 1000, "the list stays readable");

    use outlast_job::{JobSpec, Kind, Outlast};
    let outlast = Outlast::at(sandbox.home()).unwrap().kept_by(sandbox.program());
    let failure = outlast.start(JobSpec::shell(format!("echo {}", "x".repeat(300 << 10)))).unwrap_err();
    assert_eq!(failure.kind, Kind::CannotStart, "{failure}");
    assert!(failure.message.contains("long"), "{failure}");
    assert!(!sandbox.job(2).exists(), "no record of it is left");
    sandbox.nothing_runs();
}

#[test]
fn settings_that_do_not_load_stop_the_start() {
    let sandbox = sandbox();
    let file = sandbox.root().join("bad.toml");
    std::fs::write(&file, "[retention]\njobz = 3\n").unwrap();
    let ran = sandbox.call(["run", "-d", "true"]).env("OUTLAST_CONFIG", &file).run().code(2).says("bad.toml");
    assert!(ran.stderr.contains("line 2"), "{ran}");
    assert!(!sandbox.job(1).exists(), "no job is left");
}
