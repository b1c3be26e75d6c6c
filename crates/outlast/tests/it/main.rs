//! The program as its users run it: real processes, real files, one sealed home a test.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod awaiting;
mod bad_input;
mod conditions;
mod config;
mod crowds;
mod detached;
mod disks;
mod durable;
mod elsewhere;
mod ends;
mod faults;
mod floods;
mod help;
mod home;
mod http;
mod idle;
mod inherited;
mod input;
mod install;
mod jobs;
mod json;
mod kill;
mod limits;
mod locked_out;
mod log_trouble;
mod logs;
mod manage;
mod mistakes;
mod names;
mod outcomes;
mod nested;
mod nursery;
mod pipes;
mod policy;
mod prune;
mod queue;
mod read;
mod requests;
mod run;
mod second_net;
mod send;
mod socket;
mod systemd;
mod unwritable;
mod wait;

use outlast_testkit::Sandbox;
use serde_json::Value;

/// A fresh home for the program under test.
fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_outlast"))
}

/// What `fixture counts LINES ...` prints on a terminal.
fn counted(lines: u64) -> Vec<u8> {
    (0..lines).flat_map(|i| format!("line {i}\r\n").into_bytes()).collect()
}

/// Whether two long byte strings are the same; if not, where they part.
#[track_caller]
fn assert_same(seen: &[u8], wanted: &[u8]) {
    if seen == wanted {
        return;
    }
    let at = seen.iter().zip(wanted).take_while(|(a, b)| a == b).count();
    let around = |bytes: &[u8]| {
        let range = at.saturating_sub(40).min(bytes.len())..(at + 40).min(bytes.len());
        String::from_utf8_lossy(&bytes[range]).into_owned()
    };
    let (lengths, seen, wanted) = ((seen.len(), wanted.len()), around(seen), around(wanted));
    panic!("they part at {at} (lengths {lengths:?}):\n seen   {seen:?}\n wanted {wanted:?}");
}

/// The jobs that `jobs --all` lists.
fn all_jobs(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.json(["jobs", "--all"])["jobs"].as_array().unwrap().clone()
}

/// Makes a FIFO at which fixtures wait; opening it lets them through.
fn gate(sandbox: &Sandbox) -> String {
    use rustix::fs::{FileType, Mode, mknodat};
    let path = sandbox.work().join("gate");
    mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Lets through whoever waits at a gate.
fn open_gate(gate: &str) {
    drop(std::fs::OpenOptions::new().write(true).open(gate).unwrap());
}
