//! Disk space that a job reserves for its end: a full disk must not hide how it ended.
//!
//! The record has its own from the first moment: see [`record`](super::record). For all else most jobs, over
//! in a moment, need none: making and freeing room costs the disk more than all else that they do. So it is
//! held at once only where little is left, and otherwise once a job has run for a while.

use std::time::{Duration, Instant};

use super::Keeper;
use super::core::Input;
use crate::registry::claim;
use crate::registry::replace::Durability;

/// How long a job runs before it holds room.
const RESERVE_AFTER: Duration = Duration::from_secs(1);
/// A disk with less than this left may be full before that.
const LITTLE_SPACE: u64 = 64 << 20;

/// Whether room is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiskReserve {
    /// Not before then.
    DueAt(Instant),
    /// It is, or an earlier keeper may have seen to it.
    Held,
}

impl DiskReserve {
    pub(super) fn next(self) -> Option<Instant> {
        match self {
            DiskReserve::DueAt(at) => Some(at),
            DiskReserve::Held => None,
        }
    }
}

impl Keeper {
    /// Decides when to hold room; a new job.
    pub(super) fn plan_reserve(&mut self) {
        let left = rustix::fs::fstatvfs(&self.inherited.job).map_or(0, |disk| disk.f_bavail * disk.f_frsize);
        let now = Instant::now();
        self.reserve = DiskReserve::DueAt(if left < LITTLE_SPACE { now } else { now + RESERVE_AFTER });
        self.reserve_if_due(now);
    }

    pub(super) fn reserve_if_due(&mut self, now: Instant) {
        if self.reserve.next().is_some_and(|at| now >= at) {
            claim::hold_room(&self.inherited.job);
            self.events.hold_room();
            self.reserve_outbox();
            self.reserve = DiskReserve::Held;
            let written = self.write_record(Durability::Process).is_ok();
            self.feed(Input::RecordWritten(written));
        }
    }

    /// Nothing more has to be written.
    pub(super) fn give_reserve_back(&mut self) {
        if self.reserve == DiskReserve::Held {
            claim::give_room_back(&self.inherited.job);
        }
    }
}
