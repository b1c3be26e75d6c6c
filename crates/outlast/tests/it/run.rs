//! `outlast run`: in the foreground, in the background, until something, and when it can't.

use outlast_testkit::{TEST_TIMEOUT, eventually};
use rustix::process::Signal;

use crate::sandbox;

#[test]
fn a_foreground_run_shows_the_output_and_passes_the_code() {
    let sandbox = sandbox();
    let ran = sandbox.run(["run", "echo hello; exit 7"]).code(7);
    assert_eq!(ran.text(), "hello\n");
    let ran = sandbox.run(["run", "--", &sandbox.fixture(), "echo-args", "two words", "$HOME", ""]).ok();
    assert_eq!(ran.text(), "[two words]\n[$HOME]\n[]\n");
    let ran = sandbox.run(["run", "kill -TERM $$"]).code(128 + 15).says("SIGTERM");
    assert_eq!(ran.text(), "");
    sandbox.nothing_runs();
}

#[test]
fn a_background_run_answers_with_the_handle_alone() {
    let sandbox = sandbox();
    let ran = sandbox.run(["run", "-d", "--", &sandbox.fixture(), "says-and-sleeps", "up"]).ok();
    assert_eq!(ran.text(), "1\n");
    let ran = ran.says("outlast logs -f 1");
    assert!(!ran.stderr.contains("error"), "{ran}");
    assert_eq!(sandbox.info(1)["status"], "running");
}

#[test]
fn the_job_gets_the_folder_and_the_environment_that_were_asked_for() {
    let sandbox = sandbox();
    let folder = sandbox.root().join("elsewhere");
    std::fs::create_dir(&folder).unwrap();
    let line =
        r#"pwd; echo "A=$A B=${B-none} C=${C-none} home=${OUTLAST_HOME-none} s=${OUTLAST_SESSION-none}""#;
    let call = sandbox.call(["run", "--cwd", "../elsewhere", "-e", "A=1=2", "--env", "C", line]);
    let ran = call.env("B", "inherited").env("C", "removed").run().ok();
    let expected =
        format!("{}\nA=1=2 B=inherited C=none home={} s=none\n", folder.display(), sandbox.home().display());
    assert_eq!(ran.text(), expected, "of our own variables only the home and the job reach it");
    let info = std::fs::read_to_string(sandbox.job(1).join("info.json")).unwrap();
    assert!(!info.contains("inherited") && !info.contains("1=2\""), "no values in the record: {info}");
    assert!(info.contains("\"B\""), "the names are: {info}");
}

#[test]
fn the_terminal_has_the_size_that_was_asked_for() {
    let sandbox = sandbox();
    assert_eq!(sandbox.run(["run", "--size", "100x30", "stty size </dev/tty"]).ok().text(), "30 100\n");
    assert_eq!(
        sandbox.run(["run", "stty size </dev/tty; echo $TERM"]).ok().text(),
        "40 120\nxterm-256color\n"
    );
}

#[test]
fn a_run_with_a_pattern_comes_back_when_it_is_printed() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture();
    let args = ["run", "--pattern", r"ready (\d+)", "--", &fixture, "says-and-sleeps", "ready 42"];
    let answer = sandbox.json(args);
    assert_eq!(answer["reason"], "pattern", "{answer}");
    assert_eq!(answer["match"]["text"], "ready 42", "{answer}");
    assert_eq!(answer["match"]["captures"], serde_json::json!(["42"]), "{answer}");
    assert_eq!(answer["status"], "running", "{answer}");
    assert_eq!(answer["output"], "ready 42\n", "{answer}");
    let late = ["run", "--pattern", "never", "--deadline", "50ms", "--", &fixture, "says-and-sleeps", "up"];
    let ran = sandbox.run(late).code(4).says("the time is up");
    assert!(ran.stderr.contains("runs on"), "{ran}");
    // The end comes before the pattern: then the code is the job's own.
    sandbox.run(["run", "--pattern", "never", "--", &fixture, "exits", "9"]).code(9).says("exit code 9");
}

#[test]
fn what_can_not_start_says_why_and_leaves_no_job() {
    let sandbox = sandbox();
    let plain_file = sandbox.work().join("plain");
    std::fs::write(&plain_file, "no program").unwrap();
    let plain_file = plain_file.to_str().unwrap();
    for (args, named, code) in [
        (&["--", "no-such-program-anywhere", "x"][..], "no-such-program-anywhere", 127),
        (&["--", plain_file, "x"], "chmod +x", 126),
        (&["--cwd", "/no/such/folder", "--", "true"], "/no/such/folder", 1),
    ] {
        let ran = sandbox.call(["run", "-d"]).args(args).run().code(code).says(named);
        assert!(ran.stdout.is_empty(), "no handle of a job that never ran: {ran}");
    }
    assert!(!sandbox.job(1).exists());
}

/// What only the kernel can tell, and what agents ask for, leaves a record.
#[test]
fn a_start_that_fails_leaves_a_receipt() {
    use outlast_job::{JobSpec, Outlast, Run};
    let sandbox = sandbox();
    let outlast = Outlast::at(sandbox.home()).unwrap().kept_by(sandbox.program());
    let plain_file = sandbox.work().join("plain");
    std::fs::write(&plain_file, "no program").unwrap();
    let plain_file = plain_file.to_str().unwrap();
    let cases = [
        ("no-such-program-anywhere", "/", "no-such-program-anywhere", "no_such_program"),
        (plain_file, "/", plain_file, "not_executable"),
        ("true", "/no/such/folder", "/no/such/folder", "no_such_folder"),
    ];
    for (i, (program, cwd, named, kind)) in cases.into_iter().enumerate() {
        let handle = i as u64 + 1;
        let mut spec = JobSpec::new(Run::Program(vec![program.into(), "x".into()]));
        spec.session = "test".into();
        spec.cwd = Some(cwd.into());
        let failure = outlast.start(spec).unwrap_err();
        assert!(failure.message.contains(named), "{failure}");
        let info = sandbox.info(handle);
        assert_eq!(info["status"], "failed", "{info}");
        assert_eq!(info["outcome"], "not_started", "{info}");
        assert_eq!(info["error"]["kind"], kind, "{info}");
        assert!(!sandbox.job(handle).join("keeper.sock").exists());
    }
    sandbox.nothing_runs();
    sandbox.run(["wait", "1"]).code(1).says("could not start");
}

#[test]
fn ctrl_c_goes_to_the_job() {
    let sandbox = sandbox();
    let running = sandbox.call(["run", "--", &sandbox.fixture(), "says-and-sleeps", "up"]).spawn();
    eventually("the job is up", TEST_TIMEOUT, || match running.stdout_so_far() {
        up if up == b"up\n" => Ok(()),
        other => Err(String::from_utf8(other).unwrap()),
    });
    running.signal(Signal::INT);
    let ran = running.wait().code(128 + 2);
    assert!(ran.text().starts_with("up\n"), "{ran}");
    let info = sandbox.info(1);
    assert_eq!((&info["status"], &info["signal"]), (&"killed".into(), &"SIGINT".into()), "{info}");
}

#[test]
fn a_closed_terminal_leaves_the_job_running_and_says_how_to_get_back() {
    let sandbox = sandbox();
    for (handle, signal) in [(1, Signal::HUP), (2, Signal::TERM)] {
        let running = sandbox.call(["run", "--", &sandbox.fixture(), "says-and-sleeps", "up"]).spawn();
        eventually("the job is up", TEST_TIMEOUT, || match running.stdout_so_far() {
            up if up == b"up\n" => Ok(()),
            other => Err(String::from_utf8(other).unwrap()),
        });
        running.signal(signal);
        // Not the code of a command that has ended: it runs on.
        let ran = running.wait().code(4);
        assert!(ran.stderr.contains(&format!("outlast attach {handle}")), "{ran}");
        assert_eq!(sandbox.json(["jobs"])["jobs"].as_array().unwrap().len(), handle);
        let _ = sandbox.process(handle as u64, "process");
    }
}

#[test]
fn a_run_that_asks_something_nobody_can_answer_comes_back() {
    let sandbox = sandbox();
    // Not on its input, which has ended, but on its terminal.
    let script = "printf 'What is your name? ' >/dev/tty; read name </dev/tty; echo \"Hello, $name!\"";
    let ran = sandbox.run(["run", script]).code(4).says("outlast send 1");
    assert!(ran.stderr.contains("What is your name?"), "{ran}");
    let answer = sandbox.json(["send", "1", "Ada", "--deadline", "30s"]);
    assert!(answer["output"].as_str().unwrap().contains("Hello, Ada!"), "{answer}");
    assert_eq!(sandbox.wait_for_end(1)["exit_code"], 0);
}

#[test]
fn standard_input_goes_to_the_job() {
    let sandbox = sandbox();
    let ran = sandbox.call(["run", "--pipe", "cat"]).stdin("one\ntwo").run().ok();
    assert_eq!(ran.text(), "one\ntwo");
    let ran = sandbox.call(["run", "--pipe", "-n", "--", "true"]).stdin("ignored").run().ok();
    assert_eq!(ran.text(), "");
}

#[test]
fn from_a_deleted_folder_nothing_is_run() {
    let sandbox = sandbox();
    let gone = "mkdir gone; cd gone; rmdir ../gone; ";
    for call in ["run", "run -d", "run --json", "run --cwd ."] {
        let ran = sandbox
            .shell(&format!("{gone} \"$PROGRAM\" {call} 'pwd; touch {}/ran'", sandbox.root().display()));
        let ran = ran.run();
        assert!(matches!(ran.code, Some(1 | 2)), "{call}: {ran}");
    }
    assert!(!sandbox.root().join("ran").exists());
    assert_eq!(sandbox.json(["jobs", "--all"])["jobs"], serde_json::json!([]));
    let said = sandbox.shell(&format!("{gone} \"$PROGRAM\" run pwd")).run().code(1);
    said.says("the current folder does not exist any more").says("--cwd");
    let there = sandbox.shell(&format!("{gone} \"$PROGRAM\" run --cwd / pwd")).run().ok();
    assert_eq!(there.text(), "/\n");
}

/// Symptom that this guards against: `outlast run git log`, left with `q`, ends in a line about a signal. Shells say nothing.
#[test]
fn the_end_of_a_pager_is_not_explained() {
    let sandbox = sandbox();
    let ran = sandbox.run(["run", "kill -PIPE $$"]).code(128 + 13);
    assert_eq!(ran.stderr, "", "{ran}");
    assert_eq!(sandbox.info(1)["signal"], "SIGPIPE");
}
