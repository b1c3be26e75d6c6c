//! Jobs on pipes: stdout and stderr apart, input of any size, its end on request.

use outlast_testkit::processes::status_kib;

use crate::sandbox;

#[test]
fn stdout_and_stderr_stay_apart() {
    let sandbox = sandbox();
    let ran = sandbox.run(["run", "--pipe", "--", &sandbox.fixture(), "both"]).ok();
    assert_eq!((ran.text().as_str(), ran.stderr.as_str()), ("to stdout\n", "to stderr\n"));
    assert_eq!(sandbox.log(1), b"to stdout\n", "no carriage returns: there is no terminal");
    assert_eq!(std::fs::read(sandbox.job(1).join("stderr.log")).unwrap(), b"to stderr\n");
    assert_eq!(std::fs::read(sandbox.job(1).join("stderr.txt")).unwrap(), b"to stderr\n");
    assert_eq!(sandbox.run(["read", "1"]).ok().text(), "to stdout\n");
    assert_eq!(sandbox.run(["read", "1", "--stderr"]).ok().text(), "to stderr\n");
    let answer = sandbox.json(["wait", "1"]);
    assert_eq!(
        (&answer["output"], &answer["stderr"]),
        (&"to stdout\n".into(), &"to stderr\n".into()),
        "{answer}"
    );
    sandbox.run(["screen", "1"]).code(1);
    let running = sandbox.start(["--pipe", "--", &sandbox.fixture(), "says-and-sleeps", "up"]).to_string();
    sandbox.run(["screen", &running]).code(2).says("pipes");
}

#[test]
fn the_end_of_input_comes_on_request() {
    let sandbox = sandbox();
    let job = sandbox.start(["--pipe", "cat; echo done"]).to_string();
    sandbox.run(["send", &job, "one", "--no-wait"]).ok();
    sandbox.wait_for_text(1, "one");
    sandbox.run(["send", &job, "--no-newline", "two", "--eof", "--no-wait"]).ok();
    assert_eq!(sandbox.wait_for_end(1)["exit_code"], 0);
    assert_eq!(sandbox.log(1), b"one\ntwodone\n");
    // After its end there is no more.
    let job = sandbox.start(["--pipe", "cat; exec sleep 1000"]).to_string();
    sandbox.run(["send", &job, "--eof", "--no-wait"]).ok();
    sandbox.run(["send", &job, "late", "--no-wait"]).code(1).says("ended before");
}

#[test]
fn eight_megabytes_of_input_to_a_slow_reader() {
    let sandbox = sandbox();
    let job = sandbox.start(["--pipe", "--", &sandbox.fixture(), "eats-stdin", "65536", "2"]).to_string();
    let input: Vec<u8> = (0..8_u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let sum = input.iter().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    // The program's own pages count too, and there are more of them in a debug build: what grows is looked at.
    let before = status_kib(sandbox.pid(1, "keeper"), "VmHWM");
    let call = sandbox.call(["--json", "send", &job, "--stdin", "--no-wait"]);
    let sent = call.stdin(input).run().ok().json();
    assert_eq!(sent["taken"], 8 << 20, "{sent}");
    let grown = status_kib(sandbox.pid(1, "keeper"), "VmHWM") - before;
    assert!(grown < 4 << 10, "what is not taken stays with the sender: {grown} KiB more");
    // Only now: without its end, the job can't be gone before its keeper was looked at.
    sandbox.run(["send", &job, "--eof", "--no-wait"]).ok();
    let ended = sandbox.wait_for_end(1);
    assert_eq!(ended["output"], format!("ate {} bytes, sum {sum}\n", 8 << 20), "{ended}");
}

#[test]
fn a_program_that_closed_its_input_does_not_hold_the_sender_up() {
    let sandbox = sandbox();
    let job = sandbox.start(["--pipe", "--", &sandbox.fixture(), "closes-stdin"]).to_string();
    sandbox.wait_for_text(1, "closed");
    let sent = sandbox.call(["send", &job, "--stdin", "--no-wait"]).stdin(vec![b'x'; 1 << 20]).run();
    assert!(matches!(sent.code, Some(0 | 1)), "{sent}");
    assert_eq!(sandbox.json(["jobs"])["jobs"][0]["status"], "running");
    assert_eq!(sandbox.json(["kill", &job])["survivors"], serde_json::json!([]));
}

#[test]
fn a_program_that_never_reads_is_told_and_nothing_is_stuck() {
    let sandbox = sandbox();
    let job = sandbox.start(["--pipe", "--", &sandbox.fixture(), "says-and-sleeps", "up"]).to_string();
    let big = "x".repeat(50_000);
    let queued = (0..20).find_map(|_| {
        let sent = sandbox.json(["send", &job, &big, "--no-wait"]);
        sent["queued"].as_u64().filter(|queued| *queued > 0)
    });
    assert!(queued.is_some_and(|queued| queued < 100_000), "the caller is told how much waits: {queued:?}");
    assert_eq!(sandbox.json(["kill", &job])["survivors"], serde_json::json!([]));
    sandbox.nothing_runs();
}

/// Into a file goes text, unless pipes are asked for: then every byte. What was not text is told.
#[test]
fn exact_bytes_come_over_pipes_and_what_was_no_text_is_told() {
    let sandbox = sandbox();
    let line = r"printf 'a\0\377b\n'";
    let ran = sandbox.run(["run", "--pipe", line]).ok();
    assert_eq!((ran.stdout.as_slice(), ran.stderr.as_str()), (b"a\0\xffb\n".as_slice(), ""));
    let ran = sandbox.run(["run", line]).ok();
    assert!(ran.stderr.contains("this is not text") && ran.stderr.contains("run --pipe"), "{ran}");
    let ran = sandbox.run(["run", "printf 'caf\u{e9} \\033[31mred\\033[0m\\n'"]).ok();
    assert_eq!((ran.text().as_str(), ran.stderr.as_str()), ("caf\u{e9} red\n", ""));
}
