//! Follows a job: told when its log grows, when something happens, and when it is over.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use super::Job;
use super::connection::{Connection, Heard};
use crate::failure::Failure;
use crate::wire::event::{Event, What};
use crate::wire::{Answer, Grown, Line, Verb};

/// Something a follower is told.
#[derive(Debug)]
pub enum News {
    /// The logs have grown.
    Grown(Grown),
    /// Something happened.
    Event(Event),
    /// There is no keeper any more: all that will ever be is in the files.
    Over,
}

/// A follower of one job. If the keeper dies, it goes on with the heir.
#[derive(Debug)]
pub struct Follower<'a> {
    job: &'a Job,
    connection: Option<Connection>,
}

impl Job {
    /// Begins to follow.
    ///
    /// # Errors
    /// When the keeper can't be reached.
    pub fn follow(&self) -> Result<Follower<'_>, Failure> {
        let mut follower = Follower { job: self, connection: None };
        follower.connect()?;
        Ok(follower)
    }
}

impl Follower<'_> {
    fn connect(&mut self) -> Result<(), Failure> {
        loop {
            self.connection = Connection::open(&self.job.dir)?;
            let Some(connection) = &mut self.connection else { return Ok(()) };
            // A keeper that dies between the two leaves the socket to its heir: knock again then.
            if connection.request(1, &Verb::Follow).is_ok() {
                return Ok(());
            }
        }
    }

    /// Tries again to reach a keeper, where there was none.
    ///
    /// # Errors
    /// When the keeper can't be reached.
    pub(crate) fn knock(&mut self) -> Result<(), Failure> {
        self.connect()
    }

    /// What to wait on before [`next`](Self::next) has something; none once it is over.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.connection.as_ref().map(AsFd::as_fd)
    }

    /// Waits for news, until the deadline; none when it has come.
    ///
    /// # Errors
    /// When the keeper speaks another protocol.
    pub fn next(&mut self, deadline: Option<Instant>) -> Result<Option<News>, Failure> {
        loop {
            let Some(connection) = &mut self.connection else { return Ok(Some(News::Over)) };
            match connection.hear_until(deadline)? {
                Heard::Line(line) => {
                    if let Some(news) = self.job.understand(*line) {
                        return Ok(Some(news));
                    }
                }
                Heard::Nothing => return Ok(None),
                // The socket refuses when nobody is left; otherwise the heir answers.
                Heard::Gone => self.connect()?,
            }
        }
    }

    /// What has already come, without waiting.
    ///
    /// # Errors
    /// When the keeper speaks another protocol.
    pub fn next_now(&mut self) -> Result<Option<News>, Failure> {
        loop {
            let Some(connection) = &mut self.connection else { return Ok(Some(News::Over)) };
            match connection.hear_now()? {
                Heard::Line(line) => {
                    if let Some(news) = self.job.understand(*line) {
                        return Ok(Some(news));
                    }
                }
                Heard::Nothing => return Ok(None),
                Heard::Gone => self.connect()?,
            }
        }
    }
}

impl Job {
    fn understand(&self, line: Line) -> Option<News> {
        match line {
            Line::Grown(grown) => Some(News::Grown(grown)),
            Line::Event(event) => {
                if let What::Ended { state } = &event.what {
                    self.hear_end(state);
                }
                Some(News::Event(event))
            }
            Line::Reply(reply) => match reply.answer {
                Answer::Status(status) => Some(News::Grown(status.grown)),
                _ => None,
            },
        }
    }
}
