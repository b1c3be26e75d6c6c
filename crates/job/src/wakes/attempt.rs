//! One try to deliver one event in one of the ways that take events one by one: a command, a POST, a line in a file.

use std::process::Command;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::{Delivery, THREAD, webhook};
use crate::outbox::Entry;
use outlast_pty::bounded;

/// How often it is tried.
pub(crate) const MAX_TRIES: u32 = 5;
/// The backoff before the second try; it doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_millis(500);
/// How long the command that queues a message for Codex may take.
const CODEX_LIMIT: Duration = Duration::from_secs(20);

/// The pause after this many tries.
pub(crate) fn backoff(tries: u32) -> Duration {
    FIRST_BACKOFF * (1 << tries.saturating_sub(1).min(16))
}

/// Why a try failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Another try may succeed.
    Retry(String),
    /// None will.
    Final(String),
}

/// What is delivered: the entry, and what its reader must know of the delivery.
#[derive(Debug)]
pub(crate) struct Payload<'a> {
    pub(crate) entry: &'a Entry,
    /// It was tried before, and may have arrived.
    pub(crate) again: bool,
    /// The environment of the client that configured the wake is lost; a small fixed one is used.
    pub(crate) small_environment: bool,
}

impl Payload<'_> {
    /// As JSON.
    pub(crate) fn json(&self) -> Vec<u8> {
        let mut value = serde_json::to_value(self.entry).unwrap_or_default();
        if self.again {
            value["again"] = true.into();
        }
        if self.small_environment {
            value["environment"] = "small".into();
        }
        value.to_string().into_bytes()
    }

    fn line(&self) -> Vec<u8> {
        let mut line = self.json();
        line.push(b'\n');
        line
    }
}

/// Tries once. Panes and queues of messages take one notice for several events and are handled elsewhere.
pub(crate) fn deliver(how: &Delivery, payload: &Payload<'_>) -> Result<(), Trouble> {
    match how {
        Delivery::Exec { command, timeout_ms } => exec(command, *timeout_ms, payload),
        Delivery::Webhook { url, key, ca } => webhook::post(url, key.as_deref(), ca.as_deref(), payload),
        Delivery::File { path } => append(path, payload),
        Delivery::Tmux { .. } | Delivery::Agent { .. } | Delivery::Codex { .. } => Ok(()),
    }
}

fn exec(command: &str, timeout_ms: u64, payload: &Payload<'_>) -> Result<(), Trouble> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    // One that did not end in its time has been told: once more would be twice.
    let ran =
        bounded::run(shell, &payload.line(), Duration::from_millis(timeout_ms)).map_err(Trouble::Final)?;
    let trouble = || Trouble::Retry(format!("{}: {}", ran.status, ran.trouble()));
    if ran.status.success() { Ok(()) } else { Err(trouble()) }
}

fn append(path: &str, payload: &Payload<'_>) -> Result<(), Trouble> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR);
    let written = file.and_then(|file| crate::registry::replace::write_all(&file, &payload.line()));
    written.map_err(|error| Trouble::Retry(error.to_string()))
}

/// Queues a message for a Codex thread.
pub(crate) fn queue(thread: Option<&str>, text: &str) -> Result<(), Trouble> {
    let thread = thread.map(ToOwned::to_owned).or_else(|| std::env::var(THREAD).ok());
    let unknown = || Trouble::Final(format!("no thread is known: {THREAD} is not set"));
    let thread = thread.ok_or_else(unknown)?;
    let mut codex = Command::new("codex");
    codex.args(["queue", "--thread", &thread, "--message", text]);
    let ran = bounded::run(codex, b"", CODEX_LIMIT).map_err(Trouble::Retry)?;
    if ran.status.success() { Ok(()) } else { Err(Trouble::Retry(ran.trouble())) }
}
