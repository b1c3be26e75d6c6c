//! Two runs, and two moments, compared.

use outlast_testkit::Sandbox;

use crate::sandbox;

/// Runs a command to its end; returns the job.
fn ran(sandbox: &Sandbox, script: &str) -> String {
    let job = sandbox.start(["--name", "build", "--", "sh", "-c", script]);
    sandbox.wait_for_end(job);
    job.to_string()
}

#[test]
fn what_two_runs_printed_is_compared() {
    let sandbox = sandbox();
    let first = ran(&sandbox, "echo begins; echo 'took 12.5s'; echo one; echo ends");
    let second = ran(&sandbox, "echo begins; echo 'took 9s'; echo two; echo three; echo ends");
    let said = sandbox.run(["diff", &first, &second]).code(1).text();
    assert!(said.contains(&format!("--- {first} build  completed")), "{said}");
    let lines: Vec<&str> = said.lines().skip(2).collect();
    let wanted = ["@@ -1,4 +1,5 @@", " begins", "-took 12.5s", "-one", "+took 9s", "+two", "+three", " ends"];
    assert_eq!(lines, wanted, "{said}");
    let said = sandbox.run(["diff", &first, &second, "--ignore-numbers", "-U", "0"]).code(1).text();
    assert!(said.contains("+three") && !said.contains("took"), "{said}");
    sandbox.run(["diff", &first, &first]).ok().says("no difference");
    let value = sandbox.call(["--json", "diff", &first, &second]).run().code(1).json();
    assert_eq!(
        (value["what"].as_str(), &value["difference"]["added"]),
        (Some("output"), &3.into()),
        "{value}"
    );
    assert_eq!(value["difference"]["hunks"][0]["lines"][1]["on"], "first");
}

#[test]
fn one_job_is_compared_with_the_run_before_it() {
    let sandbox = sandbox();
    std::fs::write(sandbox.work().join("data"), "old\n").unwrap();
    let first = ran(&sandbox, "cat data");
    sandbox.run(["diff", &first]).code(3).says("no earlier run");
    std::fs::write(sandbox.work().join("data"), "new\n").unwrap();
    ran(&sandbox, "cat data; true");
    let third = ran(&sandbox, "cat data");
    // The one between was another command.
    let said = sandbox.run(["diff", &third]).code(1).text();
    assert!(said.starts_with(&format!("--- {first} build")), "{said}");
    assert!(said.contains("-old\n+new"), "{said}");
}

#[test]
fn two_moments_of_a_screen_are_compared() {
    let sandbox = sandbox();
    let script = "printf 'one\\ntwo\\n'; read x; printf '\\033[H\\033[2Jone\\nthree\\n'; read y";
    let job = sandbox.start(["--name", "draws", "--", "sh", "-c", script]);
    sandbox.wait_for_text(job, "two");
    // The moment before the next one is a moment of its own.
    sandbox.run(["wait", "draws", "--quiet-for", "300ms"]).ok();
    sandbox.run(["send", "draws", "--no-wait", "--key", "Enter"]).ok();
    sandbox.wait_for_text(job, "three");
    let said = sandbox.run(["diff", "draws", "--at", "200ms", "--at", "1h"]).code(1).text();
    assert!(said.contains("-two") && said.contains("+three") && !said.contains("-one"), "{said}");
    let now = sandbox.run(["diff", "draws", "--at", "200ms"]).code(1).text();
    assert!(now.contains("+three"), "{now}");
    sandbox.run(["diff", "draws", "draws", "--screen"]).ok().says("no difference");
    sandbox.run(["diff", "draws", "--at", "1s", "--at", "2s", "--at", "3s"]).code(2).says("twice at most");
    let pipes = sandbox.start(["--pipe", "--", "sh", "-c", "echo x"]);
    sandbox.wait_for_end(pipes);
    sandbox.run(["diff", "draws", &pipes.to_string(), "--screen"]).code(2).says("no screen");
}
