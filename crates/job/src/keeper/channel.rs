//! One stream of output: where it comes from, its log and its transcript. Bytes move through it in
//! [`pump`](super::pump).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use outlast_stream::Masks;
use rustix::io::Errno;

use super::core::{Core, Effects, Input, Now, Output};
use super::flood::Flood;
use super::inherited::{Ends, Files, Inherited};
use super::shared::Shared;
use crate::log::gone::Gone;
use crate::log::redacted::Redaction;
use crate::log::transcript::TranscriptWriter;
use crate::log::writer::{Fate, LogWriter, read_exact_at};
use crate::registry::format::Info;
use crate::secrets;

/// How much of a log is fed at once after a take-over.
const REPLAY_PIECE: usize = 64 << 10;
/// How long what may become a secret is held back from a redacted log: less than a probe of a prompt takes.
const HOLD_BACK: Duration = Duration::from_millis(20);

/// One stream of output.
pub(super) struct Channel {
    pub(super) source: Option<OwnedFd>,
    /// A pipe that the heir has too: bytes that have left the terminal and are not in the log yet.
    pub(super) staging: Option<(OwnedFd, OwnedFd)>,
    pub(super) log: LogWriter,
    transcript: TranscriptWriter,
    /// What was logged last, and how much of it the core has seen.
    pub(super) bytes: Vec<u8>,
    pub(super) fed: usize,
    /// A buffer for text on its way to the transcript.
    text: Vec<u8>,
    /// Secrets are hidden in the log too.
    redaction: Option<Redaction>,
    held_since: Option<Instant>,
    pub(super) flood: Flood,
    /// What an earlier keeper died of.
    pub(super) unreadable: Gone,
    pub(super) shared: Shared,
    pub(super) index: usize,
}

impl Channel {
    /// Goes on where the checkpoint says: at the beginning, or where a dead keeper was. What the log holds
    /// behind it is still to be [replayed](Self::replay).
    fn open(
        source: OwnedFd,
        staging: Option<(OwnedFd, OwnedFd)>,
        files: &Files,
        index: usize,
        (inherited, info): (&Inherited, &Info),
    ) -> std::io::Result<(Self, Output)> {
        let lost = if index == 0 { &info.gone } else { &info.errors_gone };
        let cap = info.log_cap;
        let end = inherited.shared.log_end(index);
        let checkpoint = inherited.shared.checkpoint(index);
        let transcript = TranscriptWriter::new(files.transcript.try_clone()?, checkpoint.transcript_len, cap);
        let mut channel = Self {
            source: Some(source),
            staging,
            log: LogWriter::new(files.log.try_clone()?, cap, lost.clone(), end),
            transcript,
            bytes: Vec::new(),
            fed: 0,
            text: Vec::new(),
            redaction: None,
            held_since: None,
            flood: Flood::new(),
            unreadable: if index == 0 { &info.unreadable } else { &info.errors_unreadable }.clone(),
            shared: inherited.shared,
            index,
        };
        if let Some(masks) = log_masks(inherited) {
            channel.redact(&masks)?;
            // What was written and not yet taken from the pipe is still in there.
            channel.log.go_back_to(end);
        }
        Ok((channel, Output::resume(info, &checkpoint)))
    }

    /// Feeds the core what the log already holds behind the checkpoint.
    pub(super) fn replay(&mut self, core: &mut Core, effects: &mut Effects) {
        let (now, channel) = (Now::read(), self.index);
        let mut at = core.folded_to(channel);
        while at < self.log.end() {
            let len = usize::try_from(self.log.end() - at).unwrap_or(REPLAY_PIECE).min(REPLAY_PIECE);
            self.bytes.resize(len, 0);
            // Bytes that are lost read as zeros, which the fold passes over.
            let got = read_exact_at(self.log.as_fd(), &mut self.bytes, at);
            self.bytes[got..].fill(0);
            blank(&mut self.bytes, at, &self.unreadable);
            self.shared.set_interpreted(channel, at, at + len as u64);
            core.turn(Input::Output { channel, bytes: &self.bytes }, now, effects);
            self.shared.clear_interpreted();
            self.write_transcript(core);
            at += len as u64;
        }
        self.forget_fed();
        core.turn(Input::Replayed { channel, end: self.log.end() }, now, effects);
    }

    fn source(&self) -> Option<BorrowedFd<'_>> {
        self.source.as_ref().map(AsFd::as_fd)
    }

    /// Where bytes may wait: the source, and the pipe that they go through. What is held back there on
    /// purpose has a time of its own.
    pub(super) fn sources(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let staged = self.staging.as_ref().filter(|_| self.held_since.is_none()).map(|(out, _)| out.as_fd());
        self.source().into_iter().flat_map(move |source| [Some(source), staged]).flatten()
    }

    /// From now on these are hidden in the log.
    pub(super) fn redact(&mut self, masks: &Masks) -> Result<(), Errno> {
        match &mut self.redaction {
            Some(redaction) => redaction.set_masks(masks.clone()),
            // Without a pipe to wait in, as on pipes that were not begun that way, only readers are kept from
            // them.
            None if self.staging.is_some() => self.redaction = Some(Redaction::new(masks.clone())?),
            None => {}
        }
        Ok(())
    }

    /// When what is not decided yet counts as decided.
    pub(super) fn held_until(&self) -> Option<Instant> {
        self.held_since.map(|since| since + HOLD_BACK)
    }

    /// Moves up to `len` staged bytes into the log. With `last`, nothing is held back.
    pub(super) fn take(&mut self, len: usize, last: bool) -> Result<Fate, Errno> {
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

    pub(super) fn forget_fed(&mut self) {
        self.bytes.clear();
        self.fed = 0;
    }

    /// Writes the text that the core has for the transcript.
    pub(super) fn write_transcript(&mut self, core: &mut Core) {
        if let Some(retract) = core.take_text(self.index, &mut self.text) {
            self.transcript.write(retract, &self.text);
            self.text.clear();
        }
    }

    /// Notes for the heir how far this output has come.
    pub(super) fn note_progress(&self, core: &Core) {
        self.shared.set_log_end(self.index, self.log.end());
        // An heir cuts the transcript off where the checkpoint says: what it counts must have been written.
        if let Some(checkpoint) = core.checkpoint(self.index) {
            self.shared.set_checkpoint(self.index, &checkpoint);
        }
    }
}

/// Blanks what must not be interpreted in bytes that begin at an offset.
pub(super) fn blank(bytes: &mut [u8], at: u64, unreadable: &Gone) {
    for (from, to) in unreadable.ranges() {
        let place = |offset: u64| {
            usize::try_from(offset.saturating_sub(at)).map_or(bytes.len(), |i| i.min(bytes.len()))
        };
        let (from, to) = (place(*from), place(*to));
        bytes[from..to].fill(0);
    }
}

/// Opens all channels of a job, each with what the core is to make of it.
pub(super) fn open_all(inherited: &Inherited, info: &Info) -> std::io::Result<Vec<(Channel, Output)>> {
    let context = (inherited, info);
    match (&inherited.ends, &inherited.stderr) {
        (Ends::Terminal { master, staging, .. }, _) => {
            let staging = (staging.0.try_clone()?, staging.1.try_clone()?);
            Ok(vec![Channel::open(master.try_clone()?, Some(staging), &inherited.output, 0, context)?])
        }
        (Ends::Pipes { stdout, stderr, staging, .. }, files) => {
            let staging = |i: usize| -> std::io::Result<Option<(OwnedFd, OwnedFd)>> {
                let Some(pairs) = staging else { return Ok(None) };
                Ok(Some((pairs[i].0.try_clone()?, pairs[i].1.try_clone()?)))
            };
            let mut channels =
                vec![Channel::open(stdout.try_clone()?, staging(0)?, &inherited.output, 0, context)?];
            if let Some(files) = files {
                channels.push(Channel::open(stderr.try_clone()?, staging(1)?, files, 1, context)?);
            }
            Ok(channels)
        }
    }
}

/// What is hidden in the logs themselves: all that is known if the user wants that, else what was typed as a
/// secret.
pub(super) fn log_masks(inherited: &Inherited) -> Option<Masks> {
    secrets::with(&inherited.masks, |masks| {
        if inherited.settings.secrets.redact_log { Some(masks.clone()) } else { masks.typed_only() }
    })
}
