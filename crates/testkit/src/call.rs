//! One run of the program, with a hard timeout.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use serde_json::Value;

use crate::Conversation;

/// The timeout of a call, unless it sets another.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// A call of the program that has not been started yet.
#[derive(Debug)]
pub struct Call {
    command: Command,
    stdin: Option<Vec<u8>>,
    limit: Duration,
    folder: PathBuf,
}

impl Call {
    pub(crate) fn new(command: Command, folder: &Path) -> Self {
        Self { command, stdin: None, limit: CALL_TIMEOUT, folder: folder.to_owned() }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<std::ffi::OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets a variable of the caller's environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Removes a variable from the caller's environment.
    #[must_use]
    pub fn without_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// The caller's folder.
    #[must_use]
    pub fn cwd(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// The caller's stdin; empty by default.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Sets another timeout.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Starts the call without waiting.
    #[must_use]
    pub fn spawn(mut self) -> Running {
        let shown = format!("{:?}", self.command);
        let file = || tempfile::tempfile_in(&self.folder).unwrap();
        let (stdout, stderr) = (file(), file());
        self.command.stdout(stdout.try_clone().unwrap()).stderr(stderr.try_clone().unwrap());
        self.command.stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        let mut child = self.command.spawn().unwrap_or_else(|error| panic!("{shown}: {error}"));
        let feeder = self.stdin.map(|bytes| {
            let mut pipe = child.stdin.take().unwrap();
            // Some tests are about a caller that does not read all of it.
            std::thread::spawn(move || drop(pipe.write_all(&bytes)))
        });
        Running { child, stdout, stderr, shown, limit: self.limit, feeder, waited: false }
    }

    /// Starts the call as a conversation.
    #[must_use]
    pub fn converse(self) -> Conversation {
        Conversation::begin(self.command)
    }

    /// Runs the call to its end.
    #[must_use]
    pub fn run(self) -> Ran {
        self.spawn().wait()
    }
}

/// A running call. Dropping it kills the caller.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdout: File,
    stderr: File,
    shown: String,
    limit: Duration,
    feeder: Option<std::thread::JoinHandle<()>>,
    waited: bool,
}

impl Running {
    /// The caller's pid.
    #[must_use]
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// What it has written to stdout so far.
    #[must_use]
    pub fn stdout_so_far(&self) -> Vec<u8> {
        contents(&self.stdout)
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends the caller a signal.
    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// `kill -9` of the caller.
    pub fn kill_dash_nine(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.waited = true;
    }

    /// Waits for its end; panics at the timeout.
    #[must_use]
    pub fn wait(mut self) -> Ran {
        // One that was seen to have ended has no process any more.
        let ended = self.child.try_wait().unwrap().is_some() || self.ends_within(self.limit);
        if !ended {
            let _ = self.child.kill();
        }
        let status = self.child.wait().unwrap();
        self.waited = true;
        if let Some(feeder) = self.feeder.take() {
            feeder.join().unwrap();
        }
        let ran = Ran {
            code: status.code(),
            signal: status.signal(),
            stdout: contents(&self.stdout),
            stderr: String::from_utf8_lossy(&contents(&self.stderr)).into_owned(),
            shown: std::mem::take(&mut self.shown),
        };
        assert!(ended, "not done within {} s: {ran}", self.limit.as_secs_f64());
        ran
    }

    fn ends_within(&self, limit: Duration) -> bool {
        let pidfd = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()).unwrap();
        let limit = Timespec { tv_sec: limit.as_secs().cast_signed(), tv_nsec: limit.subsec_nanos().into() };
        loop {
            match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&limit)) {
                Err(rustix::io::Errno::INTR) => {}
                ended => return ended.unwrap() > 0,
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.waited {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Reads a file from its start, whatever the writer's position.
fn contents(file: &File) -> Vec<u8> {
    use std::os::unix::fs::FileExt;
    let mut bytes = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// A finished call.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What it wrote to stdout.
    pub stdout: Vec<u8>,
    /// What it wrote to stderr.
    pub stderr: String,
    shown: String,
}

impl Ran {
    /// Asserts the exit code.
    #[track_caller]
    pub fn code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    /// Asserts success.
    #[track_caller]
    pub fn ok(self) -> Self {
        self.code(0)
    }

    /// What it wrote to stdout, as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// What it wrote to stdout, parsed as one line of JSON.
    #[must_use]
    #[track_caller]
    pub fn json(&self) -> Value {
        let text = self.text();
        assert_eq!(text.lines().count(), 1, "one line of JSON: {self}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Asserts that stderr contains a text.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "stderr should say {text:?}: {self}");
        self
    }
}

impl std::fmt::Display for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (shown, stderr) = (&self.shown, self.stderr.trim_end());
        let mut stdout = self.text();
        if stdout.len() > 4096 {
            stdout.truncate(stdout.floor_char_boundary(4096));
            stdout.push_str("[...]");
        }
        let ended = match (self.code, self.signal) {
            (Some(code), _) => format!("code {code}"),
            (None, signal) => format!("signal {signal:?}"),
        };
        write!(f, "{shown}\n  ended with {ended}\n  stdout: {}\n  stderr: {stderr}", stdout.trim_end())
    }
}
