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
    assert_eq!(person.is_back_in_the_shell(), 0);
    person.terminal_is_restored();
    assert_eq!(sandbox.json(["jobs"])["jobs"][0]["status"], "running");
    let person = Person::calls(&sandbox, SMALL, &["attach", "kept"]);
    person.sees("hello");
    person.types(b"\x04");
    assert_eq!(person.is_back_in_the_shell(), 0);
}
