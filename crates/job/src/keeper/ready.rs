//! What a keeper makes before its order comes: the folder of a job that has no number yet, and the files that
//! every job needs. On a disk these take longer than the order itself.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io::Errno;

use super::inherited::{Ends, Files, open_to_append, system_error};
use crate::failure::Failure;
use crate::lifecycle::{Process, StartError};
use crate::registry::claim::Fresh;
use crate::registry::replace::write_new;
use crate::registry::{Home, JobDir, layout};
use crate::spec::Size;

/// A home, and a folder in it that the next job can have.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) home: Home,
    pub(super) fresh: Fresh,
    pub(super) made: Made,
    /// What most jobs run in; without one there is still the order to say why.
    pub(super) terminal: Option<Ends>,
    /// This very process.
    pub(super) heir: Option<Process>,
}

/// The files that every job has.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) output: Files,
    pub(super) timing: OwnedFd,
    pub(super) events: OwnedFd,
    pub(super) listener: OwnedFd,
}

impl Made {
    fn open(job: &JobDir) -> Result<Self, StartError> {
        let files = |error: Errno| system_error("cannot make the job's files", error);
        for later in [layout::INFO, layout::MASKS] {
            write_new(job, later, &[]).map_err(files)?;
        }
        Ok(Self {
            output: Files::open(job, layout::OUTPUT, layout::TRANSCRIPT).map_err(files)?,
            timing: open_to_append(job, layout::TIMING).map_err(files)?,
            events: open_to_append(job, layout::EVENTS).map_err(files)?,
            listener: crate::socket::listen(job)
                .map_err(|error| system_error("cannot open a socket", error))?,
        })
    }
}

impl Ready {
    /// Makes it all.
    pub(super) fn make(home: &Path) -> Result<Self, Failure> {
        let home = Home::open(home)?;
        let fresh = Fresh::make(&home)?;
        match Made::open(&fresh.job) {
            Ok(made) => {
                let terminal = Ends::open_terminal(Size::default()).ok();
                Ok(Self { home, fresh, made, terminal, heir: super::start::this_process() })
            }
            Err(error) => {
                fresh.discard(&home);
                Err(Failure::new(crate::failure::Kind::CannotStart, error.message).hint(error.hint))
            }
        }
    }

    /// Nobody wants it.
    pub(super) fn discard(self) {
        self.fresh.discard(&self.home);
    }
}

/// Works out what is the same for every job: processes forked after it have it.
pub(super) fn warm_up() {
    let _ = outlast_stream::Masks::new([0; 32]).text("://");
    let _ = outlast_pty::procfs::boot_id();
    let _ = outlast_pty::procfs::pid_namespace();
}
