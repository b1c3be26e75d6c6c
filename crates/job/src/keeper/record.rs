//! The record and the last screen: what tells of a job when nobody keeps it any more.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::Keeper;
use super::core::Input;
use super::disk_reserve::DiskReserve;
use crate::registry::JobDir;
use crate::registry::format::Info;
use crate::registry::layout::{INFO, SCREEN};
use crate::registry::replace::{Displaced, Durability, PreparedFile, replace, rewrite};
use crate::settings::LogSync;

/// By how much a record grows when the job ends, as a rule.
const RECEIPT_BYTES: usize = 1 << 10;
/// Files made ahead for the moment in which the command ends: somebody waits then, and before that the
/// command takes its time.
#[derive(Debug, Default)]
pub(super) struct PreparedFiles {
    record: Option<PreparedFile>,
    screen: Option<PreparedFile>,
    displaced: Option<Displaced>,
    /// The record as it was last written: open, so that it can be written over where nothing can be made or
    /// opened.
    current: Option<OwnedFd>,
}

impl PreparedFiles {
    pub(super) fn remove(&mut self, job: &JobDir) {
        for file in [self.record.take(), self.screen.take()].into_iter().flatten() {
            file.remove(job);
        }
        if let Some(displaced) = self.displaced.take() {
            displaced.remove(job);
        }
    }
}

impl Keeper {
    /// Holds the record as it stands open, to be written over if need be.
    pub(super) fn hold_record(&mut self, record: Option<OwnedFd>) {
        self.prepared.current = record;
    }

    /// Makes files for the end, and reserves disk space for telling it.
    pub(super) fn prepare_files(&mut self) {
        self.prepare_record();
        self.reserve_outbox();
        if self.core.has_terminal() {
            self.prepared.screen = PreparedFile::make(&self.inherited.job, SCREEN).ok();
        }
    }

    fn prepare_record(&mut self) {
        self.prepared.record = self.inherited.job.prepare_info().ok();
        if let Some(file) = &self.prepared.record {
            // From the first moment: a disk may be full before the command has run for a second.
            file.reserve(self.core.info().to_bytes().len() + RECEIPT_BYTES);
        }
    }

    /// Replaces `info.json`.
    ///
    /// Most jobs are over in a moment, and what is written of them before is not synced: the last record is,
    /// in [`sync_record`](Self::sync_record). One that goes on is written once more, [in
    /// time](Self::reserve_if_due).
    pub(super) fn write_record(&mut self, durability: Durability) -> Result<(), Errno> {
        let mut info = self.core.info();
        self.mark_logs(&mut info, false);
        if !info.state.is_live() && self.waits_for_disk() {
            self.sync_logs();
            self.put_record(&info, Durability::Machine)?;
            return self.inherited.job.sync_info();
        }
        self.put_record(&info, durability)
    }

    /// As [`write_record`](Self::write_record), when nothing follows any more.
    pub(super) fn write_last_record(&mut self) -> Result<(), Errno> {
        let mut info = self.core.info();
        self.mark_logs(&mut info, true);
        let is_synced = self.inherited.settings.log_sync != LogSync::None;
        self.put_record(&info, if is_synced { Durability::Machine } else { Durability::Process })
    }

    /// The record tells which bytes of a log are lost before the log goes on behind them. If it can't tell, the job goes on
    /// all the same.
    pub(super) fn name_losses(&mut self, channel: usize) {
        let written = self.write_record(Durability::Process).or_else(|_| {
            let mut info = self.core.info();
            self.mark_logs(&mut info, false);
            self.rewrite_record(&info, Durability::Process)
        });
        self.channels[channel].log.set_named();
        self.feed(Input::RecordWritten(written.is_ok()));
    }

    fn put_record(&mut self, info: &Info, durability: Durability) -> Result<(), Errno> {
        let is_live = info.state.is_live();
        let is_brief = matches!(self.reserve, DiskReserve::DueAt(_)) || !is_live;
        let written = match durability {
            Durability::Process if is_brief => self.swap_record(info),
            Durability::Process | Durability::Machine => {
                let written = self.inherited.job.write_info(info, durability);
                if written.is_ok() {
                    self.prepared.current = self.inherited.job.open_to_rewrite(INFO).ok();
                }
                written
            }
        };
        if written.is_err() && !is_live { self.rewrite_record(info, durability) } else { written }
    }

    /// Writes the record over the last one: a folder may be closed to us, or a disk so full that no file can
    /// be made.
    fn rewrite_record(&mut self, info: &Info, durability: Durability) -> Result<(), Errno> {
        let file = self.prepared.current.as_ref().ok_or(Errno::NOENT)?;
        rewrite(file, &info.to_bytes(), durability)
    }

    fn swap_record(&mut self, info: &Info) -> Result<(), Errno> {
        let job = &self.inherited.job;
        let prepared = self.prepared.record.take();
        let was_prepared = prepared.is_some();
        let file = match prepared {
            Some(file) => file,
            None => job.prepare_info()?,
        };
        let (displaced, file) = job.swap_info(info, file)?;
        self.prepared.current = Some(file);
        if info.state.is_live() {
            displaced.remove(job);
            if was_prepared {
                self.prepare_record();
            }
        } else {
            self.prepared.displaced = Some(displaced);
        }
        Ok(())
    }

    /// Writes the screen as it is at the end.
    pub(super) fn write_last_screen(&mut self, text: &str) {
        let (job, text) = (&self.inherited.job, text.as_bytes());
        let _ = match self.prepared.screen.take() {
            Some(file) => file.put(job, SCREEN, text).map(|(displaced, _)| displaced.remove(job)),
            None => replace(job, SCREEN, text, Durability::Process),
        };
    }
}
