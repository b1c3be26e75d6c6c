//! A terminal attached to a job of this machine: its screen at once, then every byte as it comes, and keys the other way.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use super::connection::{Connection, Read};
use super::{LocalJob, unexpected};
use crate::elsewhere::ViewNews;
use crate::failure::{Failure, Kind};
use crate::local::follow::News;
use crate::wire::{Answer, Attach, Attached, Line, Send, Verb, base64};

/// How long a keeper may take to show its screen.
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to a keeper that sends its screen.
#[derive(Debug)]
pub(crate) struct LocalView {
    connection: Connection,
    next_id: u64,
    /// The screen as it was when the connection was made, until somebody has asked for it.
    first: Option<Attached>,
}

impl LocalJob {
    /// Attaches a terminal to the job; none when it has no keeper any more.
    ///
    /// # Errors
    /// A job on pipes has no terminal.
    pub(crate) fn attach(&self, attach: &Attach) -> Result<Option<LocalView>, Failure> {
        let deadline = Instant::now() + REPLY_TIMEOUT;
        loop {
            let Some(mut connection) = Connection::open(&self.open.dir)? else { return Ok(None) };
            if connection.request(1, &Verb::Attach(attach.clone())).is_err() {
                continue;
            }
            loop {
                match connection.read_until(Some(deadline))? {
                    Read::Line(line) => match *line {
                        Line::Reply(reply) => return view(connection, reply.answer).map(Some),
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

fn view(connection: Connection, answer: Answer) -> Result<LocalView, Failure> {
    match answer {
        Answer::Attached(attached) => Ok(LocalView { connection, next_id: 2, first: Some(attached) }),
        other => Err(unexpected(&other)),
    }
}

impl LocalView {
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }

    /// Passes keys on, as they are.
    pub(crate) fn press(&mut self, bytes: &[u8]) -> bool {
        let session = Some(crate::session::current());
        self.ask(&Verb::Send(Send { bytes: base64::encode(bytes), session, ..Send::default() }))
    }

    /// Asks for the screen anew.
    pub(crate) fn look_again(&mut self, attach: &Attach) -> bool {
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
    pub(crate) fn next_now(&mut self) -> Result<Option<ViewNews>, Failure> {
        if let Some(attached) = self.first.take() {
            return Ok(Some(ViewNews::News(News::Attached(attached))));
        }
        loop {
            let news = match self.connection.read_now()? {
                Read::Line(line) => match *line {
                    Line::Grown(grown) => News::Grown(grown),
                    Line::Event(event) => News::Event(event),
                    Line::Reply(reply) => match reply.answer {
                        Answer::Error(failure) => return Ok(Some(ViewNews::Refused(failure.into()))),
                        Answer::Attached(attached) => News::Attached(attached),
                        _ => continue,
                    },
                },
                Read::Nothing => return Ok(None),
                Read::Closed => News::Over,
            };
            return Ok(Some(ViewNews::News(news)));
        }
    }

    /// The same for one who only looks.
    pub(crate) fn next_news(&mut self) -> Result<Option<News>, Failure> {
        loop {
            match self.next_now()? {
                Some(ViewNews::News(news)) => return Ok(Some(news)),
                Some(ViewNews::Refused(_)) => {}
                None => return Ok(None),
            }
        }
    }
}
