//! The jobs of this machine's own home: the one implementation of a host so far.
//!
//! Paths, descriptors, locks and connections to keepers live in here and nowhere else. A client may die at any moment,
//! and a keeper too, so nothing here holds state that a job needs. Where a keeper has died, its heir answers at the
//! same socket; where both have, or the job has ended, the files tell.

mod answer;
pub(crate) mod attach;
mod cached_file;
pub(crate) mod connection;
mod details;
mod folders;
pub(crate) mod follow;
mod grep;
mod idle_connections;
pub(crate) mod kill;
pub(crate) mod leftover;
pub(crate) mod list;
mod log_slice;
mod moments;
mod outcome;
pub(crate) mod probe;
pub(crate) mod read;
pub(crate) mod replay;
mod remove;
mod send;
mod shell;
pub(crate) mod start;
pub(crate) mod status_poll;
mod steps;
mod truth;
pub(crate) mod wait;
pub(crate) mod waiter;

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use outlast_protocol::request::Subscription;
use outlast_stream::Masks;
use rustix::fs::{AtFlags, statat};

use crate::clock::now_ms;
use crate::failure::{Failure, Kind};
use crate::outbox::Outbox;
use crate::registry::format::Info;
use crate::registry::sweep::{Swept, sweep};
use crate::registry::{Home, INFO_LIMIT, JobDir, layout, names};
use crate::secrets::{self, SharedMasks};
use crate::settings::{LoadedSettings, Retention};
use crate::spec::{Handle, Input, JobSpec, KeeperSpec, Run, Size};
use crate::wire::watch::Watch;
use crate::wire::{Answer, Hold, ScreenShot, Status, Verb};
use cached_file::CachedFile;
use connection::{Answered, Connection, RequestKey};
use folders::FolderKind;
use idle_connections::IdleConnections;
use outlast_protocol::{After, Call, Hint};
use start::{Nursery, Starter};
use wait::PendingWait;
use waiter::{Done, Followed, Tell, Waiter, Waiting};

/// How long a keeper may take to answer what it can answer at once.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// How many jobs stay open between two calls.
const MAX_OPEN_JOBS: usize = 32;

/// A home, and what is kept open of it.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) home: Home,
    pub(crate) settings: LoadedSettings,
    /// The program that is run again to keep a job.
    program: Mutex<PathBuf>,
    /// Keepers made ahead, in a program that starts many jobs.
    nursery: Arc<Mutex<Nursery>>,
    idle: Arc<IdleConnections>,
    /// Jobs that were opened last, so that the next call about one finds its caches warm.
    open: Mutex<VecDeque<Arc<OpenJob>>>,
    /// Jobs that have ended, left nothing behind and have no keeper: nothing of them changes any more.
    final_jobs: Mutex<HashSet<Handle>>,
    /// All waits and subscriptions that have no thread of their own.
    waiter: Waiter,
}

impl Local {
    /// # Errors
    /// When the home cannot be used.
    pub(crate) fn open(path: &Path, settings: LoadedSettings) -> Result<Self, Failure> {
        Ok(Self {
            home: Home::open(path)?,
            settings,
            program: Mutex::new(start::own_program()),
            nursery: Arc::default(),
            idle: Arc::default(),
            open: Mutex::default(),
            final_jobs: Mutex::default(),
            waiter: Waiter::default(),
        })
    }

    /// Lets another program keep the jobs.
    pub(crate) fn keep_with(&self, program: PathBuf) {
        *self.program.lock().unwrap_or_else(PoisonError::into_inner) = program;
    }

    fn program(&self) -> PathBuf {
        self.program.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts a job; returns when the command runs.
    pub(crate) fn start(&self, spec: JobSpec) -> Result<Arc<OpenJob>, Failure> {
        // A job that starts with other settings than the user wrote would be wrong for as long as it runs.
        self.settings.all()?;
        let after = self.find_all(&spec.after)?;
        let mut spec = KeeperSpec::resolve(spec, &self.settings.settings)?;
        spec.wakes.iter_mut().for_each(|wake| wake.pin(&spec.wake_env));
        self.remember_shell(&mut spec);
        spec.after = after;
        let confined = spec.sandbox.is_some();
        let order = start::order(self.home.path(), &self.settings.settings, spec);
        // Our standard input goes along with an order to a keeper of its own.
        let given = order.spec.input == Input::Given;
        let nursery = self.nursery.lock().ok().filter(|_| !given);
        let ready = nursery.and_then(|mut nursery| nursery.order(confined, &order));
        let starter = match ready {
            Some(starter) => starter,
            None => Starter::run(self.home.path(), &self.program(), confined, &order)?,
        };
        let (info, line) = starter.started()?;
        self.idle.put(info.handle, line);
        self.job(info.handle)
    }

    /// The jobs that another must wait for.
    fn find_all(&self, after: &[After]) -> Result<Vec<(Handle, bool)>, Failure> {
        let find = |one: &After| {
            if one.job.contains('/') {
                return Err(Failure::usage(format!("{} is a job of another host", one.job))
                    .hint("a job can be queued after jobs of its own host; start it there"));
            }
            Ok((self.find(&one.job)?.dir.handle(), one.any_end))
        };
        after.iter().map(find).collect()
    }

    /// Makes a keeper for the next job ahead; returns at once.
    pub(crate) fn get_ready(&self) {
        let Ok(mut nursery) = self.nursery.try_lock() else { return };
        if nursery.is_open() {
            nursery.get_ready();
        }
        if nursery.is_ready() {
            return;
        }
        let (home, program) = (self.home.path().to_owned(), self.program());
        let confined = self.settings.settings.agents_sandbox.is_some();
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

    pub(crate) fn is_ready(&self) -> bool {
        self.nursery.try_lock().is_ok_and(|nursery| nursery.is_ready())
    }

    /// Hands a wait to the waiting thread.
    pub(crate) fn park(&self, wait: PendingWait, done: Done) -> Result<Waiting, Failure> {
        self.waiter.wait(wait, done)
    }

    /// Begins to tell of something.
    pub(crate) fn subscribe(&self, masked: bool, to: &Subscription, tell: Tell) -> Result<Waiting, Failure> {
        match to {
            Subscription::Job { job } => {
                let follower = LocalJob::new(self.job(*job)?, masked).follow()?;
                self.waiter.follow(Followed::Job(follower), tell)
            }
            Subscription::Attach { job, attach } => {
                let job = LocalJob::new(self.job(*job)?, masked);
                let view = job.attach(attach)?.ok_or_else(|| job.not_running())?;
                self.waiter.follow(Followed::View(view), tell)
            }
            Subscription::JobList => {
                self.waiter.folder(FolderKind::Jobs(self.home.path().join(layout::JOBS)), tell)
            }
            Subscription::Session { session } => {
                self.waiter.folder(FolderKind::Outbox(Outbox::open(&self.home, session)?.path), tell)
            }
        }
    }

    /// The job of a number or a name.
    ///
    /// # Errors
    /// [`Kind::NoSuchJob`].
    pub(crate) fn find(&self, reference: &str) -> Result<Arc<OpenJob>, Failure> {
        match reference.parse::<u64>() {
            Ok(number) => self.job(Handle::new(number)),
            Err(_) => match names::resolve(&self.home, reference) {
                Ok(handle) => self.job(handle),
                // A shell goes by its name too.
                Err(failure) => {
                    let scope = std::env::var("OUTLAST_SESSION").unwrap_or_default();
                    self.job(self.find_shell(&scope, reference).ok_or(failure)?)
                }
            },
        }
    }

    /// The job of a handle, from the cache where it is there: handles are never used again, so a folder that is still
    /// there is the one that was opened.
    fn job(&self, handle: Handle) -> Result<Arc<OpenJob>, Failure> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = open.iter().position(|job| job.dir.handle() == handle)
            && let Some(job) = open.remove(at)
            && statat(self.home.jobs_dir(), handle.to_string(), AtFlags::SYMLINK_NOFOLLOW).is_ok()
        {
            open.push_back(Arc::clone(&job));
            return Ok(job);
        }
        let job = Arc::new(self.open_apart(handle)?);
        if open.len() >= MAX_OPEN_JOBS {
            open.pop_front();
        }
        open.push_back(Arc::clone(&job));
        Ok(job)
    }

    /// A job that is looked at once and not kept open.
    fn open_apart(&self, handle: Handle) -> Result<OpenJob, Failure> {
        Ok(OpenJob::new(self.home.job(handle)?, Arc::clone(&self.idle)))
    }

    /// All jobs, oldest first.
    pub(crate) fn jobs(&self, masked: bool) -> Vec<Info> {
        let jobs = self.home.list();
        if !masked {
            return jobs;
        }
        let hide = |info: Info| match self.open_apart(info.handle) {
            Ok(job) => LocalJob::new(Arc::new(job), masked).hide_in_info(info),
            Err(_) => info,
        };
        jobs.into_iter().map(hide).collect()
    }

    /// Removes finished jobs that are past the given limits.
    pub(crate) fn prune(&self, keep: &Retention, dry_run: bool) -> Result<Swept, Failure> {
        if !dry_run {
            self.release_unsaved(keep);
        }
        sweep(&self.home, keep, now_ms(), dry_run)
    }

    /// Keepers of jobs that are past their age stay no longer for a record that cannot be written.
    fn release_unsaved(&self, keep: &Retention) {
        let oldest = now_ms().saturating_sub(crate::clock::millis(keep.age));
        let all = self.home.handles().into_iter().filter_map(|handle| self.open_apart(handle).ok());
        for job in all.filter(|job| crate::registry::claim::is_end_unsaved(&job.dir)) {
            let job = LocalJob::new(Arc::new(job), false);
            let receipt = job.info().ok().and_then(|info| info.state.receipt().cloned());
            if receipt.is_some_and(|receipt| receipt.ended_at <= oldest) {
                let _ = job.kill(Duration::ZERO, "prune");
            }
        }
    }
}

/// A job's folder and what is cached of it, shared by all who hold a ticket of that job.
#[derive(Debug)]
pub(crate) struct OpenJob {
    dir: JobDir,
    record: CachedFile<Info>,
    masks: CachedFile<RwLock<Masks>>,
    /// When the secrets of the home were last changed, as far as the masks know.
    secrets_seen: std::sync::Mutex<Option<std::time::SystemTime>>,
    idle: Arc<IdleConnections>,
    last_known: truth::LastKnown,
    moments: Arc<Mutex<moments::Moments>>,
}

impl OpenJob {
    fn new(dir: JobDir, idle: Arc<IdleConnections>) -> Self {
        let record = CachedFile::new(layout::INFO, INFO_LIMIT);
        let masks = CachedFile::new(layout::MASKS, secrets::MAX_MASKS_BYTES);
        let secrets_seen = std::sync::Mutex::default();
        let last_known = truth::LastKnown::default();
        Self { dir, record, masks, secrets_seen, idle, last_known, moments: Arc::default() }
    }
}

/// A job in this home, as one reader may see it.
#[derive(Clone, Debug)]
pub(crate) struct LocalJob {
    open: Arc<OpenJob>,
    /// Secrets are hidden in all that is read.
    masked: bool,
}

impl LocalJob {
    pub(crate) fn new(open: Arc<OpenJob>, masked: bool) -> Self {
        Self { open, masked }
    }

    pub(crate) fn masked(&self) -> Self {
        Self { open: Arc::clone(&self.open), masked: true }
    }

    pub(crate) fn handle(&self) -> Handle {
        self.open.dir.handle()
    }

    /// Its record as it stands, with everything in it.
    pub(crate) fn record(&self) -> Result<Arc<Info>, Failure> {
        let dir = &self.open.dir;
        self.open.record.get(dir, |read| {
            let mut info = dir.parse_info(read)?;
            dir.note_losses(&mut info, true);
            Ok(info)
        })
    }

    /// What must be hidden, if anything must.
    pub(crate) fn masks(&self) -> Result<Option<SharedMasks>, Failure> {
        if !self.masked {
            return Ok(None);
        }
        let dir = &self.open.dir;
        let masks = self.open.masks.get(dir, |read| secrets::parse(dir, read).map(RwLock::new))?;
        // Other jobs may have been given more since.
        if let Some(home) = dir.path().parent().and_then(std::path::Path::parent)
            && let Ok(now) = std::fs::metadata(home.join(crate::registry::layout::SECRETS))
            && let Ok(mut seen) = self.open.secrets_seen.lock()
            && *seen != now.modified().ok()
        {
            *seen = now.modified().ok();
            if let Ok(mut masks) = masks.write() {
                secrets::add_those_of_home(home, &mut masks);
            }
        }
        Ok(Some(masks))
    }

    /// Text about this job as its reader may see it.
    pub(crate) fn hide(&self, text: &str) -> Result<String, Failure> {
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
            hide_texts(&mut info, hide);
        }
        info
    }

    /// How it is right now, from its keeper; none when it has no keeper any more.
    pub(crate) fn status(&self) -> Result<Option<Status>, Failure> {
        match self.ask(&Verb::Status { brief: false }, REPLY_TIMEOUT)? {
            Some(Answer::Status(mut status)) => {
                status.info = self.hide_in_info(self.located(status.info));
                Ok(Some(*status))
            }
            Some(other) => Err(unexpected(&other)),
            None => Ok(None),
        }
    }

    pub(crate) fn resize(&self, size: Size) -> Result<(), Failure> {
        match self.ask(&Verb::Resize { size: size.checked()? }, REPLY_TIMEOUT)? {
            Some(Answer::Done {}) => Ok(()),
            Some(other) => Err(unexpected(&other)),
            None => Err(self.not_running()),
        }
    }

    pub(crate) fn hold(&self, hold: Hold) -> Result<(), Failure> {
        match self.ask(&Verb::Hold(hold), REPLY_TIMEOUT)? {
            Some(Answer::Done {}) => Ok(()),
            Some(other) => Err(unexpected(&other)),
            None => Err(self.not_running()),
        }
    }

    pub(crate) fn answer_question(&self, question: u64, allow: bool, by: String) -> Result<(), Failure> {
        match self.ask(&Verb::AnswerQuestion { question, allow, by }, REPLY_TIMEOUT)? {
            Some(Answer::Done {}) => Ok(()),
            Some(other) => Err(unexpected(&other)),
            None => Err(self.not_running()),
        }
    }

    pub(crate) fn watch(&self, watch: Watch) -> Result<Vec<Watch>, Failure> {
        self.ask_watches(&Verb::Watch { watch })
    }

    pub(crate) fn watches(&self) -> Result<Vec<Watch>, Failure> {
        self.ask_watches(&Verb::Watches)
    }

    pub(crate) fn unwatch(&self, watch: &str) -> Result<Vec<Watch>, Failure> {
        self.ask_watches(&Verb::Unwatch { watch: watch.into() })
    }

    fn ask_watches(&self, verb: &Verb) -> Result<Vec<Watch>, Failure> {
        match self.ask(verb, REPLY_TIMEOUT)? {
            Some(Answer::Watches(watches)) => Ok(watches),
            Some(other) => Err(unexpected(&other)),
            None => Err(self.not_running()),
        }
    }

    pub(crate) fn screen(&self, styled: bool, scrollback: usize) -> Result<ScreenShot, Failure> {
        match self.ask(&Verb::Screen { styled, scrollback, masked: self.masked }, REPLY_TIMEOUT)? {
            Some(Answer::Screen(screen)) => Ok(*screen),
            Some(other) => Err(unexpected(&other)),
            None => Err(self.not_running()),
        }
    }

    /// The keeper's answer; none when there is no keeper. Should the keeper die meanwhile, its heir is asked with the
    /// same key: it knows whether the keeper had begun this, or died of it, and then does not do it again.
    fn ask(&self, verb: &Verb, timeout: Duration) -> Result<Option<Answer>, Failure> {
        let deadline = Instant::now() + timeout;
        let key = RequestKey::new();
        let mut next = self.connect()?;
        loop {
            let Some(mut connection) = next else { return Ok(None) };
            connection.check_known(verb)?;
            // A request that could not be written to its end was not carried out.
            if connection.ask(verb, &key).is_err() {
                next = self.connect()?;
                continue;
            }
            match connection.answer(deadline)? {
                Answered::With(answer) => {
                    self.open.idle.put(self.handle(), connection);
                    return self.unless_unknown(*answer, verb).map(Some);
                }
                Answered::Closed => next = self.connect_again(verb, deadline)?,
                Answered::Late => return Err(connection::timed_out(&self.open.dir, timeout)),
            }
        }
    }

    /// A connection to the heir of a keeper that died over a request; none when there is nobody left to ask.
    ///
    /// # Errors
    /// [`Kind::OutcomeUnknown`]: the heir does not know whether the request was carried out, and to repeat it would do
    /// harm.
    fn connect_again(&self, verb: &Verb, deadline: Instant) -> Result<Option<Connection>, Failure> {
        let Some(done) = verb.done_again_if_repeated() else { return self.connect() };
        if self.has_ended() {
            return Ok(None);
        }
        let Some(mut connection) = Connection::open(&self.open.dir)? else {
            return Err(self.outcome_unknown(done));
        };
        if connection.may_ask_again(deadline)? {
            Ok(Some(connection))
        } else {
            Err(self.outcome_unknown(done))
        }
    }

    /// The answer, unless that is that nobody knows what became of the request.
    fn unless_unknown(&self, answer: Answer, verb: &Verb) -> Result<Answer, Failure> {
        match (answer, verb.done_again_if_repeated()) {
            (Answer::Error(failure), Some(done)) if failure.kind == Kind::OutcomeUnknown.name() => {
                Err(self.outcome_unknown(done))
            }
            (answer, _) => Ok(answer),
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
        .hint(Hint::call("the job goes on; look before you try again: ", Call::Read(handle.to_string())))
    }

    /// A connection to its keeper: one that is open already, or a new one; none when there is no keeper.
    fn connect(&self) -> Result<Option<Connection>, Failure> {
        match self.open.idle.take(self.handle()) {
            Some(connection) => Ok(Some(connection)),
            None => Connection::open(&self.open.dir),
        }
    }

    fn not_running(&self) -> Failure {
        let handle = self.handle();
        let state = self.info().map_or("gone", |info| info.state.name());
        Failure::new(Kind::NotRunning, format!("job {handle} does not run any more: it is {state}"))
            .hint(Hint::call("read what it printed: ", Call::Read(handle.to_string())))
    }
}

/// Hides what may hold a secret. A new field of the record does not compile until it is said here whether it may.
fn hide_texts(info: &mut Info, mut hide: impl FnMut(&mut String)) {
    let Info {
        command,
        run,
        description,
        format: _,
        handle: _,
        name: _,
        session: _,
        cwd: _,
        streams: _,
        input: _,
        started_size: _,
        size_alone: _,
        env_names: _,
        timeout_ms: _,
        inactivity_timeout_ms: _,
        log_cap: _,
        created_at: _,
        started_at: _,
        boot_id: _,
        pid_namespace: _,
        process: _,
        endpoints: _,
        mark: _,
        keeper: _,
        heir: _,
        gone: _,
        errors_gone: _,
        unreadable: _,
        errors_unreadable: _,
        log_mark: _,
        errors_mark: _,
        sandbox: _,
        sandbox_by: _,
        limits: _,
        limited_by: _,
        guard_by: _,
        allowed_hosts: _,
        tells_end: _,
        takeovers: _,
        state: _,
        cursor_at_start: _,
        traceparent: _,
        shell: _,
    } = info;
    hide(command);
    match run {
        Run::Shell(line) => hide(line),
        Run::Program(argv) => argv.iter_mut().for_each(&mut hide),
    }
    description.iter_mut().for_each(hide);
}

fn unexpected(answer: &Answer) -> Failure {
    match answer {
        Answer::Error(failure) => failure.clone().into(),
        other => Failure::new(Kind::Keeper, format!("unexpected answer from the keeper: {other:?}")),
    }
}
