//! The pump: bytes from the terminal or the pipes go to the log, and from there through the fold.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use outlast_pty::reap;
use outlast_stream::{Masks, Outcome, Pipeline};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};

use super::flood::{Flood, comes_before};
use super::ground::{Ends, Files, Ground};
use super::masking::Hiding;
use super::shared::Shared;
use super::{Keeper, Life};
use crate::clock::millis;
use crate::log::gone::Gone;
use crate::log::redacted::Redaction;
use crate::log::timing::TimingWriter;
use crate::log::transcript::TranscriptWriter;
use crate::log::writer::{Fate, LogWriter, read_exact_at};
use crate::registry::format::Info;
use crate::search::fold_config;
use crate::secrets::SharedMasks;
use crate::wire::event::What;

/// A terminal gives at most a page or so at a time, whatever it is asked for; asking for more makes the kernel
/// allocate in vain.
const TERMINAL_READ: usize = 8 << 10;
/// How much goes to the log at once.
const BATCH: usize = 64 << 10;
/// How much is logged, or goes through the fold, while the terminal makes the next piece ready: three such steps and a
/// search are needed for every four pieces.
const SLICE: usize = 16 << 10;
/// How much text is written down at once: secrets are looked for in it and in what was before.
const TEXT: usize = 32 << 10;
/// How long what may become a secret is held back from a redacted log: less than a look at a prompt takes.
const HOLD: Duration = Duration::from_millis(20);
/// How much is pumped before others get their turn.
const TURN: usize = 256 << 10;

/// One stream of output: where it comes from, its log, its fold and its transcript.
pub(super) struct Channel {
    source: Option<OwnedFd>,
    staging: Option<(OwnedFd, OwnedFd)>,
    pub(super) log: LogWriter,
    pub(super) fold: Pipeline,
    transcript: TranscriptWriter,
    pub(super) outcome: Outcome,
    /// What was logged last, and how much of it has gone through the fold.
    bytes: Vec<u8>,
    folded: usize,
    pub(super) was_failing: bool,
    masks: SharedMasks,
    hiding: Hiding,
    /// Secrets are hidden in the log too.
    redaction: Option<Redaction>,
    held_since: Option<Instant>,
    flood: Flood,
    shared: Shared,
    index: usize,
}

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

/// Something else to do while the terminal makes the next piece ready; false when there is nothing.
type Meanwhile<'a> = dyn FnMut(&LogWriter) -> bool + 'a;

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

impl Channel {
    /// Goes on where the checkpoint says: at the beginning, or where a dead keeper was.
    fn open(
        source: OwnedFd,
        staging: Option<(OwnedFd, OwnedFd)>,
        files: &Files,
        index: usize,
        (ground, info): (&Ground, &Info),
    ) -> std::io::Result<Self> {
        let gone = if index == 0 { &info.gone } else { &info.errors_gone };
        let cap = info.log_cap;
        let end = ground.shared.log_end(index);
        let checkpoint = ground.shared.checkpoint(index);
        let transcript = TranscriptWriter::new(files.transcript.try_clone()?, checkpoint.transcript_len, cap);
        let mut channel = Self {
            source: Some(source),
            staging,
            log: LogWriter::new(files.log.try_clone()?, cap, gone.clone(), end),
            fold: Pipeline::resume(fold_config(info.streams), &checkpoint),
            transcript,
            outcome: Outcome::default(),
            bytes: Vec::new(),
            folded: 0,
            was_failing: false,
            masks: ground.masks.clone(),
            hiding: Hiding::default(),
            redaction: None,
            held_since: None,
            flood: Flood::new(),
            shared: ground.shared,
            index,
        };
        if let Some(masks) = super::secret::log_masks(ground) {
            channel.redact(&masks)?;
            // What was written and not yet taken from the pipe is still in there.
            channel.log.go_back_to(end);
        }
        channel.replay_log();
        Ok(channel)
    }

    /// Feeds the fold what the log already holds behind the checkpoint.
    fn replay_log(&mut self) {
        while self.fold.offset() < self.log.end() {
            let at = self.fold.offset();
            let len = usize::try_from(self.log.end() - at).unwrap_or(BATCH).min(BATCH);
            self.bytes.resize(len, 0);
            self.folded = 0;
            // Bytes that are gone read as zeros, which the fold passes over.
            let got = read_exact_at(self.log.as_fd(), &mut self.bytes, at);
            self.bytes[got..].fill(0);
            self.fold_rest();
            // Nobody waits for answers to questions of long ago.
            self.outcome.replies.clear();
        }
    }

    pub(super) fn source(&self) -> Option<BorrowedFd<'_>> {
        self.source.as_ref().map(AsFd::as_fd)
    }

    /// Where bytes may wait: the source, and the pipe that they go through. What is held back there on purpose has a
    /// time of its own.
    pub(super) fn sources(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let staged = self.staging.as_ref().filter(|_| self.held_since.is_none()).map(|(out, _)| out.as_fd());
        self.source().into_iter().flat_map(move |source| [Some(source), staged]).flatten()
    }

    /// From now on these are hidden in the log.
    pub(super) fn redact(&mut self, masks: &Masks) -> Result<(), Errno> {
        match &mut self.redaction {
            Some(redaction) => redaction.set_masks(masks.clone()),
            // Without a pipe to wait in, as on pipes that were not begun that way, only readers are kept from them.
            None if self.staging.is_some() => self.redaction = Some(Redaction::new(masks.clone())?),
            None => {}
        }
        Ok(())
    }

    /// When what is not decided yet counts as decided.
    pub(super) fn held_until(&self) -> Option<Instant> {
        self.held_since.map(|since| since + HOLD)
    }

    fn take(&mut self, len: usize, last: bool) -> Result<Fate, Errno> {
        let Some((out, _)) = &self.staging else { return Err(Errno::AGAIN) };
        let Some(redaction) = &mut self.redaction else {
            return self.log.take(out.as_fd(), len, &mut self.bytes);
        };
        let taken = redaction.take(&mut self.log, (out.as_fd(), len), &mut self.bytes, last);
        // At once: these bytes are not in the pipe any more.
        self.shared.set_log_end(self.index, self.log.end());
        self.held_since = redaction.holds().then(|| self.held_since.unwrap_or_else(Instant::now));
        taken
    }

    /// Moves what is there into the log, and lets the fold see it. In a flood some of it is left for the next round. With
    /// `last`, nothing is held back.
    fn pump(&mut self, last: bool, meanwhile: &mut Meanwhile<'_>) -> Pumped {
        let before = self.log.end();
        let (staged, next) = if self.staging.is_some() {
            self.stage(if last { None } else { self.flood.gather_until() }, meanwhile)
        } else {
            (0, self.take_directly())
        };
        if next != Next::More {
            while self.work(BATCH, last || next == Next::End) {}
            self.fold_rest();
        }
        let moved = staged.max(usize::try_from(self.log.end() - before).unwrap_or(0));
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
        self.forget_folded();
        let Some(source) = &self.source else { return Next::End };
        match self.log.take(source.as_fd(), BATCH, &mut self.bytes) {
            Ok(_) | Err(Errno::AGAIN) => Next::Nothing,
            Err(_) => Next::End,
        }
    }

    /// Moves bytes out of the terminal into the staging pipe; says how many, and what comes next.
    ///
    /// The kernel gives a terminal's output in pieces of a page, and needs a moment for the next. In a flood that moment goes
    /// to what was staged before, or is waited for.
    fn stage(&mut self, until: Option<Instant>, meanwhile: &mut Meanwhile<'_>) -> (usize, Next) {
        let mut staged = 0;
        while staged < BATCH {
            match self.stage_piece() {
                Ok(0) | Err(Errno::IO) => return (staged, Next::End),
                Ok(n) => staged += n,
                Err(_) => return (staged, Next::Nothing),
            }
            if let Some(until) = until {
                let worked = [self.work(SLICE, false), meanwhile(&self.log)].contains(&true);
                if !worked && !self.source.as_ref().is_some_and(|source| comes_before(source, until)) {
                    return (staged, Next::Nothing);
                }
            }
        }
        (staged, if until.is_some() { Next::More } else { Next::Nothing })
    }

    /// One piece, as one step, so that no byte is ever only in our memory.
    fn stage_piece(&self) -> Result<usize, Errno> {
        let (Some(master), Some((_, into))) = (&self.source, &self.staging) else { return Err(Errno::IO) };
        loop {
            match splice(master, None, into, None, TERMINAL_READ, SpliceFlags::NONBLOCK) {
                Err(Errno::INTR) => {}
                Err(Errno::INVAL) => return copy(master, into),
                staged => return staged,
            }
        }
    }

    /// Does the next little thing to what has been staged: lets the fold see some, writes some down, or logs some more. False
    /// when there is nothing to do.
    fn work(&mut self, len: usize, last: bool) -> bool {
        if self.fold_some() {
            return true;
        }
        if self.outcome.text.len() >= TEXT {
            self.write_transcript();
            return true;
        }
        self.forget_folded();
        self.take(len, last).is_ok()
    }

    fn forget_folded(&mut self) {
        self.bytes.clear();
        self.folded = 0;
    }

    /// Lets the fold see a piece of what it has not seen yet; false when there was none.
    fn fold_some(&mut self) -> bool {
        let rest = &self.bytes[self.folded..];
        if rest.is_empty() {
            return false;
        }
        let piece = &rest[..rest.len().min(SLICE)];
        self.folded += piece.len();
        self.fold.feed_more(piece, &mut self.outcome);
        true
    }

    /// Lets the fold see all that was logged.
    fn fold_rest(&mut self) {
        while self.fold_some() {}
        self.fold.peek(&mut self.outcome);
        self.write_transcript();
    }

    fn write_transcript(&mut self) {
        if self.outcome.retract > 0 || !self.outcome.text.is_empty() {
            self.hiding.hide(&self.masks, self.outcome.retract, &mut self.outcome.text);
            self.transcript.write(self.outcome.retract, &self.outcome.text);
            self.outcome.retract = 0;
            self.outcome.text.clear();
        }
    }

    fn note_progress(&self, shared: &Shared, index: usize) {
        shared.set_log_end(index, self.log.end());
        // An heir cuts the transcript off where the checkpoint says: what it counts must have been written.
        if self.outcome.retract == 0 && self.outcome.text.is_empty() {
            shared.set_checkpoint(index, &self.fold.checkpoint());
        }
    }

    /// No more output: the unfinished rest becomes part of the transcript.
    pub(super) fn finish(&mut self) {
        self.fold.finish(&mut self.outcome);
        self.write_transcript();
    }

    /// A new size, for the screen.
    pub(super) fn resize(&mut self, size: crate::spec::Size) {
        let size = outlast_stream::Size { cols: size.cols, rows: size.rows };
        self.fold.resize(size, &mut self.outcome);
        self.write_transcript();
    }
}

/// Where terminals can't be spliced: by hand, with a moment in which a kill could lose the piece.
fn copy(master: &OwnedFd, into: &OwnedFd) -> Result<usize, Errno> {
    let mut piece = [0; 4096];
    let n = rustix::io::read(master, &mut piece)?;
    rustix::io::write(into, &piece[..n])
}

/// Opens all channels of a job.
pub(super) fn open_channels(ground: &Ground, info: &Info) -> std::io::Result<Vec<Channel>> {
    let context = (ground, info);
    match (&ground.ends, &ground.errors) {
        (Ends::Terminal { master, staging, .. }, _) => {
            let staging = (staging.0.try_clone()?, staging.1.try_clone()?);
            Ok(vec![Channel::open(master.try_clone()?, Some(staging), &ground.output, 0, context)?])
        }
        (Ends::Pipes { stdout, stderr, staging, .. }, errors) => {
            let staging = |i: usize| -> std::io::Result<Option<(OwnedFd, OwnedFd)>> {
                let Some(pairs) = staging else { return Ok(None) };
                Ok(Some((pairs[i].0.try_clone()?, pairs[i].1.try_clone()?)))
            };
            let mut channels =
                vec![Channel::open(stdout.try_clone()?, staging(0)?, &ground.output, 0, context)?];
            if let Some(files) = errors {
                channels.push(Channel::open(stderr.try_clone()?, staging(1)?, files, 1, context)?);
            }
            Ok(channels)
        }
    }
}

/// What to tell of a log whose gone ranges or health changed.
pub(super) fn describe_change(before: &Gone, log: &LogWriter, was_failing: &mut bool) -> Option<What> {
    let lost = log.gone().ranges().last().copied();
    match (log.failing(), *was_failing) {
        (Some(error), false) => {
            *was_failing = true;
            Some(What::LogFailing { error: error.to_string() })
        }
        (None, true) => {
            *was_failing = false;
            lost.map(|(lost_from, lost_to)| What::LogResumed { lost_from, lost_to })
        }
        (None, false) => {
            let from = before.ranges().first().map_or(0, |range| range.1);
            let &(start, to) = log.gone().ranges().first()?;
            Some(What::LogCapped { from: from.max(start), to })
        }
        (Some(_), true) => None,
    }
}

impl Keeper {
    /// A channel has bytes: pump them, up to a turn's worth.
    pub(super) fn on_output(&mut self, index: usize) {
        let mut budget = TURN;
        while let Some(channel) = self.channels.get_mut(index) {
            let (waits, peers) = (&mut self.waits, &mut self.peers);
            // Only the first channel is searched.
            match channel.pump(false, &mut |log| index == 0 && waits.catch_up_a_little(log, peers)) {
                Pumped::Some(moved) if budget > 0 => {
                    budget = budget.saturating_sub(moved);
                    self.after_output(index);
                }
                Pumped::Some(_) => {
                    self.after_output(index);
                    break;
                }
                Pumped::Empty | Pumped::Ended => break,
            }
        }
        if let Some(channel) = self.channels.get_mut(index)
            && (channel.folded < channel.bytes.len() || !channel.outcome.text.is_empty())
        {
            // What is still in the pipe is seen there; what is out of it must not wait for the next byte.
            channel.fold_rest();
            self.after_output(index);
        }
    }

    fn after_output(&mut self, index: usize) {
        let now = Instant::now();
        let since = now.saturating_duration_since(self.ground.started);
        self.last_output = now;
        self.ground.shared.set_last_output_ms(millis(since));
        let Some(channel) = self.channels.get_mut(index) else { return };
        channel.note_progress(&self.ground.shared, index);
        self.timing.grown(since, index, channel.log.end());
        if !channel.outcome.replies.is_empty() {
            let replies = std::mem::take(&mut channel.outcome.replies);
            self.typing.push(&replies);
            self.type_more();
        }
        self.waits.on_output(index, now);
        self.watching.on_output(index);
        self.note_activity();
    }

    /// Pumps what was printed before the command ended. A child that keeps printing does not hold this up.
    pub(super) fn drain(&mut self) {
        for index in 0..self.channels.len() {
            let mut left: usize = 1 << 20;
            while left > 0
                && let Some(channel) = self.channels.get_mut(index)
            {
                let Pumped::Some(moved) = channel.pump(true, &mut |_| false) else { break };
                left = left.saturating_sub(moved);
                self.after_output(index);
            }
        }
    }

    /// Nothing came behind what was held back: it is what it is.
    pub(super) fn release_held(&mut self, now: Instant) {
        for index in 0..self.channels.len() {
            if let Some(channel) = self.channels.get_mut(index)
                && channel.held_until().is_some_and(|at| now >= at)
                && matches!(channel.pump(true, &mut |_| false), Pumped::Some(_))
            {
                self.after_output(index);
            }
        }
    }

    /// A keeper on this ground; what a dead one left is taken up.
    pub(super) fn new(ground: Ground, info: Info, command: rustix::process::Pid) -> std::io::Result<Self> {
        use rustix::process::Signal;
        let signals = outlast_pty::signals::Signals::catch(&[Signal::CHILD, Signal::TERM, Signal::USR1])?;
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::USR1));
        let channels = open_channels(&ground, &info)?;
        let timing = TimingWriter::new(ground.timing.try_clone()?);
        let events = super::events::EventLog::new(ground.events.try_clone()?);
        let silent_since = std::time::Duration::from_millis(ground.shared.last_output_ms());
        let life = if info.state.is_live() { Life::Running { command, stopped: false } } else { Life::Ended };
        Ok(Self {
            life,
            childless: reap::peek(None) == reap::Peeked::NoChildren,
            heir_lives: true,
            channels,
            timing,
            events,
            typing: super::typing::Typing::default(),
            peers: super::peers::Peers::default(),
            waits: super::waits::Waits::default(),
            watching: super::watching::Watching::new(&ground, &info),
            telling: super::telling::Telling::new(&ground, &info),
            looking: super::looking::Looking::default(),
            watchdog: super::watchdog::Watchdog::new(&ground.settings.watchdog),
            viewers: super::viewers::Viewers::default(),
            ending: None,
            last_signal: None,
            last_output: ground.started + silent_since,
            last_input: ground.started,
            signals,
            oom_kills_before: super::reaping::oom_kills(),
            record_is_stale: false,
            unsaved: None,
            released: false,
            room: super::room::Room::Held,
            spares: super::record::Spares::default(),
            tidy_at: None,
            screen_written_at: None,
            ground,
            info,
        })
    }
}
