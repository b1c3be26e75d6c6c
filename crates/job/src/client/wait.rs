//! Waits: evaluated in the keeper, asked again of its heir, and answered from the files when both are gone.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Job;
use super::connection::{Connection, Heard};
use crate::clock::millis;
use crate::failure::{Failure, Kind};
use crate::registry::layout;
use crate::search::Search;
use crate::wire::{self, Answer, Line, Reason, Verb, Waited};

/// Beyond the deadline, how long a keeper may take to say that it has come.
const SLACK: Duration = Duration::from_millis(300);

/// How many patterns are known to be good.
const MOST_REMEMBERED: usize = 8;

/// What to wait for: the first that holds ends the wait.
pub type Wait = wire::Wait;

impl Wait {
    /// Until the job has ended.
    #[must_use]
    pub fn for_exit() -> Self {
        Self { exit: true, ..Self::default() }
    }

    /// Until a regular expression is found in anything the job prints, from its first byte on.
    #[must_use]
    pub fn for_pattern(pattern: impl Into<String>) -> Self {
        Self { patterns: vec![pattern.into()], from: Some(0), ..Self::default() }
    }

    /// Until nothing was printed for a while.
    #[must_use]
    pub fn for_quiet(quiet: Duration) -> Self {
        Self { quiet_ms: Some(millis(quiet)), ..Self::default() }
    }

    /// Also until the job has ended.
    #[must_use]
    pub fn or_exit(mut self) -> Self {
        self.exit = true;
        self
    }

    /// Looks only at what is printed from an offset on.
    #[must_use]
    pub fn from(mut self, offset: u64) -> Self {
        self.from = Some(offset);
        self
    }

    /// Checks the patterns, before anything else is done.
    ///
    /// # Errors
    /// [`Kind::Usage`] with what is wrong and where.
    pub fn check(&self) -> Result<(), Failure> {
        // Whoever waits checks before it does anything else, and so does the wait; to compile them takes a while.
        static GOOD: Mutex<VecDeque<Vec<String>>> = Mutex::new(VecDeque::new());
        let good = || GOOD.lock().unwrap_or_else(PoisonError::into_inner);
        if self.patterns.is_empty() || good().contains(&self.patterns) {
            return Ok(());
        }
        crate::search::compile(&self.patterns)?;
        let mut good = good();
        good.truncate(MOST_REMEMBERED - 1);
        good.push_front(self.patterns.clone());
        Ok(())
    }
}

/// One job of a wait, and where the wait has got to with it.
struct Watched<'a> {
    job: &'a Job,
    wait: Wait,
    connection: Option<Connection>,
}

impl Job {
    /// Waits until a condition holds or the time is up.
    ///
    /// # Errors
    /// A bad pattern, or a keeper that does not answer.
    pub fn wait(&self, wait: &Wait, deadline: Option<Duration>) -> Result<Waited, Failure> {
        wait_any(&[self], wait, deadline, None).map(|(_, waited)| waited)
    }
}

/// Waits on several jobs; ends with the first, and says which it was. `stop` ends the wait early when it
/// becomes readable.
///
/// # Errors
/// A bad pattern, or a keeper that does not answer.
pub fn wait_any(
    jobs: &[&Job],
    wait: &Wait,
    deadline: Option<Duration>,
    stop: Option<BorrowedFd<'_>>,
) -> Result<(usize, Waited), Failure> {
    wait.check()?;
    if jobs.is_empty() {
        return Err(Failure::usage("there is no job to wait for"));
    }
    let began = Instant::now();
    let until = deadline.and_then(|deadline| began.checked_add(deadline));
    let mut watched = Vec::with_capacity(jobs.len());
    for job in jobs {
        // Fixed now: asked again after a take-over, the wait must still begin at the same place.
        let from = wait.from.unwrap_or_else(|| job.log_end());
        watched.push(Watched {
            job,
            wait: Wait { from: Some(from), masked: job.masked, ..wait.clone() },
            connection: None,
        });
    }
    loop {
        for (i, one) in watched.iter_mut().enumerate() {
            if let Some(waited) = one.advance(until)? {
                return Ok((i, Waited { elapsed_ms: millis(began.elapsed()), ..waited }));
            }
        }
        let now = Instant::now();
        let stopped = sleep(&watched, until.map(|at| at + SLACK), stop);
        if stopped || until.is_some_and(|at| now >= at + SLACK) {
            let offset = watched[0].job.log_end();
            let elapsed_ms = millis(began.elapsed());
            return Ok((0, Waited { elapsed_ms, ..Waited::because(Reason::Deadline, offset) }));
        }
    }
}

/// Sleeps until a keeper says something; true when told to stop.
fn sleep(watched: &[Watched<'_>], until: Option<Instant>, stop: Option<BorrowedFd<'_>>) -> bool {
    let connections = watched.iter().filter_map(|one| one.connection.as_ref());
    let mut fds: Vec<PollFd<'_>> =
        connections.map(|c| PollFd::from_borrowed_fd(c.as_fd(), PollFlags::IN)).collect();
    let until = if fds.len() < watched.len() {
        // A job that is being started has no keeper to ask yet: look again in a moment.
        crate::clock::earliest(until, Some(Instant::now() + Duration::from_millis(5)))
    } else {
        until
    };
    if let Some(stop) = stop {
        fds.push(PollFd::from_borrowed_fd(stop, PollFlags::IN));
    }
    let timeout = until.map(|at| {
        let left = at.saturating_duration_since(Instant::now());
        Timespec { tv_sec: left.as_secs().min(1 << 30).cast_signed(), tv_nsec: left.subsec_nanos().into() }
    });
    let _ = poll(&mut fds, timeout.as_ref());
    stop.is_some() && fds.last().is_some_and(|fd| !fd.revents().is_empty())
}

impl Watched<'_> {
    /// Takes the next step: connects, asks, reads what has come. An answer ends the wait.
    fn advance(&mut self, until: Option<Instant>) -> Result<Option<Waited>, Failure> {
        loop {
            let Some(connection) = &mut self.connection else {
                if !self.connect(until)? {
                    return self.answer_from_files();
                }
                continue;
            };
            match connection.hear_now()? {
                Heard::Line(line) => match *line {
                    Line::Reply(reply) if connection.is_answered_by(&reply) => {
                        if let Some(connection) = self.connection.take() {
                            self.job.quiet.put(self.job.handle(), connection);
                        }
                        return self.understand(reply.answer);
                    }
                    Line::Reply(_) | Line::Grown(_) | Line::Event(_) => {}
                },
                Heard::Nothing => return Ok(None),
                Heard::Gone => self.connection = None,
            }
        }
    }

    fn understand(&self, answer: Answer) -> Result<Option<Waited>, Failure> {
        match answer {
            Answer::Waited(waited) => Ok(Some(waited)),
            Answer::Error(failure) => Err(failure.into()),
            other => {
                Err(Failure::new(Kind::Keeper, format!("the keeper answered something else: {other:?}")))
            }
        }
    }

    /// Whether there is a keeper to ask.
    fn connect(&mut self, until: Option<Instant>) -> Result<bool, Failure> {
        let Some(mut connection) = self.job.connect()? else { return Ok(false) };
        // Rounded up: an answer before its time would be wrong.
        let left = until.map(|at| millis(at.saturating_duration_since(Instant::now())) + 1);
        let verb = Verb::Wait(Wait { deadline_ms: left, ..self.wait.clone() });
        if connection.ask(&verb).is_ok() {
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
            Ok(Some(Waited { already: true, found, ..Waited::because(reason, offset) }))
        };
        if !self.wait.patterns.is_empty()
            && let Ok(log) = self.job.dir.open(layout::OUTPUT)
        {
            let search = Search::new(&self.wait.patterns, info.streams, from)?;
            let mut search = search.masked(self.job.masks()?);
            while search.is_behind(end) {
                if let Some((found, offset)) = search.read(&log, end) {
                    return answer(Reason::Pattern, offset, Some(found));
                }
            }
        }
        if self.wait.output && end > from {
            return answer(Reason::Output, end, None);
        }
        // Nothing else can come true any more.
        answer(Reason::Exit, end, None)
    }
}
