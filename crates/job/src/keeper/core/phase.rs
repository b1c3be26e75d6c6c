//! Where a job is in its life, as its keeper sees it. Each phase owns its data, and nothing of it is kept
//! elsewhere: what the record says of a job's state is made from here.
//!
//! ```text
//! Starting ─▶ Running ─▶ (Judging) ─▶ Ended ─▶ Leaving ─▶ Left ─▶ Closed
//! ```

use std::time::{Duration, Instant};

use outlast_pty::reap::End;
use outlast_pty::signal;
use rustix::process::Pid;

use super::ending::Ending;
use crate::lifecycle::{EndedBy, Outcome, Process, Receipt, StartError, State, Used};
use outlast_protocol::Queued;

/// Where the job is.
#[derive(Debug)]
pub(crate) enum Phase {
    /// The command does not run yet.
    Starting,
    /// The command runs.
    Running(Running),
    /// The command died of a hangup. Whether that is because our heir dies is known in a moment: its terminal
    /// hangs up before we are told of its death.
    Judging { running: Running, end: CommandEnd, until: Instant },
    /// The command has ended. Children that it left behind may still be there.
    Ended(Ended),
    /// Nothing is left of the job. What is worth telling still goes to the outbox, but not for long.
    Leaving { ended: Ended, until: Instant, last_try: bool },
    /// All is told. Requests are still answered.
    Left(Ended),
    /// Nothing comes any more.
    Closed(Ended),
}

/// A command that runs.
#[derive(Debug)]
pub(crate) struct Running {
    pub(super) command: Pid,
    pub(super) stopped: bool,
    /// Who began to end it, so that the receipt names the right one; also when that was given up, or a dead
    /// keeper began.
    pub(super) by: Option<EndedBy>,
    /// What is being done to end it.
    pub(super) ending: Option<Ending>,
    /// It waits at its gate: for what.
    pub(super) queued: Option<Box<Queued>>,
    /// It never goes through its gate: why.
    pub(super) refused: Option<StartError>,
}

impl Running {
    pub(super) fn of(command: Pid, by: Option<EndedBy>) -> Self {
        Self { command, stopped: false, by, ending: None, queued: None, refused: None }
    }

    fn state(&self) -> State {
        match &self.queued {
            Some(queued) => {
                State::Queued(Box::new(Queued { ending: self.by.clone(), ..Queued::clone(queued) }))
            }
            None => State::Running { ending: self.by.clone() },
        }
    }
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// One of the states that own a receipt.
    pub(super) state: State,
    /// The command, until the kernel may forget it.
    pub(super) unreaped: Option<(Pid, End)>,
    pub(super) saving: Saving,
    /// What is being done to end what it left behind.
    pub(super) ending: Option<Ending>,
    /// Nobody wants to know how the job ended any more.
    pub(super) released: bool,
}

/// Whether the record on the disk says that the job has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saving {
    /// It is being written.
    First,
    /// It could not be; it is tried once more with the disk space that was reserved for it.
    Again,
    /// It does.
    Saved,
    /// It does not, and is tried again later.
    Unsaved(Retry),
}

/// When something is tried again: with each try, the pause before the next doubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retry {
    pub(super) at: Instant,
    pub(super) pause: Duration,
}

/// How the command ended, and what was there at that moment.
#[derive(Clone, Debug)]
pub(crate) struct CommandEnd {
    pub(crate) command: Pid,
    pub(crate) end: End,
    /// In milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// The other processes of the job.
    pub(crate) others: Vec<Process>,
    /// Whether the kernel ends those together with the command.
    pub(crate) others_end_too: bool,
    pub(crate) used: Option<Used>,
    /// Whether the kernel ran out of memory.
    pub(crate) out_of_memory: bool,
}

impl Phase {
    /// The phase for a state that was read from a record. `command` is the process of a command that runs.
    pub(super) fn of(state: State, command: Pid) -> Self {
        match state {
            State::Starting => Phase::Starting,
            State::Running { ending } => Phase::Running(Running::of(command, ending)),
            State::Queued(mut queued) => {
                let by = queued.ending.take();
                Phase::Running(Running { queued: Some(queued), ..Running::of(command, by) })
            }
            State::Completed(_) | State::Failed(_) | State::Killed(_) | State::Lost { .. } => {
                Phase::Ended(Ended {
                    state,
                    unreaped: None,
                    saving: Saving::Saved,
                    ending: None,
                    released: false,
                })
            }
        }
    }

    /// What the record says.
    pub(crate) fn state(&self) -> State {
        match self {
            Phase::Starting => State::Starting,
            Phase::Running(running) | Phase::Judging { running, .. } => running.state(),
            Phase::Ended(ended)
            | Phase::Leaving { ended, .. }
            | Phase::Left(ended)
            | Phase::Closed(ended) => ended.state.clone(),
        }
    }

    /// The running command.
    pub(crate) fn running(&self) -> Option<&Running> {
        match self {
            Phase::Running(running) | Phase::Judging { running, .. } => Some(running),
            Phase::Starting | Phase::Ended(_) | Phase::Leaving { .. } | Phase::Left(_) | Phase::Closed(_) => {
                None
            }
        }
    }

    /// The command, if it runs and does not wait at its gate.
    pub(crate) fn at_work(&self) -> Option<&Running> {
        self.running().filter(|running| running.queued.is_none())
    }

    /// What is known of a command that has ended.
    pub(crate) fn ended(&self) -> Option<&Ended> {
        match self {
            Phase::Ended(ended)
            | Phase::Leaving { ended, .. }
            | Phase::Left(ended)
            | Phase::Closed(ended) => Some(ended),
            Phase::Starting | Phase::Running(_) | Phase::Judging { .. } => None,
        }
    }

    pub(super) fn ended_mut(&mut self) -> Option<&mut Ended> {
        match self {
            Phase::Ended(ended)
            | Phase::Leaving { ended, .. }
            | Phase::Left(ended)
            | Phase::Closed(ended) => Some(ended),
            Phase::Starting | Phase::Running(_) | Phase::Judging { .. } => None,
        }
    }

    /// What is being done to end the job, or what it left behind.
    pub(super) fn ending(&self) -> Option<&Ending> {
        match self {
            Phase::Running(running) | Phase::Judging { running, .. } => running.ending.as_ref(),
            Phase::Ended(ended)
            | Phase::Leaving { ended, .. }
            | Phase::Left(ended)
            | Phase::Closed(ended) => ended.ending.as_ref(),
            Phase::Starting => None,
        }
    }

    pub(super) fn ending_slot(&mut self) -> Option<&mut Option<Ending>> {
        match self {
            Phase::Running(running) | Phase::Judging { running, .. } => Some(&mut running.ending),
            Phase::Ended(ended)
            | Phase::Leaving { ended, .. }
            | Phase::Left(ended)
            | Phase::Closed(ended) => Some(&mut ended.ending),
            Phase::Starting => None,
        }
    }
}

impl Ended {
    /// Whether only this process knows how the job ended, and somebody may want to.
    pub(super) fn must_be_kept(&self) -> bool {
        !self.released && !matches!(self.saving, Saving::Saved)
    }
}

/// The receipt of an end that only a dead keeper saw, as far as it is known.
pub(crate) fn receipt_of(end: End, ended_at: u64, before: &State) -> Receipt {
    let ended_by = match (before, end) {
        (State::Running { ending: Some(by) }, _) => by.clone(),
        (State::Queued(queued), _) if queued.ending.is_some() => {
            queued.ending.clone().unwrap_or(EndedBy::Outside)
        }
        (_, End::Code(_)) => EndedBy::Itself,
        (_, End::Signal { .. }) => EndedBy::Outside,
    };
    Receipt { outcome: outcome_of(end), ended_at, ended_by, left_behind: Vec::new(), used: None }
}

/// What the kernel said, in the words of a receipt.
pub(super) fn outcome_of(end: End) -> Outcome {
    match end {
        End::Code(code) => Outcome::Exited { code },
        End::Signal { signal: number, core } => {
            Outcome::Signalled { signal: signal::name(number), core_dumped: core }
        }
    }
}
