//! The record and the last screen: what tells of a job when nobody keeps it any more.

use super::Keeper;
use super::masking;
use super::pump::Channel;
use super::room::Room;
use crate::registry::JobDir;
use crate::registry::layout::SCREEN;
use crate::registry::replace::{Durability, Old, Spare, replace};

/// Files made ahead for the moment in which the command ends: somebody waits then, and before that the command takes its
/// time.
#[derive(Debug, Default)]
pub(super) struct Spares {
    record: Option<Spare>,
    screen: Option<Spare>,
    old: Option<Old>,
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
    /// Makes files for the end.
    pub(super) fn make_spares(&mut self) {
        self.spares.record = self.ground.job.spare_info().ok();
        if self.info.has_terminal() {
            self.spares.screen = Spare::make(&self.ground.job, SCREEN).ok();
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
            _ => self.ground.job.write_info(&self.info, durability),
        };
        self.record_is_stale = written.is_err();
    }

    fn swap_record(&mut self) -> Result<(), rustix::io::Errno> {
        let job = &self.ground.job;
        let is_last = !self.info.state.is_live();
        let spare = match self.spares.record.take().filter(|_| is_last) {
            Some(spare) => spare,
            None => job.spare_info()?,
        };
        let old = job.swap_info(&self.info, spare)?;
        if is_last {
            self.spares.old = Some(old);
        } else {
            old.remove(job);
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
            Some(spare) => spare.put(job, SCREEN, text).map(|old| old.remove(job)),
            None => replace(job, SCREEN, text, Durability::Process),
        };
    }
}
