//! Text of several lines: each line when the program asks again, or one paste and Enter until its prompt is
//! back.
//!
//! The keeper decides which of both, by who reads at the moment, and never waits; so it is the client that
//! does.

use std::time::{Duration, Instant};

use outlast_protocol::request::Stream;

use super::LocalJob;
use super::read::Piece;
use crate::Condition;
use crate::failure::{Failure, Kind};
use crate::wire::{Reason, Send, Sent, Wait};

/// A program that is silent for so long takes the next line without asking for it, and one that has taken lines for
/// so long without a word takes all that are left.
const SILENT: Duration = Duration::from_secs(1);
/// After so long without output, a prompt that asks for more of a paste is there.
const SHORTLY_SILENT: Duration = Duration::from_millis(100);
/// How often Enter is pressed again after a paste.
const MOST_ENTERS: usize = 3;
/// How much of what came after a paste is looked through.
const MOST_LOOKED_AT: usize = 64 << 10;
/// What a program writes when it has taken what was pasted.
const PASTE_OFF: &[u8] = b"\x1b[?2004l";

impl LocalJob {
    /// Types text of several lines. Should the job end before the last of them, [`Sent::left`] says how much
    /// of the text was not typed.
    pub(super) fn send_lines(&self, send: &Send, patience: Duration) -> Result<Sent, Failure> {
        let until = Instant::now() + patience;
        let before = self.text_before_cursor();
        let mut sent = self.send_piece(&Send { in_steps: true, ..send.clone() }, patience)?;
        let mut total = sent;
        let mut text = send.text.as_str();
        let mut without_a_word = Duration::ZERO;
        while let Some(left) = sent.left {
            let typed = text.len().saturating_sub(usize::try_from(left).unwrap_or(usize::MAX));
            text = text.get(typed..).unwrap_or_default();
            let began = Instant::now();
            let reason = self.asks_again(&sent, SILENT, until)?;
            if reason == Reason::Exit {
                return Ok(total);
            }
            // Nothing but the echo: what was typed, and a line feed.
            if reason == Reason::AwaitingInput && self.log_end() <= sent.offset + sent.taken + 1 {
                without_a_word += began.elapsed();
            }
            // When time is up, the rest waits in the terminal until the program reads it.
            let in_steps = Instant::now() < until && without_a_word < SILENT;
            let paste = if in_steps { send.paste } else { Some(false) };
            let next = Send { text: text.into(), in_steps, paste, after: sent.count, ..send.clone() };
            sent = match self.send_piece(&next, patience) {
                Ok(sent) => sent,
                Err(failure) if failure.kind == Kind::NotRunning => return Ok(total),
                Err(failure) => return Err(only_some(failure, &send.text, text)),
            };
            total = Sent { offset: total.offset, taken: total.taken + sent.taken, ..sent };
        }
        let until_taken = sent.pasted && send.newline && send.keys.is_empty() && !send.eof;
        let pasted = sent;
        let Some(before) = before.filter(|_| until_taken) else { return Ok(total) };
        for _ in 0..MOST_ENTERS {
            if !self.is_continued(&pasted, &sent, &before, until)? {
                break;
            }
            // All of the text is typed: should somebody else type now, or the job end, there is nothing to
            // add.
            let enter = Send { newline: true, after: sent.count, ..Send::default() };
            let Ok(pressed) = self.send_piece(&enter, patience) else { break };
            sent = pressed;
            total = Sent { offset: total.offset, taken: total.taken + sent.taken, ..sent };
        }
        Ok(total)
    }

    /// Waits until the program asks again, is silent for so long, or has ended.
    fn asks_again(&self, sent: &Sent, silent: Duration, until: Instant) -> Result<Reason, Failure> {
        let wait = Wait::for_quiet(silent).or(Condition::AwaitingInput).or_exit();
        let left = until.saturating_duration_since(Instant::now());
        Ok(self.wait(&wait.from(sent.offset), Some(left))?.reason)
    }

    /// Whether the program has not taken what was pasted, but shows a prompt for more of it: not the one from
    /// before, and without a word, such as `...`.
    fn is_continued(
        &self,
        pasted: &Sent,
        sent: &Sent,
        before: &str,
        until: Instant,
    ) -> Result<bool, Failure> {
        let until = until.min(Instant::now() + SILENT);
        loop {
            let reason = self.asks_again(sent, SHORTLY_SILENT, until)?;
            if reason == Reason::Exit || self.has_taken_paste(pasted.offset)? {
                return Ok(false);
            }
            let Some(prompt) = self.text_before_cursor() else { return Ok(false) };
            let is_new = prompt != before && self.log_end() > sent.offset;
            if is_new && !prompt.is_empty() && !prompt.contains(char::is_alphanumeric) {
                return Ok(true);
            }
            if reason != Reason::Quiet {
                return Ok(false);
            }
        }
    }

    /// Whether the program has switched marked pastes off since: it does so when it has taken what was
    /// pasted.
    fn has_taken_paste(&self, since: u64) -> Result<bool, Failure> {
        let mut shown = Vec::new();
        self.range(Stream::Output, since, None)?.pieces(|_, piece| {
            if let Piece::Bytes(bytes) = piece {
                shown.extend_from_slice(bytes);
            }
            shown.len() < MOST_LOOKED_AT
        });
        Ok(shown.len() >= MOST_LOOKED_AT || shown.windows(PASTE_OFF.len()).any(|bytes| bytes == PASTE_OFF))
    }

    /// What stands before the cursor; nothing for a job without a terminal, or whose program has taken the
    /// screen.
    fn text_before_cursor(&self) -> Option<String> {
        let shot = self.screen(false, 0).ok().filter(|shot| !shot.alternate)?;
        let row = shot.rows.get(usize::from(shot.cursor.row))?;
        Some(row.chars().take(usize::from(shot.cursor.col)).collect::<String>().trim().to_owned())
    }
}

/// Says how much was typed before something went wrong.
fn only_some(failure: Failure, whole: &str, left: &str) -> Failure {
    let (all, left) = (whole.lines().count(), left.lines().count());
    let message = format!("only {} of {all} lines were typed: {}", all.saturating_sub(left), failure.message);
    Failure { message, ..failure }
}
