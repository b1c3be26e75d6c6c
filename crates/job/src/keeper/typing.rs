//! What was typed and not yet taken by the program.
//!
//! The keeper never blocks on a program that does not read: input waits here, up to a limit, and whoever sends
//! more than that is answered only when there is room again.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use rustix::process::Signal;
use rustix::termios::{LocalModes, SpecialCodeIndex, Termios, tcgetattr};

use super::ground::Ends;
use super::lines::Portion;
use super::peers::PeerId;
use super::{Keeper, Life};
use crate::failure::{Failure, Kind};
use crate::spec::Input;
use crate::wiped::wipe;
use crate::wire::{self, Answer, Send, Sent, Typed};

/// Past this much, senders wait.
const HIGH_WATER: usize = 256 << 10;
/// The longest line that a terminal in line mode passes on; the kernel drops the rest without a word.
const LONGEST_COOKED_LINE: usize = 4095;

const CTRL_C: u8 = 3;
const ESCAPE: u8 = 0x1b;
/// What stands around pasted text where the program asked for that.
const PASTE_BEGINS: &str = "\x1b[200~";
const PASTE_ENDS: &str = "\x1b[201~";
/// How much of what was typed is kept: more than the longest line that anybody types in parts.
const MOST_RECENT: usize = 16 << 10;

#[derive(Debug, Default)]
pub(super) struct Typing {
    queue: VecDeque<u8>,
    end_asked: bool,
    ended: bool,
    held_replies: Vec<(PeerId, u64, Sent)>,
    last_byte: Option<u8>,
    /// How long the line is that was begun in line mode and not ended yet.
    open_line: usize,
    /// What was typed since the last Ctrl-C: for those who judge what is typed by the line that it makes.
    recent: VecDeque<u8>,
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
    }

    /// Notes what somebody typed.
    fn note(&mut self, bytes: &[u8]) {
        self.count += 1;
        let bytes = match bytes.iter().rposition(|byte| *byte == CTRL_C) {
            Some(at) => {
                self.recent.clear();
                &bytes[at + 1..]
            }
            None => bytes,
        };
        let bytes = &bytes[bytes.len().saturating_sub(MOST_RECENT)..];
        let too_many = (self.recent.len() + bytes.len()).saturating_sub(MOST_RECENT);
        self.recent.drain(..too_many);
        self.recent.extend(bytes);
        self.since_prompt = (self.since_prompt + bytes.len()).min(self.recent.len());
    }

    /// The program waits: what was typed until now is taken.
    pub(super) fn note_prompt(&mut self) {
        self.since_prompt = 0;
    }

    /// What was typed since the program was last seen to wait: the lines that were ended with Enter, and the one
    /// that was not.
    pub(super) fn lines_since_prompt(&self) -> (Vec<String>, String) {
        let skipped = self.recent.len().saturating_sub(self.since_prompt);
        let bytes: Vec<u8> = self.recent.iter().skip(skipped).copied().collect();
        let text = String::from_utf8_lossy(&bytes).replace(PASTE_BEGINS, "").replace(PASTE_ENDS, "");
        let mut lines: Vec<String> = text.split(['\r', '\n']).map(str::to_owned).collect();
        let open = lines.pop().unwrap_or_default();
        lines.retain(|line| !line.is_empty());
        (lines, open)
    }

    pub(super) fn typed(&self) -> Typed {
        let bytes: Vec<u8> = self.recent.iter().copied().collect();
        Typed { recent: wire::base64::encode(&bytes), count: self.count }
    }

    /// Writes what the program takes now.
    fn write_to(&mut self, sink: BorrowedFd<'_>) -> Result<(), Errno> {
        while !self.queue.is_empty() {
            let (front, _) = self.queue.as_slices();
            match rustix::io::write(sink, front) {
                Ok(0) | Err(Errno::AGAIN) => return Ok(()),
                Ok(n) => {
                    self.last_byte = front.get(n - 1).copied();
                    // It may have been a secret.
                    wipe(&mut self.queue.as_mut_slices().0[..n]);
                    self.queue.drain(..n);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        if self.queue.capacity() > HIGH_WATER {
            self.queue.shrink_to_fit();
        }
        Ok(())
    }
}

impl Keeper {
    /// Where input goes, while there is such a place.
    pub(super) fn sink(&self) -> Option<BorrowedFd<'_>> {
        match &self.ground.ends {
            Ends::Terminal { master, .. } => Some(master.as_fd()),
            Ends::Pipes { stdin, .. } => stdin.as_ref().map(AsFd::as_fd),
        }
    }

    pub(super) fn terminal_modes(&self) -> Option<Termios> {
        match &self.ground.ends {
            Ends::Terminal { master, .. } => tcgetattr(master).ok(),
            Ends::Pipes { .. } => None,
        }
    }

    /// Nobody knows any more what is half typed: an Escape stands for it, which may have been anything.
    pub(super) fn forget_what_was_typed(&mut self) {
        self.typing.recent.push_back(ESCAPE);
    }

    /// Answers a `send` request, now or when there is room.
    pub(super) fn on_send(&mut self, peer: PeerId, id: u64, send: &Send) -> Option<Answer> {
        let reads = self.may_type(peer).and_then(|()| self.reads_what_is_typed(peer, send));
        match reads.and_then(|()| self.queue_input(send)) {
            Err(failure) => Some(Answer::Error(failure.into())),
            Ok(sent) => {
                self.note_input();
                self.type_more();
                let sent = Sent { queued: self.typing.queued(), ..sent };
                if self.typing.queue.len() <= HIGH_WATER {
                    return Some(Answer::Sent(sent));
                }
                self.typing.held_replies.push((peer, id, sent));
                self.peers.hold(peer, true);
                None
            }
        }
    }

    /// A job that reads something else would never see what is typed. Its terminal is there all the same: keys
    /// that end or stop a program are for the kernel, a program may ask there (for a password, as a pager), and a
    /// person who is attached sees what comes of it.
    fn reads_what_is_typed(&self, peer: PeerId, send: &Send) -> Result<(), Failure> {
        let source = match self.info.input {
            Input::Typed => return Ok(()),
            Input::Given => "the standard input that it was started with",
            Input::Nothing => "nowhere (it was started without)",
        };
        let is_line_mode = self
            .terminal_modes()
            .is_none_or(|modes| modes.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO));
        let only_keys = send.text.is_empty()
            && !send.eof
            && wire::base64::decode(&send.bytes).is_some_and(|bytes| bytes.iter().all(u8::is_ascii_control));
        let terminal_is_read = self.info.has_terminal()
            && (!is_line_mode || only_keys || self.looking.awaiting.is_some() || self.is_attached(peer));
        if terminal_is_read {
            return Ok(());
        }
        let handle = self.info.handle;
        Err(Failure::usage(format!(
            "job {handle} does not read what is typed: its input comes from {source}"
        ))
        .hint("start it again with `outlast run -d` to send it input"))
    }

    fn queue_input(&mut self, send: &Send) -> Result<Sent, Failure> {
        if self.life == Life::Ended {
            return Err(Failure::new(Kind::NotRunning, format!("job {} has ended", self.info.handle))
                .hint(format!("see how: outlast read {}", self.info.handle)));
        }
        if self.typing.end_asked && !self.info.has_terminal() {
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
        let Portion { bytes, left, pasted } = self.encode(send)?;
        let offset = self.grown().offset;
        self.refuse_long_line(&bytes)?;
        self.typing.push(&bytes);
        if self.hides_typing() {
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

    /// Whether a program reads a line that it does not show: a password, as a rule.
    fn hides_typing(&self) -> bool {
        self.terminal_modes().is_some_and(|modes| {
            modes.local_modes.contains(LocalModes::ICANON) && !modes.local_modes.contains(LocalModes::ECHO)
        })
    }

    /// In line mode the kernel passes on 4,095 bytes of a line and drops the rest: better to say no. What was
    /// typed before and not ended belongs to the line too.
    pub(super) fn refuse_long_line(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let modes = self.terminal_modes().filter(|modes| modes.local_modes.contains(LocalModes::ICANON));
        let Some(modes) = modes else {
            self.typing.open_line = 0;
            return Ok(());
        };
        let (longest, open) = line_lengths(self.typing.open_line, bytes, &modes);
        if longest <= LONGEST_COOKED_LINE {
            self.typing.open_line = open;
            return Ok(());
        }
        Err(Failure::usage(format!(
            "a line of {longest} bytes is longer than the {LONGEST_COOKED_LINE} that a terminal in line mode takes"
        ))
        .hint("send shorter lines, write the data to a file, or run the job on pipes (--pipe)"))
    }

    /// Types what the program takes now, and answers those who had to wait for room.
    pub(super) fn type_more(&mut self) {
        let sink = match &self.ground.ends {
            Ends::Terminal { master, .. } => Some(master.as_fd()),
            Ends::Pipes { stdin, .. } => stdin.as_ref().map(AsFd::as_fd),
        };
        let broken = match sink {
            Some(sink) => self.typing.write_to(sink).is_err(),
            None => true,
        };
        if broken {
            // Nobody will ever read it: the program closed its input.
            wipe(self.typing.queue.make_contiguous());
            self.typing.queue.clear();
        }
        if self.typing.queue.is_empty() && self.typing.end_asked && !self.typing.ended {
            self.end_input();
        }
        self.ground.shared.set_queued_input(self.typing.queued());
        if self.typing.queue.len() <= HIGH_WATER {
            for (peer, id, sent) in std::mem::take(&mut self.typing.held_replies) {
                self.peers.hold(peer, false);
                self.peers.reply(peer, id, Answer::Sent(Sent { queued: self.typing.queued(), ..sent }));
            }
        }
    }

    fn end_input(&mut self) {
        self.typing.ended = true;
        match self.terminal_modes() {
            Some(modes) => {
                let cooked = modes.local_modes.contains(LocalModes::ICANON);
                let key = if cooked { modes.special_codes[SpecialCodeIndex::VEOF] } else { 0x04 };
                // In the middle of a line, the first one only hands over what is there.
                let mid_line = !matches!(self.typing.last_byte, None | Some(b'\r' | b'\n'));
                let keys = [key, key];
                self.typing.push(if cooked && mid_line { &keys } else { &keys[..1] });
                self.typing.end_asked = false;
                if let Ends::Terminal { master, .. } = &self.ground.ends {
                    let _ = self.typing.write_to(master.as_fd());
                }
                self.typing.last_byte = None;
                self.typing.open_line = 0;
            }
            None => {
                self.ground.close_stdin();
                self.ground.shared.set_stdin_closed();
                if self.heir_lives
                    && let Some(heir) = rustix::process::getppid()
                {
                    // It holds the pipe too, and must let go of it.
                    let _ = rustix::process::kill_process(heir, Signal::USR1);
                }
            }
        }
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

/// The longest line of what is typed, and how much of a line it leaves open, after a line that is already begun.
fn line_lengths(begun: usize, bytes: &[u8], modes: &Termios) -> (usize, usize) {
    use SpecialCodeIndex as Code;
    let code = |index| modes.special_codes[index];
    let ends = [b'\r', b'\n', code(Code::VEOF), code(Code::VKILL), code(Code::VINTR), code(Code::VQUIT)];
    let (mut longest, mut line) = (0, begun);
    for byte in bytes {
        if *byte != 0 && ends.contains(byte) {
            line = 0;
        } else if *byte == code(Code::VERASE) {
            line = line.saturating_sub(1);
        } else {
            line += 1;
            longest = longest.max(line);
        }
    }
    (longest, line)
}
