//! Brings what a job printed, its record and what was told of it to the disk, in this order: after a crash of the machine,
//! who finds the entry of an end finds the record, and who finds the record finds the log, or is told what it lacks.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outlast_pty::system::sync_data;
use rustix::fs::fsync;

use super::Keeper;
use super::core::Input;
use crate::log::mark;
use crate::registry::format::{Info, LogMark};
use crate::registry::layout::INFO;
use crate::settings::LogSync;

/// How often a log that grows is brought to the disk, if that is wanted.
const INTERVAL: Duration = Duration::from_secs(5);
/// A log up to this long is summed while somebody waits for the end of its job.
const SUMMED_AT_ONCE: u64 = 256 << 10;

/// What is being brought to the disk, and when more is.
#[derive(Debug, Default)]
pub(super) struct Syncing {
    /// Whether a thread is at it.
    busy: Arc<AtomicBool>,
    due: Option<Instant>,
    /// What the record that was written last says of the logs.
    marked: Vec<LogMark>,
}

impl Syncing {
    pub(super) fn next(&self) -> Option<Instant> {
        self.due
    }

    /// Runs in a thread of its own, for a disk may take its time; false when one is at it already.
    fn begin(&self, sync: impl FnOnce() + Send + 'static) -> bool {
        if self.busy.swap(true, Ordering::AcqRel) {
            return false;
        }
        let busy = Arc::clone(&self.busy);
        let thread = std::thread::Builder::new().stack_size(64 << 10).spawn(move || {
            sync();
            busy.store(false, Ordering::Release);
        });
        if thread.is_err() {
            self.busy.store(false, Ordering::Release);
        }
        true
    }
}

impl Keeper {
    fn log_sync(&self) -> LogSync {
        self.inherited.settings.log_sync
    }

    /// Logs and transcripts, open once more; nothing of those that are empty.
    fn log_files(&self) -> Vec<OwnedFd> {
        let output = std::iter::once(&self.inherited.output);
        let channels = output.chain(&self.inherited.stderr).zip(&self.channels);
        channels
            .filter(|(_, channel)| channel.log.end() > 0)
            .flat_map(|(files, _)| [files.log.try_clone(), files.transcript.try_clone()])
            .filter_map(Result::ok)
            .collect()
    }

    /// The job has printed something.
    pub(super) fn plan_sync(&mut self, now: Instant) {
        if self.log_sync() == LogSync::Interval {
            self.syncing.due.get_or_insert(now + INTERVAL);
        }
    }

    pub(super) fn sync_if_due(&mut self, now: Instant) {
        if self.syncing.due.is_some_and(|due| now >= due) {
            let logs = self.log_files();
            let begun = self.syncing.begin(move || sync_all(&logs));
            self.syncing.due = (!begun).then_some(now + INTERVAL);
        }
    }

    /// The outbox in a thread of its own, and before it what it tells of.
    pub(super) fn sync_outbox(&mut self) -> Option<Input<'static>> {
        if self.log_sync() == LogSync::None {
            return None;
        }
        let (logs, outbox) = (self.log_files(), self.outbox());
        let (record, folder) =
            (self.inherited.job.open(INFO), self.inherited.job.as_fd().try_clone_to_owned());
        let begun = self.syncing.begin(move || {
            sync_all(&logs);
            if let (Ok(record), Ok(folder)) = (record, folder) {
                let _ = sync_data(record);
                let _ = fsync(folder);
            }
            if let Some(outbox) = outbox {
                outbox.sync();
            }
        });
        (!begun).then_some(Input::SyncBusy)
    }

    /// We are done: what was told is on the disk before we leave.
    pub(super) fn sync_outbox_last(&self) {
        if self.inherited.shared.told() > 0
            && self.log_sync() != LogSync::None
            && let Some(outbox) = self.outbox()
        {
            outbox.sync();
        }
    }

    /// The logs, at the end of all.
    pub(super) fn sync_logs(&self) {
        if self.log_sync() != LogSync::None {
            sync_all(&self.log_files());
        }
    }

    /// Makes sure that the record survives the machine, and says what the logs hold.
    pub(super) fn sync_record(&mut self) {
        let is_marked = self.syncing.marked == self.marks(true);
        if self.core.is_record_stale() || !is_marked {
            let _ = self.write_last_record();
        }
        if self.log_sync() != LogSync::None && self.inherited.job.sync_info().is_err() {
            let _ = self.write_last_record();
        }
    }

    /// Whether a wait for the end also waits for the disk.
    pub(super) fn waits_for_disk(&self) -> bool {
        self.log_sync() == LogSync::Answer
    }

    /// Says in a record what the logs hold, if its job has ended. With `sums`, also of long ones.
    pub(super) fn mark_logs(&mut self, info: &mut Info, sums: bool) {
        if info.state.is_live() {
            return;
        }
        let marks = self.marks(sums);
        info.log_mark = marks.first().copied();
        info.errors_mark = marks.get(1).copied();
        self.syncing.marked = marks;
    }

    fn marks(&self, sums: bool) -> Vec<LogMark> {
        let mark = |channel: &super::channel::Channel| {
            let end = channel.log.end();
            mark::mark(channel.log.as_fd(), end, sums || end <= SUMMED_AT_ONCE)
        };
        self.channels.iter().map(mark).collect()
    }
}

fn sync_all(files: &[OwnedFd]) {
    for file in files {
        let _ = sync_data(file);
    }
}
