//! Runs one row in a process of its own, which stands in for a keeper: parent, subreaper, owner of the master.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use outlast_pty::evidence::{Claim, Prober, Verdict, next_look};
use outlast_pty::{Command, Pty, SessionLeader, Size, Stdio, detach, procfs};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal};

use super::row::{Expect, Row, tools};
use super::screen::Screen;

/// What came of a row.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) right: bool,
    /// From the last byte to the first look of those that found it waiting, one after the other.
    pub(crate) latency: Option<Duration>,
    pub(crate) samples: u32,
    pub(crate) note: String,
}

/// How long a program may take to be found waiting or listening: a JVM on a loaded machine is slow.
const FOUND_WITHIN: Duration = Duration::from_secs(20);
/// The same where evidence is refused, and some are never found.
const FOUND_HARDENED_WITHIN: Duration = Duration::from_secs(3);
/// How long a busy program is watched.
const WATCH_BUSY: Duration = Duration::from_millis(1500);
/// A claim must hold for as many looks.
const MUST_HOLD: u32 = 3;

/// Ends every process of the job, also when a test fails.
struct Job(Pid);

impl Drop for Job {
    fn drop(&mut self) {
        end_all_below(self.0);
    }
}

/// Kills and reaps until there is nobody left.
pub(crate) fn end_all_below(root: Pid) {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let left = procfs::descendants(root);
        for process in left.iter().filter(|process| process.is_alive()) {
            let _ = rustix::process::kill_process(process.pid, Signal::KILL);
        }
        while let Ok(Some(_)) = rustix::process::wait(rustix::process::WaitOptions::NOHANG) {}
        if left.is_empty() || Instant::now() > deadline {
            return;
        }
        std::thread::yield_now();
    }
}

struct Stand {
    master: OwnedFd,
    screen: Screen,
    last_output: Instant,
    last_input: Instant,
    ended: bool,
}

pub(crate) fn run(row: &Row, hardened: bool) -> Outcome {
    detach::become_subreaper().expect("a subreaper");
    let root = rustix::process::getpid();
    let _job = Job(root);
    let folder = folder_for(row);
    let mut stand = Stand::start(row, &folder);
    let mut prober = if hardened { Prober::hardened(root) } else { Prober::new(root) };
    let outcome = watch(row, &mut stand, &mut prober, hardened);
    let _ = std::fs::remove_dir_all(&folder);
    outcome
}

/// What was seen of one row so far.
#[derive(Default)]
struct Tally {
    samples: u32,
    held: u32,
    first_claim: Option<Duration>,
    wrong: Option<String>,
    as_expected: u32,
    last: String,
}

fn watch(row: &Row, stand: &mut Stand, prober: &mut Prober, hardened: bool) -> Outcome {
    let mut sends = row.sends.iter().peekable();
    let mut tally = Tally::default();
    let deadline = Instant::now() + FOUND_WITHIN;
    let mut counting_since: Option<Instant> = None;
    loop {
        let hints = stand.screen.hints(stand.last_output.elapsed(), stand.last_input.elapsed());
        let pause = next_look(&hints, prober.is_unconfirmed());
        if stand.pump(pause) {
            continue;
        }
        if stand.ended {
            let text = stand.screen.text();
            return tally.into_outcome(false, format!("it ended; screen: {}", text.trim_end()));
        }
        if let Some((text, send)) = sends.peek() {
            if stand.screen.text().contains(text) && stand.last_output.elapsed() > Duration::from_millis(100)
            {
                stand.send(send);
                sends.next();
            }
        } else if counting_since.is_none() && stand.screen.text().contains(row.once) {
            counting_since = Some(Instant::now());
        }
        let quiet = stand.last_output.elapsed().min(stand.last_input.elapsed());
        let hints = stand.screen.hints(stand.last_output.elapsed(), stand.last_input.elapsed());
        let verdict = prober.sample(stand.master.as_fd(), &hints);
        let Some(since) = counting_since else {
            if Instant::now() > deadline {
                return tally
                    .into_outcome(false, format!("never ready; screen: {}", stand.screen.text().trim_end()));
            }
            continue;
        };
        tally.take(row, &verdict, quiet);
        let enough = match row.expect {
            Expect::Waits { .. } => tally.held >= MUST_HOLD,
            Expect::Listens | Expect::Stopped => tally.as_expected > 0 && since.elapsed() >= WATCH_BUSY,
            Expect::Never => since.elapsed() >= WATCH_BUSY,
        };
        let late = Instant::now() > deadline || (hardened && since.elapsed() > FOUND_HARDENED_WITHIN);
        if enough || tally.wrong.is_some() || late {
            let note = if enough { tally.last.clone() } else { format!("last: {}", tally.last) };
            return tally.into_outcome(enough, note);
        }
    }
}

impl Tally {
    fn take(&mut self, row: &Row, verdict: &Verdict, quiet: Duration) {
        self.samples += 1;
        self.last = describe(verdict);
        if verdict.waiting().is_some_and(|claim| claim.level > row.at_most) {
            self.wrong = Some(format!("more than {:?}", row.at_most));
        }
        match (row.expect, verdict) {
            (Expect::Waits { at_least, kind }, Verdict::Waiting(claim)) if claim.level >= at_least => {
                self.held += 1;
                self.first_claim.get_or_insert(quiet);
                if claim.kind != kind {
                    self.wrong = Some(format!("kind {:?} instead of {kind:?}", claim.kind));
                }
            }
            (Expect::Waits { .. }, _) => {
                self.held = 0;
                self.first_claim = None;
            }
            (Expect::Listens | Expect::Stopped | Expect::Never, Verdict::Waiting(_)) => {
                self.wrong = Some("called waiting".to_owned());
            }
            (Expect::Listens, Verdict::Listening(_)) | (Expect::Stopped, Verdict::Stopped { .. }) => {
                self.as_expected += 1;
            }
            (Expect::Listens | Expect::Stopped | Expect::Never, _) => {}
        }
    }

    fn into_outcome(self, enough: bool, note: String) -> Outcome {
        let right = enough && self.wrong.is_none();
        let note = self.wrong.map_or(note.clone(), |wrong| format!("{wrong}: {note}"));
        Outcome { right, latency: self.first_claim, samples: self.samples, note }
    }
}

fn describe(verdict: &Verdict) -> String {
    let claim = |claim: &Claim| {
        let evidence = &claim.evidence;
        format!(
            "{:?} {:?} {}({}) fd {:?} {:?} {:?}: {}",
            claim.level,
            claim.kind,
            evidence.program,
            evidence.syscall,
            evidence.fd,
            evidence.tty,
            claim.prompt,
            evidence.why
        )
    };
    match verdict {
        Verdict::Waiting(waits) => format!("waiting {}", claim(waits)),
        Verdict::Listening(listens) => format!("listening {}", claim(listens)),
        other => format!("{other:?}"),
    }
}

impl Stand {
    fn start(row: &Row, folder: &std::path::Path) -> Self {
        let size = Size { cols: 100, rows: 30 };
        let pty = Pty::open(size).expect("a terminal");
        let mut env: Vec<(OsString, OsString)> = Vec::new();
        let mut set = |key: &str, value: OsString| env.push((key.into(), value));
        set("PATH", std::env::var_os("PATH").unwrap_or_default());
        set("HOME", folder.into());
        set("TMUX_TMPDIR", folder.into());
        for (key, value) in fixed_env() {
            set(key, value);
        }
        for kept in ["JAVA_HOME", "LD_LIBRARY_PATH"] {
            if let Some(value) = std::env::var_os(kept) {
                set(kept, value);
            }
        }
        let stdio = Stdio::Terminal(pty.slave);
        let argv = row.command();
        Command {
            argv,
            cwd: folder.to_owned(),
            env,
            stdio,
            session_leader: SessionLeader::Command,
            confinement: outlast_pty::spawn::Confinement::default(),
        }
        .spawn()
        .expect("the program");
        let now = Instant::now();
        let screen = Screen::new(usize::from(size.rows), usize::from(size.cols));
        Self { master: pty.master, screen, last_output: now, last_input: now, ended: false }
    }

    /// Moves bytes for up to `pause`; true when there were any.
    fn pump(&mut self, pause: Duration) -> bool {
        let timeout = Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: pause.subsec_nanos().into() };
        let mut fds = [PollFd::new(&self.master, PollFlags::IN)];
        if !matches!(rustix::event::poll(&mut fds, Some(&timeout)), Ok(1..)) {
            return false;
        }
        let mut bytes = [0; 16 * 1024];
        match rustix::io::read(&self.master, &mut bytes) {
            Ok(n) if n > 0 => {
                self.last_output = Instant::now();
                let answer = self.screen.feed(&bytes[..n]);
                if !answer.is_empty() {
                    self.send(&answer);
                }
                true
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => true,
            _ => {
                self.ended = true;
                false
            }
        }
    }

    fn send(&mut self, text: &str) {
        rustix::io::write(&self.master, text.as_bytes()).expect("room for input");
        self.last_input = Instant::now();
    }
}

/// What is the same in the environment of every row.
pub(crate) fn fixed_env() -> Vec<(&'static str, OsString)> {
    vec![
        // An account that nobody logs in to may have a shell that only says so.
        ("SHELL", "/bin/sh".into()),
        ("TERM", "xterm-256color".into()),
        ("PYTHON_HISTORY", "/dev/null".into()),
        ("LANG", "C.UTF-8".into()),
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ("TOOLS", tools().into()),
        ("NODE_PATH", tools().join("asking/node_modules").into()),
    ]
}

fn folder_for(row: &Row) -> PathBuf {
    let name: String = row.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let folder = std::env::temp_dir().join(format!("outlast-awaiting-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}
