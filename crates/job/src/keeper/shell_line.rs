//! The private line to a shell: commands go out, ends come in.
//!
//! It is a socket, which nobody can open again by way of `/proc`, and the shell closes it for all that it starts. A shell
//! that can't read a socket is told its commands through a pipe; what it says comes over the socket all the same. Each
//! step has a token that only comes over this line; an end with another one is not believed. What arrives is only looked
//! at until it has been dealt with, so that an heir finds it again.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use outlast_protocol::shell::{Shell, StepOrder};
use outlast_pty::signal;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::{Signal, kill_process_group};
use rustix::termios::QueueSelector;

use super::Keeper;
use super::core::{Input, KnownSteps, StepEnd};
use super::inherited::{Ends, Inherited};
use super::shell_ends::{Memory, ShellEnds, keep, kept};
use crate::registry::event_lines::steps_of;
use crate::registry::format::Info;
use crate::registry::layout;
use crate::registry::replace::{Durability, replace};
use crate::shells::state::Changed;
use crate::shells::{self, Frame, TOKEN};

/// How much is looked at together. An end is much shorter.
const LOOK: usize = 64 << 10;
/// What a shell wants back with its next step can be longer; a socket holds no more than this.
const MAX_LOOK: usize = 1 << 20;
/// What a shell remembers is not kept beyond this.
const MAX_STATE: usize = 4 << 20;

/// A keeper's end of the line.
#[derive(Debug)]
pub(super) struct ShellLine {
    shell: Shell,
    fd: OwnedFd,
    /// Where commands go, if not over the socket.
    feed: Option<OwnedFd>,
    /// What there was no room for yet, each piece as it was written.
    unsent: VecDeque<Vec<u8>>,
    /// What the shell wants back with its next step.
    carried: String,
    /// The folder in which its last step ended, of a shell that says so beforehand.
    folder: String,
    /// What its last step left in the background.
    background: Vec<i32>,
    /// What it says of its state, as far as that has come.
    state: Option<Vec<u8>>,
    /// Its state when it was made, once it has told it.
    first_state: Option<Vec<u8>>,
    /// The state that it told last; none for an heir, who does not know it.
    last_state: Option<Vec<u8>>,
    memory: Memory,
    /// What was written down of its state.
    written: String,
    closed: bool,
}

/// What came over the line.
#[derive(Debug, PartialEq, Eq)]
enum Said<'a> {
    /// What the shell wants back with its next step.
    Carry(&'a str),
    /// The folder in which its step ended.
    Folder(&'a str),
    /// The processes that it has in the background.
    Background(&'a str),
    /// What it wants back, and behind that the processes that it has in the background; neither, as a rule.
    CarryAndBackground(&'a str, &'a str),
    /// The person at its terminal has typed a command.
    Began(&'a str),
    End {
        step: u64,
        token: &'a str,
        code: i32,
        pipeline: Vec<i32>,
        folder: &'a str,
    },
    /// It begins to tell its state.
    State,
    Nonsense,
}

/// The first thing in what came, and how long it is; none if it is not all there.
fn first(bytes: &[u8]) -> Option<(Said<'_>, usize)> {
    let mut fields = Vec::new();
    let mut at = 0;
    let wanted = if bytes.first() == Some(&b'E') { 4 } else { 1 };
    while fields.len() < wanted {
        let len = bytes[at..].iter().position(|byte| *byte == 0)?;
        fields.push(std::str::from_utf8(&bytes[at..at + len]).ok());
        at += len + 1;
    }
    let said = match fields.as_slice() {
        [Some(text)] if text.starts_with('D') => Said::Carry(&text[1..]),
        [Some(text)] if text.starts_with('F') => Said::Folder(&text[1..]),
        [Some(text)] if text.starts_with('J') => Said::Background(&text[1..]),
        [Some(text)] if text.starts_with('B') => Said::Began(&text[1..]),
        [Some("S")] => Said::State,
        [Some(text)] if text.is_empty() || text.starts_with("trap ") || is_pids(text) => {
            let pids = text.rfind(" DEBUG\n").map_or(0, |at| at + " DEBUG\n".len());
            let (carried, pids) = text.split_at(pids);
            if is_pids(pids) { Said::CarryAndBackground(carried, pids) } else { Said::Nonsense }
        }
        [Some(step), Some(token), Some(codes), Some(folder)] => {
            let codes: Result<Vec<i32>, _> = codes.split_whitespace().map(str::parse).collect();
            match (step[1..].parse(), codes.as_deref()) {
                (Ok(step), Ok([code, pipeline @ ..])) => {
                    Said::End { step, token, code: *code, pipeline: pipeline.to_vec(), folder }
                }
                _ => Said::Nonsense,
            }
        }
        _ => Said::Nonsense,
    };
    Some((said, at))
}

/// Whether these are process numbers, or nothing.
fn is_pids(text: &str) -> bool {
    text.split_whitespace().all(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()))
}

fn pids(text: &str) -> Vec<i32> {
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

impl ShellLine {
    /// Ours of what keeper and heir hold.
    pub(super) fn of(inherited: &Inherited) -> std::io::Result<Option<Self>> {
        let Some(ends) = &inherited.shell else { return Ok(None) };
        let first_state = Some(kept(&ends.memory.first_state)).filter(|state| !state.is_empty());
        let carried = String::from_utf8_lossy(&kept(&ends.memory.carried)).into_owned();
        Ok(Some(Self {
            shell: ends.shell.clone(),
            fd: ends.ours.try_clone()?,
            feed: ends.feed.as_ref().map(OwnedFd::try_clone).transpose()?,
            unsent: VecDeque::new(),
            carried,
            folder: String::new(),
            background: Vec::new(),
            state: None,
            first_state,
            last_state: None,
            memory: ends.memory.try_clone()?,
            written: String::new(),
            closed: false,
        }))
    }

    /// What to look at, while anything can come.
    pub(super) fn source(&self) -> Option<BorrowedFd<'_>> {
        (!self.closed).then(|| self.fd.as_fd())
    }

    /// What has room for what is not sent yet, if something is not.
    pub(super) fn sink(&self) -> Option<BorrowedFd<'_>> {
        (!self.unsent.is_empty() && !self.closed).then(|| self.feed.as_ref().unwrap_or(&self.fd).as_fd())
    }

    /// The token of a shell that must not have it with its step. There is always room: it is all that goes that way.
    fn write_token(&self, token: &str) {
        if let Some(token) = shells::token_apart(self.shell.kind, token) {
            let _ = send(&self.fd, token.as_bytes(), outlast_pty::system::NO_SIGNAL | SendFlags::DONTWAIT);
        }
    }

    fn carry(&mut self, said: &str) {
        let carried = &shells::carried(self.shell.kind, said);
        if self.carried != *carried {
            carried.clone_into(&mut self.carried);
            keep(&self.memory.carried, carried.as_bytes());
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.unsent.push_back(bytes.to_vec());
        }
        self.flush();
    }

    /// Sends what there is room for.
    fn flush(&mut self) {
        while let Some(piece) = self.unsent.front_mut() {
            let done = match &self.feed {
                Some(pipe) => rustix::io::write(pipe, piece),
                None => send(&self.fd, piece, outlast_pty::system::NO_SIGNAL | SendFlags::DONTWAIT),
            };
            match done {
                Ok(sent) if sent >= piece.len() => {
                    self.unsent.pop_front();
                }
                Ok(sent) => {
                    piece.drain(..sent);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    // The shell is gone, which is noticed elsewhere.
                    self.unsent.clear();
                    return;
                }
            }
        }
    }

    /// Takes what was looked at.
    fn take(&self, len: usize) {
        let mut left = len;
        let mut piece = [0; 4096];
        while left > 0 {
            let most = left.min(piece.len());
            match recv(&self.fd, &mut piece[..most], RecvFlags::DONTWAIT) {
                Ok((n, _)) if n > 0 => left -= n,
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return,
            }
        }
    }
}

impl Keeper {
    /// Sends the shell what it evaluates first.
    pub(super) fn introduce_shell(&mut self) {
        let numbers = self.inherited.shell.as_ref().map(ShellEnds::numbers);
        let (Some(line), Some(numbers)) = (&mut self.shell_line, numbers) else { return };
        let state = self.inherited.spec.shell_state.as_deref();
        let kind = line.shell.kind;
        line.write(&shells::driver(&line.shell, numbers, state));
        line.carry(&shells::first_carried(kind, state));
        if let Some(state) = state.filter(|_| !line.shell.in_memory) {
            // Should it end before it has told what it remembers, nothing may be lost of what it was told.
            let _ = replace(&self.inherited.job, layout::SHELL_STATE, state.as_bytes(), Durability::Process);
            state.clone_into(&mut line.written);
        }
        if state.is_some() {
            // What it got back is not what its first step changed.
            let ask = shells::ask_for_state(kind, &line.carried);
            line.write(&ask);
        }
        self.note_feeding();
    }

    /// Says to our heir whether the shell has only half of something, or we have only half of what it says.
    fn note_feeding(&self) {
        let feeding =
            self.shell_line.as_ref().is_some_and(|line| line.sink().is_some() || line.state.is_some());
        self.inherited.shared.set_feeding(feeding);
    }

    pub(super) fn on_shell_room(&mut self) {
        if let Some(line) = &mut self.shell_line {
            line.flush();
        }
        self.note_feeding();
    }

    /// Gives the shell a command.
    pub(super) fn feed_step(&mut self, step: u64, order: &StepOrder) {
        for (name, value) in &order.env {
            if let Some(value) = value.as_deref().filter(|value| crate::secrets::is_secret(name, value)) {
                // Should it not be possible to write it down, it is hidden as long as this keeper lives.
                let _ = self.learn_secret(value.as_bytes());
            }
        }
        let token = self.new_token();
        let Some(line) = &mut self.shell_line else { return };
        let frame = Frame {
            step,
            command: &order.command,
            folder: order.folder.as_deref(),
            env: &order.env,
            carried: &line.carried,
            token: &token,
        };
        let frame = crate::wiped::Wiped::from(shells::frame(line.shell.kind, &frame));
        line.write(&frame);
        line.write_token(&token);
        self.note_feeding();
    }

    /// What the next end must come with; until all of it is told, an heir could not go on.
    fn new_token(&self) -> String {
        let mut token = [0; TOKEN / 2];
        let _ = outlast_pty::system::random(&mut token);
        let token = u64::from_le_bytes(token).max(1);
        self.inherited.shared.set_token(token);
        self.inherited.shared.set_feeding(true);
        written(token)
    }

    /// Lets the person at the terminal type the next command.
    pub(super) fn show_prompt(&mut self, step: u64) {
        let token = self.new_token();
        self.inherited.shared.set_prompt(step);
        let Some(line) = &mut self.shell_line else { return };
        let frame = shells::prompt(line.shell.kind, step, &line.carried, &token);
        line.write(&frame);
        line.write_token(&token);
        self.note_feeding();
    }

    pub(super) fn ask_shell_for_state(&mut self) {
        if let Some(line) = &mut self.shell_line {
            let ask = shells::ask_for_state(line.shell.kind, &line.carried);
            line.write(&ask);
        }
        self.note_feeding();
    }

    /// Something came from the shell.
    pub(super) fn on_shell(&mut self) {
        let mut look = vec![0; LOOK];
        loop {
            let Some(line) = &mut self.shell_line else { return };
            let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
            let there = match recv(&line.fd, &mut look[..], flags) {
                Ok((0, _)) => {
                    line.closed = true;
                    return;
                }
                Ok((n, _)) => n,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    line.closed = true;
                    return;
                }
            };
            if let Some(state) = &mut line.state {
                let taken = take_state(state, &look[..there]);
                line.take(taken);
                self.on_state();
                self.note_feeding();
                continue;
            }
            let Some((said, len)) = first(&look[..there]) else {
                if there == look.len() && there < MAX_LOOK {
                    look = vec![0; there * 2];
                    continue;
                }
                if there == look.len() {
                    line.closed = true;
                    self.feed(Input::StepForged("its line has something on it that no shell says".into()));
                }
                return;
            };
            self.on_said(said);
            self.note_feeding();
            if let Some(line) = &self.shell_line {
                line.take(len);
            }
        }
    }

    fn on_said(&mut self, said: Said<'_>) {
        let Some(line) = &mut self.shell_line else { return };
        match said {
            Said::Carry(text) => line.carry(text),
            Said::Folder(folder) => folder.clone_into(&mut line.folder),
            Said::Background(text) => line.background = pids(text),
            Said::CarryAndBackground(carried, text) => {
                line.carry(carried);
                line.background = pids(text);
            }
            Said::Began(command) => {
                let command = command.to_owned();
                self.drain();
                self.feed(Input::StepBegan(command));
            }
            Said::State => line.state = Some(Vec::new()),
            Said::End { step, token, code, pipeline, folder } => {
                if token != written(self.inherited.shared.token()) {
                    let why = format!("somebody said that step {step} had ended, but did not have its token");
                    return self.feed(Input::StepForged(why));
                }
                let folder = if folder.is_empty() { line.folder.clone() } else { folder.to_owned() };
                let folder = Some(folder).filter(|folder| !folder.is_empty());
                let background = std::mem::take(&mut line.background);
                let end = StepEnd { step, code, pipeline, folder, background };
                self.inherited.shared.set_prompt(0);
                // What it printed came before this.
                self.drain();
                self.feed(Input::StepEnded(Box::new(end)));
            }
            Said::Nonsense => {
                self.feed(Input::StepForged("its line has something on it that no shell says".into()));
            }
        }
    }

    /// The shell has told some more of its state.
    fn on_state(&mut self) {
        let Some(line) = &mut self.shell_line else { return };
        let Some(state) = line.state.take_if(|state| state_end(state).is_some()) else { return };
        let Some(first) = &line.first_state else {
            keep(&line.memory.first_state, &state);
            line.first_state = Some(state.clone());
            line.last_state = Some(state);
            return;
        };
        let masks = &self.inherited.masks;
        let is_secret = |name: &str, entry: &str| {
            crate::secrets::is_secret(name, "a value of some length")
                || crate::secrets::with(masks, |masks| masks.text(entry) != entry)
        };
        let folder = self.core.shell_folder();
        let Changed { script, words, names } =
            shells::state::changed(line.shell.kind, (first, &state), folder, is_secret);
        let new = match &line.last_state {
            Some(last) => shells::state::names_between(line.shell.kind, last, &state),
            None => Vec::new(),
        };
        line.last_state = Some(state);
        let text = format!("# {words}\n{script}");
        if !line.shell.in_memory && text != line.written && text.len() <= MAX_STATE {
            let job = &self.inherited.job;
            let _ = replace(job, layout::SHELL_STATE, text.as_bytes(), Durability::Process);
            line.written = text;
        }
        self.feed(Input::ShellChanged { all: names, new });
    }

    /// The person at the prompt has left: what they typed and nobody has read is dropped, and the shell comes back.
    pub(super) fn leave_prompt(&self) {
        if let Ends::Terminal { slave, .. } = &self.inherited.ends {
            let _ = rustix::termios::tcflush(slave, QueueSelector::IFlush);
        }
        self.interrupt_foreground();
    }

    /// Whether the shell itself has its line open under the number that it closes for a step: then it is in none.
    pub(super) fn is_shell_lost(&self) -> bool {
        let (Some(line), Some(pid)) = (&self.shell_line, self.core.command()) else { return false };
        let open = |number| std::fs::symlink_metadata(format!("/proc/{pid}/fd/{number}")).is_ok();
        shells::closed_for_steps(line.shell.kind).is_some_and(open)
    }

    /// Interrupts whatever has the terminal, as a person with Ctrl-C does, whatever the terminal makes of keys.
    pub(super) fn interrupt_foreground(&self) {
        if let Ends::Terminal { master, .. } = &self.inherited.ends
            && let Ok(group) = rustix::termios::tcgetpgrp(master)
        {
            let _ = kill_process_group(group, Signal::CONT);
            let _ = kill_process_group(group, Signal::INT);
        }
    }

    /// Signals what was started since then, but for the shell itself.
    pub(super) fn signal_step(&self, signals: &[Signal], since: u64) -> usize {
        let Some(shell) = self.core.command() else { return 0 };
        let from = outlast_pty::procfs::start_time_at(std::time::Duration::from_millis(since));
        let of_step =
            self.members().into_iter().filter(|process| process.pid != shell && process.start_time >= from);
        of_step
            .filter(|process| {
                signals.iter().map(|signal| signal::send(process, *signal)).any(|sent| sent.is_ok())
            })
            .count()
    }
}

fn written(token: u64) -> String {
    format!("{token:016x}")
}

/// Adds what belongs to a state; says how much that was.
fn take_state(state: &mut Vec<u8>, bytes: &[u8]) -> usize {
    let before = state.len();
    state.extend_from_slice(bytes);
    if let Some(end) = state_end(state) {
        state.truncate(end);
    }
    let taken = state.len() - before;
    if state.len() > MAX_STATE {
        state.drain(..MAX_STATE / 2);
    }
    taken
}

/// How many parts a state has, each ended by a NUL.
const STATE_PARTS: usize = 5;

fn state_end(state: &[u8]) -> Option<usize> {
    let mut ends = state.iter().enumerate().filter(|(_, byte)| **byte == 0);
    ends.nth(STATE_PARTS - 1).map(|(at, _)| at + 1)
}

/// What the record and the log of events say of a shell's steps.
pub(super) fn known_steps(inherited: &Inherited, info: &Info) -> KnownSteps {
    let Some(shell) = &info.shell else { return KnownSteps::default() };
    let torn = inherited.shared.is_feeding();
    let mut known =
        KnownSteps { shell: Some(shell.clone()), folder: info.cwd.clone(), torn, ..KnownSteps::default() };
    known.prompt = Some(inherited.shared.prompt()).filter(|step| *step > 0);
    known.steps = steps_of(inherited.job.events()).into_values().collect();
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_read_when_all_of_it_is_there() {
        let bytes = b"E12\0token\x003 1 0 3\0/tmp/a b\0Dtrap\0";
        for cut in 0..26 {
            assert_eq!(first(&bytes[..cut]), None, "{cut}");
        }
        let (said, len) = first(bytes).unwrap();
        let pipeline = vec![1, 0, 3];
        assert_eq!(said, Said::End { step: 12, token: "token", code: 3, pipeline, folder: "/tmp/a b" });
        assert_eq!(first(&bytes[len..]).unwrap().0, Said::Carry("trap"));
        assert_eq!(first(b"S\0").unwrap().0, Said::State);
        let of = |carried, pids| Said::CarryAndBackground(carried, pids);
        assert_eq!(first(b"\0E1").unwrap(), (of("", ""), 1));
        assert_eq!(first(b"12\n13\n\0").unwrap().0, of("", "12\n13\n"));
        let trap = b"trap -- 'echo 5\n6' DEBUG\n7\n8\n\0";
        assert_eq!(first(trap).unwrap().0, of("trap -- 'echo 5\n6' DEBUG\n", "7\n8\n"));
        assert_eq!(first(b"Bls -l\0").unwrap().0, Said::Began("ls -l"));
        assert_eq!(first(b"what\0").unwrap().0, Said::Nonsense);
        assert_eq!(first(b"Ex\0a\0b\0c\0").unwrap().0, Said::Nonsense);
    }

    #[test]
    fn a_state_ends_where_its_last_part_does() {
        let mut state = Vec::new();
        assert_eq!(take_state(&mut state, b"a\0b\0c"), 5);
        assert_eq!(take_state(&mut state, b"\0d\0e\0Dmore\0"), 5);
        assert_eq!(state_end(&state), Some(state.len()));
    }
}
