//! Who may do what, on the command line. In these tests nobody may `touch`: so a file that is there tells.

use std::path::Path;

use clap::CommandFactory;
use outlast_protocol::Tool;
use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually};
use serde_json::{Value, json};

use crate::sandbox;

const NO_TOUCH: &str = r#"
[[rule]]
decision = "deny"
prefix = "touch"
why = "files come from the editor"
match = ["touch x", "sudo touch x"]
not_match = ["echo touch"]

[[rule]]
decision = "ask"
prefix = ["git", "push"]
"#;

fn with_policy(text: &str) -> Sandbox {
    let sandbox = sandbox();
    write(&sandbox.root().join("config/outlast/policy.toml"), text);
    sandbox
}

fn write(file: &Path, text: &str) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

fn audit(sandbox: &Sandbox) -> Vec<Value> {
    let text = std::fs::read_to_string(sandbox.home().join("audit.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// An interactive shell that reads no start-up files, ready to be typed into.
fn shell(sandbox: &Sandbox) -> String {
    let job = sandbox.start(["-e", "PS1=ready> ", "--", "bash", "--norc", "--noprofile", "-i"]);
    sandbox.wait_for_text(job, "ready> ");
    job.to_string()
}

/// Types a line that tells when it is run: everything before it has been, too.
#[track_caller]
fn types_on(sandbox: &Sandbox, job: &str) {
    sandbox.run(["send", job, "--key", "Ctrl-C", "--no-wait"]).ok();
    let answer = sandbox.json(["send", job, "echo st''ill", "--pattern", "still\\s"]);
    assert_eq!(answer["reason"], "pattern", "{answer}");
}

#[test]
fn a_file_that_does_not_load_stops_whatever_acts_and_names_the_line() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says-and-sleeps", "up"]).to_string();
    let file = sandbox.root().join("config/outlast/policy.toml");
    let wrongs = [
        ("default = \"allow\"\n[[rule]]\ndecision = \"deny\"\nprefixx = \"rm\"\n", 4, "prefixx"),
        ("\n\n[[rule]]\ndecision = \"perhaps\"\nprefix = \"rm\"\n", 4, "perhaps"),
        ("[[rule]]\ndecision = \"deny\"\nprefix = [\"git push\"]\n", 1, "never match"),
        ("[[rule]]\ndecision = \"deny\"\nprefix = \"rm\"\nmatch = [\"ls\"]\n", 1, "does not match"),
        ("[[rule]]\ndecision = \"deny\"\nprefix = \"rm\"\nnot_match = [\"sudo rm x\"]\n", 1, "should not"),
        ("[[rule]]\ndecision = \"deny\"\n", 1, "needs a prefix"),
        ("[[rule]]\ndecision = \"deny\"\ntool = \"fly\"\n", 1, "no tool"),
        ("what = ", 1, ""),
    ];
    for (text, line, about) in wrongs {
        write(&file, text);
        let place = format!("policy.toml:{line}:");
        for verb in
            [&["run", "true"][..], &["send", &job, "x"], &["kill", &job], &["mcp"], &["policy", "check"]]
        {
            sandbox.run(verb).code(2).says(&place).says(about);
        }
    }
    assert_eq!(
        sandbox.json(["jobs"])["jobs"].as_array().unwrap().len(),
        1,
        "looking goes on, and nothing ran"
    );
    std::fs::remove_file(&file).unwrap();
    sandbox.run(["kill", &job]).ok();
}

#[test]
fn a_denied_command_is_not_run_in_any_spelling() {
    let sandbox = with_policy(NO_TOUCH);
    let tries = [
        "touch here",
        "\\touch here",
        "t''ouch here",
        "$'\\x74ouch' here",
        "/usr/bin/touch here",
        "true && touch here",
        "true\ntouch here",
        "tou\\\nch here",
        "env A=b touch here",
        "command touch here",
        "bash -c 'touch here'",
        "bash <<< 'touch here'",
        "bash <<'EOF'\ntouch here\nEOF",
        "echo touch here | bash",
        "echo dG91Y2ggaGVyZQo= | base64 -d | bash",
        "eval 'tou''ch here'",
        "X=touch; $X here",
        "$(echo touch) here",
        "{touch,here}",
        "touch${IFS}here",
        "/usr/bin/t?uch here",
        "echo here | xargs touch",
        "find . -maxdepth 0 -exec touch here ;",
        "f() { touch \"$@\"; }; f here",
        "trap 'touch here' EXIT",
        "nohup timeout 5 nice touch here",
        "awk 'BEGIN { system(\"touch here\") }'",
        "cp $(command -v touch) ./t; ./t here",
        "ln -s /usr/bin/touch t; ./t here",
        "echo 'touch here' > t.sh; bash t.sh",
        "BASH_ENV=<(echo touch here) bash -c true",
        "unheard-of-wrapper touch here",
    ];
    for line in tries {
        let ran = sandbox.call(["run", line]).limit(TEST_TIMEOUT).run();
        assert_eq!(ran.code, Some(5), "{line}: {ran}");
    }
    for argv in [&["touch", "here"][..], &["bash", "-c", "touch here"], &["env", "touch", "here"]] {
        sandbox.run(["run", "--"].iter().chain(argv)).code(5).says("touch");
    }
    sandbox.call(["run", "bash"]).stdin("touch here\n").run().code(5);
    sandbox.run(["run", "-e", "BASH_ENV=evil", "true && true"]).code(5);
    sandbox.run(["run", "--wake", "exec:touch here", "true"]).code(5);
    assert!(!sandbox.work().join("here").exists());
    assert_eq!(sandbox.json(["jobs", "--all"])["jobs"], json!([]), "not one job was started");
    assert_eq!(audit(&sandbox).len(), tries.len() + 6);
    // What has nothing to do with it is run.
    assert_eq!(
        sandbox.run(["run", "echo touch > there && cat there"]).code,
        Some(5),
        "it could be run from there"
    );
    assert_eq!(sandbox.run(["run", "echo fine"]).ok().text().trim(), "fine");
}

#[test]
fn what_is_typed_into_a_shell_is_a_command() {
    let sandbox = with_policy(NO_TOUCH);
    let job = shell(&sandbox);
    let tries: &[&[&str]] = &[
        &["touch here"],
        &["true; touch here"],
        &["true\ntouch here"],
        &["t\\ouch here"],
        &["--no-newline", "touch here"],
        &["--no-newline", "touch here\r"],
        &["$(echo touch) here"],
        &["echo touch here | sh"],
        &["sh -c 'touch here'"],
        &["!!"],
        &["--key", "Up", "--key", "Enter"],
        &["--no-newline", "ouch here", "--key", "Home", "--key", "t", "--key", "Enter"],
        &["-k", "t", "-k", "o", "-k", "u", "-k", "c", "-k", "h", "-k", "Space", "-k", "h", "-k", "Enter"],
    ];
    for words in tries {
        sandbox.run(["send", &job].iter().chain(*words)).code(5);
    }
    sandbox.call(["send", &job, "--stdin"]).stdin("true\ntouch here\n").run().code(5);
    // In parts, which are harmless each: the last one is refused.
    for parts in [
        &[&["--no-newline", "tou"][..], &["ch here"]][..],
        &[&["tou\\"], &["ch here"]],
        &[&["echo tou |"], &["sh"]],
        &[&["--no-newline", "ouch here"], &["--key", "Ctrl-A"], &["t"]],
        &[&["--key", "Up"], &["--key", "Enter"]],
    ] {
        let (last, first) = parts.split_last().unwrap();
        let job = shell(&sandbox);
        for part in first {
            sandbox.run(["send", &job, "--no-wait"].iter().chain(*part)).ok();
        }
        sandbox.run(["send", &job].iter().chain(*last)).code(5);
        sandbox.run(["kill", &job]).ok();
    }
    types_on(&sandbox, &job);
    assert!(!sandbox.work().join("here").exists());
    let answer = sandbox.json(["send", &job, "echo fi''ne", "--pattern", "fine\\s"]);
    assert_eq!(answer["reason"], "pattern", "{answer}");
    sandbox.run(["kill", &job]).ok();
}

#[test]
fn a_program_in_front_of_the_shell_is_no_cover() {
    let sandbox = with_policy(NO_TOUCH);
    let job = shell(&sandbox);
    let fixture = sandbox.fixture();
    // It does not read: what is typed now, the shell gets later.
    sandbox.run(["send", &job, &format!("'{fixture}' says-and-sleeps up"), "--pattern", "up\\s"]).ok();
    sandbox.run(["send", &job, "touch here"]).code(5).says("denied");
    sandbox.run(["send", &job, "tou\\", "--no-wait"]).ok();
    sandbox.run(["send", &job, "ch here"]).code(5).says("denied");
    types_on(&sandbox, &job);
    // It reads, and what comes behind its end is for the shell.
    sandbox.run(["send", &job, "cat", "--no-wait"]).ok();
    eventually("cat reads", TEST_TIMEOUT, || {
        let status = sandbox.json(["wait", &job, "--input", "--deadline", "10s"]);
        let program = status["awaiting_input"]["evidence"]["program"].clone();
        if program == "cat" { Ok(()) } else { Err(status) }
    });
    sandbox.run(["send", &job, "it's (no command", "--no-wait"]).ok();
    sandbox.run(["send", &job, "--no-newline", "\u{4}touch here\r"]).code(5);
    types_on(&sandbox, &job);
    assert!(!sandbox.work().join("here").exists());
    sandbox.run(["kill", &job]).ok();
}

#[test]
fn a_half_typed_line_is_not_forgotten_with_the_keeper() {
    let sandbox = with_policy(NO_TOUCH);
    let job = shell(&sandbox);
    sandbox.run(["send", &job, "--no-newline", "tou", "--no-wait"]).ok();
    let keeper = sandbox.process(1, "keeper");
    rustix::process::kill_process(keeper.pid, rustix::process::Signal::KILL).unwrap();
    eventually("the heir keeps it", TEST_TIMEOUT, || {
        let now = &sandbox.info(1)["takeovers"];
        if now == 1 { Ok(()) } else { Err(now.clone()) }
    });
    sandbox.run(["send", &job, "ch here"]).code(5).says("can't be seen");
    assert!(!sandbox.work().join("here").exists());
    sandbox.run(["kill", &job]).ok();
}

#[test]
fn whoever_types_in_between_makes_it_judged_again() {
    let sandbox = with_policy(NO_TOUCH);
    let job = shell(&sandbox);
    let mut socket = sandbox.socket(1);
    let before = socket.ask(&json!({"id": 1, "verb": "typed"}));
    let count = before["typed"]["count"].clone();
    assert!(count.is_u64(), "{before}");
    sandbox.run(["send", &job, "--no-newline", "x", "--no-wait"]).ok();
    let late = socket.ask(&json!({"id": 2, "verb": "send", "text": "y", "after": count}));
    assert_eq!(late["error"]["kind"], "denied", "{late}");
    sandbox.run(["kill", &job]).ok();
}

#[test]
fn a_project_may_tighten_and_never_loosen() {
    let sandbox = with_policy(NO_TOUCH);
    let project = sandbox.work().join("project");
    let deeper = project.join("a/b");
    std::fs::create_dir_all(&deeper).unwrap();
    let loose = "default = \"allow\"\n[agents]\nkill = \"allow\"\n[[rule]]\ndecision = \"allow\"\nprefix = \"touch\"\n";
    let tight = "[[rule]]\ndecision = \"deny\"\nprefix = \"uname\"\n";
    write(&project.join(".outlast/policy.toml"), loose);
    sandbox.call(["run", "touch here"]).cwd(&project).run().code(5);
    write(&project.join(".outlast/policy.toml"), tight);
    write(&deeper.join(".outlast/policy.toml"), "[[rule]]\ndecision = \"deny\"\nprefix = \"whoami\"\n");
    sandbox.run(["run", "uname"]).ok();
    let elsewhere = deeper.display().to_string();
    for command in ["touch here", "uname", "whoami"] {
        sandbox.call(["run", command]).cwd(&deeper).run().code(5);
        sandbox.run(["run", "--cwd", &elsewhere, command]).code(5);
    }
    std::os::unix::fs::symlink(&deeper, sandbox.work().join("link")).unwrap();
    sandbox.run(["run", "--cwd", "link", "uname"]).code(5);
    sandbox.call(["run", "whoami"]).cwd(&project).run().ok();
    write(&project.join(".outlast/policy.toml"), "oops");
    sandbox.call(["run", "true"]).cwd(&deeper).run().code(2).says("project/.outlast/policy.toml:1");
}

#[test]
fn a_list_of_what_is_allowed_is_kept_to() {
    let sandbox = with_policy(
        "default = \"deny\"\n[[rule]]\ndecision = \"allow\"\nprefix = \"echo\"\n[[rule]]\ndecision = \"allow\"\nprefix = \"cat\"\n",
    );
    for fine in ["echo a", "echo a | cat", "timeout 5 echo a", "bash -c 'echo a'; echo b"] {
        let ran = sandbox.run(["run", fine]);
        let expected = if fine.contains("bash") { 5 } else { 0 };
        assert_eq!(ran.code, Some(expected), "{fine}: {ran}");
    }
    for not in ["ls", "echo a; ls", "echo $(ls)", "echo a > file", "./echo a", "bash", "env"] {
        sandbox.run(["run", not]).code(5);
    }
    assert!(!sandbox.work().join("file").exists());
}

#[test]
fn check_says_what_is_decided_by_which_rule_and_why() {
    let sandbox = with_policy(NO_TOUCH);
    let checked = sandbox.run(["policy", "check", "--explain", "ls && sudo touch x"]).code(5).text();
    let file = sandbox.root().join("config/outlast/policy.toml").display().to_string();
    for part in ["deny\n", "deny touch", &format!("{file}:2"), "files come from the editor", "sudo touch x"] {
        assert!(checked.contains(part), "{part:?} in {checked}");
    }
    let asked = sandbox.json(["policy", "check", "git -C x push"]);
    assert_eq!(asked["decision"], "ask", "{asked}");
    assert_eq!(
        (&asked["findings"][0]["rule"]["line"], &asked["findings"][0]["rule"]["rule"]),
        (&json!(9), &json!("ask git push"))
    );
    assert_eq!(sandbox.json(["policy", "check", "ls"])["decision"], "allow");
    assert_eq!(sandbox.json(["policy", "check", "--", "git", "push"])["decision"], "ask");
    sandbox.run(["policy", "check", "--tool", "send_input", "touch x"]).code(5);
    assert_eq!(sandbox.json(["jobs", "--all"])["jobs"], json!([]));
    assert!(audit(&sandbox).is_empty(), "to ask what would be is no act");
}

#[test]
fn rules_that_never_decide_are_told() {
    let sandbox = with_policy(
        "[[rule]]\ndecision = \"deny\"\nprefix = \"git\"\n\n[[rule]]\ndecision = \"allow\"\nprefix = \"git status\"\n",
    );
    let notes = sandbox.json(["policy", "check"])["notes"].clone();
    assert_eq!(notes.as_array().unwrap().len(), 1, "{notes}");
    let note = notes[0].as_str().unwrap();
    assert!(note.contains("policy.toml:5") && note.contains("never decides"), "{note}");
    sandbox.run(["policy", "check", "ls"]).ok().says("never decides");
}

#[test]
fn every_refusal_is_in_the_audit_log() {
    let sandbox = with_policy(NO_TOUCH);
    sandbox.run(["run", "touch here"]).code(5);
    sandbox.run(["run", "git push"]).code(5).says("nobody can be asked here");
    sandbox.run(["run", "true"]).ok();
    let lines = audit(&sandbox);
    let told: Vec<_> = lines.iter().map(|line| (&line["what"], &line["decision"], &line["answer"])).collect();
    let (denied, asked) = (json!("deny"), json!("ask"));
    assert_eq!(
        told,
        [(&json!("touch here"), &denied, &Value::Null), (&json!("git push"), &asked, &json!("unable")),],
    );
    assert_eq!(lines[0]["rule"], "deny touch");
    assert_eq!(
        (&lines[0]["door"], &lines[0]["session"], &lines[0]["tool"]),
        (&json!("cli"), &json!("test"), &json!("run_shell_command"))
    );
    assert!(lines[0]["place"].as_str().unwrap().ends_with("policy.toml:2"), "{}", lines[0]);
}

#[test]
fn rules_about_tools_hold_by_any_name() {
    let sandbox = with_policy(
        "[[rule]]\ndecision = \"deny\"\ntool = \"KillShell\"\n[[rule]]\ndecision = \"deny\"\ntool = \"write_to_shell\"\n",
    );
    let job = sandbox.fixture_job(&["says-and-sleeps", "up"]).to_string();
    sandbox.run(["kill", &job]).code(5).says("tool kill");
    sandbox.run(["send", &job, "x"]).code(5).says("tool send_input");
    sandbox.run(["run", "true"]).ok();
}

/// Each verb that does something to jobs, and the tool that it is for rules.
const VERBS: &[(&[&str], &str)] = &[
    (&["run", "touch", "here"], "run_shell_command"),
    (&["run", "-d", "touch", "here"], "run_shell_command"),
    (&["send", "1", "typed"], "send_input"),
    (&["send", "1", "--key", "Ctrl-C"], "send_input"),
    (&["kill", "1"], "kill"),
    (&["kill", "1", "--signal", "HUP"], "kill"),
    (&["resize", "1", "100x30"], "resize"),
    (&["watch", "1", "--exit"], "watch"),
    (&["watch", "1", "--remove", "w1"], "watch"),
    (&["watch", "1", "--list"], "watch"),
    (&["events"], "events"),
    (&["events", "--ack-all"], "events"),
    (&["prune", "--all"], "prune"),
    (&["prune", "--all", "--dry-run"], "jobs"),
    (&["jobs"], "jobs"),
    (&["show", "1"], "jobs"),
    (&["policy", "pending"], "jobs"),
    (&["policy", "log"], "jobs"),
    (&["pin", "2"], "jobs"),
    (&["pin", "2", "--remove"], "prune"),
    (&["rm", "2"], "prune"),
    (&["rerun", "2"], "run_shell_command"),
    (&["wakes", "list"], "events"),
    (&["wakes", "pause"], "events"),
    (&["wakes", "resume"], "events"),
    (&["read", "1"], "read_output"),
    (&["logs", "1"], "read_output"),
    (&["tail", "1"], "read_output"),
    (&["replay", "1", "--at", "0s"], "read_output"),
    (&["diff", "1", "1"], "read_output"),
    (&["screen", "1"], "read_shell"),
    (&["wait", "1", "--quiet-for", "1ms"], "wait_for"),
    (&["tmux", "submit", "touch here"], "send_input"),
    (&["tmux", "read", "%0"], "read_shell"),
    (&["tmux", "watch", "%0"], "read_shell"),
    (&["fleet", "log", "gpu1/1"], "read_output"),
];

/// Verbs that ask nothing of jobs, serve somebody who is judged with each order, are a person's own typing, or are
/// judged by whose wake or question it is.
const NOT_JUDGED: &[&str] = &[
    "secret",
    "secret list",
    "secret forget",
    "attach",
    "policy check",
    "policy answer",
    "policy init",
    "wakes retry",
    "wakes cancel",
    "hook",
    // What they run or show is judged: their own tests.
    "host add",
    "host list",
    "host test",
    "host remove",
    "shell",
    "cp",
    "node",
    "fleet init",
    "fleet add",
    "fleet revoke",
    "fleet join",
    "fleet status",
    "submit",
    "order list",
    "order show",
    "order cancel",
    "order resolve",
    "order results",
    "telemetry",
    "top",
    "web share",
    "web shares",
    "web revoke",
    "relay",
    "mcp",
    "acp agent",
    "acp sidecar",
    "acp tap",
    "config list",
    "config get",
    "config set",
    "config unset",
    "config path",
    "install",
    "uninstall",
    "doctor",
    "completions",
    "man",
    "tmux work",
    "tmux mirror",
];

#[test]
fn whoever_adds_a_verb_says_how_it_is_judged() {
    fn verbs(command: &clap::Command, before: &str, into: &mut Vec<String>) {
        for verb in command.get_subcommands() {
            let name = format!("{before}{}", verb.get_name());
            match verb.has_subcommands() {
                true => verbs(verb, &format!("{name} "), into),
                false => into.push(name),
            }
        }
    }
    let mut all = Vec::new();
    verbs(&outlast_cli::Cli::command(), "", &mut all);
    let unknown = all.iter().filter(|verb| {
        let judged = |(words, _): &(&[&str], &str)| words.join(" ").starts_with(&format!("{verb} "));
        let alone = |(words, _): &(&[&str], &str)| words.join(" ") == **verb;
        !NOT_JUDGED.contains(&verb.as_str()) && !VERBS.iter().any(|row| judged(row) || alone(row))
    });
    assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&String>::new(), "how are they judged?");
}

#[test]
fn every_verb_is_judged_once_and_a_denied_one_does_nothing() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says-and-sleeps", "up"]);
    assert_eq!(job, 1);
    sandbox.run(["run", "true"]).ok();
    let before = (sandbox.info(1), std::fs::read_dir(sandbox.home().join("jobs")).unwrap().count());
    let rule = |tool: &Tool| format!("[[rule]]\ndecision = \"deny\"\ntool = \"{tool}\"\n");
    write(
        &sandbox.root().join("config/outlast/policy.toml"),
        &Tool::ALL.iter().map(rule).collect::<String>(),
    );
    for (i, (verb, tool)) in VERBS.iter().enumerate() {
        sandbox.run(*verb).code(5).says(&format!("tool {tool}"));
        let noted = audit(&sandbox);
        assert_eq!(noted.len(), i + 1, "{verb:?} is judged once");
        assert_eq!(noted[i]["tool"], *tool, "{verb:?}");
    }
    let after = (sandbox.info(1), std::fs::read_dir(sandbox.home().join("jobs")).unwrap().count());
    assert_eq!(after, before, "no job has changed, and there is no other");
    assert!(!sandbox.work().join("here").exists());
}

#[test]
fn a_job_does_not_end_whom_it_runs_in_unless_forced() {
    let sandbox = sandbox();
    let (program, home) = (sandbox.program().display(), sandbox.home().display());
    let outlast = format!("'{program}' --home '{home}'");
    let job = sandbox.start([format!("{outlast} kill 1; echo code $?; read x")]);
    sandbox.wait_for_text(job, "code 5");
    // Nor does a job that it started end it: that would end its own caller.
    let inner = format!("{outlast} kill 2; echo inner code \\$?");
    let outer = sandbox.start([format!("{outlast} run \"{inner}\"; read x")]);
    assert_eq!(outer, 2);
    sandbox.wait_for_text(outer, "inner code 5");
    sandbox.run(["kill", "1", "2"]).ok();
    sandbox.nothing_runs();
}
