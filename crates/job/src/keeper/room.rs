//! Room on the disk that a job holds for its last words: a full disk must not hide how it ended.
//!
//! The record has its own from the first moment: see [`record`](super::record). For all else most jobs, over in a moment,
//! need none: making and freeing room costs the disk more than all else that they do. So it is held at once only where
//! little is left, and otherwise once a job has run for a while.

use std::time::{Duration, Instant};

use super::Keeper;
use crate::registry::claim;
use crate::registry::replace::Durability;

/// How long a job runs before it holds room.
const AFTER: Duration = Duration::from_secs(1);
/// A disk with less than this left may be full before that.
const SCARCE: u64 = 64 << 20;

/// Whether room is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Not before then.
    DueAt(Instant),
    /// It is, or an earlier keeper may have seen to it.
    Held,
}

impl Room {
    pub(super) fn next(self) -> Option<Instant> {
        match self {
            Room::DueAt(at) => Some(at),
            Room::Held => None,
        }
    }
}

impl Keeper {
    /// Decides when to hold room; a new job.
    pub(super) fn plan_room(&mut self) {
        let left = rustix::fs::fstatvfs(&self.ground.job).map_or(0, |disk| disk.f_bavail * disk.f_frsize);
        let now = Instant::now();
        self.room = Room::DueAt(if left < SCARCE { now } else { now + AFTER });
        self.hold_room_if_due(now);
    }

    pub(super) fn hold_room_if_due(&mut self, now: Instant) {
        if self.room.next().is_some_and(|at| now >= at) {
            claim::hold_room(&self.ground.job);
            self.events.hold_room();
            self.hold_room_to_tell();
            self.room = Room::Held;
            self.write_record(Durability::Process);
        }
    }

    /// Nothing more has to be written.
    pub(super) fn give_room_back(&mut self) {
        if self.room == Room::Held {
            claim::give_room_back(&self.ground.job);
        }
    }
}
