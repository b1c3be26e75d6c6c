//! Calls that wait for a job, without a thread while they wait.
//!
//! A call runs in a thread that may block, up to the point where it has to wait. There it is parked: its wait goes to the
//! one waiting thread of the server, and what is left to do is kept until the wait is over. Most commands are done in a
//! moment; for these a few calls at a time stay where they are, because each change of threads costs the caller time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outlast_job::{Failure, Job, PendingWait, Wait, Waited};

use super::{Caller, Engine, Patience};

/// How long a call stays in its thread: a little longer than a command that goes to the background is looked at.
const STAY: Duration = Duration::from_millis(25);
/// How many calls stay in their threads at a time.
const MAX_STAYING: usize = 4;

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
pub(crate) struct Staying(AtomicUsize);

impl Staying {
    /// Whether one more may stay; it must say when it is [done](Self::done).
    fn may_stay(&self) -> bool {
        let stays = |staying| (staying < MAX_STAYING).then_some(staying + 1);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, stays).is_ok()
    }

    fn done(&self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
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
        let mut wait = self.outlast.begin_wait(waits, Some(patience.allowed))?;
        let stays = self.staying.may_stay();
        let ended = wait.wait_briefly(if stays { STAY } else { Duration::ZERO });
        if stays {
            self.staying.done();
        }
        match ended? {
            Some(ended) => then(self, ended),
            None => Ok(Step::Parked(Box::new(Parked { wait, then: Box::new(then) }))),
        }
    }
}
