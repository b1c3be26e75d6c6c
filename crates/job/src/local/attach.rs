//! A person in front of a job: its screen at once, then every byte as it comes, and keys the other way.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use super::connection::{Connection, Read};
use super::{LocalJob, unexpected};
use crate::failure::{Failure, Kind};
use crate::spec::Size;
use crate::wire::event::Event;
use crate::wire::{Answer, Attach, Attached, Grown, Line, Send, Verb, base64};

/// How long a keeper may take to show its screen.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// Something a viewer is told.
#[derive(Debug)]
pub enum Seen {
    /// The log has grown.
    Grown(Grown),
    /// Something happened.
    Event(Event),
    /// The screen comes anew, perhaps in another size: see [`Viewing::repaint`].
    Repainted,
    /// What was typed did not arrive.
    Refused(Failure),
    /// The keeper has gone: attach again, unless the job has ended.
    Gone,
}

/// A person in front of a job.
#[derive(Debug)]
pub struct Viewing {
    connection: Connection,
    next_id: u64,
    /// What paints the screen as it was at [`offset`](Self::offset).
    pub repaint: Vec<u8>,
    /// Where the log goes on after the repaint.
    pub offset: u64,
    /// The size of the job's terminal.
    pub size: Size,
    /// How many people look at it now.
    pub viewers: usize,
}

impl LocalJob {
    /// Sits down in front of the job; none when it has no keeper any more.
    ///
    /// # Errors
    /// A job on pipes has no terminal to sit in front of.
    pub(crate) fn attach(&self, attach: &Attach) -> Result<Option<Viewing>, Failure> {
        let deadline = Instant::now() + REPLY_TIMEOUT;
        loop {
            let Some(mut connection) = Connection::open(&self.open.dir)? else { return Ok(None) };
            if connection.request(1, &Verb::Attach(attach.clone())).is_err() {
                continue;
            }
            loop {
                match connection.read_until(Some(deadline))? {
                    Read::Line(line) => match *line {
                        Line::Reply(reply) => return viewing(connection, reply.answer).map(Some),
                        Line::Grown(_) | Line::Event(_) => {}
                    },
                    Read::Closed => break,
                    Read::Nothing => {
                        return Err(Failure::new(Kind::Keeper, "the keeper did not show its screen in time"));
                    }
                }
            }
        }
    }
}

fn viewing(connection: Connection, answer: Answer) -> Result<Viewing, Failure> {
    match answer {
        Answer::Attached(attached) => {
            let (offset, size, viewers) = (attached.offset, attached.size, attached.viewers);
            let mut viewing = Viewing { connection, next_id: 2, repaint: Vec::new(), offset, size, viewers };
            viewing.take(&attached);
            Ok(viewing)
        }
        other => Err(unexpected(&other)),
    }
}

impl Viewing {
    fn take(&mut self, attached: &Attached) {
        self.repaint = base64::decode(&attached.repaint).unwrap_or_default();
        (self.offset, self.size, self.viewers) = (attached.offset, attached.size, attached.viewers);
    }

    /// What to wait on before [`next_now`](Self::next_now) has something.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }

    /// Passes keys on, as they are.
    pub fn press(&mut self, bytes: &[u8]) -> bool {
        for piece in bytes.chunks(crate::wire::INPUT_PIECE) {
            let session = Some(crate::session::current());
            let send = Send { bytes: base64::encode(piece), session, ..Send::default() };
            if !self.ask(&Verb::Send(send)) {
                return false;
            }
        }
        true
    }

    /// Asks for the screen anew: the person's own terminal has another size, or has to be drawn again.
    pub fn look_again(&mut self, attach: &Attach) -> bool {
        self.ask(&Verb::Attach(attach.clone()))
    }

    fn ask(&mut self, verb: &Verb) -> bool {
        self.next_id += 1;
        self.connection.request(self.next_id, verb).is_ok()
    }

    /// What has already come, without waiting.
    ///
    /// # Errors
    /// When the keeper speaks another protocol.
    pub fn next_now(&mut self) -> Result<Option<Seen>, Failure> {
        loop {
            match self.connection.read_now()? {
                Read::Line(line) => match *line {
                    Line::Grown(grown) => return Ok(Some(Seen::Grown(grown))),
                    Line::Event(event) => return Ok(Some(Seen::Event(event))),
                    Line::Reply(reply) => match reply.answer {
                        Answer::Error(failure) => return Ok(Some(Seen::Refused(failure.into()))),
                        Answer::Attached(attached) => {
                            self.take(&attached);
                            return Ok(Some(Seen::Repainted));
                        }
                        _ => {}
                    },
                },
                Read::Nothing => return Ok(None),
                Read::Closed => return Ok(Some(Seen::Gone)),
            }
        }
    }
}
