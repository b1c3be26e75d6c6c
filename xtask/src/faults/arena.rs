//! Where faults are tried: a home of its own, jobs that count, and a look at what is left.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use outlast_job::{Job, JobSpec, Outlast, Reason, Run, Wait};
use outlast_pty::procfs::{self, Proc};
use outlast_testkit::Dice;
use rustix::process::Signal;

use super::Tally;
use crate::bench::own_program;

/// A call that takes longer counts as hung.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Every process that is started here has this in its environment, and so have all that it starts.
const MARK: &str = "OUTLAST_FAULTS_MARK";
/// The code that counting jobs end with: not one that anything else would make up.
pub(super) const CODE: i32 = 7;

/// A home and the program that is tried in it.
pub(super) struct Arena {
    scratch: tempfile::TempDir,
    pub(super) program: PathBuf,
    pub(super) outlast: Outlast,
    mark: String,
    dice: Dice,
    is_sample: bool,
    /// Counts are divided by this.
    part: u64,
}

impl Arena {
    pub(super) fn new(name: &str, is_sample: bool, part: u64) -> Result<Self, String> {
        let program = if is_sample { crate::bench::debug_program()? } else { crate::bench::built_program()? };
        let scratch = tempfile::Builder::new()
            .prefix(&format!("outlast-faults-{name}-"))
            .tempdir()
            .map_err(|error| error.to_string())?;
        let home = scratch.path().join("home");
        let outlast = Outlast::at(&home).map_err(|failure| failure.to_string())?.kept_by(&program);
        let mark = scratch.path().to_string_lossy().into_owned();
        Ok(Self { scratch, program, outlast, mark, dice: Dice::new(), is_sample, part })
    }

    pub(super) fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    pub(super) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    pub(super) fn is_sample(&self) -> bool {
        self.is_sample
    }

    /// How often a fault is tried.
    pub(super) fn times(&self, times: u64) -> u64 {
        let part = if self.is_sample { 15 } else { self.part };
        if part == 1 { times } else { times.div_ceil(part).max(2) }
    }

    /// A random number below a limit.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.dice.below(limit)
    }

    pub(super) fn spec(&self, words: &[&str]) -> JobSpec {
        let own = own_program();
        let argv = std::iter::once(own).chain(words.iter().map(|&word| word.to_owned()));
        let mut spec = JobSpec::new(Run::Program(argv.collect()));
        spec.set_env(MARK, self.mark.clone());
        spec.session = "faults".into();
        spec
    }

    pub(super) fn shell(&self, line: &str) -> JobSpec {
        let mut spec = JobSpec::shell(line);
        spec.set_env(MARK, self.mark.clone());
        spec.session = "faults".into();
        spec
    }

    /// A job that prints so many numbered lines, some at a time, and ends with [`CODE`].
    pub(super) fn counting(&self, lines: u64) -> Result<Job, String> {
        let spec = self.spec(&["count", &lines.to_string(), "20", "2000"]);
        self.outlast.start(spec).map_err(|failure| failure.to_string())
    }

    /// The command line, as a client that can be killed.
    pub(super) fn cli(&self, words: &[&str]) -> Result<Child, String> {
        self.command(&self.program, words)
    }

    /// Another program, in the same environment.
    pub(super) fn command(
        &self,
        program: impl AsRef<std::ffi::OsStr>,
        words: &[&str],
    ) -> Result<Child, String> {
        Command::new(program)
            .args(words)
            .env("OUTLAST_HOME", self.home())
            .env("OUTLAST_SESSION", "faults")
            .env(MARK, &self.mark)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())
    }

    /// Waits for a counting job's end, and counts what is missing of it.
    pub(super) fn check(&self, job: &Job, lines: u64, tally: &mut Tally) {
        if !waited_for_end(job) {
            tally.hung += 1;
            return;
        }
        let code = job.info().ok().and_then(|info| match info.state.receipt()?.outcome {
            outlast_job::lifecycle::Outcome::Exited { code } => Some(code),
            _ => None,
        });
        if code != Some(CODE) {
            eprintln!("  job {}: the receipt says {:?}", job.handle(), job.info().map(|info| info.state));
            tally.lost_receipts += 1;
        }
        tally.lost_bytes += missing(&log(job), lines);
    }

    /// What is left: every process of this arena, which is then ended.
    pub(super) fn end_all(&self) -> u64 {
        self.end_all_of(&self.home(), &|_| ())
    }

    /// As [`end_all`](Self::end_all), with the keepers of another home; who is left is shown before it is ended.
    pub(super) fn end_all_of(&self, home: &Path, show: &dyn Fn(&[Proc])) -> u64 {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            let left = self.processes(home);
            if left.is_empty() {
                return 0;
            }
            if Instant::now() >= until {
                show(&left);
                for process in &left {
                    eprintln!("  left: {} {}", process.pid.as_raw_nonzero(), process.comm);
                    let _ = outlast_pty::signal::send(process, Signal::KILL);
                }
                return left.len() as u64;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Every process of this arena.
    pub(super) fn processes(&self, home: &Path) -> Vec<Proc> {
        let mark = format!("{MARK}={}", self.mark);
        let ours = |process: &Proc| {
            let environment = std::fs::read(format!("/proc/{}/environ", process.pid.as_raw_nonzero()));
            let marked =
                environment.is_ok_and(|all| all.split(|byte| *byte == 0).any(|one| one == mark.as_bytes()));
            let keeps = procfs::arguments(process.pid).is_some_and(|words| match words.as_slice() {
                [_, verb, folder] => verb == b"keep" && folder == home.as_os_str().as_encoded_bytes(),
                _ => false,
            });
            process.is_alive() && (marked || keeps)
        };
        procfs::everything().into_iter().filter(ours).collect()
    }
}

/// The bytes of a log.
pub(super) fn log(job: &Job) -> Vec<u8> {
    std::fs::read(job.files().output).unwrap_or_default()
}

pub(super) fn waited_for_end(job: &Job) -> bool {
    let waited = job.wait(&Wait::for_exit(), Some(CALL_TIMEOUT));
    waited.is_ok_and(|waited| waited.reason == Reason::Exit)
}

/// How many bytes of the lines that a counting job prints are not in a log, in order.
pub(super) fn missing(log: &[u8], lines: u64) -> u64 {
    let text = String::from_utf8_lossy(log);
    let mut there = text.lines().filter(|line| line.starts_with("line ")).peekable();
    let mut missing = 0;
    for n in 0..lines {
        let wanted = format!("line {n}");
        if there.peek().is_some_and(|line| *line == wanted) {
            there.next();
        } else {
            missing += wanted.len() as u64 + 2;
        }
    }
    missing
}

/// The process of a job by its role.
pub(super) fn process(job: &Job, role: &str) -> Option<Proc> {
    let info = job.info().ok()?;
    let process = match role {
        "keeper" => info.keeper,
        "heir" => info.heir,
        _ => info.process,
    }?;
    procfs::stat(rustix::process::Pid::from_raw(process.pid)?)
        .filter(|found| found.start_time == process.started)
}

/// Sends a signal to a job's process.
pub(super) fn send(job: &Job, role: &str, signal: Signal) -> bool {
    process(job, role).is_some_and(|process| outlast_pty::signal::send(&process, signal).is_ok())
}

/// Waits until a log has grown to a size, or will not.
pub(super) fn grown_to(job: &Job, size: u64) {
    let until = Instant::now() + CALL_TIMEOUT;
    while job.log_end() < size && Instant::now() < until && job.info().is_ok_and(|info| info.state.is_live())
    {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits for a process of ours, within the limit.
pub(super) fn ended_in_time(child: &mut Child) -> bool {
    ended_in_time_or(child, || ())
}

/// As [`ended_in_time`], and shows what hangs before it is ended.
pub(super) fn ended_in_time_or(child: &mut Child, show: impl Fn()) -> bool {
    let until = Instant::now() + CALL_TIMEOUT;
    loop {
        match child.try_wait() {
            Ok(Some(_)) | Err(_) => return true,
            Ok(None) if Instant::now() >= until => {
                show();
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}
