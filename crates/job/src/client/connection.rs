//! One connection to a keeper: requests out, lines in.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::failure::{Failure, Kind};
use crate::registry::JobDir;
use crate::wiped::Wiped;
use crate::wire::{Answer, Hello, Line, PROTOCOL, Request, Verb, line};

/// A keeper's answer, or that there is no keeper.
#[derive(Debug)]
pub(crate) enum Asked {
    Answer(Box<Answer>),
    NoKeeper,
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
}

impl Connection {
    /// Connects; none if nobody is there.
    pub(crate) fn open(job: &JobDir) -> Result<Option<Self>, Failure> {
        match crate::socket::connect(job) {
            Ok(stream) => Ok(Some(Self { stream, heard: Vec::new(), greeted: false })),
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

    /// Asks one thing on a connection of its own, again if the keeper dies meanwhile and its heir takes over.
    pub(crate) fn ask_once(job: &JobDir, verb: &Verb, patience: Duration) -> Result<Asked, Failure> {
        let deadline = Instant::now() + patience;
        loop {
            let Some(mut connection) = Self::open(job)? else { return Ok(Asked::NoKeeper) };
            if connection.request(1, verb).is_err() {
                continue;
            }
            loop {
                match connection.hear_until(Some(deadline))? {
                    Heard::Line(line) => {
                        if let Line::Reply(reply) = *line
                            && reply.id <= 1
                        {
                            return Ok(Asked::Answer(Box::new(reply.answer)));
                        }
                    }
                    Heard::Gone => break,
                    Heard::Nothing => return Err(silent(job, patience)),
                }
            }
        }
    }

    /// Sends a request.
    pub(crate) fn request(&mut self, id: u64, verb: &Verb) -> Result<(), std::io::Error> {
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
            match self.read() {
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
        let mut piece = [0; 16 << 10];
        match recv(&self.stream, &mut piece[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => Ok(Heard::Gone),
            Ok((n, _)) => {
                self.heard.extend_from_slice(&piece[..n]);
                Ok(self.next_line()?.map_or(Heard::Nothing, Heard::Line))
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(Heard::Nothing),
            Err(_) => Ok(Heard::Gone),
        }
    }

    fn read(&mut self) -> std::io::Result<usize> {
        let mut piece = [0; 16 << 10];
        let n = self.stream.read(&mut piece)?;
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

fn silent(job: &JobDir, patience: Duration) -> Failure {
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
