//! Forty mistakes that people make, on one page: each message says what is wrong and what to type next. The
//! page is `tests/help/mistakes.txt`.

use std::fmt::Write as _;

use crate::help::compare;
use crate::sandbox;

/// Each line as somebody typed it: job 1 (`done`) has ended, job 2 (`web`) runs, and the settings are wrong where
/// a line begins with `bad`.
const MISTAKES: &[&[&str]] = &[
    // Words of other programs, and typing errors.
    &["strat"],
    &["start", "make"],
    &["terminate", "web"],
    &["log", "web"],
    &["detach"],
    &["atach", "web"],
    &["bc", "x"],
    &["tmux", "sumbit"],
    // Programs.
    &["run", "nosuchprogram"],
    &["run", "nosuchprogram", "--flag"],
    &["run", "pyhton3x", "app.py"],
    &["run", "cd", "/tmp"],
    &["run", "CI=1", "make", "test"],
    &["run", "./missing.sh"],
    &["run", "./plain.txt"],
    &["run", "./folder"],
    // Options in the wrong place.
    &["run", "sleep 1", "--name", "x"],
    &["run", "sleep 1", "-d"],
    &["run", "echo one", "two"],
    &["run", "--backgroud", "sleep", "1"],
    &["run", "-it", "ls"],
    &["run", "--rm", "ls"],
    &["run", "--frobnicate", "ls"],
    &["run", "--port", "5173", "npm", "run", "dev"],
    &["run", "--http", "/health", "npm", "run", "dev"],
    &["run", "--sandbox", "bwrap", "ls"],
    &["run", "--deadline", "1s", "sleep 2"],
    &["run", "-d", "--pattern", "ready", "sleep 2"],
    // Values.
    &["run", "--timeout", "soon", "true"],
    &["run", "--size", "wide", "true"],
    &["run", "--size", "5000x10", "true"],
    &["run", "--name", "7", "true"],
    &["run", "--name", "web", "sleep 9"],
    &["run", "--cwd", "/no/such/folder", "pwd"],
    &["run", "--memory", "much", "true"],
    &["run", "--pattern", "(", "true"],
    &["run", "--with", "bsah", "echo one"],
    &["run", "--with", "bash", "echo", "one"],
    &["run", "--detach-key", "Ctrl-C", "true"],
    &["run"],
    &["run", ""],
    // Jobs.
    &["read", "99"],
    &["logs", "wbe"],
    &["kill", "web", "nosuch"],
    &["kill", "web", "--signal", "HUPP"],
    &["kill"],
    &["rm"],
    &["kill", "wbe"],
    &["jobs", "--runing"],
    &["send", "web"],
    &["send", "done", "yes"],
    &["send", "web", "--key", "Entre"],
    &["attach", "web"],
    &["attach", "done"],
    &["wait", "web", "--stable", "0"],
    &["wait", "web", "--since", "yesterday"],
    &["wait", "web", "--pattern", "["],
    &["read", "web", "--grep", "*"],
    &["resize", "web", "2000x2000"],
    &["replay", "done", "--speed", "0"],
    &["--home", "/no/such/home", "jobs"],
    // Files.
    &["bad", "run", "true"],
    &["bad", "prune"],
    // Agents: one of them is on this machine.
    &["install"],
    &["install", "clod"],
    &["uninstall"],
];

#[test]
fn every_mistake_says_what_is_wrong_and_what_to_type_next() {
    let sandbox = sandbox();
    std::fs::create_dir(sandbox.work().join("folder")).unwrap();
    std::fs::write(sandbox.work().join("plain.txt"), "words\n").unwrap();
    let settings = sandbox.root().join("bad.toml");
    std::fs::write(&settings, "[log]\ncap = \"2GiB\"\n\n[retention]\njobs = 5\nage = \"7 weeks\"\n").unwrap();
    let fixture = sandbox.fixture();
    sandbox.run(["run", "--name", "done", "--", &fixture, "says", "ready"]).ok();
    sandbox.start(["--name", "web", "--", &fixture, "says-and-sleeps", "up"]);
    sandbox.wait_for_text(2, "up");
    // A path of our own: what is said does not depend on the machine.
    let tools = sandbox.root().join("tools");
    std::fs::create_dir(&tools).unwrap();
    for program in ["bash", "bc", "claude", "ls", "pwd", "sleep", "true"] {
        std::os::unix::fs::symlink("/bin/true", tools.join(program)).unwrap();
    }
    let mut page = String::new();
    for mistake in MISTAKES {
        let (is_bad, words) = match mistake.split_first() {
            Some((&"bad", words)) => (true, words),
            _ => (false, *mistake),
        };
        let call = sandbox.call(words).cwd(sandbox.work()).env("PATH", &tools);
        let call = if is_bad { call.env("OUTLAST_CONFIG", &settings) } else { call };
        let ran = call.run();
        assert!(!ran.stderr.contains("panicked"), "{ran}");
        assert!(ran.stdout.is_empty(), "{ran}");
        let code = ran.code.unwrap();
        assert!(code != 0, "{ran}");
        let quoted = words.iter().map(|word| {
            if word.is_empty() || word.contains([' ', '(', '[', '*']) {
                format!("'{word}'")
            } else {
                (*word).to_owned()
            }
        });
        let line = quoted.collect::<Vec<_>>().join(" ");
        let said = ran.stderr.replace(sandbox.root().to_str().unwrap(), "~");
        assert!(said.trim_end().lines().count() >= 2, "what is to be typed next? {ran}");
        let set = if is_bad { "OUTLAST_CONFIG=~/bad.toml " } else { "" };
        let _ = write!(page, "$ {set}outlast {line}\n{}\n-> {code}\n\n", said.trim_end());
    }
    assert!(!sandbox.job(3).exists(), "no mistake leaves a job behind");
    assert!(MISTAKES.len() >= 40);
    compare("mistakes.txt", &page);
    sandbox.run(["kill", "web"]).ok();
}

/// What cannot do without a wrong value stops; a person can still see and end their jobs.
#[test]
fn wrong_settings_stop_only_what_needs_them() {
    let sandbox = sandbox();
    let settings = sandbox.root().join("bad.toml");
    std::fs::write(&settings, "[retention]\nage = \"7 weeks\"\n").unwrap();
    let job = sandbox.start(["--name", "web", "--", &sandbox.fixture(), "says-and-sleeps", "up"]);
    sandbox.wait_for_text(job, "up");
    let call = |args: &[&str]| sandbox.call(args).env("OUTLAST_CONFIG", &settings).run();
    for args in [
        &["jobs"][..],
        &["read", "web"],
        &["logs", "web"],
        &["prune", "--all", "--dry-run"],
        &["kill", "web"],
    ] {
        call(args).ok();
    }
    call(&["wait", "web"]).code(128 + 15);
    for args in [&["prune"][..], &["run", "true"]] {
        call(args).code(2).says("bad.toml, line 2: retention.age").says("7 weeks");
    }
}

/// The verbs that people know from elsewhere.
#[test]
fn aliases_are_the_verbs_they_stand_for() {
    let sandbox = sandbox();
    sandbox.run(["run", "--name", "one", "--", &sandbox.fixture(), "says", "hello"]).ok();
    for alias in ["ps", "ls", "list"] {
        assert_eq!(sandbox.json([alias])["jobs"][0]["name"], "one");
    }
    assert_eq!(sandbox.run(["tail", "one"]).ok().text(), "hello\n");
    assert_eq!(sandbox.json(["stop", "one"])["already_ended"], true);
    sandbox.run(["fg", "one"]).code(1).says("job 1 has ended").says("outlast rerun 1");
}

/// An `outlast` in a job works with the same jobs.
#[test]
fn a_job_knows_its_number_and_its_home() {
    let sandbox = sandbox();
    let program = sandbox.program().display();
    let line = format!("echo job $OUTLAST_JOB; '{program}' run -n echo nested; '{program}' jobs -a");
    let ran = sandbox.run(["run", &line]).ok().text();
    assert!(ran.contains("job 1\n") && ran.contains("echo nested"), "{ran}");
    assert!(sandbox.job(2).exists(), "{ran}");
}
