//! One connection to a keeper: requests out, lines in.

use std::io::{ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, recv};

use crate::failure::{Failure, Kind};
use crate::registry::JobDir;
use crate::wiped::Wiped;
use crate::wire::{Answer, Hello, KEYS_SINCE, Line, OLDEST_PROTOCOL, PROTOCOL, Reply, Request, Verb, line};

/// How long a keeper may take to greet, where the greeting is waited for.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// What came of asking.
#[derive(Debug)]
pub(crate) enum Answered {
    With(Box<Answer>),
    /// The keeper is gone; its heir may be there in a moment.
    Closed,
    /// Not in time.
    Late,
}

/// What reading from a keeper brought.
#[derive(Debug)]
pub(crate) enum Read {
    Line(Box<Line>),
    /// Not yet.
    Nothing,
    /// The keeper is gone; its heir may be there in a moment.
    Closed,
}

/// A connection to the keeper of one job.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    unread: Vec<u8>,
    greeted: bool,
    /// The newest version of the protocol that the keeper speaks, once it has greeted.
    version: u32,
    /// The number of the last request.
    asked: u64,
}

/// What makes a request one of its kind: the same when it is sent again.
#[derive(Debug)]
pub(crate) struct RequestKey(String);

impl RequestKey {
    pub(crate) fn new() -> Self {
        static CLIENT: OnceLock<u64> = OnceLock::new();
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let client = CLIENT.get_or_init(|| {
            let mut bytes = [0; 8];
            let _ = outlast_pty::system::random(&mut bytes);
            // A forked copy has the same memory, but not the same number.
            u64::from_le_bytes(bytes) ^ u64::from(std::process::id())
        });
        Self(format!("{client:x}-{:x}-{:x}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Connection {
    /// Connects; none if nobody is there.
    pub(crate) fn open(job: &JobDir) -> Result<Option<Self>, Failure> {
        match crate::socket::connect(job) {
            Ok(stream) => Ok(Some(Self {
                stream,
                unread: Vec::new(),
                greeted: false,
                version: OLDEST_PROTOCOL,
                asked: 0,
            })),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                Ok(None)
            }
            Err(error) => {
                let handle = job.handle();
                Err(Failure::new(Kind::Keeper, format!("cannot reach the keeper of job {handle}: {error}")))
            }
        }
    }

    /// The line over which a job was started: the keeper that took the order listens on.
    pub(crate) fn of_start(stream: UnixStream) -> Self {
        Self { stream, unread: Vec::new(), greeted: true, version: PROTOCOL, asked: 0 }
    }

    /// Checks that the keeper knows what it is to be asked. Only what an older keeper does not know waits for
    /// its greeting.
    ///
    /// # Errors
    /// The keeper is too old for it.
    pub(crate) fn check_known(&mut self, verb: &Verb) -> Result<(), Failure> {
        let needed = verb.needs_version();
        if needed > OLDEST_PROTOCOL && !self.greeted {
            self.await_greeting(Instant::now() + GREETING_TIMEOUT)?;
        }
        if needed > OLDEST_PROTOCOL && self.greeted && self.version < needed {
            return Err(Failure::new(
                Kind::Keeper,
                "the keeper of this job is of an older version, and does not know all of these conditions",
            )
            .hint("wait for something else, or start the job anew"));
        }
        Ok(())
    }

    /// Reads until the keeper's first line has come. A keeper that is gone is noticed later.
    fn await_greeting(&mut self, deadline: Instant) -> Result<(), Failure> {
        while !self.unread.contains(&b'\n') {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.stream.set_read_timeout(Some(left)).is_err() {
                return Ok(());
            }
            match self.receive(RecvFlags::empty()) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Ok(()),
            }
        }
        let end = self.unread.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let text: Vec<u8> = self.unread.drain(..end).collect();
        self.greeted = true;
        self.version = check_greeting(&text)?;
        Ok(())
    }

    /// Asks for something.
    pub(crate) fn ask(&mut self, verb: &Verb, key: &RequestKey) -> Result<(), std::io::Error> {
        self.send(self.asked + 1, verb, key)
    }

    /// Whether the keeper, which may be the heir of one that died over a request, can be sent that request
    /// again: waits for its greeting.
    pub(crate) fn may_ask_again(&mut self, deadline: Instant) -> Result<bool, Failure> {
        if !self.greeted {
            self.await_greeting(deadline)?;
        }
        Ok(self.greeted && self.version >= KEYS_SINCE)
    }

    /// Whether a reply is to what was asked last. One without a number is to whatever it was.
    pub(crate) fn is_answered_by(&self, reply: &Reply) -> bool {
        reply.id == self.asked || reply.id == 0
    }

    /// Waits for the answer to what was asked last, until the deadline; none when the keeper is gone.
    pub(crate) fn answer(&mut self, deadline: Instant) -> Result<Answered, Failure> {
        loop {
            match self.read_until(Some(deadline))? {
                Read::Line(line) => {
                    if let Line::Reply(reply) = *line
                        && self.is_answered_by(&reply)
                    {
                        return Ok(Answered::With(Box::new(reply.answer)));
                    }
                }
                Read::Closed => return Ok(Answered::Closed),
                Read::Nothing => return Ok(Answered::Late),
            }
        }
    }

    /// Whether the keeper has taken notice of us.
    pub(crate) fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// Whether something has come that nobody has looked at.
    pub(crate) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Sends a request.
    pub(crate) fn request(&mut self, id: u64, verb: &Verb) -> Result<(), std::io::Error> {
        self.send(id, verb, &RequestKey::new())
    }

    fn send(&mut self, id: u64, verb: &Verb, key: &RequestKey) -> Result<(), std::io::Error> {
        self.asked = id;
        let request = Request { key: Some(key.0.clone()), ..Request::new(id, verb.clone()) };
        let request = Wiped::from(line(&request));
        self.stream.write_all(&request)
    }

    /// Waits for the next line, until the deadline.
    pub(crate) fn read_until(&mut self, deadline: Option<Instant>) -> Result<Read, Failure> {
        loop {
            if let Some(line) = self.next_line()? {
                return Ok(Read::Line(line));
            }
            let timeout = match deadline {
                None => None,
                Some(at) => match at.saturating_duration_since(Instant::now()) {
                    Duration::ZERO => return Ok(Read::Nothing),
                    left => Some(left),
                },
            };
            if self.stream.set_read_timeout(timeout).is_err() {
                return Ok(Read::Closed);
            }
            match self.receive(RecvFlags::empty()) {
                Ok(0) => return Ok(Read::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Read::Nothing),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Ok(Read::Closed),
            }
        }
    }

    /// The next line that has already come, without waiting.
    pub(crate) fn read_now(&mut self) -> Result<Read, Failure> {
        if let Some(line) = self.next_line()? {
            return Ok(Read::Line(line));
        }
        match self.receive(RecvFlags::DONTWAIT) {
            Ok(0) => Ok(Read::Closed),
            Ok(_) => Ok(self.next_line()?.map_or(Read::Nothing, Read::Line)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                Ok(Read::Nothing)
            }
            Err(_) => Ok(Read::Closed),
        }
    }

    fn receive(&mut self, flags: RecvFlags) -> std::io::Result<usize> {
        let mut piece = [0; 16 << 10];
        let (n, _) = recv(&self.stream, &mut piece[..], flags)?;
        self.unread.extend_from_slice(&piece[..n]);
        Ok(n)
    }

    fn next_line(&mut self) -> Result<Option<Box<Line>>, Failure> {
        while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
            let text: Vec<u8> = self.unread.drain(..=end).collect();
            if !self.greeted {
                self.greeted = true;
                self.version = check_greeting(&text)?;
                continue;
            }
            // A line that a newer keeper invented is none of our business.
            if let Ok(line) = serde_json::from_slice(&text) {
                return Ok(Some(Box::new(line)));
            }
        }
        Ok(None)
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// The newest version that the keeper speaks.
fn check_greeting(text: &[u8]) -> Result<u32, Failure> {
    match serde_json::from_slice::<Hello>(text) {
        Ok(hello) if hello.outlast <= PROTOCOL => Ok(hello.newest),
        Ok(hello) => Err(Failure::new(
            Kind::UnknownFormat,
            format!("the keeper speaks protocol {}; this outlast knows up to {PROTOCOL}", hello.outlast),
        )
        .hint(format!("use outlast {} or newer", hello.version))),
        Err(error) => Err(Failure::new(Kind::Keeper, format!("invalid greeting from the keeper: {error}"))),
    }
}

/// A keeper that does not answer.
pub(super) fn timed_out(job: &JobDir, patience: Duration) -> Failure {
    let handle = job.handle();
    Failure::new(
        Kind::Keeper,
        format!("the keeper of job {handle} did not answer within {} s", patience.as_secs_f64()),
    )
    .hint(format!(
        "it may be stopped, or the program does not read its input; the job's files are in {}",
        job.path().display()
    ))
}
