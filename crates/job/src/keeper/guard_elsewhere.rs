//! The twin of the exec guard, which only Linux can have: there is none.

use std::convert::Infallible;
use std::os::fd::BorrowedFd;

use outlast_protocol::event::{ExecQuestion, ExecRefused};

/// What a guard would tell the keeper.
#[derive(Debug)]
#[expect(dead_code, reason = "nobody tells it here")]
pub(super) enum Told {
    Refused(Box<ExecRefused>),
    Asked(Box<ExecQuestion>),
    Withdrawn(u64),
}

/// Never there.
#[derive(Debug)]
pub(super) struct Guard(Infallible);

impl Guard {
    pub(super) fn answer(&self, _question: u64, _allow: bool) {
        match self.0 {}
    }

    pub(super) fn wake(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }

    pub(super) fn take(&self) -> Vec<Told> {
        match self.0 {}
    }
}
