//! Sentences of the help, the README and the change log that were once untrue, each with a test of its own.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::judges::Shell;
use crate::sandbox;

/// `run --help`: what the job prints comes while it runs, into a terminal and into a pipe.
#[test]
fn output_comes_while_the_job_runs() {
    let sandbox = sandbox();
    // What is waited for is not in the command itself, which the pane shows too.
    let line = "seq 1 60; echo fir\"\"st; cat go; echo last";
    let gate = sandbox.work().join("go");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    // Into a pipe: the first lines can be read before the job may go on.
    let mut run = Command::new(sandbox.program())
        .args(["run", line])
        .current_dir(sandbox.work())
        .env("OUTLAST_HOME", sandbox.home())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines().map(Result::unwrap);
    let numbers: Vec<String> = (1..=60).map(|number| number.to_string()).collect();
    assert_eq!(lines.by_ref().take(60).collect::<Vec<_>>(), numbers);
    assert_eq!(lines.next().as_deref(), Some("first"));
    std::fs::write(&gate, "").unwrap();
    assert_eq!(lines.collect::<Vec<_>>(), ["last"]);
    assert!(run.wait().unwrap().success());
    // At a terminal: all that came is there, in its scrollback too, before the job may go on.
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    let command = format!("outlast run '{line}'");
    shell.enter(&command);
    shell.wait_for("first");
    let seen = shell.tmux(&["capture-pane", "-p", "-S", "-"]);
    let so_far: Vec<&str> =
        seen.lines().skip_while(|line| !line.contains("outlast run")).skip(1).take(60).collect();
    assert_eq!(so_far, numbers, "{seen}");
    std::fs::write(&gate, "").unwrap();
    shell.comes_back();
    let mut wanted = vec![Shell::typed(1, &command)];
    wanted.extend(numbers);
    wanted.extend(["first".into(), "last".into()]);
    shell.shows_all(wanted);
}

/// The README's `run --awaiting-input ./install.sh`: at a terminal, too, it comes back at the question and says how to
/// answer; the words are in a line of their own.
#[test]
fn a_question_comes_back_at_a_terminal_as_the_readme_shows_it() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let shown = "awaiting_input: job 3 runs on; answer it: outlast send 3 TEXT";
    assert!(
        readme.contains(&format!("$ outlast run --awaiting-input ./install.sh\nContinue? (y/n)\n{shown}\n"))
    );
    let sandbox = sandbox();
    let script = sandbox.work().join("install.sh");
    std::fs::write(&script, "#!/bin/bash\nread -p 'Continue? (y/n) ' a; echo \"you said $a\"\n").unwrap();
    assert!(Command::new("chmod").arg("+x").arg(&script).status().unwrap().success());
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    shell.calls("outlast run --awaiting-input ./install.sh");
    shell.calls("outlast send 1 y");
    shell.shows_all(vec![
        Shell::typed(1, "outlast run --awaiting-input ./install.sh"),
        "Continue? (y/n)".into(),
        shown.replace('3', "1"),
        Shell::typed(2, "outlast send 1 y"),
        "y".into(),
        "you said y".into(),
    ]);
}

/// The change log's "Receipts that say who ended a job": one's own Ctrl-C, the limit of CPU time, and a writer whose
/// reader has left are not "a signal from outside".
#[test]
fn a_receipt_says_who_ended_the_job() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    shell.enter("outlast run 'printf u; echo p; sleep 1000'");
    shell.wait_for("up");
    shell.press(&["C-c"]);
    shell.comes_back();
    shell.calls("outlast run --cpu-time 1s 'while :; do :; done'");
    // As git does when its pager is left: a shell that ends as the writer did.
    shell.calls("outlast run 'yes | head -1; kill -$((${PIPESTATUS[0]} - 128)) $$'");
    let ended_by = |job: u64| sandbox.wait_for_end(job)["ended_by"].as_str().unwrap_or_default().to_owned();
    assert_eq!(ended_by(1), "by Ctrl-C typed by session person");
    assert_eq!(ended_by(2), "by its CPU limit of 1 s");
    assert_eq!(ended_by(3), "because nobody reads what it writes any more");
}
