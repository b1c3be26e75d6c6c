//! Waits: evaluated in the keeper, asked again of its heir, and answered from the files when both are gone.
//!
//! A [`PendingWait`] is driven by its owner: a blocking call here, or the one waiting thread of a server.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use super::LocalJob;
use super::connection::{Connection, Read, RequestKey};
use crate::client::{Place, check_wait};
use crate::clock::{earliest, millis, time_until};
use crate::elsewhere::ElsewhereWait;
use crate::failure::{Failure, Kind};
use crate::registry::layout;
use crate::search::LogSearch;
use crate::wire::{Answer, Line, Reason, Verb, Wait, Waited};

/// Beyond the deadline, how long a keeper may take to say that it has come.
const DEADLINE_SLACK: Duration = Duration::from_millis(300);
/// How soon a job that is being started is asked again: it has no keeper to ask yet.
const START_RETRY: Duration = Duration::from_millis(5);

/// A wait on one or more jobs, each with its own conditions and its own beginning. The first that is met ends it.
#[derive(Debug)]
pub struct PendingWait {
    jobs: Vec<WaitingJob>,
    began: Instant,
    deadline: Option<Instant>,
}

/// How far a wait has got.
#[derive(Debug)]
pub(crate) enum Progress {
    /// Nothing is met yet.
    Waiting,
    /// This job ended it, and how.
    Ended(usize, Box<Waited>),
    /// A keeper is gone, and a pattern must be looked for in the files, which may take a while: see [`wait_any`].
    SearchFiles,
}

/// One job of a wait.
#[derive(Debug)]
enum WaitingJob {
    Here(LocalWait),
    There(ElsewhereWait),
}

/// A job of this machine.
#[derive(Debug)]
struct LocalWait {
    job: LocalJob,
    wait: Wait,
    /// The same when its heir is asked: a wait that killed a keeper is not tried on another.
    key: RequestKey,
    connection: Option<Connection>,
}

impl PendingWait {
    /// # Errors
    /// A bad pattern, or no job at all.
    pub(crate) fn new(
        jobs: impl IntoIterator<Item = (Place, Wait)>,
        timeout: Option<Duration>,
    ) -> Result<Self, Failure> {
        let began = Instant::now();
        let mut waiting = Vec::new();
        for (job, wait) in jobs {
            check_wait(&wait)?;
            waiting.push(match job {
                Place::Here(job) => WaitingJob::Here(LocalWait::new(job, wait)),
                Place::There(job) => WaitingJob::There(ElsewhereWait::new(job, wait)?),
            });
        }
        if waiting.is_empty() {
            return Err(Failure::usage("there is no job to wait for"));
        }
        Ok(Self { jobs: waiting, began, deadline: timeout.and_then(|timeout| began.checked_add(timeout)) })
    }

    /// Does what can be done without waiting.
    ///
    /// # Errors
    /// A keeper that refuses, or speaks another protocol.
    pub(crate) fn advance(&mut self) -> Result<Progress, Failure> {
        let (began, deadline) = (self.began, self.deadline);
        for (i, one) in self.jobs.iter_mut().enumerate() {
            let step = match one {
                WaitingJob::Here(one) => one.advance(deadline)?,
                WaitingJob::There(one) => {
                    one.advance(deadline)?.map_or(Step::Waiting, |waited| Step::Met(Box::new(waited)))
                }
            };
            match step {
                Step::Waiting => {}
                Step::Met(waited) => return Ok(ended(began, i, *waited)),
                Step::SearchFiles => return Ok(Progress::SearchFiles),
            }
        }
        let is_late = deadline.is_some_and(|at| Instant::now() >= at + DEADLINE_SLACK);
        Ok(if is_late { Progress::Ended(0, Box::new(self.give_up())) } else { Progress::Waiting })
    }

    /// Looks for the patterns of jobs without a keeper in their files.
    fn search_files(&mut self) -> Result<Progress, Failure> {
        for (i, one) in self.jobs.iter().enumerate() {
            if let WaitingJob::Here(one) = one
                && one.connection.is_none()
                && let Some(waited) = one.answer_from_files()?
            {
                return Ok(ended(self.began, i, waited));
            }
        }
        Ok(Progress::Waiting)
    }

    /// Waits no longer than this; none if it goes on.
    ///
    /// # Errors
    /// A keeper that refuses, or speaks another protocol.
    pub fn wait_briefly(&mut self, time: Duration) -> Result<Option<(usize, Waited)>, Failure> {
        let until = Instant::now() + time;
        loop {
            let mut progress = self.advance()?;
            if matches!(progress, Progress::SearchFiles) {
                progress = self.search_files()?;
            }
            if let Progress::Ended(which, waited) = progress {
                return Ok(Some((which, *waited)));
            }
            if Instant::now() >= until {
                return Ok(None);
            }
            sleep(self, earliest(self.wake_at(), Some(until)), None);
        }
    }

    /// Waits to the end in this thread. Given up, and over as if its time were up, when `cancel` becomes readable.
    ///
    /// # Errors
    /// A keeper that refuses, or speaks another protocol.
    pub fn wait_here(&mut self, cancel: Option<BorrowedFd<'_>>) -> Result<(usize, Waited), Failure> {
        let mut ready = false;
        loop {
            let mut progress = self.advance()?;
            if matches!(progress, Progress::SearchFiles) {
                progress = self.search_files()?;
            }
            if let Progress::Ended(which, waited) = progress {
                return Ok((which, *waited));
            }
            if !std::mem::replace(&mut ready, true) {
                self.get_ready_to_answer();
                continue;
            }
            if sleep(self, self.wake_at(), cancel) {
                return Ok((0, self.give_up()));
            }
        }
    }

    /// Reads what the answer will need, while there is nothing else to do: the caller does not wait for it once the wait is over.
    fn get_ready_to_answer(&self) {
        for one in &self.jobs {
            if let WaitingJob::Here(one) = one {
                // If they can't be read, the answer says so.
                let _ = (one.job.record(), one.job.masks());
            }
        }
    }

    /// How it ends when nobody waits any longer.
    pub(crate) fn give_up(&self) -> Waited {
        let offset = match &self.jobs[0] {
            WaitingJob::Here(one) => one.job.log_end(),
            WaitingJob::There(one) => one.offset(),
        };
        Waited { elapsed_ms: millis(self.began.elapsed()), ..Waited::because(Reason::Deadline, offset) }
    }

    /// The connections to poll before the next [`advance`](Self::advance).
    pub(crate) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.jobs.iter().filter_map(|one| match one {
            WaitingJob::Here(one) => one.connection.as_ref().map(AsFd::as_fd),
            WaitingJob::There(one) => Some(one.as_fd()),
        })
    }

    /// When to [`advance`](Self::advance) at the latest, whatever the connections say.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let starting =
            self.jobs.iter().any(|one| matches!(one, WaitingJob::Here(one) if one.connection.is_none()));
        let retry = starting.then(|| Instant::now() + START_RETRY);
        earliest(self.deadline.map(|at| at + DEADLINE_SLACK), retry)
    }
}

/// Waits on several jobs; ends with the first, and says which it was. `cancel` ends the wait early when it becomes
/// readable.
///
/// # Errors
/// A bad pattern, or a keeper that refuses.
pub(crate) fn wait_any(
    mut wait: PendingWait,
    cancel: Option<BorrowedFd<'_>>,
) -> Result<(usize, Waited), Failure> {
    wait.wait_here(cancel)
}

fn ended(began: Instant, which: usize, waited: Waited) -> Progress {
    Progress::Ended(which, Box::new(Waited { elapsed_ms: millis(began.elapsed()), ..waited }))
}

/// Sleeps until a keeper says something; true when the wait is cancelled.
fn sleep(wait: &PendingWait, wake_at: Option<Instant>, cancel: Option<BorrowedFd<'_>>) -> bool {
    let fds = cancel.into_iter().chain(wait.fds());
    let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    let timeout = wake_at.map(time_until);
    let _ = poll(&mut fds, timeout.as_ref());
    cancel.is_some() && fds.first().is_some_and(|fd| !fd.revents().is_empty())
}

impl LocalJob {
    /// Waits until a condition holds or the time is up.
    pub(crate) fn wait(&self, wait: &Wait, timeout: Option<Duration>) -> Result<Waited, Failure> {
        let wait = PendingWait::new([(Place::Here(self.clone()), wait.clone())], timeout)?;
        wait_any(wait, None).map(|(_, waited)| waited)
    }
}

/// How far a wait has got with one job.
enum Step {
    Waiting,
    Met(Box<Waited>),
    SearchFiles,
}

impl LocalWait {
    fn new(job: LocalJob, wait: Wait) -> Self {
        // Fixed now: asked again after a take-over, the wait must still begin at the same place.
        let from = Some(wait.from.unwrap_or_else(|| job.log_end()));
        let wait = Wait { from, masked: job.masked, ..wait };
        Self { job, wait, key: RequestKey::new(), connection: None }
    }

    /// Takes the next step: connects, asks, reads what has come. An answer ends the wait.
    fn advance(&mut self, deadline: Option<Instant>) -> Result<Step, Failure> {
        loop {
            let Some(connection) = &mut self.connection else {
                if self.connect(deadline)? {
                    continue;
                }
                if self.wait.has(Reason::Pattern) {
                    return Ok(Step::SearchFiles);
                }
                return Ok(self
                    .answer_from_files()?
                    .map_or(Step::Waiting, |waited| Step::Met(Box::new(waited))));
            };
            match connection.read_now()? {
                Read::Line(line) => match *line {
                    Line::Reply(reply) if connection.is_answered_by(&reply) => {
                        if let Some(connection) = self.connection.take() {
                            self.job.open.idle.put(self.job.handle(), connection);
                        }
                        return understand(reply.answer).map(|waited| Step::Met(Box::new(waited)));
                    }
                    Line::Reply(_) | Line::Grown(_) | Line::Event(_) => {}
                },
                Read::Nothing => return Ok(Step::Waiting),
                Read::Closed => self.connection = None,
            }
        }
    }

    /// Whether there is a keeper to ask.
    fn connect(&mut self, deadline: Option<Instant>) -> Result<bool, Failure> {
        let Some(mut connection) = self.job.connect()? else { return Ok(false) };
        // Rounded up: an answer before its time would be wrong.
        let left = deadline.map(|at| millis(at.saturating_duration_since(Instant::now())) + 1);
        let verb = Verb::Wait(Wait { deadline_ms: left, ..self.wait.clone() });
        connection.check_known(&verb)?;
        if connection.ask(&verb, &self.key).is_ok() {
            self.connection = Some(connection);
        }
        Ok(true)
    }

    /// The job has ended, or is lost: what holds now is all that will ever hold.
    fn answer_from_files(&self) -> Result<Option<Waited>, Failure> {
        let info = self.job.info()?;
        if info.state.is_live() {
            // Claimed, and its keeper is still on the way to its socket; or it left between two looks.
            return Ok(None);
        }
        let end = self.job.log_end();
        let from = self.wait.from.unwrap_or(end);
        let answer = |reason, offset, found| {
            let step = self.wait.step.and_then(|step| self.job.known_step(step)).map(Box::new);
            Ok(Some(Waited { already: true, found, step, ..Waited::because(reason, offset) }))
        };
        let patterns = self.wait.patterns();
        if !patterns.is_empty()
            && let Ok(log) = self.job.open.dir.open(layout::OUTPUT)
        {
            let mut search = LogSearch::new(&patterns, (info.streams, from), self.job.masks()?)?;
            if let Some((found, offset)) = search.first(&log, end) {
                return answer(Reason::Pattern, offset, Some(found));
            }
        }
        if self.wait.has(Reason::Output) && end > from {
            return answer(Reason::Output, end, None);
        }
        // Nothing else can come true any more.
        answer(Reason::Exit, end, None)
    }
}

fn understand(answer: Answer) -> Result<Waited, Failure> {
    match answer {
        Answer::Waited(waited) => Ok(waited),
        Answer::Error(failure) => Err(failure.into()),
        other => Err(Failure::new(Kind::Keeper, format!("unexpected answer from the keeper: {other:?}"))),
    }
}
