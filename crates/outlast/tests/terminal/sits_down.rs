//! A person who sits down in a shell that remembers.

use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually, has};

use crate::person::Person;
use crate::sandbox;

/// A step of an agent in the shell in which the person sits.
fn agent(sandbox: &Sandbox, args: &[&str]) -> outlast_testkit::Ran {
    sandbox.call(["run", "--shell", "main"]).args(args).env("OUTLAST_SESSION", "person").run()
}

fn steps(sandbox: &Sandbox) -> Vec<serde_json::Value> {
    let shown =
        sandbox.call(["--json", "show", "shell", "main"]).env("OUTLAST_SESSION", "person").run().json();
    shown["steps"].as_array().unwrap().clone()
}

#[track_caller]
fn ended(sandbox: &Sandbox, command: &str) -> serde_json::Value {
    eventually(&format!("{command} has ended"), TEST_TIMEOUT, || {
        let steps = steps(sandbox);
        let found = steps.iter().find(|step| step["command"] == command && step["state"] == "ended");
        found.cloned().ok_or(steps)
    })
}

#[test]
fn a_person_types_steps_of_their_own_and_those_of_agents_wait() {
    for kind in ["bash", "zsh", "fish", "dash"] {
        if !has(kind) {
            continue;
        }
        let sandbox = sandbox();
        let set = if kind == "fish" { "set -gx FROM agent; cd /usr" } else { "export FROM=agent; cd /usr" };
        agent(&sandbox, &["--with", kind, set]).ok();
        let person = Person::calls(&sandbox, (80, 24), &["shell", "main"]);
        person.sees("[shell main was entered");
        // Its own prompt, whatever that looks like.
        eventually("the prompt is there", TEST_TIMEOUT, || {
            let shown = sandbox
                .call(["--json", "show", "shell", "main"])
                .env("OUTLAST_SESSION", "person")
                .run()
                .json();
            if shown["seated"] == true { Ok(()) } else { Err(shown) }
        });
        person.types(b"echo $FROM-and-me\r");
        person.sees("agent-and-me");
        let step = ended(&sandbox, "echo $FROM-and-me");
        assert_eq!((&step["by"], &step["exit_code"]), (&"a person".into(), &0.into()), "{kind}: {step}");
        person.types(b"sh -c 'exit 7'\r");
        assert_eq!(ended(&sandbox, "sh -c 'exit 7'")["exit_code"], 7, "{kind}");
        let refused = agent(&sandbox, &["--if-idle", "echo no"]);
        assert_eq!(refused.code, Some(5), "{kind}: {refused:?}");
        assert!(refused.stderr.contains("a person sits"), "{kind}: {refused:?}");
        agent(&sandbox, &["-d", "echo from-the-queue"]).ok();
        assert!(steps(&sandbox).iter().any(|step| step["state"] == "queued"), "{kind}");
        // What is half typed when they leave is dropped, and what waited goes on.
        person.types(b"echo half");
        person.sees("echo half");
        person.types(b"\x1d");
        person.sees("[left shell main; it stays");
        let step = ended(&sandbox, "echo from-the-queue");
        assert_eq!(step["exit_code"], 0, "{kind}: {step}");
        let told = steps(&sandbox);
        assert!(
            !told.iter().any(|step| step["command"].as_str().unwrap().contains("half")),
            "{kind}: {told:?}"
        );
        let after = agent(&sandbox, &["echo $FROM; pwd"]).ok();
        assert_eq!(after.text(), "agent\n/usr\n", "{kind}");
    }
}

#[test]
fn a_shell_that_a_person_ends_is_made_again() {
    let sandbox = sandbox();
    let person = Person::calls(&sandbox, (80, 24), &["shell", "main"]);
    person.sees("[shell main was made");
    person.types(b"exit 3\r");
    person.sees("[back 3]");
    assert_eq!(agent(&sandbox, &["echo again"]).ok().text(), "again\n");
}

#[test]
fn to_sit_down_needs_a_terminal() {
    let sandbox = sandbox();
    let refused = sandbox.run(["shell", "main"]).code(2);
    assert!(refused.stderr.contains("outlast run --shell main"), "{refused:?}");
}
