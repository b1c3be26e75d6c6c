//! What every kind of shell must do: interrupts, ends, one step's folder and variables, what is remembered.

use std::collections::BTreeMap;

use outlast_job::shell::{ShellKind, StepOrder};
use outlast_testkit::has;
use outlast_testkit::{TEST_TIMEOUT, eventually};

use crate::{GRACE, Main, finished, printed, sandbox};

/// Waits until the program that a key is meant for has the terminal: before that, the shell takes the key.
fn sleep_has_the_terminal(sandbox: &outlast_testkit::Sandbox) {
    // Our own processes are in the terminal's session.
    let sessions: Vec<String> =
        sandbox.processes().iter().map(|process| process.session.to_string()).collect();
    let is_in_front = |stat: &str| {
        let (name, rest) = stat.rsplit_once(") ").unwrap_or_default();
        // State, parent, group, session, terminal, the terminal's group.
        let fields: Vec<&str> = rest.split(' ').collect();
        name.ends_with("(sleep")
            && fields.len() > 5
            && fields[2] == fields[5]
            && sessions.iter().any(|session| session == fields[3])
    };
    eventually("sleep has the terminal", TEST_TIMEOUT, || {
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let mut stats = all.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
        if stats.any(|stat| is_in_front(&stat)) { Ok(()) } else { Err(&sessions) }
    });
}

pub(crate) fn kinds() -> impl Iterator<Item = ShellKind> {
    ShellKind::ALL.iter().copied().filter(|kind| has(kind.name()))
}

#[test]
fn interrupts_and_kills_end_a_step_and_no_shell() {
    for kind in kinds() {
        let sandbox = sandbox();
        let main = Main::of(&sandbox, kind);
        let kept = if kind == ShellKind::Fish { "set -gx KEPT 1" } else { "export KEPT=1" };
        main.says(kept);
        let endless = match kind {
            ShellKind::Fish => "echo up; while true; end; echo no",
            ShellKind::Bash | ShellKind::Zsh | ShellKind::Dash => "echo up; while :; do :; done; echo no",
        };
        let stubborn = "sh -c 'trap \"\" INT TERM; echo up; while :; do sleep 0.1; done'";
        for command in ["echo up; sleep 1000; echo no", endless, "echo up; cat; echo no", stubborn] {
            let (job, step) = main.begin(command);
            printed(&job, step.step, "up");
            job.end_step(None, GRACE, "me").unwrap();
            let (step, output) = finished(&job, step.step);
            assert!(step.exit_code.is_some_and(|code| code > 128), "{kind}: {command}: {step:?}");
            assert!(!output.contains("no"), "{kind}: {command}: {output}");
            assert_eq!(main.says("echo $KEPT"), "1\n", "{kind}: {command}");
        }
        assert_eq!(main.outlast.jobs().len(), 1, "{kind}");
    }
}

#[test]
fn the_keys_that_interrupt_and_stop_work_in_a_step() {
    for kind in kinds() {
        let sandbox = sandbox();
        let main = Main::of(&sandbox, kind);
        main.run("sh -c 'exit 42'");
        let (job, step) = main.begin("echo up; sleep 1000");
        printed(&job, step.step, "up");
        sleep_has_the_terminal(&sandbox);
        job.send_bytes(b"\x03").unwrap();
        assert_eq!(finished(&job, step.step).0.exit_code, Some(130), "{kind}");
        main.run("sh -c 'exit 42'");
        let (job, step) = main.begin("echo up; sleep 1000");
        printed(&job, step.step, "up");
        sleep_has_the_terminal(&sandbox);
        job.send_bytes(b"\x1a").unwrap();
        let (step, _) = finished(&job, step.step);
        // Fish does not call that a failure.
        let stopped: &[i32] = if kind == ShellKind::Fish { &[0] } else { &[146, 148] };
        assert!(step.exit_code.is_some_and(|code| stopped.contains(&code)), "{kind}: {step:?}");
        assert_eq!(main.says("echo on"), "on\n", "{kind}");
    }
}

#[test]
fn folder_and_variables_of_one_step_are_put_back() {
    for kind in kinds() {
        let sandbox = sandbox();
        let main = Main::of(&sandbox, kind);
        let is_fish = kind == ShellKind::Fish;
        main.says(if is_fish {
            "mkdir sub; set -gx KEPT old; set -g PLAIN p"
        } else {
            "mkdir sub; export KEPT=old; PLAIN=p"
        });
        let env =
            [("KEPT", Some("new's \"x\" \\")), ("PLAIN", Some("q")), ("FRESH", Some("f")), ("HOME", None)];
        let env: BTreeMap<_, _> = env.map(|(name, value)| (name.to_owned(), value.map(str::to_owned))).into();
        let sub = sandbox.work().join("sub");
        let order = StepOrder {
            command: "env | grep -E '^(KEPT|PLAIN|FRESH|HOME)=' | sort; pwd; cd /".into(),
            folder: Some(sub.to_str().unwrap().into()),
            env,
            ..StepOrder::default()
        };
        let (step, output) = main.run_order(&order);
        assert_eq!(output, format!("FRESH=f\nKEPT=new's \"x\" \\\nPLAIN=q\n{}\n", sub.display()), "{kind}");
        assert_eq!(step.new_folder(), None, "{kind}: {step:?}");
        let after = main.says("echo $KEPT $PLAIN; pwd; env | grep -c -e ^PLAIN= -e ^FRESH= || true");
        assert_eq!(after, format!("old p\n{}\n0\n", sandbox.work().display()), "{kind}");
        let nowhere =
            StepOrder { command: "echo ran".into(), folder: Some("/nowhere".into()), ..StepOrder::default() };
        let (step, output) = main.run_order(&nowhere);
        assert_eq!(step.exit_code, Some(1), "{kind}");
        assert!(output.contains("/nowhere") && !output.contains("ran\n"), "{kind}: {output}");
    }
}

#[test]
fn a_shell_that_is_made_again_remembers_what_was_exported_and_defined() {
    for kind in kinds() {
        let sandbox = sandbox();
        let main = Main::of(&sandbox, kind);
        main.says("mkdir -p deep");
        main.says(match kind {
            ShellKind::Fish => "cd deep; set -gx KEPT 'a b'; set -gx API_TOKEN abcdefghij; function f; echo f $argv; end",
            ShellKind::Dash => "cd deep; export KEPT='a b' API_TOKEN=abcdefghij; alias f='echo f'",
            ShellKind::Bash | ShellKind::Zsh => {
                "cd deep; export KEPT='a b' API_TOKEN=abcdefghij; f() { echo f $1; }; alias g='echo g'; umask 027"
            }
        });
        let state = sandbox.job(1).join("shell-state");
        let text = eventually("the state is written", TEST_TIMEOUT, || {
            std::fs::read_to_string(&state).ok().filter(|text| text.contains("KEPT")).ok_or(())
        });
        assert!(!text.contains("abcdefghij"), "{kind}: {text}");
        let changed = main.outlast.job("1").unwrap().shell().unwrap().changed;
        assert!(changed["variables"].contains(&"KEPT".to_owned()), "{kind}: {changed:?}");
        let shell = sandbox.process(1, "process");
        outlast_testkit::processes::kill_dash_nine(&shell);
        eventually("the shell has ended", TEST_TIMEOUT, || match sandbox.info(1)["status"].as_str() {
            Some("running") => Err("it runs"),
            _ => Ok(()),
        });
        let said = main.says("echo $KEPT; f x; basename $PWD; env | grep -c ^API_TOKEN= || true");
        assert_eq!(said, "a b\nf x\ndeep\n0\n", "{kind}");
        if kind == ShellKind::Zsh || kind == ShellKind::Bash {
            assert_eq!(
                main.says("g y; umask"),
                if kind == ShellKind::Zsh { "g y\n027\n" } else { "g y\n0027\n" }
            );
        }
        let restored = sandbox.info(2)["shell"]["restored"].as_str().unwrap().to_owned();
        assert!(restored.contains("are gone"), "{restored}");
    }
}

#[test]
fn what_is_left_in_the_background_is_said_and_listed() {
    for kind in kinds() {
        let sandbox = sandbox();
        let main = Main::of(&sandbox, kind);
        let (step, _) = main.run("sleep 1000 &");
        assert_eq!(step.background.len(), 1, "{kind}: {step:?}");
        // The step may be over before its child has become the program.
        eventually("it is listed by its name", TEST_TIMEOUT, || {
            let show = sandbox.call(["--json", "show", "shell", "main"]);
            let shown = show.without_env("OUTLAST_SESSION").run().json();
            let listed = &shown["background"];
            // For a moment also the shell's own fork, which tells what it remembers.
            let is_one = listed.as_array().map(Vec::len) == Some(1);
            if is_one && listed[0]["program"] == "sleep" { Ok(()) } else { Err(shown) }
        });
    }
}

#[test]
fn a_shell_of_another_kind_is_not_taken_for_the_one_that_was_asked_for() {
    if !has("zsh") {
        return;
    }
    let sandbox = sandbox();
    sandbox.run(["run", "--shell", "main", "--with", "zsh", "setopt noglob; echo $ZSH_VERSION"]).ok();
    let said = sandbox.run(["run", "--shell", "main", "echo ${ZSH_VERSION:+zsh}"]).ok();
    assert_eq!(said.stdout, b"zsh\n");
    let other = sandbox.run(["run", "--shell", "main", "--with", "bash", "true"]);
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(other.stderr.contains("shell main is zsh, not bash"), "{other:?}");
    sandbox.run(["run", "--shell", "main", "exit 3"]).code(3);
    let again = sandbox.run(["run", "--shell", "main", "echo ${ZSH_VERSION:+zsh}"]).ok();
    assert_eq!(again.stdout, b"zsh\n");
}

#[test]
fn nothing_of_a_shell_is_on_the_disk_if_the_settings_say_so() {
    let sandbox = sandbox();
    sandbox.run(["config", "set", "shells.state", "memory"]).ok();
    sandbox.run(["run", "--shell", "main", "export KEPT=1"]).ok();
    eventually("the change is known", TEST_TIMEOUT, || {
        let shown = sandbox.run(["--json", "show", "shell", "main"]).json();
        if shown["changed"]["variables"][0] == "KEPT" { Ok(()) } else { Err(shown) }
    });
    assert!(!sandbox.job(1).join("shell-state").exists());
    sandbox.run(["run", "--shell", "main", "exit 0"]).ok();
    assert_eq!(sandbox.run(["run", "--shell", "main", "echo ${KEPT-none}"]).ok().stdout, b"none\n");
}
