//! `run` in the foreground of a terminal.

use outlast_testkit::{TEST_TIMEOUT, eventually};

use crate::person::Person;
use crate::{sandbox, tui, wait_to_show};

const SMALL: (u16, u16) = (80, 24);

#[test]
fn the_exit_code_and_the_size_are_those_of_the_command_and_the_terminal() {
    let sandbox = sandbox();
    let person = Person::calls(&sandbox, SMALL, &["run", "--", "sh", "-c", "stty size; exit 3"]);
    assert_eq!(person.is_back_in_the_shell(), 3);
    person.sees("24 80");
    person.terminal_is_restored();
}

#[test]
fn a_job_in_the_background_has_the_size_of_the_terminal_and_its_end_names_no_session_of_ones_own() {
    let sandbox = sandbox();
    let person = Person::calls(&sandbox, SMALL, &["run", "-d", "--name", "back", "stty size; sleep 1000"]);
    assert_eq!(person.is_back_in_the_shell(), 0);
    sandbox.wait_for_text(1, "24 80");
    let person = Person::calls(&sandbox, SMALL, &["kill", "back"]);
    assert_eq!(person.is_back_in_the_shell(), 0);
    person.sees("from this session");
}

#[test]
fn ctrl_c_goes_to_the_job() {
    let sandbox = sandbox();
    let script = "trap 'echo interrupted; exit 9' INT; echo ready; while :; do sleep 0.05; done";
    let person = Person::calls(&sandbox, SMALL, &["run", "--", "sh", "-c", script]);
    person.sees("ready");
    person.types(b"\x03");
    assert_eq!(person.is_back_in_the_shell(), 9);
    person.sees("interrupted");
    person.terminal_is_restored();
}

#[test]
fn the_job_outlasts_the_window() {
    let sandbox = sandbox();
    let mut person =
        Person::calls(&sandbox, SMALL, &["run", "--name", "kept", "--", &tui(&sandbox), "shows-keys"]);
    person.sees("ready");
    let client = person.client();
    person.closes_the_window();
    eventually("the client has gone", TEST_TIMEOUT, || match outlast_pty::procfs::stat(client) {
        Some(process) if process.is_alive() => Err(process),
        _ => Ok(()),
    });
    let job = sandbox.json(["jobs", "--all"])["jobs"][0]["handle"].as_u64().unwrap();
    sandbox.run(["send", "kept", "--no-wait", "--key", "a"]).ok();
    wait_to_show(&sandbox, job, "<a>");
    sandbox.run(["kill", "kept"]).ok();
}

#[test]
fn the_leaving_key_leaves_it_running() {
    let sandbox = sandbox();
    let person = Person::calls(&sandbox, SMALL, &["run", "--name", "kept", "--", "cat"]);
    // `cat` says nothing by itself: the way out stays in sight until a key is pressed.
    person.sees("Ctrl-] leaves it running");
    person.types(b"hello\r");
    person.sees_screen(|shot| shot.rows.iter().filter(|row| *row == "hello").count() == 2);
    person.types(b"\x1d");
    // Not 0: nobody knows yet how it ends.
    assert_eq!(person.is_back_in_the_shell(), 4);
    person.terminal_is_restored();
    assert_eq!(sandbox.json(["jobs"])["jobs"][0]["status"], "running");
    let person = Person::calls(&sandbox, SMALL, &["attach", "kept"]);
    person.sees("hello");
    person.types(b"\x04");
    assert_eq!(person.is_back_in_the_shell(), 0);
}

/// Writes the settings of the person in the sealed home.
fn sets(sandbox: &outlast_testkit::Sandbox, text: &str) {
    let folder = sandbox.root().join("config/outlast");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), text).unwrap();
}

#[test]
fn another_key_leaves_it_and_the_usual_one_goes_to_the_job() {
    let sandbox = sandbox();
    let tui = tui(&sandbox);
    for (call, setting) in [
        (vec!["run", "--detach-key", "Ctrl-A", "--", &tui, "shows-keys"], ""),
        (vec!["run", "--", &tui, "shows-keys"], "[terminal]\ndetach_key = \"ctrl-a\"\n"),
    ] {
        sets(&sandbox, setting);
        let person = Person::calls(&sandbox, SMALL, &call);
        person.sees("ready");
        person.types(b"\x1d");
        person.sees(r"<\u{1d}>");
        person.types(b"\x01");
        assert_eq!(person.is_back_in_the_shell(), 4);
        let job = sandbox.json(["jobs"])["jobs"][0]["handle"].to_string();
        let person = Person::attaches(&sandbox, SMALL, job.parse().unwrap(), &["--detach-key", "^B"]);
        person.sees("leave it with Ctrl-B");
        person.types(b"\x1d\x01");
        person.sees(r"\u{1}>");
        person.types(b"\x02");
        assert_eq!(person.is_back_in_the_shell(), 0);
        sandbox.run(["kill", &job]).ok();
    }
}

/// What reads a line: at a terminal the shell that was chosen, anywhere else bash.
#[test]
fn another_shell_reads_a_persons_lines_and_nobody_elses() {
    if !outlast_testkit::has("fish") {
        return;
    }
    let sandbox = sandbox();
    let line = "echo is (math 40 + 2)";
    let said = sandbox.run(["run", "--with", "fish", line]).ok().text();
    assert_eq!(said, "is 42\n");
    let said = sandbox.run(["run", "--with", "python3", "print(6 * 7)"]).ok().text();
    assert_eq!(said, "42\n");
    sets(&sandbox, "[terminal]\nshell = \"fish\"\n");
    let person = Person::calls(&sandbox, SMALL, &["run", line]);
    assert_eq!(person.is_back_in_the_shell(), 0);
    person.sees("is 42");
    let person = Person::calls(&sandbox, SMALL, &["rerun"]);
    assert_eq!(person.is_back_in_the_shell(), 0);
    person.sees("is 42");
    // A script, and what runs inside a job.
    let said = sandbox.run(["run", "test -n \"$BASH_VERSION\" && echo is bash"]).ok().text();
    assert_eq!(said, "is bash\n");
    let nested = format!("{} run 'test -n \"$BASH_VERSION\" && echo is bash'", sandbox.program().display());
    let person = Person::calls(&sandbox, SMALL, &["run", &nested]);
    assert_eq!(person.is_back_in_the_shell(), 0);
    person.sees("is bash");
}
