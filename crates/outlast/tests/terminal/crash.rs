//! Attached, and something dies.

use outlast_testkit::{TEST_TIMEOUT, eventually, processes};
use serde_json::json;

use crate::person::Person;
use crate::{press, sandbox, screen, tui_job, wait_for_screen, wait_to_show};

const SMALL: (u16, u16) = (80, 24);

#[test]
fn a_killed_client_leaves_a_usable_terminal_and_a_running_job() {
    let sandbox = sandbox();
    let job = tui_job(&sandbox, &["full-screen"]);
    wait_to_show(&sandbox, job, "full screen");
    let person = Person::attaches(&sandbox, SMALL, job, &[]);
    assert!(person.sees("full screen").modes.application_cursor);
    person.client_is_killed();
    person.terminal_is_restored();
    // The job has its own size again and goes on.
    wait_for_screen(&sandbox, job, |shot, _| shot["size"] == json!({ "cols": 120, "rows": 40 }));
    press(&sandbox, job, &["a"]);
    wait_to_show(&sandbox, job, "<a>");
}

#[test]
fn a_killed_keeper_is_not_noticed_by_the_person() {
    let sandbox = sandbox();
    let job = tui_job(&sandbox, &["full-screen"]);
    wait_to_show(&sandbox, job, "full screen");
    let person = Person::attaches(&sandbox, SMALL, job, &[]);
    person.types(b"a");
    person.sees("<a>");
    processes::kill_dash_nine(&sandbox.process(job, "keeper"));
    eventually("the heir has repainted", TEST_TIMEOUT, || {
        let takeovers = sandbox.info(job)["takeovers"].clone();
        if takeovers == 1 { Ok(()) } else { Err(takeovers) }
    });
    wait_for_screen(&sandbox, job, |shot, _| shot["size"] == json!({ "cols": 80, "rows": 24 }));
    person.types(b"b");
    let shot = person.sees("<a><b>");
    assert!(shot.alternate);
    assert_eq!(shot.rows[0], " full screen");
    // Also the size from before the person came is not forgotten.
    person.types(b"\x1d");
    assert_eq!(person.is_back_in_the_shell(), 0);
    wait_for_screen(&sandbox, job, |shot, _| shot["size"] == json!({ "cols": 120, "rows": 40 }));
    assert!(screen(&sandbox, job)["alternate"].as_bool().unwrap());
}

#[test]
fn a_job_that_is_killed_under_a_person_gives_the_terminal_back() {
    let sandbox = sandbox();
    let job = tui_job(&sandbox, &["full-screen"]);
    wait_to_show(&sandbox, job, "full screen");
    let person = Person::attaches(&sandbox, SMALL, job, &[]);
    person.sees("full screen");
    sandbox.run(["kill", &job.to_string()]).ok();
    assert_eq!(person.is_back_in_the_shell(), 128 + 15);
    person.terminal_is_restored();
}
