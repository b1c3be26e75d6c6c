//! Keys, as a terminal sends them in the modes in force.

use outlast_testkit::Sandbox;

use crate::{lines, press, sandbox, tui_job};

/// What each key sends, in some modes.
fn sent(sandbox: &Sandbox, modes: &[&str], keys: &[&str]) -> Vec<String> {
    let args: Vec<&str> = ["shows-keys"].into_iter().chain(modes.iter().copied()).collect();
    let job = tui_job(sandbox, &args);
    sandbox.wait_for_text(job, "ready");
    for (i, key) in keys.iter().enumerate() {
        press(sandbox, job, &[key]);
        // One at a time, or the program could read two as one.
        sandbox.wait_for_text(job, &format!("(?:<[^>]+>\\s+){{{}}}", i + 1));
    }
    let sent = lines(sandbox, job);
    sent[1..].iter().map(|line| line.trim_matches(['<', '>']).to_owned()).collect()
}

#[test]
fn named_keys_send_what_xterm_sends() {
    let sandbox = sandbox();
    let table = [
        ("Enter", "\\r"),
        ("Tab", "\\t"),
        ("Shift-Tab", "ESC [Z"),
        ("Escape", "ESC "),
        ("Backspace", "\\u{7f}"),
        ("Delete", "ESC [3~"),
        ("Up", "ESC [A"),
        ("Home", "ESC [H"),
        ("PageDown", "ESC [6~"),
        ("F1", "ESC OP"),
        ("F5", "ESC [15~"),
        ("F12", "ESC [24~"),
        ("Space", " "),
        ("Ctrl-C", "\\u{3}"),
        ("C-a", "\\u{1}"),
        ("^Z", "\\u{1a}"),
        ("ctrl+d", "\\u{4}"),
        ("Alt-x", "ESC x"),
        ("Ctrl-Right", "ESC [1;5C"),
        ("Shift-F5", "ESC [15;2~"),
    ];
    let keys: Vec<&str> = table.iter().map(|(key, _)| *key).collect();
    let wanted: Vec<&str> = table.iter().map(|(_, bytes)| *bytes).collect();
    assert_eq!(sent(&sandbox, &[], &keys), wanted);
}

#[test]
fn application_modes_change_arrows_and_a_paste_is_marked() {
    let sandbox = sandbox();
    assert_eq!(
        sent(&sandbox, &["application"], &["Up", "End", "Ctrl-Up"]),
        ["ESC OA", "ESC OF", "ESC [1;5A"]
    );
    let job = tui_job(&sandbox, &["shows-keys", "paste"]);
    sandbox.wait_for_text(job, "ready");
    sandbox.run(["send", &job.to_string(), "--no-wait", "--no-newline", "one\ntwo"]).ok();
    sandbox.wait_for_text(job, "201~>");
    assert_eq!(lines(&sandbox, job)[1], "<ESC [200~one\\rtwoESC [201~>");
}

#[test]
fn an_unknown_key_names_its_neighbours_and_types_nothing() {
    let sandbox = sandbox();
    let job = tui_job(&sandbox, &["shows-keys"]);
    sandbox.wait_for_text(job, "ready");
    sandbox
        .run(["send", &job.to_string(), "--no-wait", "text", "--key", "PageDwn"])
        .code(2)
        .says("PageDown")
        .says("nothing was typed");
    press(&sandbox, job, &["z"]);
    sandbox.wait_for_text(job, "<z>");
    assert_eq!(lines(&sandbox, job), ["ready", "<z>"]);
}
