//! The typed API that every front end uses: start jobs, find them, talk to them, read them.
//!
//! An [`Outlast`] is a host, and a [`Job`] a ticket for one of its jobs: cheap to clone, and without a path, descriptor
//! or lock that a front end could see. Whatever is asked goes to the host, which is [this machine's own
//! home](crate::local) so far.

mod job;
mod wait;

pub use outlast_pty::init;

pub use crate::local::attach::{Seen, Viewing};
pub use crate::local::follow::{Follower, News};
pub use crate::local::lines::{Given, Lines, Pace};
pub use crate::local::probe::Finding;
pub use crate::local::read::{MAX_OUTPUT, Piece, fold_from};
pub use crate::local::replay::{CastVersion, Played, Recording};
pub use crate::local::wait::PendingWait;
pub use crate::local::waiter::Waiting;
pub use job::Job;
pub use wait::check_wait;

/// Signals to the front end itself, as something to poll.
pub mod signals {
    pub use outlast_pty::signals::Signals;
    pub use rustix::process::Signal;

    /// Lets this program see how its own children end, whatever it inherited. Call it first in `main`.
    pub fn see_children() {
        outlast_pty::signals::restore(&[Signal::CHILD]);
        outlast_pty::signals::block(&[Signal::CHILD], false);
    }

    /// Keys that end or stop programs, and a terminal that goes away, are not meant for this one.
    pub fn ignore_keys() {
        outlast_pty::signals::ignore(&[Signal::INT, Signal::QUIT, Signal::TSTP, Signal::TTOU, Signal::TTIN]);
    }
}

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outlast_protocol::request::{Answer, List, ListedJob, Request, Subscription};

use crate::failure::Failure;
use crate::local::{Local, LocalJob};
use crate::registry::Home;
use crate::registry::format::Info;
use crate::registry::sweep::{Over, Swept, over_budget};
use crate::settings::{LoadedSettings, Retention, Settings};
use crate::spec::JobSpec;
use crate::wakes::WakePlan;
use crate::wire::{Wait, Waited};

/// A host: a home, and how jobs are started in it.
///
/// The crate has an [example](crate).
#[derive(Clone, Debug)]
pub struct Outlast {
    pub(crate) local: Arc<Local>,
    masked: bool,
}

impl Outlast {
    /// The user's own home and settings.
    ///
    /// # Errors
    /// When the home cannot be used. Settings that do not load stop only what needs them: a start, for one.
    pub fn open() -> Result<Self, Failure> {
        Self::open_at(&Home::default_path()?)
    }

    /// A home at a path, with the user's settings.
    ///
    /// # Errors
    /// As [`Outlast::open`].
    pub fn open_at(path: &Path) -> Result<Self, Failure> {
        Ok(Self::of(Local::open(path, LoadedSettings::load())?))
    }

    /// A home at a path, with default settings.
    ///
    /// # Errors
    /// When the home cannot be used.
    pub fn at(path: &Path) -> Result<Self, Failure> {
        Ok(Self::of(Local::open(path, LoadedSettings::default())?))
    }

    fn of(local: Local) -> Self {
        Self { local: Arc::new(local), masked: false }
    }

    /// Lets another program keep the jobs: one that calls [`keep_if_asked`](crate::keep_if_asked) when it starts.
    #[must_use]
    pub fn kept_by(self, program: impl Into<PathBuf>) -> Self {
        self.local.keep_with(program.into());
        self
    }

    /// From now on for an agent: secrets are hidden in all that is read of its jobs.
    #[must_use]
    pub fn masked(mut self) -> Self {
        self.masked = true;
        self
    }

    /// The folder of all jobs.
    #[must_use]
    pub fn home(&self) -> &Home {
        &self.local.home
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.local.settings.settings
    }

    /// The same, with what is wrong in them.
    #[must_use]
    pub fn loaded_settings(&self) -> &LoadedSettings {
        &self.local.settings
    }

    /// Starts a job; returns when the command runs.
    ///
    /// # Errors
    /// [`Kind::CannotStart`](crate::Kind::CannotStart) with the reason; the job's folder then holds a receipt that says the same.
    pub fn start(&self, spec: JobSpec) -> Result<Job, Failure> {
        Ok(self.ticket(LocalJob::new(self.local.start(spec)?, self.masked)))
    }

    fn ticket(&self, job: LocalJob) -> Job {
        Job { local: job }
    }

    /// Gets the keeper of the next job ready, for a program that starts many: that job then starts sooner by the
    /// time it takes to run a program. It waits asleep, and ends when this program does. Returns at once.
    pub fn get_ready(&self) {
        self.local.get_ready();
    }

    /// Whether the keeper of the next job is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.local.is_ready()
    }

    /// Which wakes will really happen for a job.
    #[must_use]
    pub fn wakes_of(&self, spec: &JobSpec) -> Vec<WakePlan> {
        let all = spec.wakes.iter().chain(&self.settings().wakes);
        all.map(|wake| wake.will(&spec.wake_env, !spec.notify.is_nothing())).collect()
    }

    /// The job of a number or a name.
    ///
    /// # Errors
    /// [`Kind::NoSuchJob`](crate::Kind::NoSuchJob).
    pub fn job(&self, reference: &str) -> Result<Job, Failure> {
        Ok(self.ticket(LocalJob::new(self.local.find(reference)?, self.masked)))
    }

    /// Answers a request: all that a front end may ask, as plain data.
    ///
    /// # Errors
    /// What is wrong with the request, the job or the home.
    pub fn answer(&self, request: Request) -> Result<Answer, Failure> {
        self.local.answer(self.masked, request)
    }

    /// All jobs, oldest first.
    #[must_use]
    pub fn jobs(&self) -> Vec<Info> {
        self.local.jobs(self.masked)
    }

    /// Jobs in short, oldest first. Those whose keeper vanished are found to be lost on the way.
    #[must_use]
    pub fn list(&self, list: List) -> Vec<ListedJob> {
        match self.answer(Request::List(list)) {
            Ok(Answer::Jobs(jobs)) => jobs,
            _ => Vec::new(),
        }
    }

    /// Begins a wait on several jobs, each with its own conditions and its own beginning. Nobody waits yet: see
    /// [`park`](Self::park) and [`PendingWait::wait_briefly`].
    ///
    /// # Errors
    /// A bad pattern, or no job at all.
    pub fn begin_wait(
        &self,
        waits: &[(&Job, Wait)],
        timeout: Option<Duration>,
    ) -> Result<PendingWait, Failure> {
        PendingWait::new(waits.iter().map(|(job, wait)| (job.local.clone(), wait.clone())), timeout)
    }

    /// Lets the one waiting thread of this program wait. `done` is called there with the number of the job that ended
    /// the wait, and must not block. To drop what is returned gives the wait up: it is then over as if its time were up.
    ///
    /// # Errors
    /// When there can be no waiting thread.
    pub fn park(
        &self,
        wait: PendingWait,
        done: impl FnOnce(Result<(usize, Waited), Failure>) + std::marker::Send + 'static,
    ) -> Result<Waiting, Failure> {
        self.local.park(wait, Box::new(done))
    }

    /// Lets the same thread tell of something until what is returned is dropped, or `tell` says false. It must not
    /// block.
    ///
    /// # Errors
    /// When the job is not there, or there can be no waiting thread.
    pub fn subscribe(
        &self,
        to: &Subscription,
        tell: impl FnMut(News) -> bool + std::marker::Send + 'static,
    ) -> Result<Waiting, Failure> {
        self.local.subscribe(to, Box::new(tell))
    }

    /// Removes a job that has ended; says how much disk space that gave back, in bytes.
    ///
    /// # Errors
    /// A usage failure for a job that runs, that left processes which still run, or that is pinned.
    pub fn remove(&self, job: &Job) -> Result<u64, Failure> {
        match self.answer(Request::Remove { job: job.handle() })? {
            Answer::Removed { freed } => Ok(freed),
            other => {
                Err(Failure::new(crate::Kind::Keeper, format!("unexpected answer from the host: {other:?}")))
            }
        }
    }

    /// Removes finished jobs that are past the given limits.
    ///
    /// # Errors
    /// When the home cannot be locked.
    pub fn prune(&self, keep: &Retention, dry_run: bool) -> Result<Swept, Failure> {
        self.local.prune(keep, dry_run)
    }

    /// Looks at everything that a job needs of this machine.
    #[must_use]
    pub fn examine(&self) -> Vec<Finding> {
        crate::local::probe::examine(&self.local)
    }

    /// How far the home was over its budget when it was last looked after.
    #[must_use]
    pub fn over_budget(&self) -> Option<Over> {
        over_budget(&self.local.home)
    }
}

/// Waits on several jobs, each with its own conditions and its own beginning; ends with the first, and says which it
/// was. `cancel` ends the wait early when it becomes readable.
///
/// # Errors
/// A bad pattern, or a keeper that refuses.
pub fn wait_any(
    waits: &[(&Job, Wait)],
    timeout: Option<Duration>,
    cancel: Option<BorrowedFd<'_>>,
) -> Result<(usize, Waited), Failure> {
    let jobs = waits.iter().map(|(job, wait)| (job.local.clone(), wait.clone()));
    crate::local::wait::wait_any(PendingWait::new(jobs, timeout)?, cancel)
}
