//! What a job's record says of it besides its state and its heir, which have their own places in the core.
//! The record as a whole is put together when it is written or shown.

use crate::lifecycle::{Process, State};
use crate::log::gone::Gone;
use crate::registry::format::Info;
use crate::spec::{Handle, Input, Size, Streams};

/// A record without state and heir.
#[derive(Debug)]
pub(super) struct Record {
    info: Info,
}

impl Record {
    /// Takes a record apart.
    pub(super) fn new(mut info: Info) -> (Self, State, Option<Process>) {
        let state = std::mem::replace(&mut info.state, State::Starting);
        let heir = info.heir.take();
        (Self { info }, state, heir)
    }

    /// Puts it together again.
    pub(super) fn with(&self, state: State, heir: Option<Process>) -> Info {
        Info { state, heir, ..self.info.clone() }
    }

    pub(super) fn handle(&self) -> Handle {
        self.info.handle
    }

    pub(super) fn streams(&self) -> Streams {
        self.info.streams
    }

    pub(super) fn has_terminal(&self) -> bool {
        self.info.has_terminal()
    }

    /// A job that was queued runs since then, in milliseconds since 1970.
    pub(super) fn set_started_at(&mut self, at: u64) {
        self.info.started_at = Some(at);
    }

    pub(super) fn set_size(&mut self, size: Size) {
        self.info.streams = Streams::Terminal(size);
    }

    /// The size that the terminal gets back when people have left.
    pub(super) fn size_alone_mut(&mut self) -> &mut Option<Size> {
        &mut self.info.size_alone
    }

    /// Where the job's input comes from.
    /// How much CPU time each of its processes may use.
    pub(super) fn cpu_limit(&self) -> Option<std::time::Duration> {
        self.info.limits.cpu_time
    }

    pub(super) fn input(&self) -> Input {
        self.info.input
    }

    /// Which bytes of a log are lost.
    pub(super) fn lost_mut(&mut self, channel: usize) -> &mut Gone {
        if channel == 0 { &mut self.info.gone } else { &mut self.info.errors_gone }
    }

    /// A person has allowed the job to connect to a host.
    pub(super) fn allow_host(&mut self, host: String) {
        self.info.allowed_hosts.push(host);
    }
}
