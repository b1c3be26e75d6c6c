//! What was typed and not yet taken by the program.
//!
//! The keeper never blocks on a program that does not read: input waits here, up to a limit, and the one who
//! sends more than that is answered only when there is room again. Secrets come this way too, and are
//! forgotten when typed.

use std::collections::VecDeque;

use rustix::process::Signal;
use zeroize::{Zeroize, Zeroizing};

use super::several_lines::Portion;
use super::{Client, Core, Effect, Effects, Now, PeerId};
use crate::failure::{Failure, Kind};
use crate::spec::Input;
use outlast_protocol::{AwaitingKind, Call, Hint};

use crate::wire::{self, Answer, Secret, Send, Sent, Typed};

/// Past this much, senders wait.
const HIGH_WATER: usize = 256 << 10;
/// The longest line that a terminal in line mode passes on; the kernel drops the rest without a word.
const MAX_COOKED_LINE: usize = 4095;

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
const ESCAPE: u8 = 0x1b;
/// What stands around pasted text where the program asked for that.
const PASTE_BEGINS: &str = "\x1b[200~";
const PASTE_ENDS: &str = "\x1b[201~";
/// How much of what was typed is kept: more than the longest line that anybody types in parts.
const MAX_RECENT: usize = 16 << 10;

/// Something typed that nobody was told of yet.
#[derive(Debug)]
struct Unanswered {
    client: Client,
    sent: Sent,
    /// Whether its client is not listened to until there is room.
    held: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Typing {
    queue: VecDeque<u8>,
    end_asked: bool,
    ended: bool,
    unanswered: Vec<Unanswered>,
    last_byte: Option<u8>,
    /// Whether the queue ends with the key that ends input: what comes after it begins a line.
    ends_input: bool,
    /// How long the line is that was begun in line mode and not ended yet.
    open_line: usize,
    /// What was typed since the last Ctrl-C: for those who judge what is typed by the line that it makes.
    recent: VecDeque<u8>,
    /// Whether there was more before it.
    cut: bool,
    /// How many bytes at the end of that were typed since the program was last seen to wait.
    since_prompt: usize,
    /// How often something was typed.
    count: u64,
}

impl Typing {
    pub(super) fn has_more(&self) -> bool {
        !self.queue.is_empty() || (self.end_asked && !self.ended)
    }

    pub(super) fn queued(&self) -> u64 {
        self.queue.len() as u64
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.queue.extend(bytes);
        self.ends_input = false;
    }

    /// Notes what somebody typed.
    fn note(&mut self, bytes: &[u8]) {
        self.count += 1;
        self.recent.extend(bytes);
        if let Some(at) = self.recent.iter().rposition(|byte| *byte == CTRL_C) {
            // A program may take no notice of it, and keep what was on the line.
            let is_end = |byte: &u8| [b'\r', b'\n', CTRL_C].contains(byte);
            let begin = self.recent.iter().take(at).rposition(is_end).map_or(0, |end| end + 1);
            self.cut &= begin == 0;
            self.recent.drain(..if begin == at && !self.cut { at + 1 } else { begin });
        }
        let too_many = self.recent.len().saturating_sub(MAX_RECENT);
        self.cut |= too_many > 0;
        self.recent.drain(..too_many);
        self.since_prompt = (self.since_prompt + bytes.len()).min(self.recent.len());
    }

    /// The program waits: what was typed until now is taken.
    pub(super) fn note_prompt(&mut self) {
        self.since_prompt = 0;
    }

    /// What was typed since the program was last seen to wait: the lines that were ended with Enter, and the
    /// one that was not.
    pub(super) fn lines_since_prompt(&self) -> (Vec<String>, String) {
        let skipped = self.recent.len().saturating_sub(self.since_prompt);
        let bytes: Vec<u8> = self.recent.iter().skip(skipped).copied().collect();
        let begin = bytes.iter().rposition(|byte| *byte == CTRL_C).map_or(0, |at| at + 1);
        let text = String::from_utf8_lossy(&bytes[begin..]).replace(PASTE_BEGINS, "").replace(PASTE_ENDS, "");
        let mut lines: Vec<String> = text.split(['\r', '\n']).map(str::to_owned).collect();
        let open = lines.pop().unwrap_or_default();
        lines.retain(|line| !line.is_empty());
        (lines, open)
    }

    pub(super) fn typed(&self) -> Typed {
        // What is no longer known may have been anything.
        let unknown = self.cut.then_some(ESCAPE);
        let bytes: Vec<u8> = unknown.into_iter().chain(self.recent.iter().copied()).collect();
        Typed { recent: wire::base64::encode(&bytes), count: self.count }
    }

    /// The program has taken so much of the queue.
    fn take(&mut self, taken: usize) {
        let taken = taken.min(self.queue.len());
        if taken == 0 {
            return;
        }
        self.last_byte = self.queue.get(taken - 1).copied();
        // It may have been a secret.
        let (front, back) = self.queue.as_mut_slices();
        let in_front = taken.min(front.len());
        front[..in_front].zeroize();
        back[..taken - in_front].zeroize();
        self.queue.drain(..taken);
        if self.queue.is_empty() && std::mem::take(&mut self.ends_input) {
            self.last_byte = None;
        }
        if self.queue.is_empty() && self.queue.capacity() > HIGH_WATER {
            self.queue.shrink_to_fit();
        }
    }

    /// Nobody will ever read it.
    fn clear(&mut self) {
        self.queue.make_contiguous().zeroize();
        self.queue.clear();
    }

    pub(super) fn forget_peer(&mut self, peer: PeerId) {
        self.unanswered.retain(|unanswered| unanswered.client.peer != peer);
    }

    /// How many requests are not answered yet.
    #[cfg(test)]
    pub(super) fn pending(&self) -> usize {
        self.unanswered.len()
    }

    /// How many bytes are kept.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.queue.len() + self.recent.len()
    }
}

/// Something to type that nobody may see.
#[derive(Debug)]
pub(crate) struct HiddenInput {
    client: Client,
    pub(crate) value: Zeroizing<Vec<u8>>,
    /// Whether Enter is pressed after it.
    newline: bool,
}

/// How the terminal passes on what is typed: what the kernel does with keys before a program reads them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LineModes {
    /// Line by line (`ICANON`).
    pub(crate) canonical: bool,
    /// What is typed is shown.
    pub(crate) echo: bool,
    /// Keys that send signals do so.
    pub(crate) signals: bool,
    /// Extended keys have their meaning (`IEXTEN`).
    pub(crate) extended: bool,
    /// The keys that end input, erase a line, interrupt, quit, erase a character, and quote the next key; 0
    /// for none.
    pub(crate) end_of_file: u8,
    pub(crate) erase_line: u8,
    pub(crate) interrupt: u8,
    pub(crate) quit: u8,
    pub(crate) erase: u8,
    pub(crate) quote_next: u8,
}

impl Core {
    /// What waits to be typed, in two parts.
    pub(crate) fn input(&self) -> (&[u8], &[u8]) {
        self.typing.queue.as_slices()
    }

    /// How much waits to be typed, in bytes.
    pub(crate) fn queued_input(&self) -> u64 {
        self.typing.queued()
    }

    /// Whether there is something to type or to end.
    pub(crate) fn has_input(&self) -> bool {
        self.typing.has_more()
    }

    /// Nobody knows any more what is half typed: an Escape stands for it, which may have been anything.
    pub(super) fn forget_what_was_typed(&mut self) {
        self.typing.recent.push_back(ESCAPE);
    }

    /// Types what a `send` request asks for; it is answered once the program has taken it, or there is room
    /// for more.
    pub(super) fn on_send(
        &mut self,
        client: Client,
        send: &Send,
        modes: Option<LineModes>,
        now: Now,
        effects: &mut Effects,
    ) {
        let queued = self
            .may_send(client.peer, send.holder.as_deref(), now.at)
            .and_then(|()| self.reads_what_is_typed(client.peer, send, modes))
            .and_then(|()| self.queue_input(send, modes));
        match queued {
            Err(failure) => effects.reply(client, Answer::Error(failure.into())),
            Ok(sent) => {
                self.note_signal_key(send, modes);
                self.typing.unanswered.push(Unanswered { client, sent, held: false });
                self.note_input(now, effects);
                effects.push(Effect::WriteInput);
            }
        }
    }

    /// Whether this client may type now: as the holder, or if nobody holds the job and nobody else is typing.
    fn may_send(
        &mut self,
        peer: PeerId,
        holder: Option<&str>,
        now: std::time::Instant,
    ) -> Result<(), Failure> {
        self.check_hold(peer, holder, now)?;
        if self.is_holder(holder) { Ok(()) } else { self.may_type(peer, now) }
    }

    /// Remembers who typed a key that the terminal turns into a signal: the command may die of it.
    fn note_signal_key(&mut self, send: &Send, modes: Option<LineModes>) {
        let Some(modes) = modes.filter(|modes| modes.signals) else { return };
        // What was typed last is at the end of the queue.
        let signal_of = |byte: &u8| match *byte {
            0 => None,
            byte if byte == modes.interrupt => Some((Signal::INT, byte)),
            byte if byte == modes.quit => Some((Signal::QUIT, byte)),
            _ => None,
        };
        if let Some((signal, byte)) = self.typing.queue.iter().rev().find_map(signal_of) {
            self.last_key = Some(SignalKey { signal, key: key_name(byte), session: send.session.clone() });
        }
    }

    /// A job that reads something else would never see what is typed. Its terminal is there all the same:
    /// keys that end or stop a program are for the kernel, a program may ask there (for a password, as a
    /// pager), and a person who is attached sees what comes of it.
    fn reads_what_is_typed(
        &self,
        peer: PeerId,
        send: &Send,
        modes: Option<LineModes>,
    ) -> Result<(), Failure> {
        let source = match self.record.input() {
            Input::Typed => return Ok(()),
            Input::Given => "the standard input that it was started with",
            Input::Nothing => "nowhere (it was started without)",
        };
        let is_line_mode = modes.is_none_or(|modes| modes.canonical && modes.echo);
        let only_keys = send.text.is_empty()
            && !send.eof
            && wire::base64::decode(&send.bytes).is_some_and(|bytes| bytes.iter().all(u8::is_ascii_control));
        let terminal_is_read = self.record.has_terminal()
            && (!is_line_mode || only_keys || self.awaiting.is_some() || self.is_attached(peer));
        if terminal_is_read {
            return Ok(());
        }
        let handle = self.record.handle();
        Err(Failure::usage(format!(
            "job {handle} does not read what is typed: its input comes from {source}"
        ))
        .hint(Hint::call("start it again to send it input: ", Call::RunForInput)))
    }

    fn queue_input(&mut self, send: &Send, modes: Option<LineModes>) -> Result<Sent, Failure> {
        self.check_running()?;
        if self.typing.end_asked && !self.record.has_terminal() {
            return Err(Failure::new(Kind::NotRunning, "the input of this job was ended before")
                .hint("start it again to type into it"));
        }
        if send.after.is_some_and(|count| count != self.typing.count) {
            return Err(Failure::new(
                Kind::Denied,
                "somebody else typed in between, and nothing of this was typed",
            )
            .hint("look at the screen, and try again"));
        }
        let Portion { bytes, left, pasted } = self.encode(send, modes)?;
        let offset = self.grown().offset;
        if left.is_some() {
            // A line that can't be typed is said before the first one is.
            let whole = self.encode(&Send { in_steps: false, ..send.clone() }, modes)?;
            self.refuse_long_line(&whole.bytes, modes)?;
        }
        self.typing.open_line = self.refuse_long_line(&bytes, modes)?;
        self.typing.push(&bytes);
        // A program that reads a line and does not show it: a password, as a rule.
        if modes.is_some_and(|modes| modes.canonical && !modes.echo) {
            self.typing.note(&without_what_is_hidden(&bytes));
        } else {
            self.typing.note(&bytes);
        }
        if send.eof && left.is_none() {
            self.typing.end_asked = true;
            self.typing.ended = false;
        }
        let count = Some(self.typing.count);
        Ok(Sent { offset, taken: bytes.len() as u64, queued: 0, left, pasted, count })
    }

    /// Refuses what needs a command that runs.
    pub(super) fn check_running(&self) -> Result<(), Failure> {
        if self.phase.at_work().is_some() {
            return Ok(());
        }
        let handle = self.record.handle();
        if let Some(queued) = self.phase.running().and_then(|running| running.queued.as_ref()) {
            return Err(Failure::new(
                Kind::NotRunning,
                format!("job {handle} does not run yet: {}", queued.words()),
            )
            .hint("wait until it runs, then type"));
        }
        Err(Failure::new(Kind::NotRunning, format!("job {handle} does not run any more: it has ended"))
            .hint(Hint::call("see how: ", Call::Read(handle.to_string()))))
    }

    /// In line mode the kernel passes on 4,095 bytes of a line and drops the rest: better to say no. What was
    /// typed before and not ended belongs to the line too. Returns how long the line is that stays open.
    fn refuse_long_line(&self, bytes: &[u8], modes: Option<LineModes>) -> Result<usize, Failure> {
        let Some(modes) = modes.filter(|modes| modes.canonical) else { return Ok(0) };
        let (longest, open) = line_lengths(self.typing.open_line, bytes, &modes);
        if longest <= MAX_COOKED_LINE {
            return Ok(open);
        }
        Err(Failure::usage(format!(
            "a line of {longest} bytes is longer than the {MAX_COOKED_LINE} that a terminal in line mode takes"
        ))
        .hint(Hint::call("send shorter lines, write the data to a file, or run the job on pipes: ", Call::RunOnPipes)))
    }

    /// The program took some of what was typed, or closed its input and will never take any.
    pub(super) fn on_input_written(&mut self, taken: usize, refused: bool, effects: &mut Effects) {
        self.typing.take(taken);
        if refused {
            self.typing.clear();
        }
        if self.typing.queue.is_empty() && self.typing.end_asked && !self.typing.ended {
            self.typing.ended = true;
            if self.record.has_terminal() {
                effects.push(Effect::ReadLineModes);
            } else {
                effects.push(Effect::CloseInput);
            }
        }
        self.answer_senders(false, effects);
    }

    /// Answers those whose input is in the queue, unless that is too full: they are answered when there is
    /// room.
    pub(super) fn answer_senders(&mut self, all: bool, effects: &mut Effects) {
        let (queued, full) = (self.typing.queued(), !all && self.typing.queue.len() > HIGH_WATER);
        for unanswered in &mut self.typing.unanswered {
            if full {
                if !unanswered.held {
                    unanswered.held = true;
                    effects.push(Effect::Hold { peer: unanswered.client.peer, held: true });
                }
                continue;
            }
            if unanswered.held {
                effects.push(Effect::Hold { peer: unanswered.client.peer, held: false });
            }
            effects.reply(unanswered.client, Answer::Sent(Sent { queued, ..unanswered.sent }));
        }
        if !full {
            self.typing.unanswered.clear();
        }
    }

    /// Ends the input of a terminal, with the key that does so there.
    pub(super) fn end_terminal_input(&mut self, modes: Option<LineModes>, effects: &mut Effects) {
        let cooked = modes.filter(|modes| modes.canonical);
        let key = cooked.map_or(CTRL_D, |modes| modes.end_of_file);
        // In the middle of a line, the first one only hands over what is there.
        let mid_line = !matches!(self.typing.last_byte, None | Some(b'\r' | b'\n'));
        let keys = [key, key];
        self.typing.push(if cooked.is_some() && mid_line { &keys } else { &keys[..1] });
        self.typing.ends_input = true;
        self.typing.end_asked = false;
        self.typing.open_line = 0;
        effects.push(Effect::WriteInput);
    }

    /// Whether a secret may be typed, and what becomes of it: it is hidden everywhere before it is typed.
    pub(super) fn on_secret(
        &mut self,
        client: Client,
        secret: Secret,
        modes: Option<LineModes>,
        now: Now,
        effects: &mut Effects,
    ) {
        let value = self
            .may_type(client.peer, now.at)
            .and_then(|()| self.check_running())
            .and_then(|()| if secret.force { Ok(()) } else { self.check_prompt(modes) })
            .and_then(|()| {
                secret.value.bytes().ok_or_else(|| Failure::usage("the secret is not base64 on the wire"))
            })
            .and_then(|value| self.refuse_long_line(&value, modes).map(|_| value));
        match value {
            Ok(value) => {
                effects.push(Effect::LearnSecret(HiddenInput { client, value, newline: secret.newline }));
            }
            Err(failure) => effects.reply(client, Answer::Error(failure.into())),
        }
    }

    /// A secret is hidden from now on, or can't be: then it is not typed.
    pub(super) fn on_secret_learned(
        &mut self,
        secret: &HiddenInput,
        failed: Option<Failure>,
        now: Now,
        effects: &mut Effects,
    ) {
        let HiddenInput { client, value, newline } = secret;
        let client = *client;
        if let Some(failure) = failed.or_else(|| self.check_running().err()) {
            effects.reply(client, Answer::Error(failure.into()));
            return;
        }
        let sent = Sent { offset: self.grown().offset, taken: value.len() as u64, ..Sent::default() };
        self.typing.push(value);
        self.typing.open_line = if *newline { 0 } else { self.typing.open_line + value.len() };
        if *newline {
            self.typing.push(if self.record.has_terminal() { b"\r" } else { b"\n" });
        }
        self.typing.unanswered.push(Unanswered { client, sent, held: false });
        self.note_input(now, effects);
        effects.push(Effect::WriteInput);
    }

    /// Refuses a secret where it would be shown.
    fn check_prompt(&self, modes: Option<LineModes>) -> Result<(), Failure> {
        let handle = self.record.handle();
        let no = |why: &str| {
            Err(Failure::new(
                Kind::Denied,
                format!("job {handle} is not at a prompt that hides what is typed: {why}"),
            )
            .hint(
                Hint::call("look first: ", Call::Screen(handle.to_string()))
                    .and("; if you are sure, add --force"),
            ))
        };
        let Some(modes) = modes else {
            return no("it runs on pipes and has no prompt");
        };
        match (modes.echo, modes.canonical) {
            (false, true) => Ok(()),
            (true, _) => no("its terminal would show it"),
            // Libraries that ask for passwords read keys by themselves, and show stars or nothing.
            (false, false)
                if self.awaiting.as_ref().is_some_and(|asks| asks.kind == AwaitingKind::Password) =>
            {
                Ok(())
            }
            (false, false) => {
                no("the program reads keys by itself, as shells and editors do, and may show them")
            }
        }
    }
}

/// A key that the terminal turns into a signal, and who typed it.
#[derive(Clone, Debug)]
pub(super) struct SignalKey {
    pub(super) signal: Signal,
    pub(super) key: String,
    pub(super) session: Option<String>,
}

/// How a person calls the key of a control character.
fn key_name(byte: u8) -> String {
    match byte {
        1..=0x1f => format!("Ctrl-{}", char::from(byte + 0x40)),
        0x7f => "Backspace".to_owned(),
        byte => char::from(byte).to_string(),
    }
}

/// A password is not kept; that something was typed there, which may have been anything, is.
fn without_what_is_hidden(bytes: &[u8]) -> Vec<u8> {
    let mut kept: Vec<u8> = Vec::new();
    for byte in bytes {
        let byte = if [b'\r', b'\n', CTRL_C].contains(byte) { *byte } else { ESCAPE };
        if byte != ESCAPE || kept.last() != Some(&ESCAPE) {
            kept.push(byte);
        }
    }
    kept
}

/// The longest line of what is typed, and how much of a line it leaves open, after a line that is already
/// begun.
fn line_lengths(begun: usize, bytes: &[u8], modes: &LineModes) -> (usize, usize) {
    let ends = [b'\r', b'\n', modes.end_of_file, modes.erase_line, modes.interrupt, modes.quit];
    let (mut longest, mut line) = (0, begun);
    for byte in bytes {
        if *byte != 0 && ends.contains(byte) {
            line = 0;
        } else if *byte == modes.erase {
            line = line.saturating_sub(1);
        } else {
            line += 1;
            longest = longest.max(line);
        }
    }
    (longest, line)
}
