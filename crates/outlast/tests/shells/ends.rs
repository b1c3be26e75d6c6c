//! How steps, shells and keepers end.

use outlast_job::shell::{StepOrder, StepState};
use outlast_job::{Reason, Wait};
use outlast_testkit::processes::kill_dash_nine;
use outlast_testkit::{TEST_TIMEOUT, eventually};

use crate::{GRACE, Main, finished, printed, sandbox};

#[test]
fn a_step_is_ended_and_its_shell_stays() {
    let sandbox = sandbox();
    let main = Main::new(&sandbox);
    main.says("export KEPT=1");
    let stubborn = "sh -c 'trap \"\" INT TERM; echo up; while :; do sleep 0.1; done'";
    for command in ["echo up; sleep 1000; echo no", "echo up; while :; do :; done", stubborn] {
        let (job, step) = main.begin(command);
        printed(&job, step.step, "up");
        let killed = job.end_step(None, GRACE, "me").unwrap();
        assert!(killed.note.is_some(), "{killed:?}");
        let (step, output) = finished(&job, step.step);
        assert!(step.exit_code.is_some_and(|code| code > 128), "{command}: {step:?}");
        assert!(!output.contains("no"), "{output}");
        assert_eq!(main.says("echo $KEPT"), "1\n", "{command}");
    }
    assert_eq!(sandbox.info(1)["takeovers"], 0);
}

#[test]
fn a_loop_of_the_shell_itself_that_ignores_the_interrupt_costs_the_shell() {
    let sandbox = sandbox();
    let main = Main::new(&sandbox);
    let (job, step) = main.begin("trap '' INT; echo up; while :; do :; done");
    printed(&job, step.step, "up");
    let (_, queued) = main.begin("echo never");
    let _ = job.end_step(None, GRACE, "me");
    let (step, _) = finished(&job, step.step);
    assert_eq!(step.state, StepState::Ended);
    let waited = job.wait(&Wait::for_exit().of_step(queued.step), Some(TEST_TIMEOUT)).unwrap();
    assert_eq!(waited.step.unwrap().state, StepState::NotRun);
    assert_eq!(main.says("echo again"), "again\n");
}

#[test]
fn a_step_has_a_time_limit_of_its_own() {
    let sandbox = sandbox();
    let main = Main::new(&sandbox);
    let order = StepOrder { command: "sleep 1000".into(), timeout_ms: Some(200), ..StepOrder::default() };
    let (step, _) = main.run_order(&order);
    assert!(step.note.as_deref().is_some_and(|note| note.contains("timeout")), "{step:?}");
    assert_eq!(main.says("echo here"), "here\n");
}

#[test]
fn a_shell_that_ended_is_made_again() {
    let sandbox = sandbox();
    let main = Main::new(&sandbox);
    for (command, code) in [("exit 5", 5), ("exec sh -c 'exit 6'", 6), ("set -e; false; echo no", 1)] {
        let (step, output) = main.run(command);
        assert_eq!((step.exit_code, output.contains("no")), (Some(code), false), "{command}: {step:?}");
        assert!(step.note.is_some(), "{step:?}");
        assert_eq!(main.says("echo again"), "again\n");
    }
}

#[test]
fn a_shell_that_is_made_again_remembers_what_was_exported_and_defined() {
    let sandbox = sandbox();
    let main = Main::new(&sandbox);
    main.says("mkdir -p deep; cd deep; export KEPT='a b'; export API_TOKEN=abcdefghij; plain=1; f() { echo f $1; }; alias g='echo g'; shopt -s extglob");
    let state = sandbox.job(1).join("shell-state");
    eventually("the state is written", TEST_TIMEOUT, || std::fs::read_to_string(&state));
    let text = std::fs::read_to_string(&state).unwrap();
    assert!(!text.contains("abcdefghij"), "{text}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&state).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    main.run("exit 0");
    let said = main.says(
        "echo $KEPT ${API_TOKEN-none} ${plain-none}; f x; g; basename $PWD; shopt -q extglob && echo glob",
    );
    assert_eq!(said, "a b none none\nf x\ng\ndeep\nglob\n");
    let restored = sandbox.info(2)["shell"]["restored"].as_str().unwrap().to_owned();
    assert!(
        restored.contains("1 function")
            && restored.contains("not kept, as for secrets: API_TOKEN")
            && restored.contains("are gone"),
        "{restored}"
    );
}

#[test]
fn a_keeper_killed_in_the_middle_of_a_step_loses_no_end() {
    let sandbox = sandbox();
    let main = Main::new(&sandbox);
    main.says("export KEPT=1");
    for round in 0..3 {
        let (job, step) = main.begin("echo up; read x; echo got $x; cd /usr; (exit 7)");
        printed(&job, step.step, "up");
        if round == 0 {
            kill_dash_nine(&sandbox.process(1, "keeper"));
            eventually("the heir has taken over", TEST_TIMEOUT, || {
                match sandbox.info(1)["takeovers"].as_u64() {
                    Some(1) => Ok(()),
                    other => Err(other),
                }
            });
        }
        job.type_line("yes").unwrap();
        let (ended, output) = finished(&job, step.step);
        assert_eq!(ended.exit_code, Some(7), "{ended:?}");
        assert!(output.ends_with("got yes\n"), "{output}");
        assert_eq!(ended.folder.as_deref(), Some("/usr"));
    }
    assert_eq!(main.says("echo $KEPT"), "1\n");
}

#[test]
fn a_keeper_killed_while_a_step_ends_loses_no_end() {
    let sandbox = sandbox();
    let main = Main::new(&sandbox);
    let (job, step) = main.begin("echo up; until [ -e go ]; do sleep 0.02; done; echo done; (exit 9)");
    printed(&job, step.step, "up");
    let keeper = sandbox.process(1, "keeper");
    outlast_testkit::processes::send(&keeper, rustix::process::Signal::STOP);
    std::fs::write(sandbox.work().join("go"), "").unwrap();
    // The shell says that the step is over to a keeper that does not listen, and then dies.
    let shell = sandbox.info(1)["process"]["pid"].as_i64().unwrap();
    eventually("the shell waits for its next step", TEST_TIMEOUT, || {
        let syscall = std::fs::read_to_string(format!("/proc/{shell}/wchan")).unwrap_or_default();
        let children =
            std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap_or_default();
        if children.trim().is_empty() { Ok(()) } else { Err((syscall, children)) }
    });
    kill_dash_nine(&keeper);
    let waited = job.wait(&Wait::for_exit().of_step(step.step), Some(TEST_TIMEOUT)).unwrap();
    assert_eq!(waited.reason, Reason::Exit);
    assert_eq!(waited.step.unwrap().exit_code, Some(9));
    assert_eq!(main.says("echo on"), "on\n");
}

#[test]
fn what_a_step_starts_has_none_of_our_descriptors_and_cannot_forge_an_end() {
    let sandbox = sandbox();
    let main = Main::new(&sandbox);
    let own = main.says("ls -l /proc/self/fd | grep -c socket || true");
    assert_eq!(own, "0\n");
    // The shell's own line can't be opened again, by nobody.
    let hostile = "for fd in /proc/$$/fd/*; do sh -c 'printf \"E3\\0\\0000 0\\0/\\0\" > \"$1\"' - $fd; done 2>/dev/null; echo tried";
    let (step, output) = main.run(hostile);
    assert_eq!(step.exit_code, Some(0), "{output}");
    assert!(output.ends_with("tried\n"), "{output}");
    assert_eq!(main.says("echo alive"), "alive\n");
    // Code in the shell itself can reach it; an end without the token ends the shell.
    let (step, _) = main.run("for n in {10..40}; do printf 'E5\\0aaaaaaaaaaaaaaaa\\x000 0\\0/\\0' >&$n; done 2>/dev/null; sleep 100");
    assert_eq!(step.state, StepState::Ended);
    assert!(step.note.is_some(), "{step:?}");
    let events = sandbox.events(1);
    assert!(events.iter().any(|event| event["event"] == "step_forged"), "{events:?}");
    assert_eq!(main.says("echo again"), "again\n");
}
