//! The exec guard: a thread that judges what the job's programs execute, before they do.
//!
//! The keeper's loop never waits for it, and it never waits for the loop: a program that starts a thousand others is
//! judged here. The rules came with the order to start the job, as data; [`judge`] finds out what an execution really
//! runs. The heir holds the listener too, and [`CallNotes`] tells it which calls were begun, so that nobody stands still
//! for ever if the keeper is killed.

mod call_notes;
mod judge;
mod known_programs;
mod marker;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};

use outlast_protocol::event::ExecRefused;
use outlast_pty::exec_guard::{ExecCall, Heard, Listener};
use outlast_rules::exec::ExecRules;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

pub(super) use call_notes::CallNotes;
pub(super) use judge::{Judge, Judgement};
pub(crate) use marker::{Marker, guarding};

/// Judging reads whole files now and then, a piece at a time.
const STACK_SIZE: usize = 256 << 10;
/// More refusals than this are not told one by one.
const MAX_TOLD: usize = 100;

/// What the guard tells the keeper.
#[derive(Debug)]
pub(super) enum Told {
    /// A program was not executed.
    Refused(Box<ExecRefused>),
}

/// The keeper's end of the guard.
#[derive(Debug)]
pub(super) struct Guard {
    told: Receiver<Told>,
    wake: OwnedFd,
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
        let (wake, waker) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let (tell, told) = channel();
        let judge = Judge::new(rules.clone(), path);
        std::thread::Builder::new().name("guard".into()).stack_size(STACK_SIZE).spawn(move || {
            let listener = match from {
                From::Inherited(listener) => Some(listener),
                From::Line(line) => Listener::receive(line.as_fd(), true).ok().flatten(),
            };
            if let Some(listener) = listener {
                GuardThread { listener, judge, notes, tell, waker, count: 0 }.run();
            }
        })?;
        Ok(Self { told, wake, _marker: marker })
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
    tell: Sender<Told>,
    waker: OwnedFd,
    count: usize,
}

impl GuardThread {
    /// Judges calls until no process is left that could make one.
    fn run(mut self) {
        // What a dead keeper had begun is judged again: nobody else is told of these calls.
        self.notes.lost_call().inspect(|id| self.listener.refuse(*id, Errno::ACCESS.raw_os_error()));
        for call in self.notes.begun() {
            self.decide(call);
        }
        loop {
            let mut ready = [PollFd::new(&self.listener, PollFlags::IN)];
            match rustix::event::poll(&mut ready, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(_) => return,
            }
            let ready = ready[0].revents();
            match self.listener.hear(ready) {
                Ok(Heard::Call(call)) => {
                    self.notes.begin(&call);
                    self.decide(call);
                }
                Ok(Heard::Nothing) => {}
                Ok(Heard::End) | Err(_) => return,
            }
        }
    }

    fn decide(&mut self, call: ExecCall) {
        let notes = &self.notes;
        match self.judge.judge(
            &call,
            |grant| notes.use_grant(grant),
            |call| self.listener.is_waiting(call.id),
        ) {
            Judgement::Allow => self.listener.allow(call.id),
            Judgement::Refuse(refused) => {
                self.listener.refuse(call.id, Errno::ACCESS.raw_os_error());
                self.tell_refused(refused);
            }
        }
        self.notes.end(&call);
    }

    fn tell_refused(&mut self, refused: Option<Box<ExecRefused>>) {
        let Some(refused) = refused.filter(|_| self.count < MAX_TOLD) else { return };
        self.count += 1;
        if self.tell.send(Told::Refused(refused)).is_ok() {
            let _ = rustix::io::write(&self.waker, b"!");
        }
    }
}
