//! How a job is, from the best source: its record, or its keeper where the record could not be written.

use std::sync::Mutex;

use super::{Answer, LocalJob, REPLY_TIMEOUT, Verb};
use crate::failure::Failure;
use crate::lifecycle::State;
use crate::registry::claim::{self, Lock};
use crate::registry::format::Info;

/// What was last read and told of a job, for when neither its record nor its keeper can be asked any more.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The record as it was last read.
    record: Option<Info>,
    /// How the keeper said that the job ended.
    end: Option<State>,
}

/// Shared by all that ask about a job.
pub(super) type LastKnown = Mutex<Known>;

impl LocalJob {
    /// Its record, true at this moment.
    ///
    /// # Errors
    /// An unknown format, or damage; and when it can't be told whether the job still runs.
    pub(crate) fn info(&self) -> Result<Info, Failure> {
        self.truth().map(|info| self.hide_in_info(self.located(info)))
    }

    /// With where it is in line, if it is queued.
    pub(super) fn located(&self, mut info: Info) -> Info {
        if let Some(home) = self.open.dir.path().ancestors().nth(2) {
            crate::slots::locate(home, self.handle(), &mut info.state);
        }
        info
    }

    /// As [`info`](Self::info), for an answer that shows it: if the job has ended, its result counts as read.
    ///
    /// # Errors
    /// As [`info`](Self::info).
    pub(crate) fn info_to_show(&self) -> Result<Info, Failure> {
        self.info().inspect(|info| {
            if !info.state.is_live() {
                self.open.dir.mark_read();
            }
        })
    }

    /// As [`info`](Self::info), with everything in it.
    pub(crate) fn truth(&self) -> Result<Info, Failure> {
        let record = match self.record() {
            Ok(record) => record,
            // Its folder is closed to us; its keeper may still have a line to us.
            Err(failure) => return self.ask_how_it_is().or_else(|| self.as_last_known()).ok_or(failure),
        };
        if !record.state.is_live() {
            self.open.dir.tell_if_cut_short(&record);
            return Ok(Info::clone(&record));
        }
        if claim::is_end_unsaved(&self.open.dir)
            && let Some(info) = self.ask_how_it_is()
        {
            return Ok(info);
        }
        // It may have been saved between those two looks.
        let record = self.record()?;
        if !record.state.is_live() || Lock::is_held(&self.open.dir).is_ok_and(|held| held) {
            if let Ok(mut known) = self.open.last_known.lock() {
                known.record = Some(Info::clone(&record));
            }
            return Ok(Info::clone(&record));
        }
        // Nobody keeps it: it has ended just now, or is lost.
        let info = self.open.dir.current()?;
        let told = self.as_last_known().filter(|_| matches!(info.state, State::Lost { .. }));
        Ok(told.unwrap_or(info))
    }

    /// The keeper has said how the job ended.
    pub(super) fn note_end(&self, state: &State) {
        if let Ok(mut known) = self.open.last_known.lock() {
            known.end = Some(state.clone());
        }
    }

    /// The job as its keeper last told it, if that was its end.
    fn as_last_known(&self) -> Option<Info> {
        let known = self.open.last_known.lock().ok()?;
        Some(Info { state: known.end.clone()?, ..known.record.clone()? })
    }

    fn ask_how_it_is(&self) -> Option<Info> {
        let Ok(Some(Answer::Status(status))) = self.ask(&Verb::Status { brief: false }, REPLY_TIMEOUT) else {
            return None;
        };
        if let Ok(mut known) = self.open.last_known.lock() {
            known.end = Some(status.info.state.clone()).filter(|state| !state.is_live());
            known.record = Some(status.info.clone());
        }
        Some(status.info)
    }
}
