//! What a shell remembers: across dead keepers, across its own ends, and in the record.

use outlast_job::shell::{ShellKind, StepState};
use outlast_testkit::processes::kill_dash_nine;
use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually};

use crate::kinds::kinds;
use crate::{Main, sandbox};

/// Exports a variable.
fn export(kind: ShellKind, name: &str, value: &str) -> String {
    match kind {
        ShellKind::Fish => format!("set -gx {name} {value}"),
        ShellKind::Bash | ShellKind::Zsh | ShellKind::Dash => format!("export {name}={value}"),
    }
}

/// Ends a shell by force, and waits until its record says so.
fn end_shell(sandbox: &Sandbox, job: u64) {
    kill_dash_nine(&sandbox.process(job, "process"));
    eventually("the shell has ended", TEST_TIMEOUT, || match sandbox.info(job)["status"].as_str() {
        Some("running") => Err("it runs"),
        _ => Ok(()),
    });
}

fn shown(sandbox: &Sandbox) -> serde_json::Value {
    sandbox.call(["--json", "show", "shell", "main"]).without_env("OUTLAST_SESSION").run().json()
}

/// Waits until the file of a shell's state has a text in it.
fn is_kept(sandbox: &Sandbox, job: u64, text: &str) {
    let file = sandbox.job(job).join("shell-state");
    eventually("the state is written", TEST_TIMEOUT, || {
        let state = std::fs::read_to_string(&file).unwrap_or_default();
        if state.contains(text) { Ok(()) } else { Err(state) }
    });
}

/// Symptom that this guards against: after a keeper's death, dash has lost all its variables, and what other shells change is not
/// kept any more.
#[test]
fn a_keeper_killed_between_steps_costs_nothing_that_a_shell_remembers() {
    for kind in kinds() {
        let sandbox = sandbox();
        let main = Main::of(&sandbox, kind);
        let plain = if kind == ShellKind::Fish { "set -g plain 2" } else { "plain=2" };
        main.says(&format!("{}; {plain}; cd /usr", export(kind, "A", "1")));
        is_kept(&sandbox, 1, "A");
        kill_dash_nine(&sandbox.process(1, "keeper"));
        eventually("the heir has taken over", TEST_TIMEOUT, || match sandbox.info(1)["takeovers"].as_u64() {
            Some(1) => Ok(()),
            other => Err(other),
        });
        assert_eq!(main.says("echo $A $plain; pwd"), "1 2\n/usr\n", "{kind}");
        main.says(&export(kind, "LATER", "3"));
        is_kept(&sandbox, 1, "LATER");
        end_shell(&sandbox, 1);
        assert_eq!(main.says("echo $A $LATER; pwd"), "1 3\n/usr\n", "{kind}");
    }
}

/// Symptom that this guards against: what was removed comes back with the shell after the next, and the file grows with each.
#[test]
fn what_was_removed_does_not_come_back_and_the_state_does_not_grow() {
    for kind in kinds() {
        let sandbox = sandbox();
        let main = Main::of(&sandbox, kind);
        main.says(&format!("{}; {}", export(kind, "GONE", "1"), export(kind, "STAYS", "2")));
        main.run("exit 0");
        if kind == ShellKind::Dash {
            // There `exit` ends the step alone.
            is_kept(&sandbox, 1, "STAYS");
            end_shell(&sandbox, 1);
        }
        let remove = if kind == ShellKind::Fish { "set -e GONE" } else { "unset GONE" };
        assert_eq!(main.says("echo $GONE $STAYS"), "1 2\n", "{kind}");
        let state = || std::fs::read_to_string(sandbox.job(2).join("shell-state")).unwrap();
        let before = state().len();
        main.says(remove);
        eventually("it is not kept any more", TEST_TIMEOUT, || match state() {
            text if text.contains("GONE") => Err(text),
            _ => Ok(()),
        });
        assert!(state().len() < before, "{kind}: {}", state());
        end_shell(&sandbox, 2);
        assert_eq!(main.says("echo \"x$GONE\" $STAYS"), "x 2\n", "{kind}");
    }
}

#[test]
fn a_step_that_ends_its_shell_loses_nothing_of_the_step_before_it() {
    for kind in kinds().filter(|kind| *kind != ShellKind::Dash) {
        let sandbox = sandbox();
        let main = Main::of(&sandbox, kind);
        main.says(&format!("{}; cd /usr", export(kind, "A", "1")));
        // Sooner than a shell is asked by itself.
        assert_eq!(main.run("exit 3").0.exit_code, Some(3), "{kind}");
        assert_eq!(main.run("cd /; exit 4").0.exit_code, Some(4), "{kind}");
        assert_eq!(main.says("echo $A; pwd"), "1\n/usr\n", "{kind}");
    }
}

#[test]
fn what_a_step_changed_is_in_the_record() {
    for kind in kinds() {
        let sandbox = sandbox();
        let main = Main::of(&sandbox, kind);
        let told = |step: u64| {
            eventually("the change is an event", TEST_TIMEOUT, || {
                let events = shown(&sandbox);
                let changed = events["steps"][step as usize - 1]["changed"].clone();
                if changed == serde_json::json!(["A"]) { Ok(()) } else { Err(events) }
            });
        };
        main.says(&export(kind, "A", "1"));
        told(1);
        // The same once more, and a step that changes nothing.
        main.says(&export(kind, "A", "2"));
        told(2);
        main.says("true");
        main.says(&export(kind, "A", "3"));
        told(4);
        end_shell(&sandbox, 1);
        let steps = shown(&sandbox)["steps"].clone();
        let changed: Vec<usize> = steps
            .as_array()
            .unwrap()
            .iter()
            .map(|step| step["changed"].as_array().map_or(0, Vec::len))
            .collect();
        assert_eq!(changed, [1, 1, 0, 1], "{kind}: {steps}");
    }
}

/// A command can take away what brings its shell back; then the shell is made again, and nobody waits for ever.
#[test]
fn a_shell_that_lost_its_way_back_is_made_again() {
    for kind in kinds() {
        let hostile: &[&str] = match kind {
            ShellKind::Bash => &[
                "unset PROMPT_COMMAND; kill -INT $$; sleep 1000",
                "builtin() { :; }",
                "unset -f __outlast_next __outlast_arm",
                "readonly __outlast_s",
                "__outlast_next() { echo mine; }",
            ],
            ShellKind::Zsh => &["builtin() { : }", "unfunction __outlast_next", "readonly __outlast_s"],
            ShellKind::Fish => &["functions -e __outlast_next __outlast_one", "function __outlast_next; end"],
            ShellKind::Dash => &["exec 8>&- 9>&-"],
        };
        for command in hostile {
            let sandbox = sandbox();
            let main = Main::of(&sandbox, kind);
            main.says(&export(kind, "A", "1"));
            is_kept(&sandbox, 1, "A");
            let (step, output) = main.run(command);
            assert_eq!(step.state, StepState::Ended, "{kind}: {command}: {output}");
            assert_eq!(main.says("echo alive $A"), "alive 1\n", "{kind}: {command}");
        }
    }
}
