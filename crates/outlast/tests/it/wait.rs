//! `outlast wait`: each condition, and the first one wins.

use outlast_testkit::{TEST_TIMEOUT, eventually};

use crate::sandbox;

#[test]
fn a_pattern_after_a_little_and_after_a_lot() {
    let sandbox = sandbox();
    for before in ["1024", "4194304"] {
        let line = format!("'{}' floods {before}; echo READY 4711; read answer", sandbox.fixture());
        let job = sandbox.start([line]);
        let answer = sandbox.wait_for_text(job, r"READY (\d+)");
        assert_eq!(answer["match"]["text"], "READY 4711");
        assert_eq!(answer["match"]["captures"], serde_json::json!(["4711"]));
        let printed = before.parse::<u64>().unwrap() / 64 * 65;
        assert_eq!(answer["at_offset"], printed + "READY 4711".len() as u64, "just behind the match");
        let again = sandbox.json(["wait", &job.to_string(), "--pattern", "READY"]);
        assert_eq!(again["already"], true, "{again}");
    }
}

#[test]
fn a_match_may_come_in_pieces_with_colours_in_it_and_without_an_end_of_line() {
    let sandbox = sandbox();
    let line =
        r"printf '\033[1mSer'; read x; printf '\033[0;32mver re'; read x; printf '\033[0mady> '; read x";
    let job = sandbox.start([line]).to_string();
    let waiting =
        sandbox.call(["--json", "wait", &job, "--pattern", "Server ready> ?$", "--deadline", "30s"]).spawn();
    for _ in 0..2 {
        // The terminal's echo of Enter would stand between the pieces: Ctrl-D hands over without one.
        sandbox.run(["wait", &job, "--input", "--deadline", "30s"]).ok();
        sandbox.run(["send", &job, "--eof", "--no-wait"]).ok();
    }
    let answer = waiting.wait().ok().json();
    assert_eq!((&answer["reason"], &answer["status"]), (&"pattern".into(), &"running".into()), "{answer}");
}

#[test]
fn of_several_patterns_the_answer_says_which() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says-when-told", "one fish", "two fish"]).to_string();
    let both = ["wait", &job, "--pattern", "two (f.*)", "--pattern", "one (f.*)", "--deadline", "30s"];
    let waiting = sandbox.call(["--json"]).args(both).spawn();
    sandbox.run(["send", &job, "", "--no-wait"]).ok();
    let answer = waiting.wait().ok().json();
    assert_eq!((&answer["match"]["pattern"], &answer["match"]["captures"][0]), (&1.into(), &"fish".into()));
    sandbox.run(["send", &job, "", "--no-wait"]).ok();
    let later = sandbox.json(["wait", &job, "--pattern", "fish", "--since", &answer["offset"].to_string()]);
    assert_eq!(later["reason"], "pattern");
    assert!(later["offset"].as_u64() > answer["offset"].as_u64(), "no byte is looked at twice: {later}");
}

#[test]
fn what_was_printed_before_counts_unless_told_otherwise() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says-and-sleeps", "early bird"]).to_string();
    sandbox.wait_for_text(1, "early bird");
    assert_eq!(sandbox.json(["wait", &job, "--pattern", "bird"])["already"], true);
    let late = ["wait", &job, "--pattern", "bird", "--since", "now", "--deadline", "50ms"];
    sandbox.run(late).code(4);
}

#[test]
fn a_deadline_is_an_answer_and_not_an_error() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says-and-sleeps", "up"]).to_string();
    sandbox.wait_for_text(1, "up");
    let ran = sandbox.call(["--json", "wait", &job, "--deadline", "100ms"]).run().code(4);
    let answer = ran.json();
    assert_eq!((&answer["reason"], &answer["status"]), (&"deadline".into(), &"running".into()), "{answer}");
    assert_eq!(answer["output"], "up\n", "{answer}");
    assert!(answer["elapsed_ms"].as_u64().unwrap() >= 90, "{answer}");
}

#[test]
fn quiet_comes_after_the_last_output() {
    let sandbox = sandbox();
    let line = format!("'{0}' counts 60 1 20 0; exec '{0}' says-and-sleeps done", sandbox.fixture());
    let job = sandbox.start([line]).to_string();
    let answer = sandbox.json(["wait", &job, "--quiet-for", "1s", "--deadline", "30s"]);
    assert_eq!(answer["reason"], "quiet", "{answer}");
    assert!(answer["output"].as_str().unwrap().ends_with("done\n"), "{answer}");
}

#[test]
fn anything_new_counts_as_output() {
    let sandbox = sandbox();
    let job = sandbox.start(["while read line; do echo got $line; done"]).to_string();
    let mut waiting = sandbox.call(["--json", "wait", &job, "--output", "--deadline", "30s"]).spawn();
    // It prints for as long as the wait goes on, so something is new whenever that began.
    eventually("output ends the wait", TEST_TIMEOUT, || {
        sandbox.run(["send", &job, "news", "--no-wait"]).ok();
        if waiting.is_running() { Err("it goes on") } else { Ok(()) }
    });
    let answer = waiting.wait().ok().json();
    assert_eq!((&answer["reason"], &answer["status"]), (&"output".into(), &"running".into()), "{answer}");
    let since = sandbox.json(["wait", &job, "--output", "--since", "0"]);
    assert_eq!((&since["reason"], &since["already"]), (&"output".into(), &true.into()), "{since}");
}

#[test]
fn of_several_jobs_the_first_one_ends_the_wait() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture();
    for name in ["one", "two", "three"] {
        sandbox.start(["--name", name, "--", &fixture, "says-when-told", "go"]);
    }
    let waiting = sandbox.call(["--json", "wait", "one", "two", "three", "--deadline", "30s"]).spawn();
    sandbox.run(["send", "two", "", "--no-wait"]).ok();
    let answer = waiting.wait().ok().json();
    assert_eq!((&answer["name"], &answer["reason"]), (&"two".into(), &"exit".into()), "{answer}");
    sandbox.run(["wait", "one", "four"]).code(3).says("four");
}

#[test]
fn the_end_comes_before_what_was_waited_for() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says-when-told", "bye"]).to_string();
    let waiting = sandbox.call(["--json", "wait", &job, "--pattern", "never", "--deadline", "30s"]).spawn();
    sandbox.run(["send", &job, "", "--no-wait"]).ok();
    let answer = waiting.wait().code(1).json();
    assert_eq!((&answer["reason"], &answer["exit_code"]), (&"exit".into(), &0.into()), "{answer}");
    // And the same of a job that ended long ago.
    let answer = sandbox.call(["--json", "wait", &job, "--pattern", "never"]).run().code(1).json();
    assert_eq!((&answer["reason"], &answer["already"]), (&"exit".into(), &true.into()), "{answer}");
    let answer = sandbox.json(["wait", &job, "--pattern", "by."]);
    assert_eq!((&answer["reason"], &answer["already"]), (&"pattern".into(), &true.into()), "{answer}");
}

#[test]
fn a_job_that_asks_is_noticed() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["asks"]).to_string();
    let answer = sandbox.json(["wait", &job, "--input", "--deadline", "30s"]);
    assert_eq!(answer["reason"], "awaiting_input", "{answer}");
    let asked = &answer["awaiting_input"];
    assert_eq!((&asked["level"], &asked["kind"]), (&"certain".into(), &"line".into()), "{answer}");
    assert!(asked["prompt"].as_str().unwrap().contains("What is your name?"), "{answer}");
    assert_eq!(sandbox.json(["jobs"])["jobs"][0]["activity"], "awaiting_input");
}

#[test]
fn bad_and_oversized_patterns_are_told_before_anything_runs() {
    let sandbox = sandbox();
    let huge = "a{1000}{1000}{1000}";
    for pattern in ["(unclosed", huge, "[z-a]", r"\p{Nonsense}"] {
        let ran = sandbox.run(["run", "--pattern", pattern, "--", "true"]).code(2);
        assert!(ran.stdout.is_empty() && !ran.stderr.is_empty(), "{ran}");
        assert!(!ran.stderr.contains("panicked"), "{ran}");
    }
    assert!(!sandbox.job(1).exists(), "no job is left");
    sandbox.fixture_job(&["says-and-sleeps", "up"]);
    sandbox.run(["wait", "1", "--pattern", "(unclosed"]).code(2).says("unclosed");
    sandbox.run(["send", "1", "--pattern", "(unclosed", "x"]).code(2).says("unclosed");
    sandbox.run(["read", "1", "--grep", "(unclosed"]).code(2).says("unclosed");
    sandbox.run(["wait", "1", "--gone", "(unclosed"]).code(2).says("unclosed");
    assert_eq!(sandbox.run(["read", "1"]).ok().text(), "up\n", "and nothing was typed");
}

#[test]
fn the_exit_code_says_how_the_wait_ended() {
    let sandbox = sandbox();
    let failed = sandbox.start(["exit 7"]).to_string();
    sandbox.run(["wait", &failed]).code(7).says("has ended: exit code 7");
    sandbox.run(["wait", &failed, "--exit", "--pattern", "never"]).code(7);
    let killed = sandbox.start(["kill -9 $$"]).to_string();
    sandbox.run(["wait", &killed, "--exit"]).code(128 + 9);
    let done = sandbox.start(["echo ready"]).to_string();
    sandbox.run(["wait", &done]).ok();
    // Another condition than the end is met, or it is not.
    sandbox.run(["wait", &done, "--pattern", "ready"]).ok();
    sandbox.run(["wait", &failed, "--pattern", "never"]).code(1).says("before what was waited for");
    // A job's own 1, 3 and 4 are told apart from ours.
    for code in [1, 3, 4] {
        let job = sandbox.start([format!("exit {code}")]).to_string();
        let answer = sandbox.run(["--json", "wait", &job]).code(code).json();
        assert_eq!((&answer["met"], &answer["exit_code"]), (&true.into(), &code.into()), "{answer}");
        let answer = sandbox.run(["--json", "wait", &job, "--pattern", "never"]).code(1).json();
        assert_eq!((&answer["met"], &answer["reason"]), (&false.into(), &"exit".into()), "{answer}");
    }
    let late = sandbox.fixture_job(&["asks"]).to_string();
    let answer = sandbox.run(["--json", "wait", &late, "--deadline", "10ms"]).code(4).json();
    assert_eq!((&answer["met"], &answer["reason"]), (&false.into(), &"deadline".into()), "{answer}");
    sandbox.run(["wait", &late, "--deadline", "10ms"]).code(4).says("the time is up");
    let unknown = sandbox.run(["--json", "wait", "99"]).code(3).json();
    assert_eq!(unknown["error"]["kind"], "no_such_job", "{unknown}");
}
