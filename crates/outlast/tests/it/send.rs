//! `outlast send`: text, keys, the end of input, and what does not fit.

use crate::sandbox;

#[test]
fn the_answer_is_what_came_after_the_input() {
    let sandbox = sandbox();
    let job = sandbox.start(["while read line; do echo \"got $line\"; done; echo bye"]).to_string();
    sandbox.json(["wait", &job, "--input", "--deadline", "30s"]);
    let first = sandbox.json(["send", &job, "one", "--deadline", "30s"]);
    assert_eq!(
        (&first["reason"], &first["output"]),
        (&"awaiting_input".into(), &"one\ngot one\n".into()),
        "{first}"
    );
    let second = sandbox.run(["send", &job, "two", "--deadline", "30s"]).ok();
    assert_eq!(second.text(), "two\ngot two\n", "only what came after");
    let found = sandbox.json(["send", &job, "three", "--pattern", "got th", "--deadline", "30s"]);
    assert_eq!(found["reason"], "pattern", "{found}");
    let end = sandbox.json(["send", &job, "--eof", "--deadline", "30s"]);
    assert_eq!((&end["reason"], &end["exit_code"]), (&"exit".into(), &0.into()), "{end}");
    assert!(end["output"].as_str().unwrap().contains("bye"), "{end}");
}

#[test]
fn the_end_of_input_in_the_middle_of_a_line() {
    let sandbox = sandbox();
    let job = sandbox.start(["cat >got; echo; cat got; echo; echo done"]).to_string();
    sandbox.json(["wait", &job, "--input", "--deadline", "30s"]);
    sandbox.run(["send", &job, "--no-newline", "half a line", "--eof", "--no-wait"]).ok();
    assert_eq!(sandbox.wait_for_end(1)["exit_code"], 0);
    assert_eq!(std::fs::read(sandbox.work().join("got")).unwrap(), b"half a line");
}

#[test]
fn keys_are_sent_as_a_terminal_sends_them() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["raw-mode"]).to_string();
    sandbox.wait_for_text(1, "ready");
    let from = sandbox.log_len(1).to_string();
    let keys = ["--key", "Ctrl-C", "--key", "Up", "--key", "Enter", "--key", "Alt-x", "--key", "F1"];
    sandbox.call(["send", &job, "--no-wait", "--no-newline", "\u{e9}"]).args(keys).run().ok();
    sandbox.run(["send", &job, "--no-newline", "q", "--no-wait"]).ok();
    sandbox.wait_for_end(1);
    let text = sandbox.run(["read", &job, "--since", &from]).ok().text().replace('\n', "");
    let bytes = "<c3><a9><03><1b><5b><41><0d><1b><78><1b><4f><50>";
    assert_eq!(text, bytes);
}

#[test]
fn a_pattern_that_does_not_come_in_time() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says-and-sleeps", "up"]).to_string();
    sandbox.run(["send", &job, "anything", "--pattern", "never", "--deadline", "50ms"]).code(4);
}

#[test]
fn ctrl_c_interrupts() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says-and-sleeps", "up"]).to_string();
    sandbox.wait_for_text(1, "up");
    let answer = sandbox.json(["send", &job, "--key", "Ctrl-C", "--deadline", "30s"]);
    assert_eq!((&answer["reason"], &answer["signal"]), (&"exit".into(), &"SIGINT".into()), "{answer}");
}

#[test]
fn a_line_that_a_terminal_would_cut_is_refused() {
    let sandbox = sandbox();
    let job = sandbox.start(["read line; echo ${#line}"]).to_string();
    sandbox.json(["wait", &job, "--input", "--deadline", "30s"]);
    let long = "x".repeat(4096);
    sandbox.run(["send", &job, &long, "--no-wait"]).code(2).says("4096").says("--pipe");
    // Nor may it come in two halves.
    sandbox.run(["send", &job, "--no-newline", &"x".repeat(3000), "--no-wait"]).ok();
    sandbox.run(["send", &job, &"x".repeat(1096), "--no-wait"]).code(2).says("4096");
    sandbox.run(["send", &job, &"x".repeat(1095), "--no-wait"]).ok();
    assert_eq!(sandbox.wait_for_end(1)["exit_code"], 0);
    assert!(sandbox.run(["read", &job]).ok().text().ends_with("\n4095\n"), "nothing was lost");
}

#[test]
fn a_raw_terminal_takes_more_than_a_line() {
    let sandbox = sandbox();
    let line = "stty raw -echo; printf ready; head -c 300000 | cksum; stty sane";
    let job = sandbox.start([line]).to_string();
    sandbox.wait_for_text(1, "ready");
    let input: Vec<u8> = (0..300_000_u32).map(|i| b'a' + u8::try_from(i % 26).unwrap()).collect();
    sandbox.call(["send", &job, "--stdin", "--no-wait"]).stdin(input).run().ok();
    let ended = sandbox.wait_for_end(1);
    assert!(ended["output"].as_str().unwrap().contains(" 300000"), "{ended}");
}

/// Symptom that this guards against: a name like `Cmd-C` kills the keeper, then its heir, and the job is lost.
#[test]
fn a_wrong_key_name_types_nothing_and_harms_nothing() {
    let sandbox = sandbox();
    let job = sandbox.start(["cat"]).to_string();
    sandbox.json(["wait", &job, "--input", "--deadline", "30s"]);
    let keeper = sandbox.pid(1, "keeper");
    for name in
        ["Cmd-C", "Super-x", "Win-R", "Command-Q", "Hyper-a", "Fn-1", "Foo-\u{e9}", "\u{e9}1-x", "x-x-x"]
    {
        sandbox
            .run(["send", &job, "no", "--no-wait", "--key", "Enter", "--key", name, "--key", "Entr"])
            .code(2)
            .says(&format!("{name:?}"))
            .says("\"Entr\"")
            .says("nothing was typed")
            .says("PageDown");
        let input = sandbox.call(["send", &job, "--no-wait", "--stdin", "--key", name]).stdin("no\n");
        input.run().code(2).says(&format!("{name:?}"));
    }
    let answer = sandbox.json(["send", &job, "yes", "--deadline", "30s"]);
    assert_eq!(answer["output"], "yes\nyes\n", "{answer}");
    assert_eq!((sandbox.pid(1, "keeper"), &sandbox.info(1)["takeovers"]), (keeper, &0.into()));
    assert_eq!(sandbox.log(1), b"yes\r\nyes\r\n", "nothing else was ever typed");
}
