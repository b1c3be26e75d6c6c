//! The descriptors of the line to a shell: opened once, before keeper and heir part, and held by both.

use std::os::fd::{AsRawFd, OwnedFd};

use outlast_protocol::shell::Shell;
use outlast_pty::system;
use rustix::fs::{fstat, ftruncate};
use rustix::io::{Errno, pwrite};

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
        let file = || system::memory_file("outlast-shell");
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
        let (ours, theirs) = system::stream_sockets()?;
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
            Beside::Script(script) => Some(up(system::sealed_file("outlast-shell", script.as_bytes())?)?),
            Beside::Pipe => {
                let (read, write) = system::pipe()?;
                rustix::io::ioctl_fionbio(&write, true)?;
                ends.feed = Some(write);
                Some(up(read)?)
            }
            Beside::Stdio => {
                // What is written together is read together, and nothing else with it: dash reads ahead, and drops what it does
                // not need.
                let (read, write) = system::pipe_of_packets()?;
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
