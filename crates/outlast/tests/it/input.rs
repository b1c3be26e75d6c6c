//! What a job in the foreground reads: the standard input of its caller, exactly, to its end.

use std::process::Command;

use outlast_testkit::{Dice, TEST_TIMEOUT, eventually};

use crate::sandbox;

#[test]
fn the_end_of_input_is_passed_on_whatever_the_input_is() {
    let sandbox = sandbox();
    std::fs::write(sandbox.work().join("file"), "one\ntwo\n").unwrap();
    for (input, lines) in [("</dev/null", "0\n"), ("<file", "2\n"), ("<<<three", "1\n")] {
        for flags in ["", "--pipe"] {
            let line = format!("\"$PROGRAM\" run {flags} 'wc -l' {input}");
            let ran = sandbox.shell("exec bash -c \"$LINE\"").env("LINE", &line).run().ok();
            assert_eq!(ran.text(), lines, "{line}");
        }
    }
    // Told to read nothing, it reads nothing.
    for flags in [&["-n"][..], &["-n", "--pipe"]] {
        let ran = sandbox.call(["run"]).args(flags).args(["cat"]).stdin("not for it").run().ok();
        assert_eq!(ran.text(), "");
    }
    let answer = sandbox.call(["--json", "run", "cat"]).stdin("hi\n").run().ok().json();
    assert_eq!((&answer["reason"], &answer["output"]), (&"exit".into(), &"hi\n".into()), "{answer}");
}

#[test]
fn piped_input_is_not_echoed() {
    let sandbox = sandbox();
    assert_eq!(sandbox.call(["run", "cat"]).stdin("hi\n").run().ok().text(), "hi\n");
}

#[test]
fn a_line_may_be_of_any_length() {
    let sandbox = sandbox();
    let line = "x".repeat(10_000) + "\n";
    assert_eq!(sandbox.call(["run", "wc -c"]).stdin(line).run().ok().text(), "10001\n");
}

#[test]
fn binary_input_arrives_as_it_is() {
    let sandbox = sandbox();
    // Every byte that a terminal would act on, many times.
    let mut dice = Dice::new();
    let bytes: Vec<u8> = (0..300_000).map(|_| u8::try_from(dice.below(256)).unwrap()).collect();
    let file = sandbox.work().join("binary");
    std::fs::write(&file, &bytes).unwrap();
    let wanted = Command::new("sha256sum").stdin(std::fs::File::open(&file).unwrap()).output().unwrap();
    let wanted = String::from_utf8(wanted.stdout).unwrap();
    for flags in [&[][..], &["--pipe"]] {
        let ran = sandbox.call(["run"]).args(flags).args(["sha256sum"]).stdin(bytes.clone()).run().ok();
        assert_eq!(ran.text(), wanted);
        let line = format!("\"$PROGRAM\" run {} sha256sum < binary", flags.join(" "));
        assert_eq!(sandbox.shell(&line).run().ok().text(), wanted);
    }
}

#[test]
fn a_job_reads_on_when_its_client_is_gone() {
    let sandbox = sandbox();
    let fifo = sandbox.work().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // Both ends, so that neither waits for the other.
    let ours = std::fs::OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
    let client = sandbox.shell("exec \"$PROGRAM\" run --name reader 'echo up; cat' < fifo").spawn();
    eventually("the job runs", TEST_TIMEOUT, || {
        let jobs = sandbox.json(["jobs", "--all"]);
        if jobs["jobs"][0]["last_line"] == "up" { Ok(()) } else { Err(jobs) }
    });
    client.kill_dash_nine();
    let job = 1;
    std::io::Write::write_all(&mut &ours, b"after\n").unwrap();
    sandbox.wait_for_text(job, "after");
    // What is sent would not be read: that is said. The kernel's keys are for it all the same.
    let refused = sandbox.run(["send", "reader", "hello"]).code(2);
    refused.says("its input comes from the standard input that it was started with");
    sandbox.run(["send", "reader", "--eof", "--no-wait"]).code(2);
    sandbox.run(["send", "reader", "--key", "Ctrl-C", "--no-wait"]).ok();
    assert_eq!(sandbox.wait_for_end(job)["signal"], "SIGINT");
}

#[test]
fn in_the_background_the_callers_input_is_not_taken() {
    let sandbox = sandbox();
    let line = "printf 'not for it\\n' | { \"$PROGRAM\" --json run -d cat >/dev/null; cat; }";
    assert_eq!(sandbox.shell(line).run().ok().text(), "not for it\n");
    sandbox.run(["send", "1", "typed", "--no-wait"]).ok();
    sandbox.wait_for_text(1, "typed");
    let line = "printf 'left\\n' | { \"$PROGRAM\" run --pattern '[?]' \"$FIXTURE\" asks >/dev/null; cat; }";
    let ran = sandbox.shell(line).env("FIXTURE", sandbox.fixture()).run().ok();
    assert_eq!(ran.text(), "left\n");
    sandbox.run(["kill", "1", "2"]).ok();
}
