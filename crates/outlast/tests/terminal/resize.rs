//! Another size: for the program, for the screen and for the record, as one step.

use serde_json::json;

use crate::person::Person;
use crate::{sandbox, screen, tui_job, wait_for_screen};

#[test]
fn the_program_the_screen_and_the_timing_have_the_new_size() {
    let sandbox = sandbox();
    let job = tui_job(&sandbox, &["shows-size"]);
    sandbox.wait_for_text(job, "size 120x40");
    let answer = sandbox.json(["resize", &job.to_string(), "100x30"]);
    assert_eq!(answer, json!({ "handle": job, "size": { "cols": 100, "rows": 30 }, "later": false }));
    sandbox.wait_for_text(job, "size 100x30");
    assert_eq!(screen(&sandbox, job)["size"], json!({ "cols": 100, "rows": 30 }));
    let timing = std::fs::read_to_string(sandbox.job(job).join("timing")).unwrap();
    assert_eq!(timing.lines().filter(|line| line.ends_with(" size 100x30")).count(), 1, "{timing}");
    let info = sandbox.info(job);
    assert_eq!(info["started_size"], json!({ "cols": 120, "rows": 40 }));
    // A replay knows both: before the resize and after it.
    let first = sandbox.json(["replay", &job.to_string(), "--offset", "5"]);
    assert_eq!(first["size"], json!({ "cols": 120, "rows": 40 }));
    let end = sandbox.log_len(job).to_string();
    let last = sandbox.json(["replay", &job.to_string(), "--offset", &end]);
    assert_eq!(last["size"], json!({ "cols": 100, "rows": 30 }));
}

#[test]
fn the_same_size_again_tells_nobody() {
    let sandbox = sandbox();
    let job = tui_job(&sandbox, &["shows-size"]);
    sandbox.wait_for_text(job, "size 120x40");
    sandbox.run(["resize", &job.to_string(), "120x40"]).ok();
    sandbox.run(["resize", &job.to_string(), "80x24"]).ok();
    sandbox.wait_for_text(job, "size 80x24");
    assert_eq!(crate::lines(&sandbox, job), ["size 120x40", "size 80x24"]);
}

#[test]
fn long_lines_are_laid_out_anew_and_stay_one_line() {
    let sandbox = sandbox();
    let job = sandbox.start(["--size", "40x10", "--", "sh", "-c", "seq -s ' ' 1 40; printf '> '; read x"]);
    sandbox.wait_for_text(job, "> ");
    sandbox.run(["resize", &job.to_string(), "120x10"]).ok();
    let whole: Vec<String> = (1..=40).map(|i| i.to_string()).collect();
    let whole = whole.join(" ");
    wait_for_screen(&sandbox, job, |_, rows| rows[0] == whole);
    assert_eq!(crate::lines(&sandbox, job)[0], whole);
}

#[test]
fn people_who_are_attached_come_first() {
    let sandbox = sandbox();
    let job = tui_job(&sandbox, &["shows-size"]);
    sandbox.wait_for_text(job, "size 120x40");
    let person = Person::attaches(&sandbox, (80, 24), job, &[]);
    person.sees("size 80x24");
    let answer = sandbox.json(["resize", &job.to_string(), "100x30"]);
    assert_eq!(answer["later"], true);
    assert_eq!(answer["size"], json!({ "cols": 80, "rows": 24 }));
    person.types(b"\x1d");
    assert_eq!(person.is_back_in_the_shell(), 0);
    sandbox.wait_for_text(job, "size 100x30");
}

#[test]
fn what_can_not_be_resized_says_why() {
    let sandbox = sandbox();
    let job = sandbox.start(["--pipe", "--", "cat"]).to_string();
    sandbox.run(["resize", &job, "80x24"]).code(2).says("runs on pipes");
    sandbox.run(["resize", &job, "80"]).code(2).says("is not a size");
    sandbox.run(["resize", &job, "0x0"]).code(2);
    sandbox.run(["resize", "999", "80x24"]).code(3);
    sandbox.run(["send", &job, "--eof", "--no-wait"]).ok();
    sandbox.run(["wait", &job]).ok();
    sandbox.run(["resize", &job, "80x24"]).code(1).says("does not run any more");
}
