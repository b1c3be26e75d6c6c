//! Typing into panes: whole, once, one after the other, and in nobody's way.

use outlast_testkit::{TEST_TIMEOUT, eventually};

use super::panes::shell;
use super::{entry, sandbox};

#[test]
fn ten_submissions_into_a_busy_pane_run_once_each_and_in_order() {
    let sandbox = sandbox();
    let Some(server) = shell(&sandbox) else { return };
    server.tmux(&["send-keys", "-t", "%0", "sleep 2", "Enter"]);
    let file = sandbox.work().join("ran");
    let jobs: Vec<u64> = (1..=10)
        .map(|i| server.submit(&sandbox, &["--checks", "1", "--notice", ""], &format!("echo {i} >> ran")))
        .collect();
    for job in jobs {
        let ended = sandbox.wait_for_end(job);
        assert_eq!(ended["exit_code"], 0, "{ended}");
    }
    let expected: String = (1..=10).map(|i| format!("{i}\n")).collect();
    eventually("all ran", TEST_TIMEOUT, || {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        if text == expected { Ok(()) } else { Err(text) }
    });
    sandbox.nothing_runs();
}

#[test]
fn any_character_is_typed_as_it_is() {
    let sandbox = sandbox();
    let Some(server) = shell(&sandbox) else { return };
    let odd =
        "it's \"quoted\"; $HOME `x` \\ | & # ~ ünïcödé 漢字 🦀 {a,b} %s #{pane_id} ; !x\n\tsecond; line\n";
    let text = odd.repeat(8 * 1024 / odd.len() + 1);
    let command = format!("cat > typed <<'END OF IT'\n{text}END OF IT");
    let job = server.submit(&sandbox, &[], &command);
    let ended = sandbox.wait_for_end(job);
    assert_eq!(ended["exit_code"], 0, "{ended}\n{}", server.shows());
    let typed = std::fs::read_to_string(sandbox.work().join("typed")).unwrap();
    // A tab at the prompt is a key of the shell unless it is pasted as text.
    assert_eq!(typed, text);
    sandbox.run(["tmux", "submit", "--target", "%0", "--", "a\x1bb"]).code(2).says("control characters");
}

#[test]
fn when_tmux_is_killed_in_the_middle_that_is_told() {
    let sandbox = sandbox();
    let Some(server) = shell(&sandbox) else { return };
    let job = server.submit(&sandbox, &[], "sleep 1000");
    sandbox.wait_for_text(job, "typed 10 bytes");
    server.tmux(&["kill-server"]);
    let ended = sandbox.wait_for_end(job);
    assert_eq!(ended["exit_code"], 1, "{ended}");
    let told = entry(&sandbox, "exit");
    assert!(told["text"].as_str().unwrap().contains("the pane %0 is gone"), "{told}");
    sandbox.nothing_runs();
}

#[test]
fn a_pane_in_copy_mode_is_waited_for() {
    let sandbox = sandbox();
    let Some(server) = shell(&sandbox) else { return };
    server.tmux(&["copy-mode", "-t", "%0"]);
    let job = server.submit(&sandbox, &[], "echo typed >> ran");
    sandbox.wait_for_text(job, "waits: somebody scrolls");
    assert!(!sandbox.work().join("ran").exists());
    server.tmux(&["send-keys", "-t", "%0", "-X", "cancel"]);
    assert_eq!(sandbox.wait_for_end(job)["exit_code"], 0);
    assert_eq!(std::fs::read_to_string(sandbox.work().join("ran")).unwrap(), "typed\n");
}

#[test]
fn a_half_typed_line_is_waited_for_and_kept() {
    let sandbox = sandbox();
    let Some(server) = shell(&sandbox) else { return };
    server.tmux(&["send-keys", "-t", "%0", "-l", "echo mine >"]);
    server.wait_for("echo mine >");
    server.tmux(&["send-keys", "-t", "%0", "-l", "> ran"]);
    server.wait_for(">> ran");
    let job = server.submit(&sandbox, &[], "echo theirs >> ran");
    sandbox.wait_for_text(job, "half typed");
    server.tmux(&["send-keys", "-t", "%0", "Enter"]);
    assert_eq!(sandbox.wait_for_end(job)["exit_code"], 0);
    assert_eq!(std::fs::read_to_string(sandbox.work().join("ran")).unwrap(), "mine\ntheirs\n");
}

#[test]
fn a_half_typed_line_at_an_unusual_prompt_is_seen_when_the_prompt_is_said() {
    let sandbox = sandbox();
    let Some(server) = shell(&sandbox) else { return };
    server.tmux(&["send-keys", "-t", "%0", "PS1='ready: '", "Enter"]);
    server.wait_for("\nready:");
    server.tmux(&["send-keys", "-t", "%0", "-l", "echo mine >> ran"]);
    server.wait_for("ready: echo mine >> ran");
    let job = server.submit(&sandbox, &["--prompt", "^ready: "], "echo theirs >> ran");
    sandbox.wait_for_text(job, "half typed");
    server.tmux(&["send-keys", "-t", "%0", "Enter"]);
    assert_eq!(sandbox.wait_for_end(job)["exit_code"], 0);
    assert_eq!(std::fs::read_to_string(sandbox.work().join("ran")).unwrap(), "mine\ntheirs\n");
    let bad = sandbox.call(["tmux", "submit", "--prompt", "(", "--target", "%0", "--socket"]);
    bad.arg(server.socket()).args(["--", "true"]).run().code(2).says("is not a valid pattern for a prompt");
}

#[test]
fn one_that_is_never_free_is_given_up_and_nothing_was_typed() {
    let sandbox = sandbox();
    let Some(server) = shell(&sandbox) else { return };
    server.tmux(&["copy-mode", "-t", "%0"]);
    let job = server.submit(&sandbox, &["--patience", "300ms"], "echo typed >> ran");
    assert_eq!(sandbox.wait_for_end(job)["exit_code"], 1);
    let told = entry(&sandbox, "exit");
    assert!(told["text"].as_str().unwrap().contains("nothing was typed"), "{told}");
    assert!(!sandbox.work().join("ran").exists());
}

#[test]
fn a_pane_is_a_job_that_can_be_seen_and_typed_into() {
    let sandbox = sandbox();
    let Some(server) = shell(&sandbox) else { return };
    let call = sandbox.call(["--json", "tmux", "watch", "%0", "--socket"]).arg(server.socket());
    let job = call.run().ok().json()["handle"].as_u64().unwrap().to_string();
    sandbox.json(["wait", &job, "--stable", "2", "--stable-interval", "100ms", "--deadline", "20s"]);
    sandbox.run(["send", &job, "echo through $((40 + 2))", "--no-wait"]).ok();
    server.wait_for("through 42");
    sandbox.json(["wait", &job, "--pattern", "through 42", "--deadline", "20s"]);
    let screen = sandbox.run(["screen", "--plain", &job]).ok().text();
    assert!(screen.contains("through 42"), "{screen}");
    let shown = sandbox.call(["tmux", "read", "%0", "--socket"]).arg(server.socket()).run().ok().text();
    assert!(shown.contains("through 42"), "{shown}");
    server.tmux(&["kill-server"]);
    sandbox.wait_for_end(job.parse().unwrap());
    sandbox.nothing_runs();
}

#[test]
fn without_a_pane_it_is_a_clear_error() {
    let sandbox = sandbox();
    sandbox.run(["tmux", "submit", "--", "true"]).code(2).says("no pane is named");
    let socket = sandbox.root().join("none");
    sandbox.call(["tmux", "read", "%0", "--socket"]).arg(&socket).run().code(1).says("tmux");
}
