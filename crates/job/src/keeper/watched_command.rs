//! A command that is not our child: we were the heir of a keeper that had itself been an heir, and the kernel made somebody
//! else the parent of the job's processes. A descriptor says when the command has ended, and how. What it left, and the helper of
//! the keeper before us, are watched in the same way: nobody else would tell us that they are gone, and we would stay for ever.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use outlast_pty::procfs::Proc;
use outlast_pty::reap::End;
use outlast_pty::watched::Watched;

use super::core::Input;
use super::{Keeper, outbox_writer};
use crate::clock::earliest;

/// How soon we look again whether a command that has ended was reaped: until then the kernel does not say how it ended.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// How soon we look again for what it left, where that can't be watched.
const LOOK_FOR_STRAYS: Duration = Duration::from_secs(1);
/// How many of those that it left are watched at a time: when these have ended, the next.
const MAX_STRAYS: usize = 16;

#[derive(Debug)]
pub(super) struct WatchedCommand {
    command: Watched,
    /// Whether its end is known.
    is_over: bool,
    /// It has ended, and is not reaped yet.
    again: Option<Instant>,
    /// The helper that the keeper before us has started.
    helper: Option<Watched>,
    /// What the command left.
    strays: Vec<Watched>,
    /// When we look for what it left.
    look_at: Option<Instant>,
}

impl WatchedCommand {
    pub(super) fn new(command: Watched) -> Self {
        Self { command, is_over: false, again: None, helper: None, strays: Vec::new(), look_at: None }
    }

    pub(super) fn next(&self) -> Option<Instant> {
        earliest(self.again, self.look_at)
    }

    /// Readable when it has ended; none once that is known.
    pub(super) fn source(&self) -> Option<BorrowedFd<'_>> {
        (self.again.is_none() && !self.is_over).then(|| self.command.as_fd())
    }

    /// Each readable when it has ended: the helper, and what the command left.
    pub(super) fn others(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.helper.iter().chain(&self.strays).map(AsFd::as_fd)
    }
}

impl Keeper {
    /// The command is not our child, nor is the helper of the keeper before us.
    pub(super) fn watch_command(&mut self, command: Watched) {
        let mut watched = WatchedCommand::new(command);
        if let Some(helper) = self.helper {
            watched.helper = Watched::open(helper).ok();
            // Only now: the descriptor stays with this process, even if its number is given away later.
            if watched.helper.is_none() || outbox_writer::helper_of(&self.inherited).is_none() {
                watched.helper = None;
                self.watched = Some(watched);
                return self.on_unseen_helper_ended();
            }
        }
        self.watched = Some(watched);
    }

    /// The command may have ended.
    pub(super) fn on_watched_ready(&mut self) {
        let Some(watched) = &mut self.watched else { return };
        watched.again = Some(Instant::now() + LOOK_AGAIN);
        self.look_at_watched(Instant::now() + LOOK_AGAIN);
    }

    /// The helper, or something that the command left, has ended. What is left now is looked at after every round.
    pub(super) fn on_other_watched_ready(&mut self) {
        let Some(watched) = &mut self.watched else { return };
        watched.strays.clear();
        if watched.helper.take_if(|helper| helper.has_ended()).is_some() {
            self.on_unseen_helper_ended();
        }
    }

    /// It was not our child: what it has left in the spool says whether it was done.
    fn on_unseen_helper_ended(&mut self) {
        self.helper = None;
        if outbox_writer::has_orders(&self.inherited) {
            self.feed(Input::HelperFailed("the helper that wakes ended before it was done".into()));
        } else {
            self.feed(Input::HelperEnded(End::Code(0)));
        }
    }

    pub(super) fn look_at_watched(&mut self, now: Instant) {
        let Some(watched) = &mut self.watched else { return };
        watched.look_at.take_if(|at| now >= *at);
        if watched.again.is_none_or(|again| now < again) {
            return;
        }
        let pid = watched.command.pid();
        let Some(end) = watched.command.end() else {
            watched.again = Some(now + LOOK_AGAIN);
            return;
        };
        (watched.is_over, watched.again) = (true, None);
        if self.core.command() == Some(pid) {
            self.on_child_end(pid, end);
        }
    }

    /// Some of the job is left: we are told when that ends.
    pub(super) fn watch_strays(&mut self) {
        let has_none = self.watched.as_ref().is_some_and(|watched| watched.strays.is_empty());
        if !has_none || !self.core.has_ended() {
            return;
        }
        let left = self.members();
        let Some(watched) = &mut self.watched else { return };
        let open = |process: &Proc| Watched::open(process.pid).ok();
        watched.strays = left.iter().take(MAX_STRAYS).filter_map(open).collect();
        if watched.strays.is_empty() && watched.look_at.is_none() {
            watched.look_at = Some(Instant::now() + LOOK_FOR_STRAYS);
        }
    }
}
