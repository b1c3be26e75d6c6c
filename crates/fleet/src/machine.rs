//! What a node needs of its machine. The real one is [`LocalMachine`]; for a measurement of many hosts there can be one whose jobs are
//! only in memory.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

use outlast_job::census::Census;
use outlast_job::client::{News, Piece, Waiting};
use outlast_job::outbox::follow::Changes;
use outlast_job::outbox::{Outbox, reader};
use outlast_job::request::{
    Answer, AskKeepers, JobRequest, JobSpec, JobWait, List, ListedJob, ReadBytes, Request, Subscription,
    WaitAny,
};
use outlast_job::spec::CALLER_GONE;
use outlast_job::wire::Wait;
use outlast_job::{Failure, Handle, Kind, Outlast};
use outlast_protocol::lifecycle::State;
use outlast_remote::message::Caller;
use outlast_remote::relay::{Judge, Served, serve};

/// How often an order is tried whose node was killed each time before the command ran.
const MAX_TRIES: u32 = 20;

/// How much of a log is read at once.
const LOG_PIECE: usize = 256 << 10;

/// Calls for another look. It does not block.
pub type Knock = Arc<dyn Fn() + Send + Sync>;
/// Told how a job ended, once.
pub type Ended = Box<dyn FnOnce(State) + Send>;

/// An event of an outbox, as it is there.
#[derive(Clone, Debug)]
pub struct OutboxEvent {
    /// Its number in the outbox.
    pub n: u64,
    /// What it says.
    pub entry: serde_json::Value,
}

/// A machine, as its node sees it. Calls may block.
pub trait Machine: Send + Sync + 'static {
    /// Serves a link, until the pipe is over.
    fn serve(&self, pipe: UnixStream, user: String);

    /// Begins to tell when jobs or outboxes may have changed.
    ///
    /// # Errors
    /// When the kernel cannot tell.
    fn watch(&self, jobs: Knock, outboxes: Knock) -> Result<(), Failure>;

    /// All jobs, with their secrets hidden.
    fn jobs(&self) -> Vec<ListedJob>;

    /// The sessions that have an outbox.
    fn outboxes(&self) -> Vec<String>;

    /// What the fleet was not told yet of an outbox, on the disk.
    fn untold(&self, session: &str) -> Vec<OutboxEvent>;

    /// The fleet was told everything up to a number.
    fn told(&self, session: &str, n: u64);

    /// Starts the job of an order, once however often it is called in this boot of the machine.
    ///
    /// # Errors
    /// The policy's no, or that it cannot be started; [`Kind::OutcomeUnknown`] when it may have been.
    fn start(&self, order: &str, user: &str, spec: JobSpec) -> Result<Handle, Failure>;

    /// Tells when a job has ended.
    fn when_ended(&self, job: Handle, ended: Ended);

    /// Ends a job.
    fn kill(&self, job: Handle, user: &str);

    /// Writes the whole log of a job, without its secrets.
    ///
    /// # Errors
    /// The policy's no, or that it cannot be read.
    fn log(&self, job: Handle, user: &str, into: UnixStream) -> Result<(), Failure>;

    /// Changes when the machine is started anew.
    fn boot(&self) -> String;

    /// What operators watch of its jobs, as Prometheus reads it.
    fn metrics(&self) -> String {
        String::new()
    }
}

/// This machine, with its own jobs.
pub struct LocalMachine {
    outlast: Outlast,
    judge: Arc<dyn Judge>,
    watched: Mutex<Watched>,
    census: Mutex<Census>,
}

/// What is listened to.
#[derive(Default)]
struct Watched {
    knock: Option<Knock>,
    list: Option<Waiting>,
    live: BTreeMap<Handle, Waiting>,
}

impl LocalMachine {
    /// The machine that these jobs are on, with its own policy.
    #[must_use]
    pub fn new(outlast: Outlast, judge: Arc<dyn Judge>) -> Self {
        Self { outlast, judge, watched: Mutex::default(), census: Mutex::default() }
    }

    fn caller(user: &str) -> Caller {
        Caller { user: user.to_owned(), machine: "fleet".into(), agent: false }
    }

    /// Listens to each job that runs: what it prints is not told, what happens to it is.
    fn listen(&self, jobs: &[ListedJob]) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(knock) = watched.knock.clone() else { return };
        let live: Vec<Handle> = jobs.iter().filter(|job| job.is_live()).map(|job| job.job.handle).collect();
        watched.live.retain(|handle, _| live.contains(handle));
        for job in live {
            if watched.live.contains_key(&job) {
                continue;
            }
            let knock = Arc::clone(&knock);
            let tell = move |news| {
                match news {
                    News::Grown(_) => {}
                    News::Event(_) | News::Attached(_) | News::Changed | News::Over => knock(),
                }
                true
            };
            if let Ok(waiting) = self.outlast.subscribe(&Subscription::Job { job }, tell) {
                watched.live.insert(job, waiting);
            }
        }
    }
}

impl Machine for LocalMachine {
    fn serve(&self, pipe: UnixStream, user: String) {
        let Ok(output) = pipe.try_clone() else { return };
        let served = Served {
            outlast: self.outlast.clone(),
            judge: Arc::clone(&self.judge),
            reaches_others: false,
            proven: Some(Self::caller(&user)),
        };
        let _ = serve(served, OwnedFd::from(pipe), output);
    }

    fn watch(&self, jobs: Knock, outboxes: Knock) -> Result<(), Failure> {
        let knock = Arc::clone(&jobs);
        let list = self.outlast.subscribe(&Subscription::JobList, move |_| {
            knock();
            true
        })?;
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.list = Some(list);
        watched.knock = Some(jobs);
        drop(watched);
        let outlast = self.outlast.clone();
        let changes = Changes::new(outlast.home())?;
        let follow = move || {
            loop {
                // One that cannot be listened to is looked at when another changes.
                for outbox in Outbox::all(outlast.home()) {
                    let _ = changes.add(&outbox);
                }
                outboxes();
                changes.wait(None);
            }
        };
        std::thread::Builder::new()
            .name("outboxes".into())
            .spawn(follow)
            .map_err(|error| Failure::system("cannot start a thread", error))?;
        Ok(())
    }

    fn jobs(&self) -> Vec<ListedJob> {
        let list = List { keepers: AskKeepers::All, ..List::default() };
        let jobs = self.outlast.clone().masked().list(list);
        self.listen(&jobs);
        self.census.lock().unwrap_or_else(PoisonError::into_inner).look(&self.outlast, &jobs);
        jobs
    }

    fn metrics(&self) -> String {
        let jobs = self.jobs();
        self.census.lock().unwrap_or_else(PoisonError::into_inner).text(&self.outlast, &jobs)
    }

    fn outboxes(&self) -> Vec<String> {
        Outbox::all(self.outlast.home()).iter().map(|outbox| outbox.session().to_owned()).collect()
    }

    fn untold(&self, session: &str) -> Vec<OutboxEvent> {
        let Some(outbox) = Outbox::existing(self.outlast.home(), session) else { return Vec::new() };
        let Ok(place) = reader::place(&outbox, reader::FLEET) else { return Vec::new() };
        let event = |entry: outlast_job::outbox::Entry| {
            Some(OutboxEvent { n: entry.n, entry: serde_json::to_value(entry).ok()? })
        };
        outbox.settled(place).into_iter().filter_map(event).collect()
    }

    fn told(&self, session: &str, n: u64) {
        if let Some(outbox) = Outbox::existing(self.outlast.home(), session) {
            // Should it not be noted, the same comes again, and is recognised by its number.
            let _ = reader::acknowledge(&outbox, reader::FLEET, n);
        }
    }

    fn start(&self, order: &str, user: &str, spec: JobSpec) -> Result<Handle, Failure> {
        let mut request = Request::Start(Box::new(spec));
        self.judge.judge(&Self::caller(user), &mut request)?;
        let mut tries = 0;
        let mut name = order.to_owned();
        loop {
            match self.outlast.answer_once(&name, request.clone()) {
                Ok(Answer::Started(handle)) => return Ok(handle),
                Ok(other) => {
                    return Err(Failure::new(Kind::Keeper, format!("unexpected answer: {other:?}")));
                }
                // An earlier node was killed before the command ran, and that is certain: it is started under another name.
                Err(failure) if failure.message.contains(CALLER_GONE) && tries < MAX_TRIES => {
                    tries += 1;
                    name = format!("{order}-again-{tries}");
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    fn when_ended(&self, job: Handle, ended: Ended) {
        let outlast = self.outlast.clone();
        let look = move || match outlast.answer(Request::Job { job, ask: JobRequest::Info { shown: false } })
        {
            Ok(Answer::Info(info)) => info.state,
            // Removed: how it ended is not known any more.
            _ => State::Lost { found_at: outlast_job::clock::now_ms(), restarted: false },
        };
        let wait = WaitAny { waits: vec![JobWait { job, wait: Wait::for_exit() }], timeout_ms: None };
        let told = Arc::new(Mutex::new(Some(ended)));
        let again = Arc::clone(&told);
        let answered = move |_| {
            let ended = again.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(ended) = ended {
                ended(look());
            }
        };
        let begun = self.outlast.begin(Request::Wait(wait), Box::new(answered));
        match begun {
            Ok(waiting) => waiting.detach(),
            Err(_) => {
                let ended = told.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(ended) = ended {
                    ended(State::Lost { found_at: outlast_job::clock::now_ms(), restarted: false });
                }
            }
        }
    }

    fn kill(&self, job: Handle, user: &str) {
        let session = format!("fleet user {user}");
        let ask = JobRequest::Kill { grace_ms: 2000, session };
        let _ = self.outlast.answer(Request::Job { job, ask });
    }

    fn log(&self, job: Handle, user: &str, mut into: UnixStream) -> Result<(), Failure> {
        let read = ReadBytes { max: LOG_PIECE, as_is: true, ..ReadBytes::default() };
        let mut request = Request::Job { job, ask: JobRequest::ReadBytes(read) };
        self.judge.judge(&Self::caller(user), &mut request)?;
        let job = self.outlast.clone().masked().job(&job.number().to_string())?;
        let mut broken = None;
        job.read_pieces(read, |piece| match piece {
            Piece::Bytes(bytes) => {
                broken = into.write_all(bytes).err();
                broken.is_none()
            }
            // What is gone from a log is no part of it.
            Piece::Lost { .. } => true,
        })?;
        match broken {
            Some(error) => Err(Failure::system("cannot bring the log to the broker", error)),
            None => Ok(()),
        }
    }

    fn boot(&self) -> String {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        boot.trim().to_owned()
    }
}
