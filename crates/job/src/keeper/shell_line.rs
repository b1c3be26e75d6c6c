//! The private line to a shell: commands go out, ends come in.
//!
//! It is a socket, which nobody can open again by way of `/proc`, and the shell closes it for all that it starts. A shell
//! that can't read a socket is told its commands through a pipe; what it says comes over the socket all the same. Each
//! step has a token that only comes over this line; an end with another one is not believed. What arrives is only looked
//! at until it has been dealt with, so that an heir finds it again.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use outlast_protocol::shell::{Shell, StepOrder};
use outlast_pty::signal;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use rustix::pipe::PipeFlags;
use rustix::process::{Signal, kill_process_group};
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::termios::QueueSelector;
use rustix::time::{ClockId, clock_gettime};

use super::Keeper;
use super::core::{Input, KnownSteps, StepEnd};
use super::inherited::{Ends, Inherited};
use crate::clock::now_ms;
use crate::registry::format::Info;
use crate::registry::layout;
use crate::registry::replace::{Durability, replace};
use crate::shells::state::Changed;
use crate::shells::{self, Beside, Frame, Numbers, TOKEN};
use crate::wire::event::EventKind;

/// The first number that is tried for the shell's end: above what scripts use, below most limits of descriptors.
const FIRST_NUMBER: i32 = 31;
/// How much is looked at together. An end is much shorter.
const LOOK: usize = 64 << 10;
/// What a shell wants back with its next step can be longer; a socket holds no more than this.
const MAX_LOOK: usize = 1 << 20;
/// What a shell remembers is not kept beyond this.
const MAX_STATE: usize = 4 << 20;
/// The kernel's clock ticks a second, as processes' start times have them.
const TICKS_A_SECOND: u64 = 100;

/// Both ends of the line, before the command is there.
#[derive(Debug)]
pub(super) struct ShellEnds {
    pub(super) shell: Shell,
    ours: OwnedFd,
    /// Our end of the pipe through which a shell is told what it can't read from a socket.
    feed: Option<OwnedFd>,
    /// What the shell has besides its three standard streams, until it has it.
    pub(super) given: Vec<OwnedFd>,
    /// The same, for its standard input when it begins.
    pub(super) stdin: Option<OwnedFd>,
    numbers: Numbers,
}

impl ShellEnds {
    pub(super) fn open(shell: &Shell) -> Result<Self, Errno> {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let up = |fd: OwnedFd| rustix::io::fcntl_dupfd_cloexec(&fd, FIRST_NUMBER);
        let line = up(theirs)?;
        let mut ends = Self {
            shell: shell.clone(),
            ours,
            feed: None,
            numbers: Numbers { line: line.as_raw_fd(), beside: 0 },
            given: Vec::new(),
            stdin: None,
        };
        let beside = match shells::beside(shell.kind) {
            Beside::Nothing => None,
            Beside::Script(script) => Some(up(sealed(script)?)?),
            Beside::Pipe => {
                let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
                rustix::io::ioctl_fionbio(&write, true)?;
                ends.feed = Some(write);
                Some(up(read)?)
            }
            Beside::Stdin => {
                ends.stdin = Some(line);
                return Ok(ends);
            }
        };
        ends.numbers.beside = beside.as_ref().map_or(0, AsRawFd::as_raw_fd);
        ends.given = [Some(line), beside].into_iter().flatten().collect();
        Ok(ends)
    }

    /// What the shell's ends are called in the shell.
    pub(super) fn numbers(&self) -> Numbers {
        self.numbers
    }

    /// Lets go of what only the shell has.
    pub(super) fn let_go_of_given(&mut self) {
        self.given.clear();
        self.stdin = None;
    }
}

/// A text in memory that can be opened by way of `/proc` and that nobody can change.
fn sealed(text: &str) -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create("outlast-shell", flags)?;
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = &rest[written..];
    }
    fcntl_add_seals(&file, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
    Ok(file)
}

/// A keeper's end of the line.
#[derive(Debug)]
pub(super) struct ShellLine {
    shell: Shell,
    fd: OwnedFd,
    /// Where commands go, if not over the socket.
    feed: Option<OwnedFd>,
    /// What the socket had no room for yet.
    unsent: Vec<u8>,
    /// What the shell wants back with its next step.
    carried: String,
    /// The folder in which its last step ended, of a shell that says so beforehand.
    folder: String,
    /// What its last step left in the background.
    background: Vec<i32>,
    /// What it says of its state, as far as that has come.
    state: Option<Vec<u8>>,
    /// Its state when it was made; none for an heir, who does not know it.
    first_state: Option<Vec<u8>>,
    is_new: bool,
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
        Ok(Some(Self {
            shell: ends.shell.clone(),
            fd: ends.ours.try_clone()?,
            feed: ends.feed.as_ref().map(OwnedFd::try_clone).transpose()?,
            unsent: Vec::new(),
            carried: String::new(),
            folder: String::new(),
            background: Vec::new(),
            state: None,
            first_state: None,
            is_new: false,
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

    fn write(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
        self.flush();
    }

    /// Sends what there is room for.
    fn flush(&mut self) {
        let mut sent = 0;
        while sent < self.unsent.len() {
            let rest = &self.unsent[sent..];
            let done = match &self.feed {
                Some(pipe) => rustix::io::write(pipe, rest),
                None => send(&self.fd, rest, SendFlags::NOSIGNAL | SendFlags::DONTWAIT),
            };
            match done {
                Ok(n) => sent += n,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    // The shell is gone, which is noticed elsewhere.
                    self.unsent.clear();
                    return;
                }
            }
        }
        self.unsent.drain(..sent);
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
        line.is_new = true;
        let state = self.inherited.spec.shell_state.as_deref();
        let kind = line.shell.kind;
        line.write(&shells::driver(&line.shell, numbers, state));
        line.write(&shells::ask_for_state(kind, ""));
        line.carried = shells::first_carried(kind, state);
        self.note_feeding();
    }

    /// Says to our heir whether the shell has only half of something.
    fn note_feeding(&self) {
        let feeding = self.shell_line.as_ref().is_some_and(|line| line.sink().is_some());
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
        self.note_feeding();
    }

    /// What the next end must come with; until all of it is told, an heir could not go on.
    fn new_token(&self) -> String {
        let mut token = [0; TOKEN / 2];
        let _ = getrandom(&mut token, GetRandomFlags::empty());
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
            if let Some(line) = &self.shell_line {
                line.take(len);
            }
        }
    }

    fn on_said(&mut self, said: Said<'_>) {
        let Some(line) = &mut self.shell_line else { return };
        match said {
            Said::Carry(text) => text.clone_into(&mut line.carried),
            Said::Folder(folder) => folder.clone_into(&mut line.folder),
            Said::Background(text) => line.background = pids(text),
            Said::CarryAndBackground(carried, text) => {
                carried.clone_into(&mut line.carried);
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
            if line.is_new {
                line.first_state = Some(state);
            }
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
        let before = self.inherited.spec.shell_state.as_deref().unwrap_or_default();
        let text = format!("# {words}\n{before}{script}");
        if !line.shell.in_memory && text != line.written && text.len() <= MAX_STATE {
            let job = &self.inherited.job;
            let _ = replace(job, layout::SHELL_STATE, text.as_bytes(), Durability::Process);
            line.written = text;
        }
        self.feed(Input::ShellChanged(names));
    }

    /// The person at the prompt has left: what they typed and nobody has read is dropped, and the shell comes back.
    pub(super) fn leave_prompt(&self) {
        if let Ends::Terminal { slave, .. } = &self.inherited.ends {
            let _ = rustix::termios::tcflush(slave, QueueSelector::IFlush);
        }
        self.interrupt_foreground();
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
        let ago_ms = now_ms().saturating_sub(since);
        let up = clock_gettime(ClockId::Boottime);
        let up_ms = up.tv_sec.unsigned_abs() * 1000 + up.tv_nsec.unsigned_abs() / 1_000_000;
        let from = up_ms.saturating_sub(ago_ms) * TICKS_A_SECOND / 1000;
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
    for event in inherited.job.events() {
        if let EventKind::StepStarted { step } | EventKind::Step { step } = event.what {
            known.steps.push(*step);
        }
    }
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
