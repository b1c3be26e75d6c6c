//! The far end of a link: answers requests that come as frames on a pipe, for as long as the pipe is there.
//!
//! A relay keeps nothing. When the pipe is cut it finishes what it has begun, and ends; the next relay answers what is asked again. An
//! order that was carried out is not carried out again: see `Outlast::answer_once`.

mod also;
mod lanes;
mod outgoing;

use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outlast_job::client::Waiting;
use outlast_job::request::{Answer, JobRequest, Request, Subscription};
use outlast_job::wire::WireFailure;
use outlast_job::{Failure, Kind, Outlast};
use outlast_protocol::{HostName, JobRef};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::de::DeserializeOwned;

use crate::frame::{Assembler, Decoder, Message, MessageKind};
use crate::link::pending::last_event;
use crate::message::{Ask, Began, Caller, Credit, Hello, Subscribe, machine_name};
use also::{Along, jobs_of};
use lanes::Lanes;
use outgoing::Outgoing;

/// How many streams may be open at once.
const MAX_STREAMS: usize = 1024;
/// After the pipe is gone, how long what was begun may take.
const FINISH_TIMEOUT: Duration = Duration::from_secs(120);
/// A client that promised to say something is gone after this many of its own times without a word.
const MISSED_PINGS: u64 = 3;

/// Decides about what comes from another machine, before it is carried out.
pub trait Judge: Send + Sync {
    /// May this be asked for? What the host's own rules add to a request is put into it.
    ///
    /// # Errors
    /// [`Kind::Denied`].
    fn judge(&self, caller: &Caller, request: &mut Request) -> Result<(), Failure>;
}

impl<J: Judge + ?Sized> Judge for Arc<J> {
    fn judge(&self, caller: &Caller, request: &mut Request) -> Result<(), Failure> {
        (**self).judge(caller, request)
    }
}

/// What a relay serves.
pub struct Served<J> {
    /// The home, and if others are reached through this relay, the hosts.
    pub outlast: Outlast,
    /// Who decides.
    pub judge: J,
    /// Whether it passes requests on to its own hosts.
    pub reaches_others: bool,
    /// Who is at the other end, where the pipe itself proves that; otherwise it is who the client says it is.
    pub proven: Option<Caller>,
}

/// Serves until the pipe is cut, or the client has been silent for longer than it promised.
///
/// # Errors
/// When it cannot have a thread. What a client does wrong ends only the connection.
pub fn serve<J: Judge + 'static>(
    served: Served<J>,
    input: OwnedFd,
    output: impl Write + Send + 'static,
) -> Result<(), Failure> {
    let relay = Arc::new(Relay {
        outlast: served.outlast,
        judge: Box::new(served.judge),
        reaches_others: served.reaches_others,
        proven: served.proven,
        out: Arc::default(),
        open: Arc::default(),
        lanes: Lanes::default(),
        caller: Mutex::default(),
    });
    relay.outlast.forget_old_orders();
    let out = Arc::clone(&relay.out);
    let writer = std::thread::Builder::new()
        .name("writer".into())
        .spawn(move || out.write_to(output))
        .map_err(|error| Failure::system("cannot start a thread", error))?;
    relay.out.control(0, MessageKind::Hello, &json(&relay.hello()));
    relay.read_from(&input);
    // Nobody waits any more. What must not be left half done goes on.
    let waiting = std::mem::take(&mut *relay.open());
    drop(waiting);
    relay.lanes.finish(FINISH_TIMEOUT);
    relay.out.close();
    drop(input);
    let _ = writer.join();
    Ok(())
}

/// The streams that are open, each with what ends it, once that is known.
type OpenStreams = BTreeMap<u32, Option<Waiting>>;

struct Relay {
    outlast: Outlast,
    judge: Box<dyn Judge>,
    reaches_others: bool,
    proven: Option<Caller>,
    out: Arc<Outgoing>,
    open: Arc<Mutex<OpenStreams>>,
    lanes: Lanes,
    caller: Mutex<Caller>,
}

impl Relay {
    fn open(&self) -> MutexGuard<'_, OpenStreams> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hello(&self) -> Hello {
        Hello {
            machine: Some(machine_name()),
            boot: std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
                .ok()
                .map(|boot| boot.trim().to_owned()),
            features: self.reaches_others.then(|| "hosts".to_owned()).into_iter().collect(),
            ..Hello::new()
        }
    }

    fn read_from(self: &Arc<Self>, input: &OwnedFd) {
        let (mut decoder, mut assembler) = (Decoder::of_client(), Assembler::default());
        let mut bytes = vec![0; 64 << 10];
        let mut greeted: Option<Hello> = None;
        loop {
            let ping = greeted.as_ref().and_then(|hello| hello.ping_ms);
            if !is_readable_within(input, ping.map(|ms| ms.saturating_mul(MISSED_PINGS))) {
                return;
            }
            match rustix::io::read(input, &mut bytes) {
                Ok(0) => return,
                Ok(n) => decoder.push(&bytes[..n]),
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return,
            }
            loop {
                let message = match decoder.next_frame() {
                    Ok(Some(frame)) => assembler.push(frame),
                    Ok(None) => break,
                    Err(error) => Err(error),
                };
                match message {
                    Ok(None) => {}
                    Ok(Some(message)) if greeted.is_some() => self.obey(message),
                    Ok(Some(message)) => match self.greet(&message) {
                        Ok(hello) => greeted = Some(hello),
                        Err(failure) => return self.refuse_all(failure),
                    },
                    Err(error) => return self.refuse_all(Failure::usage(error.to_string())),
                }
            }
        }
    }

    /// Says why nothing more can be understood; the connection is over.
    fn refuse_all(&self, failure: Failure) {
        self.out.control(0, MessageKind::Failure, &json(&WireFailure::from(failure)));
    }

    fn greet(&self, message: &Message) -> Result<Hello, Failure> {
        if message.kind != MessageKind::Hello {
            return Err(Failure::usage("the first message must be a hello"));
        }
        let hello: Hello = parse(&message.body)?;
        Hello::new().common(&hello)?;
        self.out.set_window(hello.window);
        *self.caller.lock().unwrap_or_else(PoisonError::into_inner) =
            self.who(hello.caller.clone().unwrap_or_default());
        Ok(hello)
    }

    /// Who asks: what the pipe proves counts more than what is said. That an agent asks is believed in any case.
    fn who(&self, said: Caller) -> Caller {
        match &self.proven {
            Some(proven) => Caller { agent: proven.agent || said.agent, ..proven.clone() },
            None => said,
        }
    }

    /// Who ends a job is in its receipt: with the name that the pipe proves, if it does. The policy has seen the bare session.
    fn sign(&self, ask: &mut Request) {
        let Some(proven) = &self.proven else { return };
        if let Request::Job {
            ask:
                JobRequest::Kill { session, .. }
                | JobRequest::Signal { session, .. }
                | JobRequest::EndStep { session, .. },
            ..
        } = ask
        {
            *session = format!("{session} of {}", proven.shown());
        }
    }

    fn obey(self: &Arc<Self>, message: Message) {
        let stream = message.stream;
        match message.kind {
            MessageKind::Request => self.opened(stream, || self.request(stream, &message.body)),
            MessageKind::Subscribe => self.opened(stream, || self.subscribe(stream, &message.body)),
            MessageKind::Cancel => {
                let waiting = self.open().remove(&stream);
                self.out.drop_stream(stream);
                drop(waiting);
            }
            MessageKind::Credit => {
                if let Ok(credit) = parse::<Credit>(&message.body) {
                    self.out.credit(stream, credit.bytes);
                }
            }
            MessageKind::Ping => self.out.control(0, MessageKind::Pong, b"{}"),
            // Said too late, or by a side that never says it.
            MessageKind::Hello
            | MessageKind::Answer
            | MessageKind::Failure
            | MessageKind::News
            | MessageKind::Also
            | MessageKind::Began
            | MessageKind::Pong => {}
        }
    }

    /// Opens a stream and begins what it is for.
    fn opened(self: &Arc<Self>, stream: u32, begin: impl FnOnce() -> Result<(), Failure>) {
        let mut open = self.open();
        if stream == 0 || open.contains_key(&stream) {
            // A number that is in use: its own stream must not suffer for it.
            return;
        }
        let is_full = open.len() >= MAX_STREAMS;
        open.insert(stream, None);
        drop(open);
        self.out.open(stream);
        let begun = if is_full {
            let said = format!("more than {MAX_STREAMS} requests at once");
            Err(Failure::usage(said).hint("wait for answers before you ask for more"))
        } else {
            begin()
        };
        if let Err(failure) = begun {
            self.answered(stream, Err(failure));
        }
    }

    fn answered(&self, stream: u32, answer: Result<Answer, Failure>) {
        let waiting = self.open().remove(&stream);
        let (kind, body) = match answer {
            Ok(answer) => (MessageKind::Answer, json(&answer)),
            Err(failure) => (MessageKind::Failure, json(&WireFailure::from(failure))),
        };
        self.out.finish(stream, kind, body);
        drop(waiting);
    }

    /// What is in progress can be given up from now on, unless it is over.
    fn can_be_cancelled(&self, stream: u32, waiting: Waiting) {
        let mut open = self.open();
        match open.get_mut(&stream) {
            Some(place) => *place = Some(waiting),
            None => {
                drop(open);
                drop(waiting);
            }
        }
    }

    fn at(&self, masked: bool, host: Option<HostName>) -> Result<Outlast, Failure> {
        let outlast = if masked { self.outlast.clone().masked() } else { self.outlast.clone() };
        match host {
            None => Ok(outlast),
            Some(host) if self.reaches_others => outlast.on(host),
            Some(host) => {
                Err(Failure::usage(format!("this relay does not reach {host}, only its own machine"))
                    .hint("run it as: outlast relay --hosts"))
            }
        }
    }

    fn request(self: &Arc<Self>, stream: u32, body: &[u8]) -> Result<(), Failure> {
        let Ask { mut ask, masked, order, host, also } = parse(body)?;
        let mut host = host.map(|host| host.parse()).transpose()?.or(ask.host());
        if let Request::Find { job } = &mut ask
            && let Ok(JobRef { host: Some(named), job: bare }) = job.parse()
        {
            host = Some(named);
            *job = bare;
        }
        let outlast = self.at(masked, host)?;
        let relay = Arc::clone(self);
        let caller = self.caller.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let caller = Caller { agent: caller.agent || masked, ..caller };
        if host.is_some() {
            let answered = move |answer| relay.answered(stream, answer);
            let waiting = outlast.begin(ask, Box::new(answered))?;
            self.can_be_cancelled(stream, waiting);
            return Ok(());
        }
        if let Request::Wait(wait) = &mut ask {
            // Asked again after a cut, it must begin at the same place.
            if wait.waits.iter().any(|one| one.wait.from.is_none()) {
                for one in wait.waits.iter_mut().filter(|one| one.wait.from.is_none()) {
                    let end = JobRequest::End { stream: Default::default() };
                    if let Answer::End(end) = outlast.answer(Request::Job { job: one.job, ask: end })? {
                        one.wait.from = Some(end);
                    }
                }
                let from = wait.waits.iter().map(|one| one.wait.from.unwrap_or(0)).collect();
                self.out.control(stream, MessageKind::Began, &json(&Began { from }));
            }
            let along = Along { also, caller, outlast: outlast.clone(), jobs: jobs_of(&ask) };
            let answered = move |answer| relay.waited(stream, along, answer);
            let waiting = outlast.begin(ask, Box::new(answered))?;
            self.can_be_cancelled(stream, waiting);
            return Ok(());
        }
        let along = Along { also, caller: caller.clone(), outlast: outlast.clone(), jobs: jobs_of(&ask) };
        self.lanes.put(
            lane(stream, &ask),
            Box::new(move || {
                let wanted = ask.is_order() || relay.open().contains_key(&stream);
                if wanted {
                    let judged = relay.judge.judge(&caller, &mut ask);
                    relay.sign(&mut ask);
                    let answer = judged.and_then(|()| match order {
                        Some(order) => outlast.answer_once(&order, ask),
                        None => outlast.answer(ask),
                    });
                    relay.say_also(stream, &along, &answer);
                    relay.answered(stream, answer);
                }
            }),
        );
        Ok(())
    }

    fn subscribe(self: &Arc<Self>, stream: u32, body: &[u8]) -> Result<(), Failure> {
        let Subscribe { to, masked, host, also } = parse(body)?;
        let host = host.map(|host| host.parse()).transpose()?.or(to.host());
        let outlast = self.at(masked, host)?;
        // A subscription may have to wait for a keeper, and comes after what was asked of the job before.
        let job = match &to {
            Subscription::Job { job } | Subscription::Attach { job, .. } => Some(*job),
            Subscription::JobList | Subscription::Session { .. } => None,
        };
        let lane = job.map_or_else(|| no_job(stream), outlast_protocol::Handle::number);
        let relay = Arc::clone(self);
        let caller = self.caller.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let begin = move || {
            let from = match &to {
                Subscription::Job { job } if job.host().is_none() => vec![last_event(&outlast, *job)],
                Subscription::Job { .. }
                | Subscription::Attach { .. }
                | Subscription::JobList
                | Subscription::Session { .. } => Vec::new(),
            };
            let (out, open) = (Arc::clone(&relay.out), Arc::downgrade(&relay.open));
            let tell = move |news| {
                let wants_more = out.tell(stream, &news);
                if !wants_more && let Some(open) = open.upgrade() {
                    let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
                    let waiting = open.remove(&stream);
                    drop(open);
                    drop(waiting);
                }
                wants_more
            };
            match outlast.subscribe(&to, tell) {
                Ok(waiting) => {
                    // Looked up after the subscription has begun: nothing can be missed between the two.
                    if let (Some(job), None) = (job, host) {
                        let along = Along { also, caller, outlast: outlast.clone(), jobs: vec![job] };
                        relay.say_answers(stream, &along, job);
                    }
                    relay.out.say(stream, MessageKind::Began, json(&Began { from }));
                    relay.can_be_cancelled(stream, waiting);
                }
                Err(failure) => relay.answered(stream, Err(failure)),
            }
        };
        self.lanes.put(lane, Box::new(begin));
        Ok(())
    }
}

/// Requests about one job are carried out in order.
fn lane(stream: u32, request: &Request) -> u64 {
    match request {
        Request::Job { job, .. } | Request::Remove { job } => job.number(),
        Request::Start(_)
        | Request::PlanWakes(_)
        | Request::Find { .. }
        | Request::FindShell { .. }
        | Request::List(_)
        | Request::Load {}
        | Request::Wait(_)
        | Request::Events(_)
        | Request::Ack(_)
        | Request::Prune { .. } => no_job(stream),
    }
}

/// A lane of its own.
fn no_job(stream: u32) -> u64 {
    u64::from(stream) | 1 << 63
}

/// Whether something can be read; false when the time is up.
fn is_readable_within(input: &OwnedFd, ms: Option<u64>) -> bool {
    let timeout = ms.map(|ms| Timespec {
        tv_sec: i64::try_from(ms / 1000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(ms % 1000).unwrap_or(0) * 1_000_000,
    });
    loop {
        match poll(&mut [PollFd::new(input, PollFlags::IN)], timeout.as_ref()) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::new(Kind::Usage, format!("invalid message: {error}")))
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
