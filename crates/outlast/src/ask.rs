//! What the policy says of a verb, and the question to the person at the terminal where that is what it says.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use outlast_job::registry::Home;
use outlast_job::{Failure, Job, session};
use outlast_policy::{Answer, Door, Gate, Judged, Order, OrderKind, Pass, Question};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};

/// How long a person may think about it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The gate of the command line.
#[derive(Debug)]
pub(crate) struct CliGate {
    gate: Gate,
    session: String,
}

impl CliGate {
    /// Loads the policy.
    pub(crate) fn open(home: &Home) -> Result<Self, Failure> {
        Ok(Self { gate: Gate::open(home, Door::CommandLine)?, session: session::current() })
    }

    /// The session that everything is done for.
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// Whether anything that is typed into the job could be asked for or denied.
    pub(crate) fn checks_input(&self, job: &Job) -> Result<bool, Failure> {
        self.gate.checks_input(job)
    }

    /// Has an order judged: asks if need be, and gives a pass if it may be carried out.
    pub(crate) fn pass(&self, kind: OrderKind<'_>) -> Result<Pass, Failure> {
        match self.gate.judge(&Order { session: &self.session, kind })? {
            Judged::Free(pass) => Ok(pass),
            Judged::Refused(failure) => Err(failure),
            Judged::Asked(question) => self.gate.answered(&question, ask(&question)),
        }
    }
}

impl CliGate {
    /// As [`pass`](Self::pass), but nobody is asked: none where somebody would have to be.
    pub(crate) fn pass_unasked(&self, kind: OrderKind<'_>) -> Result<Option<Pass>, Failure> {
        match self.gate.judge(&Order { session: &self.session, kind })? {
            Judged::Free(pass) => Ok(Some(pass)),
            Judged::Refused(failure) => Err(failure),
            Judged::Asked(_) => Ok(None),
        }
    }
}

/// Has one order judged. A policy that does not load stops whatever acts; it does not stop a person from
/// looking at their jobs or attaching to them.
pub(crate) fn allowed(home: &Home, kind: OrderKind<'_>) -> Result<(), Failure> {
    let is_persons = matches!(kind, OrderKind::Secret | OrderKind::Attach { .. });
    match CliGate::open(home) {
        Ok(gate) => gate.pass(kind).map(|_| ()),
        Err(_) if is_persons || kind.only_looks() => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// Whether an order may be carried out without a question.
pub(crate) fn is_free(home: &Home, kind: OrderKind<'_>) -> bool {
    let Ok(gate) = CliGate::open(home) else { return kind.only_looks() };
    let judged = gate.gate.judge(&Order { session: &gate.session, kind });
    matches!(judged, Ok(Judged::Free(_)))
}

/// Asks the person at our terminal. In a job there is none: a program that types into a job could be the one that asks.
fn ask(question: &Question) -> Answer {
    if Gate::is_in_a_job() {
        return Answer::Unable;
    }
    let Some(mut terminal) = own_terminal() else { return Answer::Unable };
    // What was typed before the question is not an answer to it.
    let _ = tcflush(&terminal, QueueSelector::IFlush);
    let asked = format!("outlast: {}\nDo it? [y/N] ", question.text());
    if terminal.write_all(asked.as_bytes()).is_err() {
        return Answer::Unable;
    }
    let answer = answer(&mut terminal);
    if answer == Answer::Late {
        let _ = terminal.write_all(b"\nnobody answered: no\n");
    }
    answer
}

/// The terminal that this program is in front of.
fn own_terminal() -> Option<File> {
    let flags = rustix::fs::OFlags::NOCTTY.bits();
    let terminal =
        OpenOptions::new().read(true).write(true).custom_flags(flags.cast_signed()).open("/dev/tty").ok()?;
    // In the background, asking would stop us.
    Gate::is_in_front().then_some(terminal)
}

fn answer(terminal: &mut File) -> Answer {
    let until = Instant::now() + ANSWER_TIMEOUT;
    let mut line = Vec::new();
    while !line.contains(&b'\n') && line.len() < 1024 {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&*terminal, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Answer::Late,
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return Answer::No,
        }
        let mut bytes = [0; 128];
        match terminal.read(&mut bytes) {
            Ok(0) | Err(_) => break,
            Ok(n) => line.extend(&bytes[..n]),
        }
    }
    let said = String::from_utf8_lossy(&line).trim().to_ascii_lowercase();
    if said == "y" || said == "yes" { Answer::Yes } else { Answer::No }
}
