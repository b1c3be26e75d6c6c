//! Takes the samples: gathers what one look needs, has it judged, and says it in the words of the public face.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::fds::Outside;
use super::history::{Looks, ProcessorUse, Wakes};
use super::terminal::{Modes, TtyIndex};
use super::threads::{Doing, Looker, Seen};
use super::verdict::{Finding, Found, Judge, Rank, Terminal};
use super::{Access, Claim, Evidence, Hints, LAST_RESORT, Level, Row, Tty, Verdict, kinds, text};
use crate::procfs::Proc;

/// Looks at one job, again and again.
///
/// Not for the thread that pumps the terminal: a look reads `/proc`, which may block for as long as a process of
/// the job is stuck in the kernel. Under Yama's restrictions only an ancestor of the job sees all of it, so this
/// belongs into the keeper.
#[derive(Debug)]
pub struct Prober {
    root: Pid,
    looker: Looker,
    terminal: Option<TtyIndex>,
    looks: Looks,
    wakes: Wakes,
    processor: ProcessorUse,
    helpers: Helpers,
    unconfirmed: bool,
    /// Kept for its room.
    processes: Vec<Proc>,
}

/// Processes that are none of the job's and yet hold its terminal: a multiplexer's server, an agent that asks
/// for passphrases.
#[derive(Debug, Default)]
struct Helpers {
    known: Vec<Pid>,
    sought: Option<Instant>,
}

/// Helpers are sought no more often than this: it means a walk over all processes of the machine.
const SEEK_HELPERS: Duration = Duration::from_secs(1);
const QUIET_BEFORE_SEEKING: Duration = Duration::from_millis(250);

impl Prober {
    /// For the job whose keeper is `root`: everything below it.
    #[must_use]
    pub fn new(root: Pid) -> Self {
        Self::with_access(root, Access::Full)
    }

    /// The same with less to see.
    #[must_use]
    pub fn with_access(root: Pid, access: Access) -> Self {
        Self {
            root,
            looker: Looker::new(access == Access::Hardened),
            terminal: None,
            looks: Looks::default(),
            wakes: Wakes::default(),
            processor: ProcessorUse::default(),
            helpers: Helpers::default(),
            unconfirmed: false,
            processes: Vec::new(),
        }
    }

    /// Whether the last sample saw a first sign of waiting that a second one, soon, could confirm.
    #[must_use]
    pub fn is_unconfirmed(&self) -> bool {
        self.unconfirmed
    }

    /// Looks once. A claim needs two looks at least 10 ms apart, or 1 ms at a prompt that is known.
    ///
    /// May block on `/proc`; costs a fraction of a millisecond for a job of a few processes.
    pub fn sample(&mut self, master: BorrowedFd<'_>, hints: &Hints<'_>) -> Verdict {
        let now = Instant::now();
        self.looker.fds.forget_old(now);
        self.processor.turn();
        self.looks.begin(hints.row == Row::SamePrompt);
        self.wakes.begin(now, hints.since_output.min(hints.since_input));
        let verdict = match self.terminal_now(master) {
            Some(terminal) => self.sample_terminal(&terminal, hints, now),
            None => Verdict::Unknown,
        };
        self.looks.turn(now);
        verdict
    }

    fn terminal_now(&mut self, master: BorrowedFd<'_>) -> Option<Terminal> {
        if self.terminal.is_none() {
            self.terminal = TtyIndex::of_master(master);
            if let Some(index) = self.terminal {
                self.looker.fds.learn_terminal(index);
            }
        }
        let foreground = rustix::termios::tcgetpgrp(master).ok().map(|pgrp| pgrp.as_raw_nonzero().get());
        Some(Terminal { index: self.terminal?, foreground, modes: Modes::of(master)?, depth: 0 })
    }

    fn sample_terminal(&mut self, terminal: &Terminal, hints: &Hints<'_>, now: Instant) -> Verdict {
        let mut seen = self.look_at_job();
        let mut found = self.judge(&seen, terminal, hints);
        if !matches!(found, Found::Waits(..) | Found::Unconfirmed)
            && self.could_have_helper(&seen, terminal, hints)
        {
            self.seek_helpers(&seen, terminal.index, now);
            if !self.helpers.known.is_empty() {
                self.look_at_helpers(&mut seen);
                found = self.judge(&seen, terminal, hints);
            }
        }
        self.unconfirmed = matches!(found, Found::Unconfirmed);
        self.say(found, &seen, terminal, hints)
    }

    fn judge(&mut self, seen: &[Seen], terminal: &Terminal, hints: &Hints<'_>) -> Found {
        let Self { looker, looks, wakes, processor, .. } = self;
        Judge { looker, hints, looks, wakes, processor }.judge(seen, terminal)
    }

    fn look_at_job(&mut self) -> Vec<Seen> {
        self.processes.clear();
        self.looker.reader.descendants(self.root, &mut self.processes);
        self.looker.forget_gone(&self.processes);
        let looker = &mut self.looker;
        self.processes.drain(..).map(|process| looker.look(process)).collect()
    }

    /// Only who waits for a Unix socket can be served by a process outside the job.
    fn could_have_helper(&self, seen: &[Seen], terminal: &Terminal, hints: &Hints<'_>) -> bool {
        hints.since_output >= QUIET_BEFORE_SEEKING
            && seen.iter().filter(|seen| Some(seen.process.pgrp) == terminal.foreground).any(|seen| {
                let outside = Doing::WaitsOutside(Outside::UnixSocket);
                seen.threads.iter().any(|thread| thread.doing == outside)
            })
    }

    fn seek_helpers(&mut self, seen: &[Seen], index: TtyIndex, now: Instant) {
        let reader = &mut self.looker.reader;
        self.helpers.known.retain(|pid| holds_terminal(reader, *pid, index));
        let recently = self.helpers.sought.is_some_and(|at| now.duration_since(at) < SEEK_HELPERS);
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
        everybody.retain(|pid| !seen.iter().any(|seen| seen.process.pid == *pid));
        everybody.retain(|pid| holds_terminal(reader, *pid, index));
        self.helpers.known = everybody;
    }

    fn look_at_helpers(&mut self, seen: &mut Vec<Seen>) {
        for pid in &self.helpers.known {
            if let Some(process) = self.looker.reader.stat(*pid) {
                seen.push(self.looker.look(process));
            }
        }
    }

    fn say(&mut self, found: Found, seen: &[Seen], terminal: &Terminal, hints: &Hints<'_>) -> Verdict {
        match found {
            Found::Waits(rank, finding) => {
                let level = match rank {
                    Rank::Certain => Level::Certain,
                    Rank::High | Rank::Medium => Level::Likely,
                    Rank::Low => Level::Possible,
                };
                let mut claim = self.claim(finding, level, seen, hints);
                if hints.query_unanswered {
                    claim.level = Level::Possible;
                    claim.evidence.why =
                        "it has asked its terminal something and waits for the answer".to_owned();
                    return Verdict::Listening(claim);
                }
                Verdict::Waiting(claim)
            }
            Found::Listens(finding) => Verdict::Listening(self.claim(finding, Level::Possible, seen, hints)),
            Found::OutputBlocked => Verdict::OutputBlocked,
            Found::Stopped(pid) => Verdict::Stopped { pid, program: self.program(pid, seen) },
            Found::Busy => Verdict::Busy,
            Found::Refused => self.last_resort(seen, terminal, hints),
            Found::Unconfirmed | Found::Nobody => Verdict::Unknown,
        }
    }

    /// A long silence before what looks like a question, and nothing else to go by.
    fn last_resort(&mut self, seen: &[Seen], terminal: &Terminal, hints: &Hints<'_>) -> Verdict {
        let silent = hints.since_output.min(hints.since_input) >= LAST_RESORT;
        let foreground = seen.iter().find(|seen| Some(seen.process.pgrp) == terminal.foreground);
        match foreground {
            Some(reader) if silent && text::looks_like_question(hints.text_before_cursor) => {
                let why = "it has been silent for long, and its last line looks like a question";
                let pid = reader.process.pid;
                let finding = Finding { pid, call: "", fd: -1, nested: false, modes: terminal.modes, why };
                Verdict::Waiting(self.claim(finding, Level::Possible, seen, hints))
            }
            _ => Verdict::Unknown,
        }
    }

    fn claim(&mut self, finding: Finding, level: Level, seen: &[Seen], hints: &Hints<'_>) -> Claim {
        let program = self.program(finding.pid, seen);
        let modes = finding.modes;
        Claim {
            level,
            kind: kinds::kind(hints, modes.canonical, modes.echo, &program),
            prompt: hints.text_before_cursor.trim().to_owned(),
            evidence: Evidence {
                pid: Some(finding.pid),
                program,
                syscall: finding.call,
                fd: (finding.fd >= 0).then_some(finding.fd),
                tty: if finding.nested { Tty::Nested } else { Tty::Own },
                why: finding.why.to_owned(),
            },
        }
    }

    fn program(&mut self, pid: Pid, seen: &[Seen]) -> String {
        let known = seen.iter().find(|seen| seen.process.pid == pid).map(|seen| seen.process.comm.clone());
        let comm =
            known.or_else(|| self.looker.reader.stat(pid).map(|process| process.comm)).unwrap_or_default();
        self.looker.reader.program(pid, &comm)
    }
}

/// Whether a process that is none of the job's has the terminal open. By name only: its links are not followed.
fn holds_terminal(reader: &mut crate::procfs::Reader, pid: Pid, index: TtyIndex) -> bool {
    let path = index.path();
    let mut fds = Vec::new();
    if reader.numbers(format_args!("/proc/{pid}/fd"), |fd| fds.push(fd)).is_err() {
        return false;
    }
    fds.into_iter()
        .any(|fd| reader.link(format_args!("/proc/{pid}/fd/{fd}")).is_ok_and(|link| link == path.as_bytes()))
}
