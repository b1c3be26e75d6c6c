//! One run of the program, with a hard limit of time.

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

/// No call may take longer, unless it says so.
const LIMIT: Duration = Duration::from_secs(60);

/// A call of the program that has not been made yet.
#[derive(Debug)]
pub struct Call {
    command: Command,
    stdin: Option<Vec<u8>>,
    limit: Duration,
    folder: PathBuf,
}

impl Call {
    pub(crate) fn new(command: Command, folder: &Path) -> Self {
        Self { command, stdin: None, limit: LIMIT, folder: folder.to_owned() }
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

    /// What the caller gets on standard input; otherwise nothing.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Another limit of time.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Makes the call, and goes on at once.
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
            // A caller that does not read all of it is what some tests are about.
            std::thread::spawn(move || drop(pipe.write_all(&bytes)))
        });
        Running { child, stdout, stderr, shown, limit: self.limit, feeder, waited: false }
    }

    /// Makes the call, and talks with it.
    #[must_use]
    pub fn converse(self) -> Conversation {
        Conversation::begin(self.command)
    }

    /// Makes the call and waits for its end.
    #[must_use]
    pub fn run(self) -> Ran {
        self.spawn().wait()
    }
}

/// A call that is being made. Dropping it kills the caller.
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

    /// Whether it has not ended yet.
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

    /// Waits for its end; panics when that does not come within the limit.
    #[must_use]
    pub fn wait(mut self) -> Ran {
        let pidfd = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()).unwrap();
        let limit = Timespec {
            tv_sec: self.limit.as_secs().cast_signed(),
            tv_nsec: self.limit.subsec_nanos().into(),
        };
        let ended = loop {
            match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&limit)) {
                Err(rustix::io::Errno::INTR) => {}
                ended => break ended.unwrap(),
            }
        };
        if ended == 0 {
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
        assert!(ended > 0, "not done within {} s: {ran}", self.limit.as_secs_f64());
        ran
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

/// Reads a file from its start, wherever its writer is.
fn contents(file: &File) -> Vec<u8> {
    use std::os::unix::fs::FileExt;
    let mut bytes = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// A call that has been made.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; none when a signal ended it.
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
    /// Insists on an exit code.
    #[track_caller]
    pub fn code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    /// Insists on success.
    #[track_caller]
    pub fn ok(self) -> Self {
        self.code(0)
    }

    /// What it wrote to stdout, as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// What it wrote to stdout, as one JSON value on one line.
    #[must_use]
    #[track_caller]
    pub fn json(&self) -> Value {
        let text = self.text();
        assert_eq!(text.lines().count(), 1, "one line of JSON: {self}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Insists that stderr has a text in it.
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
