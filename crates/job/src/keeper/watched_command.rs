//! A command that is no child of ours: we were the heir of a keeper that had itself been an heir, and the kernel made somebody
//! else the parent of the job's processes. A descriptor says when the command has ended, and how.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use outlast_pty::watched::Watched;

use super::Keeper;

/// How soon we look again whether a command that has ended was reaped: until then the kernel does not say how it ended.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(super) struct WatchedCommand {
    command: Watched,
    /// It has ended, and is not reaped yet.
    again: Option<Instant>,
}

impl WatchedCommand {
    pub(super) fn new(command: Watched) -> Self {
        Self { command, again: None }
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.again
    }

    /// Readable when it has ended; none once that is known.
    pub(super) fn source(&self) -> Option<BorrowedFd<'_>> {
        self.again.is_none().then(|| self.command.as_fd())
    }
}

impl Keeper {
    /// The command may have ended.
    pub(super) fn on_watched_ready(&mut self) {
        let Some(watched) = &mut self.watched else { return };
        watched.again = Some(Instant::now() + LOOK_AGAIN);
        self.look_at_watched(Instant::now() + LOOK_AGAIN);
    }

    pub(super) fn look_at_watched(&mut self, now: Instant) {
        let Some(watched) = &mut self.watched else { return };
        if watched.again.is_none_or(|again| now < again) {
            return;
        }
        let pid = watched.command.pid();
        match watched.command.end() {
            Some(end) if self.core.command() == Some(pid) => {
                watched.again = Some(now + Duration::from_secs(3600));
                self.on_child_end(pid, end);
            }
            Some(_) => watched.again = Some(now + Duration::from_secs(3600)),
            None => watched.again = Some(now + LOOK_AGAIN),
        }
    }
}
