//! One connection to a keeper: requests out, lines in.

use std::io::{ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, recv};

use crate::failure::{Failure, Kind};
use crate::registry::JobDir;
use crate::wiped::Wiped;
use crate::wire::{Answer, Hello, Line, PROTOCOL, Reply, Request, Verb, line};

/// What came of asking.
#[derive(Debug)]
pub(crate) enum Answered {
    With(Box<Answer>),
    /// The keeper is gone; its heir may be there in a moment.
    Gone,
    /// Not in time.
    Late,
}

/// What reading from a keeper brought.
#[derive(Debug)]
pub(crate) enum Heard {
    Line(Box<Line>),
    /// Not yet.
    Nothing,
    /// The keeper is gone; its heir may be there in a moment.
    Gone,
}

/// A connection to the keeper of one job.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    heard: Vec<u8>,
    greeted: bool,
    /// The number of the last request.
    asked: u64,
}

impl Connection {
    /// Connects; none if nobody is there.
    pub(crate) fn open(job: &JobDir) -> Result<Option<Self>, Failure> {
        match crate::socket::connect(job) {
            Ok(stream) => Ok(Some(Self { stream, heard: Vec::new(), greeted: false, asked: 0 })),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                Ok(None)
            }
            Err(error) => {
                let handle = job.handle();
                Err(Failure::new(
                    Kind::Keeper,
                    format!("the keeper of job {handle} can't be reached: {error}"),
                ))
            }
        }
    }

    /// The line over which a job was started: whoever took the order listens on.
    pub(crate) fn of_start(stream: UnixStream) -> Self {
        Self { stream, heard: Vec::new(), greeted: true, asked: 0 }
    }

    /// Asks for something.
    pub(crate) fn ask(&mut self, verb: &Verb) -> Result<(), std::io::Error> {
        self.request(self.asked + 1, verb)
    }

    /// Whether a reply is to what was asked last. One without a number is to whatever it was.
    pub(crate) fn is_answered_by(&self, reply: &Reply) -> bool {
        reply.id == self.asked || reply.id == 0
    }

    /// Waits for the answer to what was asked last, until the deadline; none when the keeper is gone.
    pub(crate) fn answer(&mut self, deadline: Instant) -> Result<Answered, Failure> {
        loop {
            match self.hear_until(Some(deadline))? {
                Heard::Line(line) => {
                    if let Line::Reply(reply) = *line
                        && self.is_answered_by(&reply)
                    {
                        return Ok(Answered::With(Box::new(reply.answer)));
                    }
                }
                Heard::Gone => return Ok(Answered::Gone),
                Heard::Nothing => return Ok(Answered::Late),
            }
        }
    }

    /// Whether the keeper has taken notice of us.
    pub(crate) fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// Whether something has come that nobody has looked at.
    pub(crate) fn has_unheard(&self) -> bool {
        !self.heard.is_empty()
    }

    /// Sends a request.
    pub(crate) fn request(&mut self, id: u64, verb: &Verb) -> Result<(), std::io::Error> {
        self.asked = id;
        let request = Wiped(line(&Request { id, verb: verb.clone() }));
        self.stream.write_all(&request)
    }

    /// Waits for the next line, until the deadline.
    pub(crate) fn hear_until(&mut self, deadline: Option<Instant>) -> Result<Heard, Failure> {
        loop {
            if let Some(line) = self.next_line()? {
                return Ok(Heard::Line(line));
            }
            let timeout = match deadline {
                None => None,
                Some(at) => match at.saturating_duration_since(Instant::now()) {
                    Duration::ZERO => return Ok(Heard::Nothing),
                    left => Some(left),
                },
            };
            if self.stream.set_read_timeout(timeout).is_err() {
                return Ok(Heard::Gone);
            }
            match self.read(RecvFlags::empty()) {
                Ok(0) => return Ok(Heard::Gone),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Heard::Nothing),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Ok(Heard::Gone),
            }
        }
    }

    /// The next line that has already come, without waiting.
    pub(crate) fn hear_now(&mut self) -> Result<Heard, Failure> {
        if let Some(line) = self.next_line()? {
            return Ok(Heard::Line(line));
        }
        match self.read(RecvFlags::DONTWAIT) {
            Ok(0) => Ok(Heard::Gone),
            Ok(_) => Ok(self.next_line()?.map_or(Heard::Nothing, Heard::Line)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                Ok(Heard::Nothing)
            }
            Err(_) => Ok(Heard::Gone),
        }
    }

    fn read(&mut self, flags: RecvFlags) -> std::io::Result<usize> {
        let mut piece = [0; 16 << 10];
        let (n, _) = recv(&self.stream, &mut piece[..], flags)?;
        self.heard.extend_from_slice(&piece[..n]);
        Ok(n)
    }

    fn next_line(&mut self) -> Result<Option<Box<Line>>, Failure> {
        while let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
            let text: Vec<u8> = self.heard.drain(..=end).collect();
            if !self.greeted {
                self.greeted = true;
                check_greeting(&text)?;
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

fn check_greeting(text: &[u8]) -> Result<(), Failure> {
    match serde_json::from_slice::<Hello>(text) {
        Ok(hello) if hello.outlast <= PROTOCOL => Ok(()),
        Ok(hello) => Err(Failure::new(
            Kind::UnknownFormat,
            format!("the keeper speaks protocol {}; this outlast knows up to {PROTOCOL}", hello.outlast),
        )
        .hint(format!("use outlast {} or newer", hello.version))),
        Err(error) => {
            Err(Failure::new(Kind::Keeper, format!("the keeper's greeting makes no sense: {error}")))
        }
    }
}

/// A keeper that does not answer.
pub(super) fn silent(job: &JobDir, patience: Duration) -> Failure {
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
