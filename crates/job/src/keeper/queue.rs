//! A job that does not run yet: it waits for the end of other jobs, then for a place in its slot, then for a machine that is not
//! too busy. Its process is there and waits at a gate, so that whatever ends jobs ends it too; what opens the gate is in here.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use outlast_protocol::Queued;
use outlast_pty::spawn::above_stdio;
use rustix::io::Errno;

use super::Keeper;
use super::core::Input;
use super::inherited::{Inherited, system_error};
use crate::clock::millis;
use crate::failure::Kind;
use crate::lifecycle::{StartError, State};
use crate::registry::Home;
use crate::slots::{LOOK_AGAIN, Place, Pressure, Ticket};
use crate::spec::{Handle, KeeperSpec};
use crate::wire::{Request, Verb, Wait, line};
use outlast_protocol::{Call, Hint};

/// How soon a job is looked at again whose keeper has just died, or does not let us wait.
const LOOK_AT_JOB_AGAIN: Duration = Duration::from_secs(1);

/// What keeper and heir of a queued job both hold.
#[derive(Debug)]
pub(super) struct QueueEnds {
    /// Where the command waits, until it has it.
    pub(super) opens: Option<OwnedFd>,
    /// What opens it.
    gate: OwnedFd,
    ticket: Option<Ticket>,
}

impl QueueEnds {
    /// For a job that must wait for something; none for others.
    pub(super) fn open(home: &Home, handle: Handle, spec: &KeeperSpec) -> Result<Option<Self>, Errno> {
        if spec.slot.is_none() && spec.after.is_empty() {
            return Ok(None);
        }
        let (opens, gate) = outlast_pty::system::pipe()?;
        let opens = above_stdio(opens).map_err(|_| Errno::MFILE)?;
        let ticket = spec.slot.as_ref().map(|slot| Ticket::make(home, &slot.name, handle)).transpose()?;
        Ok(Some(Self { opens: Some(opens), gate, ticket }))
    }

    /// Gives its place back.
    pub(super) fn leave(&self) {
        if let Some(ticket) = &self.ticket {
            ticket.leave();
        }
    }
}

/// What came of looking whether the job may run.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Not yet.
    Waits,
    /// It has all that it needs.
    Admitted,
    /// It never may.
    Refused(StartError),
}

/// What a queued job waits for now.
#[derive(Debug)]
pub(super) struct Queue {
    after: Vec<(Handle, bool)>,
    /// The line to the keeper of the first of these, which says when that has ended.
    other: Option<UnixStream>,
    /// Pipes of other jobs: one of them changes before this job can have a place.
    watched: Vec<OwnedFd>,
    /// When it is looked at again, where nobody tells.
    look_at: Option<Instant>,
    /// Why it does not take a place that is free, and since when.
    pressure: Option<(String, Instant)>,
    held_back_since: Option<Instant>,
}

impl Queue {
    pub(super) fn of(inherited: &Inherited) -> Self {
        Self {
            after: inherited.spec.after.clone(),
            other: None,
            watched: Vec::new(),
            look_at: None,
            pressure: None,
            held_back_since: None,
        }
    }

    /// Without the jobs that have ended already, as the record of a dead keeper says.
    pub(super) fn only(mut self, left: &[u64]) -> Self {
        self.after.retain(|(job, _)| left.contains(&job.number()));
        self
    }

    /// What is to be waited for.
    pub(super) fn sources(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.watched.iter().map(AsFd::as_fd).chain(self.other.iter().map(AsFd::as_fd))
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.look_at
    }

    /// What it waits for, as others are told.
    pub(super) fn described(&self, inherited: &Inherited) -> Queued {
        Queued {
            slot: inherited.spec.slot.as_ref().map(|slot| slot.name.clone()),
            places: inherited.spec.slot.as_ref().map(|_| places(inherited)),
            after: self.after.iter().map(|(job, _)| job.number()).collect(),
            pressure: self.pressure.as_ref().map(|(why, _)| why.clone()),
            ..Queued::default()
        }
    }

    /// Looks whether the job may run now.
    pub(super) fn look(&mut self, inherited: &Inherited, now: Instant) -> Verdict {
        self.look_at = None;
        self.watched.clear();
        if let Err(error) = self.drop_ended(&inherited.home) {
            return Verdict::Refused(error);
        }
        if let Some((job, _)) = self.after.first() {
            self.listen_to(&inherited.home, *job, now);
            return Verdict::Waits;
        }
        self.other = None;
        let Some(ticket) = inherited.queue.as_ref().and_then(|queue| queue.ticket.as_ref()) else {
            return Verdict::Admitted;
        };
        let limits = &inherited.settings.pressure;
        let waited_enough = self.held_back_since.is_some_and(|since| now >= since + limits.hold);
        let mut over = None;
        let place = ticket.ask(places(inherited), || {
            over = Pressure::read().over(limits).filter(|_| !waited_enough);
            over.is_none()
        });
        match place {
            Ok(Place::Granted) => Verdict::Admitted,
            Ok(Place::Taken(pipes)) => {
                self.watched = pipes;
                self.hold_back(over, now);
                Verdict::Waits
            }
            // It passes; and the job keeps its place in line.
            Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => {
                self.look_at = Some(now + LOOK_AGAIN);
                Verdict::Waits
            }
            Err(error) => Verdict::Refused(system_error("cannot use the slot", error)),
        }
    }

    /// The machine is too busy, or is no longer. How busy exactly is said only once.
    fn hold_back(&mut self, over: Option<String>, now: Instant) {
        let Some(why) = over else {
            (self.pressure, self.held_back_since) = (None, None);
            return;
        };
        self.pressure.get_or_insert((why, now));
        self.held_back_since.get_or_insert(now);
        self.look_at = Some(now + LOOK_AGAIN);
    }

    /// Forgets the jobs that have ended as they should.
    fn drop_ended(&mut self, home: &Home) -> Result<(), StartError> {
        while let Some((job, any_end)) = self.after.first().copied() {
            let info = match home.job(job).and_then(|dir| dir.current()) {
                Ok(info) => info,
                Err(failure) if failure.kind == Kind::NoSuchJob => {
                    return Err(not_after(job, "it was removed before it could be seen how it ended"));
                }
                // Whoever keeps it knows better.
                Err(_) => return Ok(()),
            };
            match info.state {
                State::Queued(_) | State::Starting | State::Running { .. } => return Ok(()),
                State::Completed(_) => {}
                State::Failed(_) | State::Killed(_) | State::Lost { .. } if any_end => {}
                State::Failed(ref receipt) | State::Killed(ref receipt) => {
                    let how = receipt.words().unwrap_or_else(|error| error.message.clone());
                    return Err(not_after(job, &format!("it {}: {how}", info.state.name())));
                }
                State::Lost { .. } => {
                    return Err(not_after(job, info.state.why_lost().unwrap_or("it was lost")));
                }
            }
            self.after.remove(0);
            self.other = None;
        }
        Ok(())
    }

    /// Has the keeper of another job say when that has ended. Whatever it says, or its own end, is a reason to look.
    fn listen_to(&mut self, home: &Home, job: Handle, now: Instant) {
        if let Some(other) = &self.other {
            let mut said = [0; 4096];
            let mut is_answered = false;
            loop {
                match rustix::net::recv(other, &mut said[..], rustix::net::RecvFlags::DONTWAIT) {
                    Ok((0, _)) => {
                        // It may have an heir.
                        self.other = None;
                        self.look_at = Some(now + LOOK_AT_JOB_AGAIN);
                        return;
                    }
                    Ok((n, _)) => is_answered |= said[..n].windows(7).any(|word| word == b"\"reply\""),
                    Err(Errno::INTR) => {}
                    // It has said all it will over this line, and has not ended as far as its record says.
                    Err(_) if is_answered => {
                        self.other = None;
                        self.look_at = Some(now + LOOK_AT_JOB_AGAIN);
                        return;
                    }
                    Err(_) => return,
                }
            }
        }
        self.other = home.job(job).ok().and_then(|dir| ask_for_end(&dir).ok());
        // It may have ended before it was asked; then there is nobody who would say so.
        if self.other.is_none() {
            self.look_at = Some(now + LOOK_AT_JOB_AGAIN);
        }
    }
}

/// How many jobs may have a place in the job's slot: as the settings say, else as whoever started it does, else one.
fn places(inherited: &Inherited) -> u32 {
    let Some(slot) = &inherited.spec.slot else { return 1 };
    inherited.settings.slots.get(&slot.name).copied().or(slot.places).unwrap_or(1).max(1)
}

fn ask_for_end(job: &crate::registry::JobDir) -> std::io::Result<UnixStream> {
    use std::io::Write;
    let mut stream = crate::socket::connect(job)?;
    stream.set_nonblocking(true)?;
    stream.write_all(&line(&Request::new(1, Verb::Wait(Wait::for_exit()))))?;
    Ok(stream)
}

fn not_after(job: Handle, why: &str) -> StartError {
    StartError {
        kind: "not_after".into(),
        message: format!("it was to run after job {job}, and {why}"),
        hint: Hint::call("see what that printed: ", Call::Read(job.to_string()))
            .and("; with --after-any it runs however that ends"),
    }
}

impl Keeper {
    /// Looks whether the job may run now, and lets it.
    pub(super) fn advance_queue(&mut self) {
        let Some(mut queue) = self.queue.take() else { return };
        match queue.look(&self.inherited, Instant::now()) {
            Verdict::Waits => {
                let queued = Box::new(queue.described(&self.inherited));
                self.queue = Some(queue);
                self.feed(Input::Queued { command: None, queued });
            }
            Verdict::Admitted => self.admit(),
            Verdict::Refused(error) => self.feed(Input::Refused(error)),
        }
    }

    /// Opens the gate. Should we die right here, our heir finds that the job has its place, and opens it again: nobody reads a
    /// second byte.
    fn admit(&mut self) {
        if let Some(queue) = &self.inherited.queue {
            let _ = rustix::io::write(&queue.gate, b".");
        }
        let since = Instant::now().saturating_duration_since(self.inherited.started);
        self.inherited.shared.set_last_output_ms(millis(since));
        self.feed(Input::Admitted);
    }

    pub(super) fn advance_queue_if_due(&mut self, now: Instant) {
        if self.queue.as_ref().and_then(Queue::next).is_some_and(|at| now >= at) {
            self.advance_queue();
        }
    }

    /// The command has ended: its place is free, whatever it left behind.
    pub(super) fn leave_slot_if_ended(&mut self) {
        if self.core.has_ended()
            && let Some(queue) = self.inherited.queue.take()
        {
            self.queue = None;
            queue.leave();
        }
    }
}
