//! What was printed, understood: bytes that are in the log go through the fold, and become text for the
//! transcript, a screen, and answers to what the program asks its terminal.

use outlast_stream::{Checkpoint, Modes, Pipeline};

use super::{Core, Effect, Effects, Now};
use crate::log::gone::Gone;
use crate::registry::format::Info;
use crate::search::whole_fold_config;
use crate::secrets::{self, SharedMasks};
use crate::spec::Size;
use crate::wire::event::EventKind;
use crate::wire::{Answer, Cursor, Grown, ScreenShot};

/// How much text is written to the transcript at once: secrets are looked for in it and in what was before.
const TEXT_PIECE: usize = 32 << 10;
/// How much of the transcript is remembered, to know a secret that began in it.
const REMEMBERED_TEXT: usize = 4 << 10;
/// A secret may have begun in rows that have left the screen.
const ROWS_ABOVE_SCREEN: usize = 16;
/// How much of the end of the text is looked at for its last line.
const MAX_LAST_LINE: usize = 1024;

/// One stream of output.
pub(crate) struct Output {
    pub(super) fold: Pipeline,
    outcome: outlast_stream::FoldOutput,
    masked: MaskedText,
    /// The end of its log.
    end: u64,
    /// Why its log can't be written, if it can't.
    failing: Option<String>,
    /// The last line that has ended and is not blank, without secrets.
    pub(super) last_finished: String,
}

/// Hides secrets in a transcript that grows and is taken back.
#[derive(Default)]
struct MaskedText {
    /// The end of what was written, as it was.
    before: Vec<u8>,
}

impl MaskedText {
    /// Hides what must be in the text that takes the place of the last `retract` bytes.
    fn hide(&mut self, masks: &SharedMasks, retract: u64, text: &mut [u8]) {
        let kept = self.before.len().saturating_sub(usize::try_from(retract).unwrap_or(usize::MAX));
        self.before.truncate(kept);
        self.before.extend_from_slice(text);
        let (before, masks) = (&self.before, masks);
        secrets::with(masks, |masks| masks.hide_end(before, text));
        let old = self.before.len().saturating_sub(REMEMBERED_TEXT);
        self.before.copy_within(old.., 0);
        self.before.truncate(self.before.len() - old);
    }
}

impl Output {
    /// Goes on where the checkpoint says: at the beginning, or where a dead keeper was.
    pub(crate) fn resume(info: &Info, checkpoint: &Checkpoint) -> Self {
        Self {
            fold: Pipeline::resume(whole_fold_config(info), checkpoint),
            outcome: outlast_stream::FoldOutput::default(),
            masked: MaskedText::default(),
            end: checkpoint.offset,
            failing: None,
            last_finished: String::new(),
        }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        planted_panic(bytes);
        self.fold.feed_more(bytes, &mut self.outcome);
    }

    /// Remembers the last line that has ended, for a question that ends with a newline.
    fn note_last_line(&mut self, text: &[u8]) {
        let Some(end) = text.iter().rposition(|byte| *byte == b'\n') else { return };
        let lines = text[end.saturating_sub(MAX_LAST_LINE)..end].split(|byte| *byte == b'\n');
        if let Some(last) = lines.rev().find(|line| !line.trim_ascii().is_empty()) {
            self.last_finished = String::from_utf8_lossy(last).into_owned();
        }
    }

    fn has_text(&self) -> bool {
        self.outcome.retract > 0 || !self.outcome.text.is_empty()
    }

    /// The rows of the screen, without secrets, also those that began above it.
    fn masked_rows(&mut self, masks: &SharedMasks, rows: &mut [String], cols: u16) {
        let mut all = self.fold.scrollback(ROWS_ABOVE_SCREEN);
        let above = all.len();
        all.extend_from_slice(rows);
        secrets::with(masks, |masks| masks.rows(&mut all, usize::from(cols)));
        rows.clone_from_slice(&all[above..]);
    }
}

impl Core {
    /// Whether so much text waits that it should be written to the transcript now.
    pub(crate) fn has_much_text(&self, channel: usize) -> bool {
        self.outputs.get(channel).is_some_and(|output| output.outcome.text.len() >= TEXT_PIECE)
    }

    /// Whether some of what was fed is not in the transcript yet.
    pub(crate) fn has_text(&self, channel: usize) -> bool {
        self.outputs.get(channel).is_some_and(Output::has_text)
    }

    /// Takes the text that is to be written to the transcript, without secrets, in exchange for an empty
    /// buffer. Says how much of the transcript's end it takes the place of; none if there is nothing to
    /// write.
    pub(crate) fn take_text(&mut self, channel: usize, text: &mut Vec<u8>) -> Option<u64> {
        let output = self.outputs.get_mut(channel).filter(|output| output.has_text())?;
        let retract = std::mem::take(&mut output.outcome.retract);
        output.masked.hide(&self.masks, retract, &mut output.outcome.text);
        std::mem::swap(&mut output.outcome.text, text);
        output.outcome.text.clear();
        output.note_last_line(text);
        Some(retract)
    }

    /// Where an heir can take up the fold. Only what is in the transcript counts.
    pub(crate) fn checkpoint(&self, channel: usize) -> Option<Checkpoint> {
        let output = self.outputs.get(channel)?;
        (!output.has_text()).then(|| output.fold.checkpoint())
    }

    /// How far the fold has come.
    pub(crate) fn folded_to(&self, channel: usize) -> u64 {
        self.outputs.get(channel).map_or(0, |output| output.fold.offset())
    }

    /// How far the logs have grown.
    pub(crate) fn grown(&self) -> Grown {
        let end = |i: usize| self.outputs.get(i).map_or(0, |output| output.end);
        Grown { offset: end(0), errors: end(1) }
    }

    /// What the log holds behind the checkpoint was fed: nobody waits for answers to questions of long ago.
    pub(super) fn on_replayed(&mut self, channel: usize, end: u64, effects: &mut Effects) {
        let Some(output) = self.outputs.get_mut(channel) else { return };
        output.end = end;
        output.fold.peek(&mut output.outcome);
        output.outcome.replies.clear();
        effects.push(Effect::WriteTranscript { channel });
    }

    /// All that was logged until now was fed.
    pub(super) fn on_output_paused(&mut self, channel: usize, end: u64, now: Now, effects: &mut Effects) {
        let Some(output) = self.outputs.get_mut(channel) else { return };
        output.end = end;
        self.last_output = now.at;
        if output.fold.offset() >= end {
            output.fold.peek(&mut output.outcome);
            effects.push(Effect::WriteTranscript { channel });
        }
        effects.push(Effect::NoteProgress { channel });
        if !output.outcome.replies.is_empty() {
            let replies = std::mem::take(&mut output.outcome.replies);
            self.typing.push(&replies);
            effects.push(Effect::WriteInput);
        }
    }

    /// Transcript and screen as they are at the end: on the disk before anyone is told of it.
    pub(super) fn write_last_words(&mut self, nothing_can_follow: bool, effects: &mut Effects) {
        if nothing_can_follow {
            for (channel, output) in self.outputs.iter_mut().enumerate() {
                output.fold.finish(&mut output.outcome);
                effects.push(Effect::WriteTranscript { channel });
            }
        }
        let end = self.grown().offset;
        if self.record.has_terminal() && self.screen_written_at != Some(end) {
            self.screen_written_at = Some(end);
            let mut text = self.screen_rows().join("\n");
            text.truncate(text.trim_end().len());
            text.push('\n');
            effects.push(Effect::WriteScreen(text));
        }
    }

    /// A log fails, is written again or was capped: a visible state.
    pub(super) fn on_log_changed(
        &mut self,
        channel: usize,
        failing: Option<String>,
        lost: &Gone,
        now: Now,
        effects: &mut Effects,
    ) {
        let Some(output) = self.outputs.get_mut(channel) else { return };
        let before = self.record.lost_mut(channel);
        let what = match (&failing, &output.failing) {
            (Some(error), None) => Some(EventKind::LogFailing { error: error.clone() }),
            (None, Some(_)) => {
                let last = lost.ranges().last().copied();
                last.map(|(lost_from, lost_to)| EventKind::LogResumed { lost_from, lost_to })
            }
            (None, None) => {
                let from = before.ranges().first().map_or(0, |range| range.1);
                let first = lost.ranges().first().copied();
                first.map(|(start, to)| EventKind::LogCapped { from: from.max(start), to })
            }
            (Some(_), Some(_)) => None,
        };
        output.failing = failing;
        before.clone_from(lost);
        self.record_is_stale = true;
        if let Some(what) = what {
            self.event(what, now, effects);
        }
    }

    pub(super) fn log_failing(&self) -> Option<String> {
        self.outputs.iter().find_map(|output| output.failing.clone())
    }

    /// Text without secrets.
    pub(crate) fn hide(&self, text: &str) -> String {
        secrets::with(&self.masks, |masks| masks.text(text))
    }

    /// The unfinished line, or the last finished one if that is empty.
    pub(crate) fn last_line(&self) -> String {
        self.outputs.first().map(|output| self.hide(&output.fold.unfinished())).unwrap_or_default()
    }

    /// The rows of the screen, without secrets.
    pub(crate) fn screen_rows(&mut self) -> Vec<String> {
        let Some(output) = self.outputs.first_mut() else { return Vec::new() };
        let shot = output.fold.screen();
        let mut rows = shot.rows;
        output.masked_rows(&self.masks, &mut rows, shot.size.cols);
        rows
    }

    /// The modes that programs have switched on with control sequences.
    pub(crate) fn modes(&self) -> Modes {
        self.outputs.first().map_or(Modes::fresh(false), |output| output.fold.modes())
    }

    pub(super) fn resize_fold(&mut self, size: Size, effects: &mut Effects) {
        if let Some(output) = self.outputs.first_mut() {
            let size = outlast_stream::Size { cols: size.cols, rows: size.rows };
            output.fold.resize(size, &mut output.outcome);
            effects.push(Effect::WriteTranscript { channel: 0 });
        }
    }

    /// Bytes that paint the screen, and the offset that they show.
    pub(super) fn repaint(&mut self) -> Option<(Vec<u8>, u64)> {
        let output = self.outputs.first_mut()?;
        Some((output.fold.repaint(), output.fold.offset()))
    }

    /// Answers a request for the screen.
    pub(super) fn screen(&mut self, styled: bool, scrollback: usize, masked: bool) -> Answer {
        let offset = self.grown().offset;
        let masks = &self.masks;
        let Some(output) = self.outputs.first_mut() else { return Answer::Done {} };
        let shot = output.fold.screen();
        let mut rows = if styled { output.fold.styled_screen() } else { shot.rows };
        let mut scrollback = if scrollback > 0 { output.fold.scrollback(scrollback) } else { Vec::new() };
        let mut title = shot.title;
        if masked {
            output.masked_rows(masks, &mut rows, shot.size.cols);
            let cols = usize::from(shot.size.cols);
            secrets::with(masks, |masks| {
                masks.rows(&mut scrollback, cols);
                title = masks.text(&title);
            });
        }
        Answer::Screen(Box::new(ScreenShot {
            size: Size { cols: shot.size.cols, rows: shot.size.rows },
            rows,
            scrollback,
            cursor: Cursor {
                row: narrow(shot.cursor.row),
                col: narrow(shot.cursor.col),
                visible: shot.cursor.visible,
            },
            title,
            alternate: shot.alternate,
            bracketed_paste: shot.modes.bracketed_paste,
            application_cursor: shot.modes.application_cursor,
            bells: shot.bells,
            offset,
        }))
    }
}

fn narrow(cell: usize) -> u16 {
    u16::try_from(cell).unwrap_or(u16::MAX)
}

/// What only a build for tests dies of: that an heir does not die of the same can't be tried otherwise.
pub(in crate::keeper) fn planted_panic(bytes: &[u8]) {
    const PLANTED: &[u8] = b"OUTLAST-PLANTED-PANIC";
    assert!(
        !cfg!(debug_assertions) || !bytes.windows(PLANTED.len()).any(|part| part == PLANTED),
        "planted for a test"
    );
}
