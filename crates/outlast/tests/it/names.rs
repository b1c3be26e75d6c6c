//! Names and sessions.

use crate::sandbox;

#[test]
fn a_name_stands_for_its_job() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture();
    sandbox.start(["--name", "web", "--description", "the server", "--", &fixture, "says-and-sleeps", "up"]);
    let answer = sandbox.json(["wait", "web", "--pattern", "up", "--deadline", "30s"]);
    assert_eq!((&answer["handle"], &answer["name"]), (&1.into(), &"web".into()), "{answer}");
    let row = sandbox.json(["jobs"])["jobs"][0].clone();
    assert_eq!((&row["name"], &row["description"]), (&"web".into(), &"the server".into()), "{row}");
    assert!(sandbox.run(["jobs"]).ok().text().contains("\n1    web "));
    // Taken while its job runs, and free after.
    let ran = sandbox.run(["run", "-d", "--name", "web", "true"]).code(2).says("belongs to job 1");
    assert!(ran.stderr.contains("outlast kill web"), "{ran}");
    assert!(!sandbox.job(2).exists(), "no job is left");
    sandbox.run(["kill", "web"]).ok();
    sandbox.nothing_runs();
    assert_eq!(sandbox.run(["read", "web"]).ok().text(), "up\n");
    let second = sandbox.start(["--name", "web", "--", &fixture, "says", "again"]);
    sandbox.wait_for_end(second);
    assert_eq!(sandbox.run(["read", "web"]).ok().text(), "again\n");
    sandbox.nothing_runs();
    sandbox.run(["prune", "--all"]).ok();
    sandbox.run(["read", "web"]).code(3).says("web");
}

#[test]
fn a_name_claimed_by_many_at_once_goes_to_one() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture();
    let args = ["--json", "run", "-d", "--name", "one", "--", &fixture, "says-and-sleeps", "up"];
    let calls: Vec<_> = (0..12).map(|_| sandbox.call(args).spawn()).collect();
    let codes: Vec<_> = calls.into_iter().map(|call| call.wait().code).collect();
    let won = codes.iter().filter(|code| **code == Some(0)).count();
    assert_eq!(won, 1, "{codes:?}");
    assert_eq!(sandbox.json(["jobs", "--running"])["jobs"].as_array().unwrap().len(), 1);
    assert_eq!(sandbox.json(["kill", "one"])["status"], "killed");
}

#[test]
fn a_session_sees_its_own_jobs_and_whatever_runs() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture();
    let start = |session: &str, verb: &str| {
        let call = sandbox.call(["--json", "run", "-d", "--", &fixture]).args([verb, "x"]);
        call.env("OUTLAST_SESSION", session).run().ok();
    };
    start("ada", "says");
    start("grace", "says");
    start("grace", "says-and-sleeps");
    sandbox.wait_for_end(1);
    sandbox.wait_for_end(2);
    let seen = |session: &str, more: &[&str]| -> Vec<u64> {
        let call = sandbox.call(["--json", "jobs"]).args(more).env("OUTLAST_SESSION", session);
        let mut handles: Vec<u64> = call.run().ok().json()["jobs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|job| job["handle"].as_u64().unwrap())
            .collect();
        handles.sort_unstable();
        handles
    };
    assert_eq!(seen("ada", &[]), [1, 3]);
    assert_eq!(seen("grace", &[]), [2, 3]);
    assert_eq!(seen("ada", &["--all"]), [1, 2, 3]);
    assert_eq!(seen("ada", &["--running"]), [3]);
    // Without a name for it, the session is the caller: here, this test's process.
    let call = sandbox.call(["--json", "run", "-d", "--", &fixture, "says", "x"]);
    call.without_env("OUTLAST_SESSION").run().ok();
    let session = sandbox.info(4)["session"].as_str().unwrap().to_owned();
    assert!(session.starts_with("process-") || session.starts_with("terminal-"), "{session}");
    sandbox.wait_for_end(4);
    // An agent's shell is a new one for each call, and the calls are still of one session.
    for job in [5, 6] {
        let line = format!("timeout 60 {} run -d true; :", sandbox.program().display());
        sandbox.shell(&line).without_env("OUTLAST_SESSION").run().ok();
        sandbox.wait_for_end(job);
        assert_eq!(sandbox.info(job)["session"], session.as_str());
    }
}
