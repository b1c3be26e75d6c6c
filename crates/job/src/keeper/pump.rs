//! The pump: bytes from the terminal or the pipes go to the log, and from there to the core.
//!
//! The kernel gives a terminal's output in pieces of a page, and needs a moment for the next. In a flood that
//! moment goes to what was staged before: it is logged and fed in small slices between the pieces.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::io::Errno;

use super::Keeper;
use super::channel::Channel;
use super::conditions::Pace;
use super::core::{Core, Effects, Input, Now};
use super::flood::comes_before;
use super::watches::SearchBuffer;
use crate::clock::millis;
use crate::secrets::SharedMasks;

/// A terminal gives at most a page or so at a time, whatever it is asked for; asking for more makes the
/// kernel allocate in vain.
const TERMINAL_READ: usize = 8 << 10;
/// How much goes to the log at once.
const BATCH: usize = 64 << 10;
/// How much is logged or fed while the terminal makes the next piece ready: three such steps and a search are
/// needed for every four pieces.
const SLICE: usize = 16 << 10;
/// How much is pumped before others get their turn.
const TURN: usize = 256 << 10;
/// How much is pumped when the command has ended: a child that keeps printing does not hold up its end.
const DRAIN: usize = 1 << 20;

/// What comes after what was staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// More: a flood.
    More,
    /// Nothing now.
    Nothing,
    /// Nothing ever.
    End,
}

/// What one round of pumping brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pumped {
    /// So many bytes, and maybe more.
    Some(usize),
    /// Nothing is there now.
    Empty,
    /// Nothing will ever come again.
    Ended,
}

/// Who sees the bytes once they are in the log.
struct Feed<'a> {
    core: &'a mut Core,
    effects: &'a mut Effects,
    now: Now,
    /// For patterns that read the log back while the terminal makes the next piece ready.
    search: Option<(&'a mut SearchBuffer, &'a SharedMasks)>,
}

impl Feed<'_> {
    /// Lets patterns see a little of the log; false when they have seen all of it.
    fn search(&mut self, channel: &Channel) -> bool {
        let Some((buffer, masks)) = &mut self.search else { return false };
        buffer.search((channel, masks), Pace::Flood, self.core, self.effects)
    }
}

impl Channel {
    /// Moves what is there into the log, and feeds it. In a flood some of it is left for the next round. With
    /// `last`, nothing is held back.
    fn pump(&mut self, last: bool, feed: &mut Feed<'_>) -> Pumped {
        let before = self.log.end();
        let (staged, next) = if self.staging.is_some() {
            self.stage(if last { None } else { self.flood.gather_until() }, feed)
        } else {
            (0, self.take_directly())
        };
        if next != Next::More {
            while self.work(BATCH, last || next == Next::End, feed) {}
        }
        let moved = staged.max(usize::try_from(self.log.end() - before).unwrap_or(0));
        if next != Next::More {
            self.feed_rest(feed);
        }
        self.flood.note(moved);
        match (moved, next) {
            (0, Next::End) => {
                self.source = None;
                Pumped::Ended
            }
            (0, _) => Pumped::Empty,
            (moved, _) => Pumped::Some(moved),
        }
    }

    /// A pipe of the command's is as good as one of ours.
    fn take_directly(&mut self) -> Next {
        self.forget_fed();
        let Some(source) = &self.source else { return Next::End };
        match self.log.take(source.as_fd(), BATCH, &mut self.bytes) {
            Ok(_) | Err(Errno::AGAIN) => Next::Nothing,
            Err(_) => Next::End,
        }
    }

    /// Moves bytes out of the terminal into the staging pipe; says how many, and what comes next.
    fn stage(&mut self, until: Option<Instant>, feed: &mut Feed<'_>) -> (usize, Next) {
        let mut staged = 0;
        while staged < BATCH {
            match self.stage_piece() {
                Ok(0) | Err(Errno::IO) => return (staged, Next::End),
                Ok(n) => staged += n,
                Err(_) => return (staged, Next::Nothing),
            }
            if let Some(until) = until {
                let worked = [self.work(SLICE, false, feed), feed.search(self)].contains(&true);
                if !worked && !self.source.as_ref().is_some_and(|source| comes_before(source, until)) {
                    return (staged, Next::Nothing);
                }
            }
        }
        (staged, if until.is_some() { Next::More } else { Next::Nothing })
    }

    /// One piece, as one step, so that no byte is ever only in our memory.
    fn stage_piece(&self) -> Result<usize, Errno> {
        let (Some(master), Some(staging)) = (&self.source, &self.staging) else { return Err(Errno::IO) };
        loop {
            match outlast_pty::system::move_into_pipe(master, &staging.1, TERMINAL_READ) {
                Err(Errno::INTR) => {}
                Err(Errno::INVAL) => return copy(master, staging),
                staged => return staged,
            }
        }
    }

    /// Does the next little thing to what has been staged: feeds some, writes some text down, or logs some
    /// more. False when there is nothing to do.
    fn work(&mut self, len: usize, last: bool, feed: &mut Feed<'_>) -> bool {
        if self.feed_some(feed) {
            return true;
        }
        if feed.core.has_much_text(self.index) {
            self.write_transcript(feed.core);
            return true;
        }
        self.forget_fed();
        self.take(len, last).is_ok()
    }

    /// Feeds a piece of what was logged and not fed yet; false when there was none.
    fn feed_some(&mut self, feed: &mut Feed<'_>) -> bool {
        let rest = &self.bytes[self.fed..];
        if rest.is_empty() {
            return false;
        }
        let piece = &rest[..rest.len().min(SLICE)];
        self.fed += piece.len();
        let from = self.log.end() - rest.len() as u64;
        self.shared.set_interpreted(self.index, from, from + piece.len() as u64);
        feed.core.turn(Input::Output { channel: self.index, bytes: piece }, feed.now, feed.effects);
        self.shared.clear_interpreted();
        true
    }

    /// Feeds all that was logged.
    fn feed_rest(&mut self, feed: &mut Feed<'_>) {
        while self.feed_some(feed) {}
    }

    fn has_unfed(&self) -> bool {
        self.fed < self.bytes.len()
    }
}

/// What fits into a pipe on every system, in one piece.
const PIPE_HOLDS: usize = 4096;

/// Where terminals can't be spliced: by hand, with a moment in which a kill could lose the piece. No more is read than the pipe
/// has room for.
fn copy(master: &OwnedFd, (out, into): &(OwnedFd, OwnedFd)) -> Result<usize, Errno> {
    let there = usize::try_from(rustix::io::ioctl_fionread(out)?).unwrap_or(PIPE_HOLDS);
    let room = PIPE_HOLDS.saturating_sub(there);
    if room == 0 {
        return Err(Errno::AGAIN);
    }
    let mut piece = [0; PIPE_HOLDS];
    let n = rustix::io::read(master, &mut piece[..room])?;
    if n == 0 { Ok(0) } else { rustix::io::write(into, &piece[..n]) }
}

impl Keeper {
    /// Pumps one channel once.
    fn pump(&mut self, index: usize, last: bool, searches: bool) -> Pumped {
        let Some(channel) = self.channels.get_mut(index) else { return Pumped::Ended };
        channel.pump(
            last,
            &mut Feed {
                core: &mut self.core,
                effects: &mut self.effects,
                now: Now::read(),
                // Only the first channel is searched.
                search: (searches && index == 0).then_some((&mut self.search_buffer, &self.inherited.masks)),
            },
        )
    }

    /// A channel has bytes: pump them, up to a turn's worth.
    pub(super) fn on_output(&mut self, index: usize) {
        let mut budget = TURN;
        while let Pumped::Some(moved) = self.pump(index, false, true) {
            self.after_output(index);
            if budget == 0 {
                break;
            }
            budget = budget.saturating_sub(moved);
        }
        if self.channels.get(index).is_some_and(Channel::has_unfed) || self.core.has_text(index) {
            // What is still in the pipe is seen there; what is out of it must not wait for the next byte.
            self.feed_rest(index);
            self.after_output(index);
        }
    }

    fn feed_rest(&mut self, index: usize) {
        if let Some(channel) = self.channels.get_mut(index) {
            channel.feed_rest(&mut Feed {
                core: &mut self.core,
                effects: &mut self.effects,
                now: Now::read(),
                search: None,
            });
        }
    }

    fn after_output(&mut self, index: usize) {
        let Some(channel) = self.channels.get(index) else { return };
        let end = channel.log.end();
        let now = Instant::now();
        let since = now.saturating_duration_since(self.inherited.started);
        self.inherited.shared.set_last_output_ms(millis(since));
        self.timing.grown(since, index, end);
        self.plan_sync(now);
        self.note_log_changes();
        self.feed(Input::OutputPaused { channel: index, end });
    }

    /// Pumps what was printed before the command ended.
    pub(super) fn drain(&mut self) {
        for index in 0..self.channels.len() {
            let mut left = DRAIN;
            while left > 0 {
                let Pumped::Some(moved) = self.pump(index, true, false) else { break };
                left = left.saturating_sub(moved);
                self.after_output(index);
            }
        }
    }

    /// Nothing came behind what was held back: it is what it is.
    pub(super) fn release_held(&mut self, now: Instant) {
        for index in 0..self.channels.len() {
            let is_due = self.channels[index].held_until().is_some_and(|at| now >= at);
            if is_due && matches!(self.pump(index, true, false), Pumped::Some(_)) {
                self.after_output(index);
            }
        }
    }
}
