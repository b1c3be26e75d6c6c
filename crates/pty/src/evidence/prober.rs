//! Takes samples: gathers what one sample needs, judges it, and returns a public verdict.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::alarms::Alarm;
use super::fds::Outside;
use super::history::{ProcessorUse, SampleHistory, Wakeups};
use super::modes::Modes;
use super::terminal::TtyIndex;
use super::threads::{Doing, Sample, ThreadScanner};
use super::verdict::{Assessment, Finding, Judge, Rank, Terminal};
use super::{Claim, Evidence, Hints, InputKind, LAST_RESORT_SILENCE, Level, Row, Tty, Verdict, kinds, text};
use crate::procfs::Proc;

/// Samples one job, again and again.
///
/// Do not use it in the thread that pumps the terminal: a sample reads `/proc`, which may block for as long
/// as a process of the job is stuck in the kernel. Under Yama's restrictions only an ancestor of the job can
/// inspect all of it, so it belongs in the keeper.
#[derive(Debug)]
pub struct Prober {
    root: Pid,
    scanner: ThreadScanner,
    terminal: Option<TtyIndex>,
    history: SampleHistory,
    wakeups: Wakeups,
    processor: ProcessorUse,
    helpers: Helpers,
    unconfirmed: bool,
    /// Kept to reuse its allocation.
    processes: Vec<Proc>,
}

/// Processes outside the job that hold its terminal: a multiplexer's server, an agent that asks for
/// passphrases.
#[derive(Debug, Default)]
struct Helpers {
    known: Vec<Pid>,
    sought: Option<Instant>,
}

/// What stands for the terminal in the reasons of a job without one.
const STDIN: &str = "its standard input";
/// How often helpers are searched for: it means a walk over all processes of the machine.
const HELPER_SEARCH_INTERVAL: Duration = Duration::from_secs(1);
/// How long the job must be quiet before helpers are searched for.
const HELPER_SEARCH_QUIET: Duration = Duration::from_millis(250);

impl Prober {
    /// For the job whose keeper is `root`: everything below it.
    #[must_use]
    pub fn new(root: Pid) -> Self {
        Self::with_scanner(root, ThreadScanner::new(false))
    }

    /// Reads only what needs no right to attach a debugger, as on kernels that forbid that to everybody. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn hardened(root: Pid) -> Self {
        Self::with_scanner(root, ThreadScanner::new(true))
    }

    fn with_scanner(root: Pid, scanner: ThreadScanner) -> Self {
        Self {
            root,
            scanner,
            terminal: None,
            history: SampleHistory::default(),
            wakeups: Wakeups::default(),
            processor: ProcessorUse::default(),
            helpers: Helpers::default(),
            unconfirmed: false,
            processes: Vec::new(),
        }
    }

    /// Whether the last sample saw a first sign of waiting that another sample, soon, could confirm.
    #[must_use]
    pub fn is_unconfirmed(&self) -> bool {
        self.unconfirmed
    }

    /// Takes one sample. A claim needs two samples at least 10 ms apart, or
    /// [`MIN_SAMPLE_GAP_AT_PROMPT`](super::MIN_SAMPLE_GAP_AT_PROMPT) at a
    /// known prompt.
    ///
    /// May block on `/proc`. Costs a fraction of a millisecond for a job of a few processes.
    pub fn sample(&mut self, master: BorrowedFd<'_>, hints: &Hints<'_>) -> Verdict {
        let now = Instant::now();
        self.scanner.fds.forget_old(now);
        let quiet = hints.since_output.min(hints.since_input);
        self.processor.begin(now, quiet);
        self.history.begin(hints.row == Row::SamePrompt);
        self.wakeups.begin(now, quiet);
        let verdict = match self.terminal_now(master) {
            Some(terminal) => self.sample_terminal(&terminal, hints, now),
            None => Verdict::Unknown,
        };
        self.history.turn(now);
        verdict
    }

    /// Takes one sample of a job without a terminal, whose standard input is a pipe that only we write to.
    ///
    /// It waits for input only if the pipe is empty, and that is for the caller to know.
    pub fn sample_stdin(&mut self, pipe: BorrowedFd<'_>, hints: &Hints<'_>) -> Verdict {
        let now = Instant::now();
        self.scanner.fds.forget_old(now);
        let quiet = hints.since_output.min(hints.since_input);
        self.processor.begin(now, quiet);
        self.history.begin(hints.row == Row::SamePrompt);
        self.wakeups.begin(now, quiet);
        if self.terminal.is_none() {
            let Ok(stat) = rustix::fs::fstat(pipe) else { return Verdict::Unknown };
            self.terminal = Some(TtyIndex::STDIN);
            self.scanner.fds.learn_stdin(stat.st_ino);
        }
        let samples = self.sample_job();
        // There is no foreground: everybody in the group of the command may read.
        let foreground = samples.first().map(|sample| sample.process.pgrp);
        let terminal = Terminal { index: TtyIndex::STDIN, foreground, modes: Modes::PLAIN, depth: 0 };
        let found = self.judge(&samples, &terminal, hints);
        self.unconfirmed = matches!(found, Assessment::Unconfirmed);
        let verdict = self.say(found, &samples, &terminal, hints);
        self.history.turn(now);
        verdict
    }

    fn terminal_now(&mut self, master: BorrowedFd<'_>) -> Option<Terminal> {
        if self.terminal.is_none() {
            self.terminal = TtyIndex::of_master(master);
            if let Some(index) = self.terminal {
                self.scanner.fds.learn_terminal(index);
            }
        }
        let foreground = rustix::termios::tcgetpgrp(master).ok().map(|pgrp| pgrp.as_raw_nonzero().get());
        Some(Terminal { index: self.terminal?, foreground, modes: Modes::of(master)?, depth: 0 })
    }

    fn sample_terminal(&mut self, terminal: &Terminal, hints: &Hints<'_>, now: Instant) -> Verdict {
        let mut samples = self.sample_job();
        let mut found = self.judge(&samples, terminal, hints);
        if !matches!(found, Assessment::Waits(..) | Assessment::Unconfirmed)
            && self.could_have_helper(&samples, terminal, hints)
        {
            self.search_helpers(&samples, terminal.index, now);
            if !self.helpers.known.is_empty() {
                self.sample_helpers(&mut samples);
                found = self.judge(&samples, terminal, hints);
            }
        }
        self.unconfirmed = matches!(found, Assessment::Unconfirmed);
        self.say(found, &samples, terminal, hints)
    }

    fn judge(&mut self, samples: &[Sample], terminal: &Terminal, hints: &Hints<'_>) -> Assessment {
        let Self { scanner, history, wakeups, processor, .. } = self;
        Judge { scanner, hints, history, wakeups, processor }.judge(samples, terminal)
    }

    fn sample_job(&mut self) -> Vec<Sample> {
        self.processes.clear();
        self.scanner.reader.descendants(self.root, &mut self.processes);
        self.scanner.forget_ended(&self.processes);
        let scanner = &mut self.scanner;
        self.processes.drain(..).map(|process| scanner.look(process)).collect()
    }

    /// A process outside the job can only serve one that waits for a Unix socket, or for nothing but signals.
    fn could_have_helper(&self, samples: &[Sample], terminal: &Terminal, hints: &Hints<'_>) -> bool {
        let is_served = |sample: &Sample| {
            let on_socket = |doing: &Doing| matches!(doing, Doing::WaitsOutside(Outside::UnixSocket(_)));
            let parked = |doing: &Doing| *doing == Doing::Parked(Alarm::Never);
            sample.threads.iter().any(|thread| on_socket(&thread.doing))
                || (!sample.threads.is_empty() && sample.threads.iter().all(|thread| parked(&thread.doing)))
        };
        hints.since_output >= HELPER_SEARCH_QUIET
            && samples.iter().filter(|sample| Some(sample.process.pgrp) == terminal.foreground).any(is_served)
    }

    fn search_helpers(&mut self, samples: &[Sample], index: TtyIndex, now: Instant) {
        let reader = &mut self.scanner.reader;
        self.helpers.known.retain(|pid| holds_terminal(reader, *pid, index));
        let recently = self.helpers.sought.is_some_and(|at| now.duration_since(at) < HELPER_SEARCH_INTERVAL);
        if !self.helpers.known.is_empty() || recently {
            return;
        }
        self.helpers.sought = Some(now);
        let me = rustix::process::getpid();
        let mut everybody = Vec::new();
        if reader.numbers(format_args!("/proc"), |pid| everybody.extend(Pid::from_raw(pid))).is_err() {
            return;
        }
        everybody.retain(|pid| *pid != self.root && *pid != me);
        everybody.retain(|pid| !samples.iter().any(|sample| sample.process.pid == *pid));
        everybody.retain(|pid| holds_terminal(reader, *pid, index));
        self.helpers.known = everybody;
    }

    fn sample_helpers(&mut self, samples: &mut Vec<Sample>) {
        for pid in &self.helpers.known {
            if let Some(process) = self.scanner.reader.stat(*pid) {
                samples.push(self.scanner.look(process));
            }
        }
    }

    fn say(
        &mut self,
        found: Assessment,
        samples: &[Sample],
        terminal: &Terminal,
        hints: &Hints<'_>,
    ) -> Verdict {
        match found {
            Assessment::Waits(rank, finding) => {
                let level = match rank {
                    Rank::Certain(_) => Level::Certain,
                    Rank::High | Rank::Medium => Level::Likely,
                    Rank::Low => Level::Possible,
                };
                Verdict::Waiting(self.claim(finding, level, samples, hints))
            }
            Assessment::Listens(finding) => {
                Verdict::Listening(self.claim(finding, Level::Possible, samples, hints))
            }
            Assessment::OutputBlocked => Verdict::OutputBlocked,
            Assessment::Stopped(pid) => Verdict::Stopped { pid, program: self.program(pid, samples) },
            Assessment::Busy => Verdict::Busy,
            Assessment::Denied => self.last_resort(samples, terminal, hints),
            Assessment::Unconfirmed | Assessment::Nobody => Verdict::Unknown,
        }
    }

    /// A long silence after what looks like a question, and no other evidence.
    fn last_resort(&mut self, samples: &[Sample], terminal: &Terminal, hints: &Hints<'_>) -> Verdict {
        let silent = hints.since_output.min(hints.since_input) >= LAST_RESORT_SILENCE;
        let foreground = samples.iter().find(|sample| Some(sample.process.pgrp) == terminal.foreground);
        match foreground {
            Some(reader) if silent && text::looks_like_question(hints.prompt()) => {
                let why = "it has been silent for long, and its last line looks like a question";
                let pid = reader.process.pid;
                let finding = Finding { pid, call: "", fd: -1, nested: false, modes: terminal.modes, why };
                Verdict::Waiting(self.claim(finding, Level::Possible, samples, hints))
            }
            _ => Verdict::Unknown,
        }
    }

    fn claim(&mut self, finding: Finding, level: Level, samples: &[Sample], hints: &Hints<'_>) -> Claim {
        let program = self.program(finding.pid, samples);
        let modes = finding.modes;
        Claim {
            level,
            kind: if self.terminal == Some(TtyIndex::STDIN) {
                InputKind::Stdin
            } else {
                kinds::kind(hints, modes, &program)
            },
            prompt: hints.prompt().to_owned(),
            evidence: Evidence {
                pid: Some(finding.pid),
                program,
                syscall: finding.call,
                fd: (finding.fd >= 0).then_some(finding.fd),
                tty: if finding.nested { Tty::Nested } else { Tty::Own },
                why: if self.terminal == Some(TtyIndex::STDIN) {
                    finding.why.replace("its terminal", STDIN).replace("the terminal", STDIN)
                } else {
                    finding.why.to_owned()
                },
            },
        }
    }

    fn program(&mut self, pid: Pid, samples: &[Sample]) -> String {
        let known =
            samples.iter().find(|sample| sample.process.pid == pid).map(|sample| sample.process.comm.clone());
        let comm =
            known.or_else(|| self.scanner.reader.stat(pid).map(|process| process.comm)).unwrap_or_default();
        self.scanner.reader.program(pid, &comm)
    }
}

/// Whether a process outside the job has the terminal open. By name only: its links are not followed.
fn holds_terminal(reader: &mut crate::procfs::ProcReader, pid: Pid, index: TtyIndex) -> bool {
    let path = index.path();
    let mut fds = Vec::new();
    if reader.numbers(format_args!("/proc/{pid}/fd"), |fd| fds.push(fd)).is_err() {
        return false;
    }
    fds.into_iter()
        .any(|fd| reader.link(format_args!("/proc/{pid}/fd/{fd}")).is_ok_and(|link| link == path.as_bytes()))
}
