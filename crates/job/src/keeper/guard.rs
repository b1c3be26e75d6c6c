//! The exec guard: a thread that judges what the job's programs execute, before they do.
//!
//! The keeper's loop never waits for it, and it never waits for the loop: a program that starts a thousand others is
//! judged here. The rules came with the order to start the job, as data; [`judge`] finds out what an execution really
//! runs. The heir holds the listener too, and [`CallNotes`] tells it which calls were begun, so that nobody stands still
//! forever if the keeper is killed.

mod call_notes;
mod elf;
mod judge;
mod known_programs;
mod marker;

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};

use outlast_protocol::event::{ExecQuestion, ExecRefused};
use outlast_pty::exec_guard::{ExecCall, Heard, Listener};
use outlast_rules::exec::ExecRules;
use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::Pid;

pub(super) use call_notes::CallNotes;
use judge::{Asks, Judge, Judgement};
pub(crate) use marker::{Marker, guarding};

/// Judging reads whole files now and then, a piece at a time.
const STACK_SIZE: usize = 256 << 10;
/// More refusals than this are not told one by one.
const MAX_TOLD: usize = 100;
/// More programs than this do not stand still at once: the next is refused.
const MAX_QUESTIONS: usize = 32;
/// How many refusals are remembered.
const MAX_REFUSED: usize = 64;

/// What the guard tells the keeper.
#[derive(Debug)]
pub(super) enum Told {
    /// A program was not executed.
    Refused(Box<ExecRefused>),
    /// A program stands still: a person must agree.
    Asked(Box<ExecQuestion>),
    /// The process that asked is gone.
    Withdrawn(u64),
}

/// The answer to a question.
#[derive(Debug)]
struct Answered {
    question: u64,
    allow: bool,
}

/// The keeper's end of the guard.
#[derive(Debug)]
pub(super) struct Guard {
    told: Receiver<Told>,
    wake: OwnedFd,
    answers: Sender<Answered>,
    /// Tells the thread that there is an answer.
    nudge: OwnedFd,
    _marker: Marker,
}

/// Where a guard gets its listener from.
pub(super) enum From {
    /// It will come over this line, once the command is about to be executed.
    Line(OwnedFd),
    /// A dead keeper had it too.
    Inherited(Listener),
}

/// What a guard judges by.
pub(super) struct Rules<'a> {
    pub(super) rules: &'a ExecRules,
    pub(super) notes: CallNotes,
    /// Where the job looks for its programs.
    pub(super) path: Option<&'a str>,
}

impl Guard {
    /// Starts the thread. `marker` is there as long as it judges.
    pub(super) fn start(from: From, order: Rules<'_>, marker: Marker) -> std::io::Result<Self> {
        let Rules { rules, notes, path } = order;
        let (wake, waker) = outlast_pty::system::pipe_that_never_blocks()?;
        let (tell, told) = channel();
        let (answers, answered) = channel();
        let nudge = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let nudged = nudge.try_clone()?;
        let judge = Judge::new(rules.clone(), path);
        std::thread::Builder::new().name("guard".into()).stack_size(STACK_SIZE).spawn(move || {
            let listener = match from {
                From::Inherited(listener) => Some(listener),
                From::Line(line) => Listener::receive(line.as_fd()).ok().flatten(),
            };
            if let Some(listener) = listener {
                let told = Teller { tell, waker, refusals: 0 };
                let (pending, refused) = (Vec::new(), VecDeque::new());
                GuardThread { listener, judge, notes, told, answered, nudged, pending, refused }.run();
            }
        })?;
        Ok(Self { told, wake, answers, nudge, _marker: marker })
    }

    /// Lets a program execute what it asked for, or not.
    pub(super) fn answer(&self, question: u64, allow: bool) {
        if self.answers.send(Answered { question, allow }).is_ok() {
            let _ = rustix::io::write(&self.nudge, &1_u64.to_ne_bytes());
        }
    }

    /// What says that there is something to take.
    pub(super) fn wake(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// What the guard has to tell.
    pub(super) fn take(&self) -> Vec<Told> {
        let mut drained = [0; 64];
        let _ = rustix::io::read(&self.wake, &mut drained);
        self.told.try_iter().collect()
    }
}

struct GuardThread {
    listener: Listener,
    judge: Judge,
    notes: CallNotes,
    told: Teller,
    answered: Receiver<Answered>,
    nudged: OwnedFd,
    /// Calls that wait for a person.
    pending: Vec<Pending>,
    /// What was refused last: a search in `PATH` tries the same program in the next folder, and a no is a no.
    refused: VecDeque<(Pid, Vec<String>)>,
}

/// A call that waits for a person.
struct Pending {
    question: u64,
    call: ExecCall,
    command: Vec<String>,
    /// Readable when the process is gone.
    process: Option<OwnedFd>,
}

/// Tells the keeper's loop, and wakes it.
struct Teller {
    tell: Sender<Told>,
    waker: OwnedFd,
    refusals: usize,
}

impl Teller {
    fn tell(&self, told: Told) {
        if self.tell.send(told).is_ok() {
            let _ = rustix::io::write(&self.waker, b"!");
        }
    }

    fn tell_refused(&mut self, refused: Option<Box<ExecRefused>>) {
        let Some(refused) = refused.filter(|_| self.refusals < MAX_TOLD) else { return };
        self.refusals += 1;
        self.tell(Told::Refused(refused));
    }
}

impl GuardThread {
    /// Judges calls until no process is left that could make one.
    fn run(mut self) {
        // What a dead keeper had begun is judged again: nobody else is told of these calls.
        if let Some(lost) = self.notes.lost_call() {
            self.refuse(lost);
        }
        for call in self.notes.begun() {
            self.decide(call);
        }
        loop {
            let mut sources =
                vec![PollFd::new(&self.listener, PollFlags::IN), PollFd::new(&self.nudged, PollFlags::IN)];
            let processes = self.pending.iter().filter_map(|pending| pending.process.as_ref());
            sources.extend(processes.map(|process| PollFd::new(process, PollFlags::IN)));
            match rustix::event::poll(&mut sources, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(_) => return,
            }
            let ready: Vec<PollFlags> = sources.iter().map(PollFd::revents).collect();
            if !ready[1].is_empty() {
                let _ = rustix::io::read(&self.nudged, &mut [0; 8]);
                self.take_answers();
            }
            if ready[2..].iter().any(|process| !process.is_empty()) {
                self.withdraw();
            }
            if ready[0].is_empty() {
                continue;
            }
            match self.listener.hear(ready[0]) {
                Ok(Heard::Call(call)) => {
                    self.notes.begin(&call);
                    self.decide(call);
                }
                Ok(Heard::Nothing) => {}
                Ok(Heard::End) | Err(_) => return,
            }
        }
    }

    fn refuse(&self, id: u64) {
        self.listener.refuse(id, Errno::ACCESS.raw_os_error());
    }

    fn decide(&mut self, call: ExecCall) {
        let notes = &self.notes;
        let still_waits = |call: &ExecCall| self.listener.is_waiting(call.id);
        match self.judge.judge(&call, |grant| notes.use_grant(grant), still_waits) {
            Judgement::Allow => self.listener.allow(call.id),
            Judgement::Missing(error) => self.listener.refuse(call.id, error.raw_os_error()),
            Judgement::Refuse(refused) => {
                // Told first: the command may end of it at once, and nothing is told after its end.
                self.told.tell_refused(refused);
                self.refuse(call.id);
            }
            Judgement::Ask(asks) => {
                let was_refused = self.refused.contains(&(call.pid, asks.command.clone()));
                if was_refused || self.pending.len() >= MAX_QUESTIONS {
                    self.refuse(call.id);
                } else {
                    return self.ask(call, *asks);
                }
            }
        }
        self.notes.end(&call);
    }

    /// Leaves a call until it is answered.
    fn ask(&mut self, call: ExecCall, asks: Asks) {
        let question = self.notes.next_question();
        let process = rustix::process::pidfd_open(call.pid, rustix::process::PidfdFlags::empty()).ok();
        self.pending.push(Pending { question, call, command: asks.command, process });
        self.told.tell(Told::Asked(Box::new(ExecQuestion { question, ..asks.question })));
    }

    fn take_answers(&mut self) {
        while let Ok(Answered { question, allow }) = self.answered.try_recv() {
            let Some(index) = self.pending.iter().position(|pending| pending.question == question) else {
                continue;
            };
            let Pending { call, command, .. } = self.pending.swap_remove(index);
            if allow {
                self.listener.allow(call.id);
            } else {
                self.refuse(call.id);
                if self.refused.len() >= MAX_REFUSED {
                    self.refused.pop_front();
                }
                self.refused.push_back((call.pid, command));
            }
            self.notes.end(&call);
        }
    }

    /// Questions of processes that are gone are not asked any more.
    fn withdraw(&mut self) {
        let (listener, notes, told) = (&self.listener, &self.notes, &self.told);
        self.pending.retain(|pending| {
            let waits = listener.is_waiting(pending.call.id);
            if !waits {
                notes.end(&pending.call);
                told.tell(Told::Withdrawn(pending.question));
            }
            waits
        });
    }
}
