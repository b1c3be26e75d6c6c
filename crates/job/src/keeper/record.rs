//! The record and the last screen: what tells of a job when nobody keeps it any more.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::Keeper;
use super::masking;
use super::pump::Channel;
use super::room::Room;
use crate::registry::JobDir;
use crate::registry::claim::set_end_unsaved;
use crate::registry::layout::{INFO, SCREEN};
use crate::registry::replace::{Durability, Old, Spare, replace, rewrite};

/// By so much a record grows when the job ends, as a rule.
const RECEIPT: usize = 1 << 10;
/// How soon a record of an end that could not be written is tried again; the pause doubles with each try.
const FIRST_RETRY: Duration = Duration::from_millis(250);
/// The longest pause.
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// Files made ahead for the moment in which the command ends: somebody waits then, and before that the command takes its
/// time.
#[derive(Debug, Default)]
pub(super) struct Spares {
    record: Option<Spare>,
    screen: Option<Spare>,
    old: Option<Old>,
    /// The record as it was last written: open, so that it can be written over where nothing can be made or opened.
    current: Option<OwnedFd>,
}

/// A record of an end that could not be written anywhere yet.
#[derive(Debug)]
pub(super) struct Unsaved {
    next: Instant,
    pause: Duration,
}

impl Spares {
    pub(super) fn clear(&mut self, job: &JobDir) {
        for spare in [self.record.take(), self.screen.take()].into_iter().flatten() {
            spare.remove(job);
        }
        if let Some(old) = self.old.take() {
            old.remove(job);
        }
    }
}

impl Keeper {
    /// Holds the record as it stands open, to be written over if need be.
    pub(super) fn hold_record(&mut self, record: Option<OwnedFd>) {
        self.spares.current = record;
    }

    /// Makes files for the end, and holds room for telling it.
    pub(super) fn make_spares(&mut self) {
        self.make_record_spare();
        self.hold_room_to_tell();
        if self.info.has_terminal() {
            self.spares.screen = Spare::make(&self.ground.job, SCREEN).ok();
        }
    }

    fn make_record_spare(&mut self) {
        self.spares.record = self.ground.job.spare_info().ok();
        if let Some(spare) = &self.spares.record {
            // From the first moment: a disk may be full before the command has run for a second.
            spare.hold_room(self.info.to_bytes().len() + RECEIPT);
        }
    }

    /// Replaces `info.json`; a full disk makes it a duty for later.
    ///
    /// Most jobs are over in a moment, and what is written of them before is brought to no disk: the last record is, in
    /// [`keep_record`](Self::keep_record). One that goes on is written once more, [in time](Self::hold_room_if_due).
    pub(super) fn write_record(&mut self, durability: Durability) {
        let is_brief = matches!(self.room, Room::DueAt(_)) || !self.info.state.is_live();
        let written = match durability {
            Durability::Process if is_brief => self.swap_record(),
            Durability::Process | Durability::Machine => {
                let written = self.ground.job.write_info(&self.info, durability);
                if written.is_ok() {
                    self.spares.current = self.ground.job.open_to_rewrite(INFO).ok();
                }
                written
            }
        };
        let written = if written.is_err() && !self.info.state.is_live() {
            self.rewrite_record(durability)
        } else {
            written
        };
        self.record_is_stale = written.is_err();
        self.note_unsaved();
    }

    /// Writes the record over the last one: a folder may be closed to us, or a disk so full that no file can be made.
    fn rewrite_record(&mut self, durability: Durability) -> Result<(), Errno> {
        let file = self.spares.current.as_ref().ok_or(Errno::NOENT)?;
        rewrite(file, &self.info.to_bytes(), durability)
    }

    /// An end that no record says is ours to know: we stay, say so by a lock, and try again, ever more rarely.
    fn note_unsaved(&mut self) {
        let unsaved = self.record_is_stale && !self.info.state.is_live();
        if unsaved == self.unsaved.is_some() {
            return;
        }
        set_end_unsaved(&self.ground.events, unsaved);
        let first = || Unsaved { next: Instant::now() + FIRST_RETRY, pause: FIRST_RETRY };
        self.unsaved = unsaved.then(first);
    }

    /// When the record is tried again.
    pub(super) fn next_save(&self) -> Option<Instant> {
        self.unsaved.as_ref().map(|unsaved| unsaved.next)
    }

    pub(super) fn save_if_due(&mut self, now: Instant) {
        if self.next_save().is_none_or(|at| now < at) {
            return;
        }
        self.write_record(Durability::Process);
        if let Some(unsaved) = &mut self.unsaved {
            unsaved.pause = (unsaved.pause * 2).min(LONGEST_RETRY);
            unsaved.next = now + unsaved.pause;
            // A client that looked at the lock just when we took it may have kept us from it.
            set_end_unsaved(&self.ground.events, true);
            // The folder was removed: nobody will ever ask.
            self.released |= rustix::fs::fstat(&self.ground.job).is_ok_and(|stat| stat.st_nlink == 0);
        }
    }

    /// Whether we must stay because only we know how the job ended.
    pub(super) fn holds_the_end(&self) -> bool {
        self.unsaved.is_some() && !self.released
    }

    fn swap_record(&mut self) -> Result<(), rustix::io::Errno> {
        let job = &self.ground.job;
        let is_last = !self.info.state.is_live();
        let spare = self.spares.record.take();
        let had_spare = spare.is_some();
        let spare = match spare {
            Some(spare) => spare,
            None => job.spare_info()?,
        };
        let (old, file) = job.swap_info(&self.info, spare)?;
        self.spares.current = Some(file);
        if is_last {
            self.spares.old = Some(old);
        } else {
            old.remove(job);
            if had_spare {
                self.make_record_spare();
            }
        }
        Ok(())
    }

    /// Makes sure that the record survives the machine.
    pub(super) fn keep_record(&mut self) {
        if self.record_is_stale || self.ground.job.sync_info().is_err() {
            self.write_record(Durability::Machine);
        }
    }

    /// Transcript and screen as they are at the end: on the disk before anyone is told of it.
    pub(super) fn write_last_words(&mut self, nothing_can_follow: bool) {
        if nothing_can_follow {
            self.channels.iter_mut().for_each(Channel::finish);
        }
        if self.info.has_terminal() {
            self.write_last_screen();
        }
    }

    fn write_last_screen(&mut self) {
        let Some(channel) = self.channels.first_mut() else { return };
        let end = Some(channel.log.end());
        if self.screen_written_at == end {
            return;
        }
        self.screen_written_at = end;
        let shot = channel.fold.screen();
        let mut rows = shot.rows;
        masking::hide_on_screen(&self.ground.masks, channel, &mut rows, shot.size.cols);
        let mut text = rows.join("\n");
        text.truncate(text.trim_end().len());
        text.push('\n');
        let (job, text) = (&self.ground.job, text.as_bytes());
        let _ = match self.spares.screen.take() {
            Some(spare) => spare.put(job, SCREEN, text).map(|(old, _)| old.remove(job)),
            None => replace(job, SCREEN, text, Durability::Process),
        };
    }
}
