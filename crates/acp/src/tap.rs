//! Records what a client and an agent send to each other, with times, and shows it in a readable form.
//!
//! The file is JSON lines: first `{"outlast_tap": 1, …}`, then one entry per line, in the order in which they
//! passed. A line is recorded before it is passed on: whatever the other side has seen is in the file.

pub mod show;

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{ChildStdin, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use outlast_job::Failure;
use outlast_job::clock::now_ms;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::lines::{LineReader, exit_code, start_agent};

/// The version of the file's format.
pub const FORMAT: u32 = 1;

/// The sender of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum From {
    /// The editor, or another client.
    Client,
    /// The agent.
    Agent,
    /// The agent, on its stderr.
    AgentStderr,
}

/// The first line of a file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Header {
    /// The format's version.
    pub outlast_tap: u32,
    /// When it began, in milliseconds since 1970.
    pub at: u64,
    /// The agent's command.
    pub command: Vec<String>,
}

/// One line that passed.
#[derive(Debug, Serialize, Deserialize)]
pub struct Record {
    /// When, in milliseconds since the recording began.
    pub ms: f64,
    /// The sender.
    pub from: From,
    /// The line, if it was JSON, exactly as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Box<RawValue>>,
    /// The line, if it was not JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

struct Recorder {
    file: Mutex<File>,
    began: Instant,
}

impl Recorder {
    fn create(path: &Path, command: &[String]) -> Result<Self, Failure> {
        use std::os::unix::fs::OpenOptionsExt;
        let bad = |error| Failure::system(format!("{} can't be written", path.display()), error);
        // A conversation is private.
        let mut options = File::options();
        let mut file = options.create(true).write(true).truncate(true).mode(0o600).open(path).map_err(bad)?;
        let header = Header { outlast_tap: FORMAT, at: now_ms(), command: command.to_vec() };
        file.write_all(&json_line(&header)).map_err(bad)?;
        Ok(Self { file: Mutex::new(file), began: Instant::now() })
    }

    fn record(&self, from: From, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches(['\n', '\r']);
        let message = serde_json::from_str::<&RawValue>(text).ok().map(ToOwned::to_owned);
        let text = message.is_none().then(|| text.to_owned());
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that times never go backwards.
        let ms = (self.began.elapsed().as_secs_f64() * 1e6).round() / 1e3;
        // A full disk must not end the conversation.
        let _ = file.write_all(&json_line(&Record { ms, from, message, text }));
    }
}

fn json_line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Runs an agent and records both sides until it ends. Returns its exit code.
///
/// # Errors
/// If the file cannot be written or the agent cannot be started.
pub fn tap(command: &[String], path: &Path) -> Result<i32, Failure> {
    let recorder = Arc::new(Recorder::create(path, command)?);
    let mut agent = start_agent(command, Stdio::piped())?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (agent.stdin.take(), agent.stdout.take(), agent.stderr.take())
    else {
        return Err(Failure::system("the agent has no pipes", "none were made"));
    };
    let to_agent = Arc::clone(&recorder);
    // This thread ends with the program: a read from a silent client cannot be interrupted.
    std::thread::spawn(move || pass_to_agent(&to_agent, stdin));
    let errors = {
        let recorder = Arc::clone(&recorder);
        std::thread::spawn(move || pass(&recorder, From::AgentStderr, stderr, std::io::stderr()))
    };
    pass(&recorder, From::Agent, stdout, std::io::stdout());
    let status = agent.wait().map_err(|error| Failure::system("the agent's end can't be seen", error))?;
    let _ = errors.join();
    Ok(exit_code(status))
}

fn pass_to_agent(recorder: &Recorder, stdin: ChildStdin) {
    pass(recorder, From::Client, std::io::stdin(), stdin);
}

fn pass(recorder: &Recorder, from: From, source: impl Read, mut sink: impl Write) {
    let mut lines = LineReader::new(source);
    while let Some(line) = lines.next() {
        recorder.record(from, &line);
        if sink.write_all(&line).and_then(|()| sink.flush()).is_err() {
            return;
        }
    }
}
