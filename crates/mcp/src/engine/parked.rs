//! Calls that wait for a job, without a thread while they wait.
//!
//! A call runs in a thread that may block, up to the point where it has to wait. There it is parked: its wait goes to the
//! one waiting thread of the server, and what is left to do is kept until the wait is over. But each change of threads costs
//! the caller time, most of all when everything has gone to sleep. So a few calls at a time stay where they are, most for a
//! moment, in which most commands are done, and fewer until their waits are over: a single agent has hardly ever more.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outlast_job::{Failure, Job, PendingWait, Wait, Waited};

use super::{Caller, Engine, Patience};

/// How long a call stays in its thread while it is taken for a short one.
const STAY: Duration = Duration::from_millis(25);
/// How many calls stay in their threads for a moment at a time.
const MAX_BRIEF: usize = 4;
/// How many stay to the end of their waits.
const MAX_LONG: usize = 3;

/// What a call has come to.
pub(crate) enum Step<T> {
    /// It is done.
    Done(T),
    /// It waits.
    Parked(Box<Parked<T>>),
}

/// What is left to do when a wait is over: with which of its jobs ended it, and how.
type Then<T> = Box<dyn FnOnce(&Engine, (usize, Waited)) -> Result<Step<T>, Failure> + Send>;

/// A call that waits.
pub(crate) struct Parked<T> {
    pub(crate) wait: PendingWait,
    pub(crate) then: Then<T>,
}

impl<T: 'static> Step<T> {
    /// Adds what is done with the result, now or when it is there.
    pub(crate) fn and_then<U: 'static>(
        self,
        engine: &Engine,
        finish: impl FnOnce(&Engine, T) -> Result<U, Failure> + Send + 'static,
    ) -> Result<Step<U>, Failure> {
        match self {
            Step::Done(done) => finish(engine, done).map(Step::Done),
            Step::Parked(parked) => {
                let Parked { wait, then } = *parked;
                let then: Then<U> =
                    Box::new(move |engine, ended| then(engine, ended)?.and_then(engine, finish));
                Ok(Step::Parked(Box::new(Parked { wait, then })))
            }
        }
    }
}

/// Counts the calls that stay in their threads while they wait.
#[derive(Debug, Default)]
pub(crate) struct Staying {
    brief: AtomicUsize,
    long: AtomicUsize,
}

/// The place of a call that stays, until it is dropped.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(taken: &'a AtomicUsize, max: usize) -> Option<Self> {
        let one_more = |now| (now < max).then_some(now + 1);
        taken.fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_more).is_ok().then(|| Self(taken))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Staying {
    /// Waits here, if there is a place; none if the wait goes on elsewhere.
    fn stay(&self, wait: &mut PendingWait, caller: &Caller) -> Result<Option<(usize, Waited)>, Failure> {
        let brief = Place::take(&self.brief, MAX_BRIEF);
        let stay = if brief.is_some() { STAY } else { Duration::ZERO };
        if let Some(ended) = wait.wait_briefly(stay)? {
            return Ok(Some(ended));
        }
        drop(brief);
        let Some(_long) = Place::take(&self.long, MAX_LONG) else { return Ok(None) };
        match caller.call.cancelled() {
            Some(cancelled) => wait.wait_here(Some(cancelled)).map(Some),
            None => Ok(None),
        }
    }
}

impl Engine {
    /// Waits on one job, and goes on with what came of it.
    pub(super) fn wait_then<T: 'static>(
        &self,
        (job, wait): (&Job, Wait),
        patience: Patience,
        caller: &Caller,
        then: impl FnOnce(&Engine, Waited) -> Result<Step<T>, Failure> + Send + 'static,
    ) -> Result<Step<T>, Failure> {
        self.wait_any_then(&[(job, wait)], patience, caller, move |engine, (_, waited)| then(engine, waited))
    }

    /// Waits on several jobs, each from its own beginning, and goes on with the first that ends it.
    pub(super) fn wait_any_then<T: 'static>(
        &self,
        waits: &[(&Job, Wait)],
        patience: Patience,
        caller: &Caller,
        then: impl FnOnce(&Engine, (usize, Waited)) -> Result<Step<T>, Failure> + Send + 'static,
    ) -> Result<Step<T>, Failure> {
        if let Some((job, _)) = waits.first() {
            caller.call.set_about(job.handle());
        }
        waits.iter().for_each(|(job, _)| job.expect(super::far::asks()));
        let mut wait = self.outlast.begin_wait(waits, Some(patience.allowed))?;
        match self.staying.stay(&mut wait, caller)? {
            Some(ended) => then(self, ended),
            None => Ok(Step::Parked(Box::new(Parked { wait, then: Box::new(then) }))),
        }
    }
}
