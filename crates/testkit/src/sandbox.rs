//! A sealed home: its own folders and environment, and nothing is left of it when the test is over.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use outlast_pty::procfs::Proc;
use rustix::process::Signal;
use serde_json::Value;

use crate::{Call, Ran, Socket, TEST_TIMEOUT, eventually, processes};

/// A home of its own, with all its jobs.
#[derive(Debug)]
pub struct Sandbox {
    folder: Option<tempfile::TempDir>,
    root: PathBuf,
    home: PathBuf,
    program: PathBuf,
    mark: String,
}

impl Sandbox {
    /// A new sandbox for the program at a path: `Sandbox::new(env!("CARGO_BIN_EXE_outlast"))`.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self::with_home(program, "state/outlast")
    }

    /// One whose home is at a path below its folder.
    #[must_use]
    pub fn with_home(program: impl Into<PathBuf>, home: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = tempfile::Builder::new().prefix("outlast-").tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let root = folder.path().canonicalize().unwrap();
        let mark = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let home = root.join(home);
        for below in ["user", "work", "config"] {
            std::fs::create_dir(root.join(below)).unwrap();
        }
        Self { folder: Some(folder), root, home, program: program.into(), mark }
    }

    /// The folder that contains everything.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of all jobs.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The folder in which calls run.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// The program under test.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Our own fixture program, which `cargo test` builds beside the one under test.
    #[must_use]
    pub fn fixture(&self) -> String {
        self.example("fixture")
    }

    /// Another program for tests.
    #[must_use]
    pub fn example(&self, name: &str) -> String {
        let path = self.program.with_file_name("examples").join(name);
        assert!(path.is_file(), "{} is not there; build it: cargo build --examples", path.display());
        path.to_str().unwrap().to_owned()
    }

    /// A call of the program, in an environment that has only `PATH` of the tester's.
    #[must_use]
    pub fn call<A: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Call {
        self.sealed(&self.program).args(args)
    }

    /// A call of another program, in the same environment.
    #[must_use]
    pub fn call_other<A: AsRef<std::ffi::OsStr>>(
        &self,
        program: &Path,
        args: impl IntoIterator<Item = A>,
    ) -> Call {
        self.sealed(program).args(args)
    }

    /// A shell line in the same environment; in it, `$PROGRAM` is the program under test.
    #[must_use]
    pub fn shell(&self, line: &str) -> Call {
        self.sealed("/bin/sh").args(["-c", line]).env("PROGRAM", &self.program)
    }

    /// A program in the sealed environment, for a caller that runs it itself.
    #[must_use]
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()))
            .env("OUTLAST_HOME", &self.home)
            .env("OUTLAST_SESSION", "test")
            .env("HOME", self.root.join("user"))
            .env("XDG_CONFIG_HOME", self.root.join("config"))
            .env("XDG_STATE_HOME", self.root.join("state"))
            .env(processes::MARK, &self.mark)
            .current_dir(self.work());
        command
    }

    fn sealed(&self, program: impl AsRef<std::ffi::OsStr>) -> Call {
        Call::new(self.command(program), &self.root)
    }

    /// Runs the program with the given arguments.
    #[must_use]
    pub fn run<A: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Ran {
        self.call(args).run()
    }

    /// Runs it with `--json`, asserts success, and returns the answer.
    #[track_caller]
    pub fn json<A: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Value {
        self.call(["--json"]).args(args).run().ok().json()
    }

    /// Starts a job in the background and returns its handle.
    #[track_caller]
    pub fn start<A: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = A>) -> u64 {
        self.call(["--json", "run", "-d"]).args(args).run().ok().json()["handle"].as_u64().unwrap()
    }

    /// Starts a job of our own fixture program on a terminal.
    #[track_caller]
    pub fn fixture_job(&self, args: &[&str]) -> u64 {
        self.start(["--", &self.fixture()].into_iter().chain(args.iter().copied()))
    }

    /// Runs `outlast wait` until a job has printed something.
    #[track_caller]
    pub fn wait_for_text(&self, job: u64, pattern: &str) -> Value {
        let (job, limit) = (job.to_string(), format!("{}s", TEST_TIMEOUT.as_secs()));
        let answer = self.json(["wait", &job, "--pattern", pattern, "--deadline", &limit]);
        assert_eq!(answer["reason"], "pattern", "{answer}");
        answer
    }

    /// Runs `outlast wait` until a job has ended.
    #[track_caller]
    pub fn wait_for_end(&self, job: u64) -> Value {
        let (job, limit) = (job.to_string(), format!("{}s", TEST_TIMEOUT.as_secs()));
        // Its exit code is that of the job.
        let answer = self.run(["--json", "wait", &job, "--exit", "--deadline", &limit]).json();
        assert_eq!(answer["reason"], "exit", "{answer}");
        answer
    }

    /// The folder of a job.
    #[must_use]
    pub fn job(&self, handle: u64) -> PathBuf {
        self.home.join("jobs").join(handle.to_string())
    }

    /// The record of a job on the disk.
    #[must_use]
    pub fn info(&self, handle: u64) -> Value {
        let bytes = std::fs::read(self.job(handle).join("info.json")).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    /// The log of a job on the disk.
    #[must_use]
    pub fn log(&self, handle: u64) -> Vec<u8> {
        std::fs::read(self.job(handle).join("output.log")).unwrap()
    }

    /// The length of a job's log on the disk.
    #[must_use]
    pub fn log_len(&self, handle: u64) -> u64 {
        std::fs::metadata(self.job(handle).join("output.log")).unwrap().len()
    }

    /// The events of a job on the disk.
    #[must_use]
    pub fn events(&self, handle: u64) -> Vec<Value> {
        let mut text = std::fs::read_to_string(self.job(handle).join("events.jsonl")).unwrap();
        for steps in ["steps.old.jsonl", "steps.jsonl"] {
            text += &std::fs::read_to_string(self.job(handle).join(steps)).unwrap_or_default();
        }
        let mut events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        events.sort_by_key(|event| event["seq"].as_u64());
        events
    }

    /// The process that `info.json` names as `keeper`, `heir` or `process`.
    #[must_use]
    #[track_caller]
    pub fn process(&self, handle: u64, role: &str) -> Proc {
        let named = &self.info(handle)[role];
        let pid = i32::try_from(named["pid"].as_i64().expect("a pid")).unwrap();
        processes::alive(pid, named["started"].as_u64().unwrap())
            .unwrap_or_else(|| panic!("the {role} of job {handle} does not live: {named}"))
    }

    /// The pid of that process.
    #[must_use]
    #[track_caller]
    pub fn pid(&self, handle: u64, role: &str) -> i32 {
        self.process(handle, role).pid.as_raw_nonzero().get()
    }

    /// A connection to the keeper of a job, after its greeting.
    #[must_use]
    pub fn socket(&self, handle: u64) -> Socket {
        let mut socket = Socket::connect(&self.job(handle)).unwrap();
        let hello = socket.hear().expect("a greeting");
        assert_eq!(hello["handle"], handle, "{hello}");
        socket
    }

    /// Every living process of this sandbox: clients, keepers, heirs, and everything that its jobs started.
    #[must_use]
    pub fn processes(&self) -> Vec<Proc> {
        processes::of_sandbox(&self.home, &self.mark)
    }

    /// Waits until this sandbox has no process left.
    #[track_caller]
    pub fn nothing_runs(&self) {
        eventually("nothing of the sandbox runs", TEST_TIMEOUT, || match self.processes() {
            none if none.is_empty() => Ok(()),
            some => Err(some),
        });
    }

    /// Ends every process of this sandbox. They are stopped first, so that none can fork away or take over.
    fn end_everything(&self) -> Result<(), Vec<Proc>> {
        for _ in 0..200 {
            let left = self.processes();
            if left.is_empty() {
                return Ok(());
            }
            for signal in [Signal::STOP, Signal::KILL] {
                left.iter().for_each(|process| processes::send(process, signal));
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Err(self.processes())
    }
}

/// Removes a folder. A process that was killed a moment ago may have left one more file in it.
fn remove(folder: std::path::PathBuf) -> std::io::Result<()> {
    for _ in 0..100 {
        if std::fs::remove_dir_all(&folder).is_ok() || !folder.exists() {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::fs::remove_dir_all(folder)
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let ended = self.end_everything();
        let removed = self.folder.take().map_or(Ok(()), |folder| remove(folder.keep()));
        if !std::thread::panicking() {
            assert_eq!(ended, Ok(()), "processes that can't be ended");
            removed.expect("the folder of the sandbox can be removed");
        }
    }
}
