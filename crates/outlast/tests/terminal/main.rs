//! The terminal as programs, agents and people meet it: real programs in real jobs, and people at real terminals.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attach;
mod completion;
mod confirm;
mod crash;
mod demo;
mod diff;
mod inline;
mod like_a_shell;
mod judges;
mod keys;
mod person;
mod programs;
mod queries;
mod recordings;
mod replay;
mod resize;
mod run;
mod secret;
mod several;
mod sits_down;
mod statements;
mod tables;
mod top;
mod tour;
mod transcript;

use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually};
use serde_json::Value;

/// A fresh home for the program under test.
fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_outlast"))
}

/// The program that does to a terminal what real ones do.
fn tui(sandbox: &Sandbox) -> String {
    let path = sandbox.program().with_file_name("examples").join("tui");
    assert!(path.is_file(), "{} is not there; build it: cargo build --examples", path.display());
    path.to_str().unwrap().to_owned()
}

/// Starts a job of it.
fn tui_job(sandbox: &Sandbox, args: &[&str]) -> u64 {
    sandbox.start(["--", &tui(sandbox)].into_iter().chain(args.iter().copied()))
}

/// The screen of a job.
#[track_caller]
fn screen(sandbox: &Sandbox, job: u64) -> Value {
    sandbox.json(["screen", &job.to_string()])
}

fn rows(screen: &Value) -> Vec<String> {
    screen["rows"].as_array().unwrap().iter().map(|row| row.as_str().unwrap().to_owned()).collect()
}

/// Waits until the screen is as it should be.
#[track_caller]
fn wait_for_screen(sandbox: &Sandbox, job: u64, wanted: impl Fn(&Value, &[String]) -> bool) -> Value {
    eventually("the screen", TEST_TIMEOUT, || {
        let shot = screen(sandbox, job);
        if wanted(&shot, &rows(&shot)) { Ok(shot) } else { Err(rows(&shot).join("\n")) }
    })
}

/// Waits until a text is on the screen.
#[track_caller]
fn wait_to_show(sandbox: &Sandbox, job: u64, text: &str) -> Value {
    wait_for_screen(sandbox, job, |_, rows| rows.iter().any(|row| row.contains(text)))
}

/// Presses keys.
#[track_caller]
fn press(sandbox: &Sandbox, job: u64, keys: &[&str]) {
    let job = job.to_string();
    let keys = keys.iter().flat_map(|key| ["--key", key]);
    sandbox.call(["send", &job, "--no-wait"]).args(keys).run().ok();
}

/// Types text without Enter.
#[track_caller]
fn type_in(sandbox: &Sandbox, job: u64, text: &str) {
    sandbox.run(["send", &job.to_string(), "--no-wait", "--no-newline", text]).ok();
}

/// All lines that the job has printed, as a person would have read them.
#[track_caller]
fn lines(sandbox: &Sandbox, job: u64) -> Vec<String> {
    sandbox.run(["read", &job.to_string()]).ok().text().lines().map(str::to_owned).collect()
}

/// Waits for the end of a job, and insists on its exit code.
#[track_caller]
fn ends_with(sandbox: &Sandbox, job: u64, code: i32) {
    let ended = sandbox.wait_for_end(job);
    assert_eq!(ended["exit_code"], code, "{ended}");
}
