//! A notice does no harm: it is typed into the empty input line of an agent, seen there, sent, or told as not given.

use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually};

use super::agent::Agent;
use super::panes::{Server, shell};
use super::{entries, entry, sandbox};

/// Every job wakes the pane, and gives that up after a while.
fn wake_pane(sandbox: &Sandbox, timeout: &str) {
    let config = sandbox.root().join("config/outlast");
    std::fs::create_dir_all(&config).unwrap();
    let text =
        format!("[[wake]]\nkind = \"tmux\"\npane = \"%0\"\ntimeout = \"{timeout}\"\non = [\"ended\"]\n");
    std::fs::write(config.join("config.toml"), text).unwrap();
}

/// Starts a job with the server as its tmux.
#[track_caller]
fn run(sandbox: &Sandbox, server: &Server, more: &[&str]) -> u64 {
    let call = sandbox.call(["--json", "run", "-d"]).args(more);
    let call = call.env("TMUX", format!("{},0,0", server.socket().display()));
    call.run().ok().json()["handle"].as_u64().unwrap()
}

fn shows_nothing(agent: &Agent) {
    let shown = agent.server.shows();
    assert!(!shown.contains("outlast:"), "{shown}");
}

#[test]
fn a_wake_is_sent_to_an_agent_at_its_empty_input_and_holds_no_output() {
    for sign in ["❯", "*", ">"] {
        let sandbox = sandbox();
        let Some(agent) = Agent::start(&sandbox, sign, "idle") else { return };
        let line = "echo '$(touch INJECTED); oops'; exit 5";
        let job = run(&sandbox, &agent.server, &["--name", "build", "--wake", "tmux:%0", line]);
        agent.wait_for("sent");
        let notice = format!(
            "'[outlast: automatic notice] job {job} exit: failed, exit code 5 | more: outlast read {job} --tail 20'"
        );
        assert_eq!(agent.sent(), [notice]);
    }
}

#[test]
fn wakes_at_the_same_moment_are_one_message_for_each_session() {
    let sandbox = sandbox();
    let other = super::sandbox();
    let Some(agent) = Agent::start(&sandbox, "❯", "idle") else { return };
    let gate = sandbox.root().join("gate");
    let line = format!("while ! test -e {}; do sleep 0.05; done", gate.display());
    // Nothing is typed before all are there.
    for home in [&sandbox, &other] {
        home.call(["wakes", "pause"]).run().ok();
    }
    for home in [&other, &sandbox, &sandbox, &sandbox] {
        let job = run(home, &agent.server, &["--wake", "tmux:%0", &line]);
        std::fs::write(&gate, "").unwrap();
        home.wait_for_end(job);
        let waits = || home.json(["wakes", "list"])["wakes"].as_array().unwrap().len() as u64;
        eventually("the order", TEST_TIMEOUT, || if waits() == job { Ok(()) } else { Err(waits()) });
    }
    assert_eq!(sandbox.json(["wakes", "list"])["wakes"][0]["state"], "paused");
    for home in [&sandbox, &other] {
        home.call(["wakes", "resume"]).run().ok();
    }
    let sent = eventually("two messages", TEST_TIMEOUT, || {
        let sent = agent.sent();
        if sent.len() == 2 { Ok(sent) } else { Err((sent, agent.server.shows())) }
    });
    let count = |text: &str| sent.iter().filter(|sent| sent.contains(text)).count();
    assert_eq!(count("3 events of jobs 1 2 3 | more: outlast events"), 1, "{sent:?}");
    assert_eq!(count("job 1 exit: completed"), 1, "{sent:?}");
    sandbox.nothing_runs();
    assert_eq!(agent.sent().len(), 2);
}

#[test]
fn a_dialog_is_not_answered_and_the_notice_comes_when_it_is_gone() {
    let sandbox = sandbox();
    let Some(agent) = Agent::start(&sandbox, ">", "dialog") else { return };
    wake_pane(&sandbox, "1s");
    run(&sandbox, &agent.server, &["true"]);
    let told = entry(&sandbox, "wake_failed");
    assert!(told["text"].as_str().unwrap().contains("list of choices"), "{told}");
    assert!(!agent.notes().contains("dialog-key"), "{}", agent.notes());
    let job = agent.server.submit(&sandbox, &["--notice", ""], "please continue");
    sandbox.wait_for_text(job, "list of choices");
    assert!(!agent.notes().contains("dialog-key"), "{}", agent.notes());
    agent.keys(&["Enter"]);
    agent.wait_for("sent 'please continue'");
    assert_eq!(agent.notes().matches("dialog-key").count(), 1, "{}", agent.notes());
}

#[test]
fn a_dialog_that_a_submitted_command_brings_up_is_not_answered_by_its_notice() {
    let sandbox = sandbox();
    let Some(agent) = Agent::start(&sandbox, ">", "idle") else { return };
    let job = agent.server.submit(&sandbox, &["--patience", "2s"], "ask");
    sandbox.wait_for_end(job);
    let told = entry(&sandbox, "wake_failed");
    assert_eq!(told["job"], job, "{told}");
    assert!(!agent.notes().contains("dialog-key"), "{}", agent.notes());
}

#[test]
fn a_draft_is_kept_and_not_sent_along() {
    for (sign, keys) in [
        ("*", &[&["-l", "draft"][..]][..]),
        (">", &[&["-l", "first"], &["C-j"], &["-l", "second"]]),
        ("❯", &[&["-l", "draft"], &["Home"]]),
        ("!", &[]),
        ("!", &[&["-l", "echo half"]]),
    ] {
        let sandbox = sandbox();
        let Some(agent) = Agent::start(&sandbox, sign, "idle") else { return };
        wake_pane(&sandbox, "700ms");
        keys.iter().for_each(|keys| agent.keys(keys));
        if let Some(last) = keys.iter().rfind(|keys| keys[0] == "-l") {
            agent.server.wait_for(last[1]);
        }
        run(&sandbox, &agent.server, &["true"]);
        entry(&sandbox, "wake_failed");
        assert!(agent.sent().is_empty(), "{sign} {keys:?}: {}", agent.notes());
        shows_nothing(&agent);
    }
}

#[test]
fn an_input_that_changes_to_shell_mode_right_before_the_paste_runs_nothing() {
    let sandbox = sandbox();
    let Some(agent) = Agent::start(&sandbox, ">", "switches") else { return };
    wake_pane(&sandbox, "2s");
    run(&sandbox, &agent.server, &["true"]);
    let told = entry(&sandbox, "wake_failed");
    assert!(told["text"].as_str().unwrap().contains("text is run or kept"), "{told}");
    assert!(agent.sent().is_empty(), "{}", agent.notes());
    shows_nothing(&agent);
}

#[test]
fn an_enter_that_was_taken_for_a_new_line_is_pressed_again() {
    let sandbox = sandbox();
    let Some(agent) = Agent::start(&sandbox, ">", "newline") else { return };
    run(&sandbox, &agent.server, &["--wake", "tmux:%0", "true"]);
    agent.wait_for("sent");
    assert_eq!(agent.sent().len(), 1, "{}", agent.notes());
    assert!(agent.sent()[0].contains("job 1 exit: completed"), "{}", agent.notes());
}

#[test]
fn a_notice_counts_as_told_only_when_it_was_seen_to_leave() {
    let sandbox = sandbox();
    let Some(agent) = Agent::start(&sandbox, "❯", "hangs") else { return };
    wake_pane(&sandbox, "1s");
    run(&sandbox, &agent.server, &["true"]);
    let told = entry(&sandbox, "wake_failed");
    assert!(told["text"].as_str().unwrap().contains("it could not be seen whether it was taken"), "{told}");
    assert!(agent.sent().is_empty(), "{}", agent.notes());
}

#[test]
fn nothing_is_typed_into_a_shell_or_as_the_answer_to_a_question() {
    let sandbox = sandbox();
    let Some(server) = shell(&sandbox) else { return };
    wake_pane(&sandbox, "500ms");
    let ask = "read -p 'Continue? (y/n) ' a; echo \"<$a>\"";
    let secret = "python3 -c 'import getpass; print(f\"<{getpass.getpass()}>\")'";
    for (line, asks, leave) in [
        ("", "$ ", ""),
        (ask, "(y/n)", "Enter"),
        (secret, "Password:", "Enter"),
        ("vim -u NONE -N +start other", "\n~ ", ""),
    ] {
        if !line.is_empty() {
            server.tmux(&["send-keys", "-t", "%0", line, "Enter"]);
        }
        server.wait_for(asks);
        let before = entries(&sandbox).len();
        run(&sandbox, &server, &["echo '$(touch INJECTED)'; exit 3"]);
        eventually("it is told that it was not told", TEST_TIMEOUT, || {
            let all = entries(&sandbox);
            let failed = all[before..].iter().filter(|entry| entry["event"] == "wake_failed").count();
            if failed == 1 { Ok(()) } else { Err(all) }
        });
        let shown = server.shows();
        assert!(!shown.contains("notice"), "{line}: {shown}");
        if !leave.is_empty() {
            server.tmux(&["send-keys", "-t", "%0", leave]);
            server.wait_for("<>");
            server.tmux(&["send-keys", "-t", "%0", "clear", "Enter"]);
            eventually("cleared", TEST_TIMEOUT, || {
                let shown = server.shows();
                if shown.contains("<>") { Err(shown) } else { Ok(()) }
            });
        }
    }
    assert!(!sandbox.work().join("INJECTED").exists());
}

#[test]
fn the_notice_of_a_submission_is_not_the_answer_to_its_commands_question() {
    let sandbox = sandbox();
    let Some(server) = shell(&sandbox) else { return };
    let ask = "read -p 'Continue? (y/n) ' a; echo \"got=[$a]\" > got";
    let call = sandbox.call(["--json", "tmux", "submit", "--target", "%0", "--settle", "50ms", "--socket"]);
    let call = call.arg(server.socket()).args(["--interval", "100ms", "--notice", "#done", "--", ask]);
    let answer = call.run().ok().json();
    assert_eq!(answer["wakes"][0]["will"], false, "{answer}");
    let job = answer["handle"].as_u64().unwrap();
    assert_eq!(sandbox.wait_for_end(job)["exit_code"], 6, "it asks");
    let told = entry(&sandbox, "wake_failed");
    assert!(told["text"].as_str().unwrap().contains("bash is in the foreground"), "{told}");
    assert!(!server.shows().contains("#done"), "{}", server.shows());
    assert!(!sandbox.work().join("got").exists());
    server.tmux(&["send-keys", "-t", "%0", "mine", "Enter"]);
    eventually("the person's answer", TEST_TIMEOUT, || {
        let got = std::fs::read_to_string(sandbox.work().join("got")).unwrap_or_default();
        if got == "got=[mine]\n" { Ok(()) } else { Err(got) }
    });
}

#[test]
fn at_the_cap_the_job_ends_at_once_and_it_is_told_why_no_notice_came() {
    let sandbox = sandbox();
    let Some(server) = shell(&sandbox) else { return };
    let job = server.submit(&sandbox, &["--cap", "500ms", "--patience", "2s"], "while :; do sleep 0.1; done");
    let ended = sandbox.wait_for_end(job);
    assert_eq!(ended["exit_code"], 4, "{ended}");
    let exit = entry(&sandbox, "exit");
    assert!(exit["text"].as_str().unwrap().contains("deadline"), "{exit}");
    let failed = entry(&sandbox, "wake_failed");
    assert_eq!(failed["job"], job, "{failed}");
    assert!(failed["at"].as_u64() >= exit["at"].as_u64(), "{failed}");
    let said = sandbox.run(["read", &job.to_string(), "--since", "0"]).ok().text();
    assert!(said.lines().count() <= 8, "{said}");
    let jobs = sandbox.json(["jobs", "--all"]);
    assert_eq!(jobs["jobs"][0]["command"], "while :; do sleep 0.1; done", "{jobs}");
}

#[test]
fn a_queued_submission_is_not_typed_into_a_pane_of_another_server() {
    let sandbox = sandbox();
    let Some(server) = shell(&sandbox) else { return };
    let first = server.submit(&sandbox, &["--notice", ""], "sleep 1000");
    sandbox.wait_for_text(first, "typed 10 bytes");
    let queued = server.submit(&sandbox, &["--notice", ""], "echo second > QUEUED");
    sandbox.wait_for_text(queued, "waits for 1 before it");
    // It looks again only when the other server is there.
    let jobs = sandbox.json(["jobs", "--all"]);
    let job = jobs["jobs"].as_array().unwrap().iter().find(|job| job["handle"] == queued).unwrap();
    let pid = job["pid"].to_string();
    let signal = |name: &str| {
        assert!(std::process::Command::new("kill").args([name, &pid]).status().unwrap().success())
    };
    signal("-STOP");
    server.end();
    let Some(_another) = shell(&sandbox) else { return };
    signal("-CONT");
    assert_eq!(sandbox.wait_for_end(first)["exit_code"], 1);
    assert_eq!(sandbox.wait_for_end(queued)["exit_code"], 1);
    let said = sandbox.run(["read", &queued.to_string(), "--since", "0"]).ok().text();
    assert!(said.contains("its tmux server has ended"), "{said}");
    assert!(!sandbox.work().join("QUEUED").exists());
}

#[test]
fn submissions_of_two_homes_to_one_pane_come_one_after_the_other() {
    let sandbox = sandbox();
    let other = super::sandbox();
    let Some(server) = shell(&sandbox) else { return };
    let lines = ["echo a1 >> ran; sleep 0.5; echo a2 >> ran", "echo b1 >> ran; sleep 0.5; echo b2 >> ran"];
    let jobs = [&sandbox, &other].into_iter().zip(lines).map(|(home, line)| {
        let more = ["--checks", "1", "--notice", ""];
        (home, server.submit(home, &more, line))
    });
    for (home, job) in jobs.collect::<Vec<_>>() {
        assert_eq!(home.wait_for_end(job)["exit_code"], 0, "{}", server.shows());
    }
    eventually("both ran", TEST_TIMEOUT, || {
        let ran = std::fs::read_to_string(sandbox.work().join("ran")).unwrap_or_default();
        if ran == "a1\na2\nb1\nb2\n" { Ok(()) } else { Err((ran, server.shows())) }
    });
}

#[test]
fn a_notice_is_judged_like_a_command() {
    let sandbox = sandbox();
    let Some(server) = shell(&sandbox) else { return };
    let config = sandbox.root().join("config/outlast");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(
        config.join("policy.toml"),
        "default = \"allow\"\n[[rule]]\ndecision = \"deny\"\nprefix = \"rm\"\n",
    )
    .unwrap();
    let submit = |notice: &str| {
        let call = sandbox.call(["tmux", "submit", "--target", "%0", "--socket"]).arg(server.socket());
        call.args(["--notice", notice, "--", "echo x"]).run()
    };
    submit("rm -f FILE").code(5);
    submit("two\nlines").code(2).says("one line");
}
