//! Follows a job: told when its log grows, when something happens, and when it is over.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use crate::elsewhere::ElsewhereFollower;
use crate::failure::Failure;
use crate::local::follow::{LocalFollower, News};

/// A follower of one job. If the keeper dies, it goes on with the heir.
#[derive(Debug)]
pub struct Follower {
    place: FollowerPlace,
}

#[derive(Debug)]
pub(super) enum FollowerPlace {
    Here(LocalFollower),
    There(ElsewhereFollower),
}

impl Follower {
    pub(super) fn new(place: FollowerPlace) -> Self {
        Self { place }
    }

    /// Tries again to reach a keeper, where there was none.
    pub(super) fn knock(&mut self) -> Result<(), Failure> {
        match &mut self.place {
            FollowerPlace::Here(follower) => follower.knock(),
            FollowerPlace::There(follower) => follower.knock(),
        }
    }

    /// What to wait on before [`next`](Self::next) has something; none once it is over.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.place {
            FollowerPlace::Here(follower) => follower.fd(),
            FollowerPlace::There(follower) => follower.fd(),
        }
    }

    /// Whether the end of the job is always told: then nobody need look for it on the record, which over a long link takes time.
    #[must_use]
    pub fn tells_the_end(&self) -> bool {
        match &self.place {
            FollowerPlace::Here(_) => false,
            FollowerPlace::There(_) => true,
        }
    }

    /// Waits for news, until the deadline; none when it has come.
    ///
    /// # Errors
    /// When the keeper speaks another protocol.
    pub fn next(&mut self, deadline: Option<Instant>) -> Result<Option<News>, Failure> {
        match &mut self.place {
            FollowerPlace::Here(follower) => follower.next(deadline),
            FollowerPlace::There(follower) => Ok(follower.next(deadline)),
        }
    }

    /// What has already come, without waiting.
    ///
    /// # Errors
    /// When the keeper speaks another protocol.
    pub fn next_now(&mut self) -> Result<Option<News>, Failure> {
        match &mut self.place {
            FollowerPlace::Here(follower) => follower.next_now(),
            FollowerPlace::There(follower) => Ok(follower.next_now()),
        }
    }
}
