//! The descriptors of the line to a shell: opened once, before keeper and heir part, and held by both.

use std::os::fd::{AsRawFd, OwnedFd};

use outlast_protocol::shell::Shell;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, memfd_create};
use rustix::io::{Errno, pwrite};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::PipeFlags;

use crate::log::writer::read_exact_at;
use crate::shells::{self, Beside, Numbers};

/// The first number that is tried for the shell's end: above what scripts use, below most limits of descriptors.
const FIRST_NUMBER: i32 = 31;

/// Both ends of the line, before the command is there.
#[derive(Debug)]
pub(super) struct ShellEnds {
    pub(super) shell: Shell,
    pub(super) ours: OwnedFd,
    /// Our end of the pipe through which a shell is told what it can't read from a socket.
    pub(super) feed: Option<OwnedFd>,
    /// What the shell has besides its three standard streams, until it has it.
    pub(super) given: Vec<OwnedFd>,
    /// The same, for its standard input and output when it begins.
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: Option<OwnedFd>,
    numbers: Numbers,
    pub(super) memory: Memory,
}

/// What an heir must know of a shell, and what may not be on the disk: it can have secrets in it.
#[derive(Debug)]
pub(super) struct Memory {
    /// Its state when it was made.
    pub(super) first_state: OwnedFd,
    /// What it wants back with its next step.
    pub(super) carried: OwnedFd,
}

impl Memory {
    fn new() -> Result<Self, Errno> {
        let file = || memfd_create("outlast-shell", MemfdFlags::CLOEXEC);
        Ok(Self { first_state: file()?, carried: file()? })
    }

    pub(super) fn try_clone(&self) -> std::io::Result<Self> {
        Ok(Self { first_state: self.first_state.try_clone()?, carried: self.carried.try_clone()? })
    }
}

/// Replaces what is in memory. A keeper that dies on the way leaves what it was told on the line, so its heir writes it again.
pub(super) fn keep(file: &OwnedFd, bytes: &[u8]) {
    let _ = ftruncate(file, 0);
    let mut at = 0;
    while let Ok(n @ 1..) = pwrite(file, &bytes[at..], at as u64) {
        at += n;
    }
}

pub(super) fn kept(file: &OwnedFd) -> Vec<u8> {
    let len = fstat(file).map_or(0, |stat| usize::try_from(stat.st_size).unwrap_or(0));
    let mut bytes = vec![0; len];
    let got = read_exact_at(file, &mut bytes, 0);
    bytes.truncate(got);
    bytes
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
            stdout: None,
            memory: Memory::new()?,
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
            Beside::Stdio => {
                // What is written together is read together, and nothing else with it: dash reads ahead, and drops what it does
                // not need.
                let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::DIRECT)?;
                rustix::io::ioctl_fionbio(&write, true)?;
                ends.feed = Some(write);
                ends.stdin = Some(line);
                ends.stdout = Some(up(read)?);
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
        self.stdout = None;
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
