//! Follows a job: told when its log grows, when something happens, and when it is over.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

pub use outlast_protocol::request::News;

use super::LocalJob;
use super::connection::{Connection, Read};
use crate::failure::Failure;
use crate::wire::event::EventKind;
use crate::wire::{Answer, Line, Verb};

/// A follower of one job. If the keeper dies, it goes on with the heir.
#[derive(Debug)]
pub(crate) struct LocalFollower {
    job: LocalJob,
    connection: Option<Connection>,
}

impl LocalJob {
    /// Begins to follow.
    ///
    /// # Errors
    /// When the keeper can't be reached.
    pub(crate) fn follow(&self) -> Result<LocalFollower, Failure> {
        let mut follower = LocalFollower { job: self.clone(), connection: None };
        follower.connect()?;
        Ok(follower)
    }
}

impl LocalFollower {
    fn connect(&mut self) -> Result<(), Failure> {
        loop {
            self.connection = Connection::open(&self.job.open.dir)?;
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
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.connection.as_ref().map(AsFd::as_fd)
    }

    /// Waits for news, until the deadline; none when it has come.
    ///
    /// # Errors
    /// When the keeper speaks another protocol.
    pub(crate) fn next(&mut self, deadline: Option<Instant>) -> Result<Option<News>, Failure> {
        loop {
            let Some(connection) = &mut self.connection else { return Ok(Some(News::Over)) };
            match connection.read_until(deadline)? {
                Read::Line(line) => {
                    if let Some(news) = self.job.understand(*line) {
                        return Ok(Some(news));
                    }
                }
                Read::Nothing => return Ok(None),
                // The socket refuses when nobody is left; otherwise the heir answers.
                Read::Closed => self.connect()?,
            }
        }
    }

    /// What has already come, without waiting.
    ///
    /// # Errors
    /// When the keeper speaks another protocol.
    pub(crate) fn next_now(&mut self) -> Result<Option<News>, Failure> {
        loop {
            let Some(connection) = &mut self.connection else { return Ok(Some(News::Over)) };
            match connection.read_now()? {
                Read::Line(line) => {
                    if let Some(news) = self.job.understand(*line) {
                        return Ok(Some(news));
                    }
                }
                Read::Nothing => return Ok(None),
                Read::Closed => self.connect()?,
            }
        }
    }
}

impl LocalJob {
    fn understand(&self, line: Line) -> Option<News> {
        match line {
            Line::Grown(grown) => Some(News::Grown(grown)),
            Line::Event(event) => {
                if let EventKind::Exit { state } = &event.what {
                    self.note_end(state);
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
