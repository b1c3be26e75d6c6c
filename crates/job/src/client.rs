//! The one door that every front end uses: start jobs, find them, talk to them, read them.
//!
//! A client may die at any moment, and a keeper too: nothing here holds state that a job needs. Where a keeper
//! has gone, its heir answers at the same socket; where both have, or the job has ended, the files tell.

pub mod attach;
pub mod connection;
pub mod follow;
mod held;
pub(crate) mod kill;
mod known;
pub mod leftover;
pub mod lines;
pub mod list;
pub mod probe;
mod quiet;
pub mod read;
pub mod replay;
mod send;
mod steps;
pub mod start;
pub mod survey;
mod truth;
pub mod wait;

pub use outlast_pty::init;

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

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use outlast_stream::Masks;

use crate::clock::now_ms;
use crate::failure::{Failure, Kind};
use crate::registry::format::Info;
use crate::registry::sweep::{Over, Swept, over_budget, sweep};
use crate::registry::{Home, INFO_LIMIT, JobDir, layout};
use crate::secrets::{self, SharedMasks};
use crate::settings::{Retention, Settings};
use crate::spec::{Handle, Input, JobSpec, Run, Size};
use crate::wakes::Will;
use crate::wire::watch::Watch;
use crate::wire::{Answer, ScreenShot, Status, Verb};
use connection::{Answered, Connection};
use known::Known;
use quiet::Quiet;
use start::{Nursery, Starter};

/// How long a keeper may take to answer what it can answer at once.
const PATIENCE: Duration = Duration::from_secs(10);

/// A home and how jobs are started in it.
///
/// ```
/// use outlast_job::{Outlast, JobSpec, Wait};
/// use std::time::Duration;
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     // Jobs are kept by this same program, run again: so it must say so first.
///     outlast_job::keep_if_asked();
///
///     let folder = tempfile::tempdir()?;
///     let outlast = Outlast::at(folder.path())?;
///     let job = outlast.start(JobSpec::shell("echo hello; read name; echo bye $name"))?;
///
///     let waited = job.wait(&Wait::for_pattern("hello"), Some(Duration::from_secs(10)))?;
///     assert_eq!(waited.reason.name(), "pattern");
///
///     job.type_line("world")?;
///     job.wait(&Wait::for_exit(), Some(Duration::from_secs(10)))?;
///     assert!(job.read_text(0, 1 << 14)?.text.ends_with("bye world\n"));
///     assert_eq!(job.info()?.state.name(), "completed");
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Outlast {
    home: Home,
    settings: Settings,
    program: PathBuf,
    masked: bool,
    /// Who will keep the next jobs, in a program that starts many.
    nursery: Arc<Mutex<Nursery>>,
    quiet: Arc<Quiet>,
}

impl Outlast {
    /// The user's own home and settings.
    ///
    /// # Errors
    /// When the home can't be used, or the settings do not load.
    pub fn open() -> Result<Self, Failure> {
        Self::open_at(&Home::default_path()?)
    }

    /// A home at a path, with the user's settings.
    ///
    /// # Errors
    /// As [`Outlast::open`].
    pub fn open_at(path: &Path) -> Result<Self, Failure> {
        let mut outlast = Self::at(path)?;
        outlast.settings = Settings::load()?;
        Ok(outlast)
    }

    /// A home at a path, with default settings.
    ///
    /// # Errors
    /// When the home can't be used.
    pub fn at(path: &Path) -> Result<Self, Failure> {
        Ok(Self {
            home: Home::open(path)?,
            settings: Settings::default(),
            program: start::own_program(),
            masked: false,
            nursery: Arc::default(),
            quiet: Arc::default(),
        })
    }

    /// Lets another program keep the jobs: one that calls [`keep_if_asked`](crate::keep_if_asked) when it starts.
    #[must_use]
    pub fn kept_by(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = program.into();
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
        &self.home
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Starts a job; returns when the command runs.
    ///
    /// # Errors
    /// [`Kind::CannotStart`] with the reason; the job's folder then holds a receipt that says the same.
    pub fn start(&self, spec: JobSpec) -> Result<Job, Failure> {
        let mut spec = spec.checked()?;
        spec.wakes.iter_mut().for_each(|wake| wake.pin(&spec.wake_env));
        let confined = spec.sandbox.is_some();
        let order = start::order(self.home.path(), &self.settings, spec);
        // What we read goes along with an order to a keeper of its own.
        let given = order.spec.input == Input::Given;
        let nursery = self.nursery.lock().ok().filter(|_| !given);
        let ready = nursery.and_then(|mut nursery| nursery.order(confined, &order));
        let starter = match ready {
            Some(starter) => starter,
            None => Starter::run(self.home.path(), &self.program, confined, &order)?,
        };
        let (info, line) = starter.started()?;
        self.quiet.put(info.handle, line);
        Ok(self.job_in(self.home.job(info.handle)?))
    }

    /// Gets the keeper of the next job ready, for a program that starts many: that job then starts sooner by the
    /// time it takes to run a program. It waits asleep, and ends when this program does. Returns at once.
    pub fn get_ready(&self) {
        let Ok(mut nursery) = self.nursery.try_lock() else { return };
        if nursery.is_open() {
            nursery.get_ready();
        }
        if nursery.is_ready() {
            return;
        }
        let (home, program) = (self.home.path().to_owned(), self.program.clone());
        let confined = self.settings.agents_sandbox.is_some();
        let nursery = Arc::clone(&self.nursery);
        // Whatever is wrong is told when a job is to be started.
        let _ = std::thread::Builder::new().stack_size(64 << 10).spawn(move || {
            if let Ok(mut nursery) = nursery.lock()
                && !nursery.is_open()
                && nursery.open(&home, &program, confined).is_ok()
            {
                nursery.get_ready();
            }
        });
    }

    /// Whether the keeper of the next job is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.nursery.try_lock().is_ok_and(|nursery| nursery.is_ready())
    }

    /// Which wakes will really happen for a job.
    #[must_use]
    pub fn wakes_of(&self, spec: &JobSpec) -> Vec<Will> {
        let all = spec.wakes.iter().chain(&self.settings.wakes);
        all.map(|wake| wake.will(&spec.wake_env, !spec.notify.is_nothing())).collect()
    }

    /// The job of a number or a name.
    ///
    /// # Errors
    /// [`Kind::NoSuchJob`].
    pub fn job(&self, reference: &str) -> Result<Job, Failure> {
        Ok(self.job_in(self.home.find(reference)?))
    }

    fn job_in(&self, dir: JobDir) -> Job {
        Job::of(dir, self.masked, Arc::clone(&self.quiet))
    }

    /// All jobs, oldest first.
    #[must_use]
    pub fn jobs(&self) -> Vec<Info> {
        let jobs = self.home.list();
        if !self.masked {
            return jobs;
        }
        let hide = |info: Info| match self.home.job(info.handle) {
            Ok(dir) => self.job_in(dir).hide_in_info(info),
            Err(_) => info,
        };
        jobs.into_iter().map(hide).collect()
    }

    /// Removes finished jobs that are past the given limits.
    ///
    /// # Errors
    /// When the home can't be locked.
    pub fn prune(&self, keep: &Retention, dry_run: bool) -> Result<Swept, Failure> {
        if !dry_run {
            self.release_unsaved(keep);
        }
        sweep(&self.home, keep, now_ms(), dry_run)
    }

    /// How far the home was over its budget when it was last looked after.
    #[must_use]
    pub fn over_budget(&self) -> Option<Over> {
        over_budget(&self.home)
    }

    /// Keepers of jobs that are past their age stay no longer for a record that can't be written.
    fn release_unsaved(&self, keep: &Retention) {
        let oldest = now_ms().saturating_sub(crate::clock::millis(keep.age));
        let unsaved = self.home.handles().into_iter().filter_map(|handle| self.home.job(handle).ok());
        for dir in unsaved.filter(crate::registry::claim::is_end_unsaved) {
            let job = self.job_in(dir);
            let receipt = job.info().ok().and_then(|info| info.state.receipt().cloned());
            if receipt.is_some_and(|receipt| receipt.ended_at <= oldest) {
                let _ = job.kill(Duration::ZERO, "prune");
            }
        }
    }
}

/// One job.
#[derive(Debug)]
pub struct Job {
    dir: JobDir,
    masked: bool,
    record: Known<Info>,
    known_masks: Known<RwLock<Masks>>,
    quiet: Arc<Quiet>,
    heard: truth::LastHeard,
}

impl Job {
    fn of(dir: JobDir, masked: bool, quiet: Arc<Quiet>) -> Self {
        let record = Known::new(layout::INFO, INFO_LIMIT);
        let known_masks = Known::new(layout::MASKS, secrets::LIMIT);
        Self { dir, masked, record, known_masks, quiet, heard: truth::LastHeard::default() }
    }

    /// Its handle.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.dir.handle()
    }

    /// Its folder.
    #[must_use]
    pub fn dir(&self) -> &JobDir {
        &self.dir
    }

    /// Its record as it stands, with everything in it.
    pub(crate) fn record(&self) -> Result<Arc<Info>, Failure> {
        self.record.get(&self.dir, |read| self.dir.parse_info(read))
    }

    /// From now on for an agent: secrets are hidden in all that is read.
    #[must_use]
    pub fn masked(mut self) -> Self {
        self.masked = true;
        self
    }

    /// What must be hidden, if anything must.
    pub(crate) fn masks(&self) -> Result<Option<SharedMasks>, Failure> {
        if !self.masked {
            return Ok(None);
        }
        self.known_masks.get(&self.dir, |read| secrets::parse(&self.dir, read).map(RwLock::new)).map(Some)
    }

    /// Text about this job as an agent may see it.
    ///
    /// # Errors
    /// When what must be hidden can't be read.
    pub fn hide(&self, text: &str) -> Result<String, Failure> {
        Ok(match self.masks()? {
            Some(masks) => secrets::with(&masks, |masks| masks.text(text)),
            None => text.to_owned(),
        })
    }

    fn hide_in_info(&self, mut info: Info) -> Info {
        if self.masked {
            let masks = self.masks().ok().flatten();
            let hide = |text: &mut String| {
                *text = match &masks {
                    Some(masks) => secrets::with(masks, |masks| masks.text(text)),
                    None => "***".into(),
                }
            };
            hide(&mut info.command);
            match &mut info.run {
                Run::Shell(line) => hide(line),
                Run::Program(argv) => argv.iter_mut().for_each(hide),
            }
            info.description.iter_mut().for_each(hide);
        }
        info
    }

    /// How it is right now, from its keeper; none when it has no keeper any more.
    ///
    /// # Errors
    /// When the keeper does not answer.
    pub fn status(&self) -> Result<Option<Status>, Failure> {
        match self.ask(&Verb::Status { brief: false }, PATIENCE)? {
            Some(Answer::Status(mut status)) => {
                status.info = self.hide_in_info(status.info);
                Ok(Some(*status))
            }
            Some(other) => Err(unexpected(&other)),
            None => Ok(None),
        }
    }

    /// Gives the terminal a new size.
    ///
    /// # Errors
    /// [`Kind::Usage`] for an impossible size or a job on pipes.
    pub fn resize(&self, size: Size) -> Result<(), Failure> {
        match self.ask(&Verb::Resize { size: size.checked()? }, PATIENCE)? {
            Some(Answer::Done {}) => Ok(()),
            Some(other) => Err(unexpected(&other)),
            None => Err(self.not_running()),
        }
    }

    /// Makes an event of something from now on; returns all watches.
    ///
    /// # Errors
    /// [`Kind::Usage`] for a bad pattern, [`Kind::NotRunning`] when the job has ended.
    pub fn watch(&self, watch: Watch) -> Result<Vec<Watch>, Failure> {
        self.ask_watches(&Verb::Watch { watch })
    }

    /// All watches.
    ///
    /// # Errors
    /// [`Kind::NotRunning`] when the job has ended.
    pub fn watches(&self) -> Result<Vec<Watch>, Failure> {
        self.ask_watches(&Verb::Watches)
    }

    /// Removes a watch; returns those that are left.
    ///
    /// # Errors
    /// [`Kind::Usage`] when there is none of that name, [`Kind::NotRunning`] when the job has ended.
    pub fn unwatch(&self, watch: &str) -> Result<Vec<Watch>, Failure> {
        self.ask_watches(&Verb::Unwatch { watch: watch.into() })
    }

    fn ask_watches(&self, verb: &Verb) -> Result<Vec<Watch>, Failure> {
        match self.ask(verb, PATIENCE)? {
            Some(Answer::Watches(watches)) => Ok(watches),
            Some(other) => Err(unexpected(&other)),
            None => Err(self.not_running()),
        }
    }

    /// What the terminal shows now.
    ///
    /// # Errors
    /// [`Kind::NotRunning`] when the job has ended: its last screen is then in its folder.
    pub fn screen(&self, styled: bool, scrollback: usize) -> Result<ScreenShot, Failure> {
        match self.ask(&Verb::Screen { styled, scrollback, masked: self.masked }, PATIENCE)? {
            Some(Answer::Screen(screen)) => Ok(*screen),
            Some(other) => Err(unexpected(&other)),
            None => Err(self.not_running()),
        }
    }

    /// The keeper's answer; none when there is no keeper. Should the keeper die meanwhile, its heir is asked again, if
    /// that does no harm: it may have been this request that the keeper died of, and it may have been carried out.
    fn ask(&self, verb: &Verb, patience: Duration) -> Result<Option<Answer>, Failure> {
        let deadline = Instant::now() + patience;
        loop {
            let Some(mut connection) = self.connect()? else { return Ok(None) };
            // A request that could not be written to its end was not carried out.
            if connection.ask(verb).is_err() {
                continue;
            }
            match connection.answer(deadline)? {
                Answered::With(answer) => {
                    self.quiet.put(self.handle(), connection);
                    return Ok(Some(*answer));
                }
                Answered::Gone => match verb.done_again_if_repeated() {
                    None => {}
                    Some(_) if self.has_ended() => return Ok(None),
                    Some(done) => return Err(self.outcome_unknown(done)),
                },
                Answered::Late => return Err(connection::silent(&self.dir, patience)),
            }
        }
    }

    /// Whether there is nothing left that could be asked.
    fn has_ended(&self) -> bool {
        self.status().is_ok_and(|status| status.is_none_or(|status| !status.info.state.is_live()))
    }

    fn outcome_unknown(&self, done: &str) -> Failure {
        let handle = self.handle();
        Failure::new(
            Kind::OutcomeUnknown,
            format!(
                "the keeper of job {handle} died before it answered: it is not known whether it was {done}"
            ),
        )
        .hint(format!("the job goes on; look before you try again: outlast read {handle}"))
    }

    /// A connection to its keeper: one that is open already, or a new one; none when there is no keeper.
    fn connect(&self) -> Result<Option<Connection>, Failure> {
        match self.quiet.take(self.handle()) {
            Some(connection) => Ok(Some(connection)),
            None => Connection::open(&self.dir),
        }
    }

    fn not_running(&self) -> Failure {
        let handle = self.handle();
        let state = self.info().map_or("gone", |info| info.state.name());
        Failure::new(Kind::NotRunning, format!("job {handle} does not run any more: it is {state}"))
            .hint(format!("read what it printed: outlast read {handle}"))
    }
}

fn unexpected(answer: &Answer) -> Failure {
    match answer {
        Answer::Error(failure) => failure.clone().into(),
        other => Failure::new(Kind::Keeper, format!("the keeper answered something else: {other:?}")),
    }
}
