//! The typed API that every front end uses: start jobs, find them, talk to them, read them.
//!
//! An [`Outlast`] is this machine's own home and the [other machines](crate::elsewhere) that it knows; a [`Job`] is a job of one
//! of them: cheap to clone, and without a path, descriptor or lock that a front end could see. Whatever is asked goes to
//! the machine that the job is on.

mod attach;
mod compare;
mod follow;
mod job;
mod lines;
mod shells;
mod told;
mod wait;

pub use outlast_pty::init;

pub use crate::elsewhere::{Also, Answered, Link, Tell};
pub use crate::local::follow::News;
pub use crate::local::probe::Finding;
pub use crate::local::read::{MAX_OUTPUT, Piece, first_bytes, fold_from};
pub use crate::local::replay::{CastVersion, Played, Recording};
pub use crate::local::wait::PendingWait;
pub use crate::local::waiter::Waiting;
pub use attach::{Seen, Viewing};
pub use compare::{CompareLines, ComparedLine, Difference, Hunk, MAX_COMPARED, Side, compare_lines};
pub use follow::Follower;
pub use job::Job;
pub(crate) use job::Place;
pub use lines::{Given, Lines, Pace};
pub use shells::{ShellPlace, StepBegun};
pub use told::Told;
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

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_protocol::request::{
    Answer, JobRequest, List, ListedJob, PruneLimits, Pruned, Request, SessionEvents, Subscription,
};
use outlast_protocol::{After, Call, Hint, HostName, JobRef, Load};

use crate::elsewhere::{Ahead, Elsewhere, ElsewhereJob};
use crate::failure::{Failure, Kind};
use crate::local::{Local, LocalJob};
use crate::registry::Home;
use crate::registry::format::Info;
use crate::registry::sweep::{OverBudget, over_budget};
use crate::settings::{LoadedSettings, Settings};
use crate::spec::{Input, JobSpec};
use crate::wakes::WakePlan;
use crate::wire::{Wait, Waited};

/// Knows how other machines are reached.
pub trait Hosts: std::fmt::Debug + Send + Sync {
    /// A link to a machine. It is asked for once, when the machine is first named: nobody is contacted before.
    ///
    /// # Errors
    /// [`Kind::NoSuchJob`] when there is no host of that name.
    fn link(&self, name: HostName) -> Result<Box<dyn Link>, Failure>;

    /// The machines that lists ask without being told to.
    fn known(&self) -> Vec<HostName>;

    /// Whether there is a fleet, and lists are to show it.
    fn shows_fleet(&self) -> bool {
        false
    }

    /// What machines tell without being asked, where there are too many to ask each: at most so many of their jobs, those that need
    /// somebody first. None where there are no such machines, or nobody wants to see them.
    fn told(&self, _most: usize) -> Option<Result<Told, Failure>> {
        None
    }

    /// Returns when what is told may have changed, and after that time at the latest.
    fn wait_for_change(&self, at_most: Duration) {
        std::thread::sleep(at_most);
    }
}

/// The other machines: those with a link, and who knows how to make more.
#[derive(Debug, Default)]
struct HostTable {
    linked: Mutex<BTreeMap<HostName, Arc<Elsewhere>>>,
    hosts: Option<Box<dyn Hosts>>,
}

impl HostTable {
    fn known(&self) -> Vec<HostName> {
        let linked = self.linked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known: Vec<HostName> = linked.keys().copied().collect();
        known.extend(self.hosts.iter().flat_map(|hosts| hosts.known()));
        known.sort_unstable();
        known.dedup();
        known
    }

    fn get(&self, name: HostName) -> Result<Arc<Elsewhere>, Failure> {
        let mut linked = self.linked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(host) = linked.get(&name) {
            return Ok(Arc::clone(host));
        }
        if let Some(hosts) = &self.hosts {
            let host = Arc::new(Elsewhere::new(name, hosts.link(name)?));
            linked.insert(name, Arc::clone(&host));
            return Ok(host);
        }
        drop(linked);
        let known = self.known();
        let known: Vec<&str> = known.iter().map(HostName::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(Failure::new(Kind::NoSuchJob, format!("there is no host {name}"))
            .hint(Hint::call(format!("known hosts: {known}; jobs of this machine: "), Call::AllJobs)))
    }
}

/// A home, and how jobs are started in it; and other machines, by name.
///
/// The crate has an [example](crate).
#[derive(Clone, Debug)]
pub struct Outlast {
    pub(crate) local: Arc<Local>,
    hosts: Arc<HostTable>,
    /// Where jobs are started and listed; none for this machine.
    at: Option<Arc<Elsewhere>>,
    masked: bool,
    /// What will be asked of the next job that is found or started.
    expected: Vec<JobRequest>,
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
        Self { local: Arc::new(local), hosts: Arc::default(), at: None, masked: false, expected: Vec::new() }
    }

    /// Knows another machine by a name: its jobs are called `name/3`.
    #[must_use]
    pub fn with_host(self, name: HostName, link: impl Link + 'static) -> Self {
        let mut linked = self.hosts.linked.lock().unwrap_or_else(PoisonError::into_inner);
        linked.insert(name, Arc::new(Elsewhere::new(name, Box::new(link))));
        drop(linked);
        self
    }

    /// Knows all machines that somebody knows how to reach.
    #[must_use]
    pub fn with_hosts(mut self, hosts: impl Hosts + 'static) -> Self {
        self.hosts = Arc::new(HostTable { linked: Mutex::default(), hosts: Some(Box::new(hosts)) });
        self
    }

    /// The other machines that lists ask without being told to.
    #[must_use]
    pub fn known_hosts(&self) -> Vec<HostName> {
        self.hosts.known()
    }

    /// Starts, lists and prunes jobs on another machine from now on. Jobs are found wherever they are.
    ///
    /// # Errors
    /// [`Kind::NoSuchJob`] when there is no host of that name.
    pub fn on(&self, host: HostName) -> Result<Self, Failure> {
        Ok(Self { at: Some(self.host(host)?), ..self.clone() })
    }

    /// Starts, lists and prunes jobs on the machine that a job is on.
    ///
    /// # Errors
    /// As [`on`](Self::on).
    pub fn beside(&self, job: &Job) -> Result<Self, Failure> {
        match job.handle().host() {
            Some(host) => self.on(host),
            None => Ok(Self { at: None, ..self.clone() }),
        }
    }

    fn host(&self, name: HostName) -> Result<Arc<Elsewhere>, Failure> {
        self.hosts.get(name)
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
    /// [`Kind::CannotStart`] with the reason; the job's folder then holds a receipt that says the same.
    pub fn start(&self, spec: JobSpec) -> Result<Job, Failure> {
        let Some(host) = &self.at else {
            return Ok(Job::here(LocalJob::new(self.local.start(spec)?, self.masked)));
        };
        if spec.input == Input::Given {
            return Err(Failure::usage(format!(
                "a job on {} cannot read this program's standard input",
                host.name
            ))
            .hint("send it what it should read, or let it read a file there"));
        }
        // Whose job it is does not depend on the machine that it runs on.
        let session = if spec.session.is_empty() { crate::session::current() } else { spec.session.clone() };
        let after = spec.after.into_iter().map(|after| as_known_on(host.name, after)).collect();
        self.there(host, Request::Start(Box::new(JobSpec { session, after, ..spec })))
    }

    /// The job of another machine that a request finds or starts there.
    fn there(&self, host: &Arc<Elsewhere>, request: Request) -> Result<Job, Failure> {
        let ahead = Ahead::default();
        ahead.expect(self.expected.clone());
        match host.ask_with(self.masked, request, ahead.go_along(host.name, None))? {
            Answer::Found(handle) | Answer::Started(handle) => {
                Ok(Job::there(ElsewhereJob::new(Arc::clone(host), handle, self.masked, ahead)))
            }
            other => Err(crate::elsewhere::unexpected(&other)),
        }
    }

    /// Names what will be asked first of a job that is found or started by this. Another machine answers it along with that, and so saves the
    /// time of a way there and back for each question. Here it changes nothing.
    #[must_use]
    pub fn expecting(&self, asks: impl IntoIterator<Item = JobRequest>) -> Self {
        Self { expected: asks.into_iter().collect(), ..self.clone() }
    }

    /// Asks the machine where jobs are started.
    fn ask(&self, request: Request) -> Result<Answer, Failure> {
        match &self.at {
            None => self.local.answer(self.masked, request),
            Some(host) => host.ask(self.masked, request),
        }
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
    ///
    /// # Errors
    /// A wake that cannot be read.
    pub fn wakes_of(&self, spec: &JobSpec) -> Result<Vec<WakePlan>, Failure> {
        match self.ask(Request::PlanWakes(Box::new(spec.clone())))? {
            Answer::Wakes(wakes) => Ok(wakes),
            other => Err(crate::elsewhere::unexpected(&other)),
        }
    }

    /// The job of a number or a name, on this machine or, as `host/job`, on another.
    ///
    /// # Errors
    /// [`Kind::NoSuchJob`], or an unknown host.
    pub fn job(&self, reference: &str) -> Result<Job, Failure> {
        let reference: JobRef = reference.parse()?;
        let handle = reference.handle();
        let JobRef { host, job } = reference;
        let Some(host) = host else {
            return Ok(Job::here(LocalJob::new(self.local.find(&job)?, self.masked)));
        };
        let host = self.host(host)?;
        if let (false, Some(handle)) = (self.expected.is_empty(), handle) {
            // Its number is known: what will be asked first says whether there is one.
            let ahead = Ahead::default();
            ahead.expect(self.expected.clone());
            return Ok(Job::there(ElsewhereJob::new(Arc::clone(&host), handle, self.masked, ahead)));
        }
        self.there(&host, Request::Find { job })
    }

    /// Answers a request: all that a front end may ask, as plain data.
    ///
    /// # Errors
    /// What is wrong with the request, the job or the home.
    pub fn answer(&self, request: Request) -> Result<Answer, Failure> {
        self.local.answer(self.masked, request)
    }

    /// As [`answer`](Self::answer), for an order that may have been given before under the same name: it is carried out once.
    ///
    /// # Errors
    /// As [`answer`](Self::answer); [`Kind::OutcomeUnknown`] if the process that carried it out is gone.
    pub fn answer_once(&self, order: &str, request: Request) -> Result<Answer, Failure> {
        self.local.answer_once(self.masked, order, request)
    }

    /// Forgets orders that are too old to be given again.
    pub fn forget_old_orders(&self) {
        crate::registry::orders::sweep(&self.local.home);
    }

    /// Answers a request without a thread that waits: `answered` is called when the answer is there, for a wait in the one
    /// waiting thread of this program, and must not block. To drop what is returned gives a wait up. What is about a job of
    /// another machine, or asked [on](Self::on) one, is asked there.
    ///
    /// # Errors
    /// When there can be no waiting thread, or the other machine cannot be reached.
    pub fn begin(&self, request: Request, answered: Answered) -> Result<Waiting, Failure> {
        if let Some(host) = request.host() {
            return self.host(host)?.begin(self.masked, request, answered);
        }
        if let Some(host) = &self.at {
            return host.begin(self.masked, request, answered);
        }
        match request.as_wait() {
            Some(wait) => {
                let pending = self.local.pending(self.masked, wait.clone())?;
                let done = move |ended: Result<(usize, Waited), Failure>| {
                    answered(ended.map(|(which, waited)| Answer::Waited { which, waited }));
                };
                self.local.park(pending, Box::new(done))
            }
            None => {
                answered(self.answer(request));
                Ok(Waiting::over())
            }
        }
    }

    /// How busy the machine is where jobs are started.
    ///
    /// # Errors
    /// When it cannot be asked, or is too old to say.
    pub fn load(&self) -> Result<Load, Failure> {
        match self.ask(Request::Load {})? {
            Answer::Load(load) => Ok(*load),
            other => Err(crate::elsewhere::unexpected(&other)),
        }
    }

    /// All jobs of this machine, oldest first.
    #[must_use]
    pub fn jobs(&self) -> Vec<Info> {
        self.local.jobs(self.masked)
    }

    /// Jobs in short, oldest first. Those whose keeper vanished are found to be lost on the way.
    #[must_use]
    pub fn list(&self, list: List) -> Vec<ListedJob> {
        match self.ask(Request::List(list)) {
            Ok(Answer::Jobs(jobs)) => jobs,
            _ => Vec::new(),
        }
    }

    /// As [`list`](Self::list), of another machine.
    ///
    /// # Errors
    /// [`Kind::Unreachable`] among others.
    pub fn list_on(&self, host: HostName, list: List) -> Result<Vec<ListedJob>, Failure> {
        match self.on(host)?.ask(Request::List(list))? {
            Answer::Jobs(jobs) => Ok(jobs),
            other => Err(crate::elsewhere::unexpected(&other)),
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
        PendingWait::new(waits.iter().map(|(job, wait)| (job.place.clone(), wait.clone())), timeout)
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
        let host = to.host().map(|host| self.host(host)).transpose()?;
        match host.as_ref().or(self.at.as_ref()) {
            None => self.local.subscribe(self.masked, to, Box::new(tell)),
            Some(host) => host.subscribe(self.masked, to.clone(), Box::new(tell)),
        }
    }

    /// What a session was not told yet.
    ///
    /// # Errors
    /// When the outbox cannot be read.
    pub fn events(&self, events: SessionEvents) -> Result<Vec<serde_json::Value>, Failure> {
        match self.ask(Request::Events(events))? {
            Answer::Events(events) => Ok(events),
            other => Err(crate::elsewhere::unexpected(&other)),
        }
    }

    /// Removes a job that has ended; says how much disk space that gave back, in bytes.
    ///
    /// # Errors
    /// A usage failure for a job that runs, that left processes which still run, or that is pinned.
    pub fn remove(&self, job: &Job) -> Result<u64, Failure> {
        match self.beside(job)?.ask(Request::Remove { job: job.handle() })? {
            Answer::Removed { freed } => Ok(freed),
            other => Err(crate::elsewhere::unexpected(&other)),
        }
    }

    /// Removes finished jobs that are past the given limits.
    ///
    /// # Errors
    /// When the home cannot be locked.
    pub fn prune(&self, limits: PruneLimits, dry_run: bool) -> Result<Pruned, Failure> {
        match self.ask(Request::Prune { dry_run, limits })? {
            Answer::Pruned(pruned) => Ok(pruned),
            other => Err(crate::elsewhere::unexpected(&other)),
        }
    }

    /// Looks at everything that a job needs of this machine. Each check is named before it begins: some take seconds.
    pub fn examine(&self, begins: impl FnMut(&'static str)) -> Vec<Finding> {
        crate::local::probe::examine(&self.local, begins)
    }

    /// What takes jobs along here when it ends: a unit of systemd, or a login. Says it once for each of them.
    #[must_use]
    pub fn unit_trouble_once(&self) -> Option<String> {
        crate::systemd::trouble_once(&self.local.home)
    }

    /// How far the home was over its budget when it was last looked after.
    #[must_use]
    pub fn over_budget(&self) -> Option<OverBudget> {
        over_budget(&self.local.home)
    }
}

/// A job of the machine that is asked goes by its number or name alone there; whether any other can be waited for, that machine says.
fn as_known_on(host: HostName, after: After) -> After {
    match after.job.parse::<JobRef>() {
        Ok(JobRef { host: Some(named), job }) if named == host => After { job, ..after },
        _ => after,
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
    let jobs = waits.iter().map(|(job, wait)| (job.place.clone(), wait.clone()));
    crate::local::wait::wait_any(PendingWait::new(jobs, timeout)?, cancel)
}
