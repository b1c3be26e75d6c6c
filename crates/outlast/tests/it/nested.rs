//! Jobs that are started from inside a job are jobs of their own.

use crate::sandbox;

fn inner_line(sandbox: &outlast_testkit::Sandbox, then: &str) -> String {
    let (program, home, fixture) = (sandbox.program().display(), sandbox.home().display(), sandbox.fixture());
    format!(
        "'{program}' --home '{home}' run -d --name inner -- '{fixture}' says-and-sleeps inside; echo started; {then}"
    )
}

#[test]
fn killing_the_outer_job_leaves_the_inner_one_alone() {
    let sandbox = sandbox();
    let outer = sandbox.start([inner_line(&sandbox, "read answer")]);
    sandbox.wait_for_text(outer, "started");
    sandbox.json(["wait", "inner", "--pattern", "inside", "--deadline", "30s"]);
    let killed = sandbox.json(["kill", &outer.to_string()]);
    assert_eq!(
        (&killed["status"], &killed["survivors"]),
        (&"killed".into(), &serde_json::json!([])),
        "{killed}"
    );
    let rows = sandbox.json(["jobs", "--running"])["jobs"].as_array().unwrap().clone();
    assert_eq!((rows.len(), &rows[0]["name"]), (1, &"inner".into()), "{rows:?}");
    assert!(rows[0]["activity"].is_string(), "and its keeper answers: {rows:?}");
    let ended = sandbox.json(["kill", "inner"]);
    assert_eq!((&ended["status"], &ended["signal"]), (&"killed".into(), &"SIGTERM".into()), "{ended}");
    sandbox.nothing_runs();
}

#[test]
fn an_outer_job_ends_although_the_inner_one_runs_on() {
    let sandbox = sandbox();
    let outer = sandbox.start([inner_line(&sandbox, "exit 4")]);
    let ended = sandbox.wait_for_end(outer);
    assert_eq!(ended["exit_code"], 4, "{ended}");
    assert_eq!(ended["left_behind"], serde_json::Value::Null, "a job of its own is not left behind: {ended}");
    let keeper =
        outlast_testkit::eventually("the outer keeper leaves", outlast_testkit::TEST_TIMEOUT, || {
            let info = sandbox.info(outer);
            let pid = i32::try_from(info["keeper"]["pid"].as_i64().unwrap()).unwrap();
            match outlast_testkit::processes::alive(pid, info["keeper"]["started"].as_u64().unwrap()) {
                None => Ok(pid),
                Some(keeper) => Err(keeper),
            }
        });
    assert!(keeper > 0);
    assert_eq!(sandbox.json(["kill", "inner"])["signal"], "SIGTERM");
    sandbox.nothing_runs();
}

#[test]
fn a_job_can_end_itself() {
    let sandbox = sandbox();
    let (program, home) = (sandbox.program().display(), sandbox.home().display());
    let job =
        sandbox.start([format!("'{program}' --home '{home}' kill 1 --force; echo not reached; read x")]);
    let ended = sandbox.wait_for_end(job);
    assert_eq!(ended["status"], "killed", "{ended}");
    sandbox.nothing_runs();
}

/// A command knows which job it is and finds its home, whatever the caller's environment said; nothing else of ours is
/// in its environment.
#[test]
fn a_job_is_told_its_number_and_its_home_and_nothing_else() {
    let sandbox = sandbox();
    let elsewhere = sandbox.root().join("elsewhere");
    let mut run = sandbox
        .call(["--home"])
        .arg(&elsewhere)
        .args(["run", "env | grep ^OUTLAST_ | grep -v ^OUTLAST_MARK= | sort"]);
    run = run.env("OUTLAST_SESSION", "secret").env("OUTLAST_MASK", "0");
    let home = elsewhere.canonicalize().unwrap_or(elsewhere.clone());
    assert_eq!(run.run().ok().text(), format!("OUTLAST_HOME={}\nOUTLAST_JOB=1\n", home.display()));
    let nested = format!("{} show $OUTLAST_JOB --json", sandbox.program().display());
    let shown = sandbox.call(["--home"]).arg(&elsewhere).args(["run", &nested]).run().ok();
    assert!(shown.text().contains(r#""handle":2"#), "{shown}");
}
