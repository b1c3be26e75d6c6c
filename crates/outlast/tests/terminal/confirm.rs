//! A person is asked at their terminal.

use std::os::unix::fs::PermissionsExt;

use crate::person::Person;
use crate::sandbox;

const SIZE: (u16, u16) = (100, 24);

fn asking() -> outlast_testkit::Sandbox {
    let sandbox = sandbox();
    let folder = sandbox.root().join("config/outlast");
    std::fs::create_dir_all(&folder).unwrap();
    let rule = "[[rule]]\ndecision = \"ask\"\nprefix = \"touch\"\nwhy = \"better look first\"\n";
    std::fs::write(folder.join("policy.toml"), rule).unwrap();
    sandbox
}

fn answers(sandbox: &outlast_testkit::Sandbox) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(sandbox.home().join("audit.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["answer"].clone())
        .collect()
}

#[test]
fn yes_is_yes_and_everything_else_is_no() {
    let sandbox = asking();
    let file = sandbox.work().join("here");
    for (typed, there) in
        [(&b"n\r"[..], false), (b"\r", false), (b"yesterday\r", false), (b"\x04", false), (b"Y\r", true)]
    {
        let person = Person::calls(&sandbox, SIZE, &["run", "touch here"]);
        person.sees("better look first");
        person.sees("Do it? [y/N]");
        person.types(typed);
        assert_eq!(person.is_back_in_the_shell(), if there { 0 } else { 5 });
        assert_eq!(file.exists(), there, "{typed:?}");
    }
    assert_eq!(answers(&sandbox), ["no", "no", "no", "no", "yes"]);
}

#[test]
fn in_a_job_nobody_sits_at_the_terminal() {
    let sandbox = asking();
    let (program, home) = (sandbox.program().display(), sandbox.home().display());
    // Whoever typed into the job could answer a question at its terminal: so none is asked there.
    let script = sandbox.work().join("inner");
    let lines = format!("#!/bin/sh\n'{program}' --home '{home}' run 'touch here'\necho code $?\nread x\n");
    std::fs::write(&script, lines).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let job = sandbox.start(["./inner"]);
    sandbox.wait_for_text(job, "code 5");
    assert!(!sandbox.work().join("here").exists());
    assert_eq!(answers(&sandbox), ["unable"]);
    sandbox.run(["kill", &job.to_string()]).ok();
}
