//! The table of processes by what any system tells of a process: its number, parent, group, session, terminal, start, and
//! whether it runs. [`source`] asks for it: the process information calls of macOS, or their stand-in where this twin is tested.
//!
//! There is no subreaper, so orphans become init's children. What a supervisor's command left is found by its session: it was
//! made for that command, and its leader is a process of the same program. What made a session of its own has escaped.

#[cfg(target_vendor = "apple")]
#[path = "elsewhere/macos.rs"]
pub(crate) mod source;
#[cfg(all(target_os = "linux", outlast_portable))]
#[path = "elsewhere/stand_in.rs"]
pub(crate) mod source;

use std::os::fd::{AsFd, AsRawFd, RawFd};

use rustix::process::Pid;

use super::{MAX_DESCENDANTS, Proc};

pub use source::{arguments, boot_id, peer_of, peer_user, program_file};

/// Answers from the table; it has nothing to reuse between two questions but a buffer.
#[derive(Debug)]
pub(crate) struct ProcReader {
    line: Vec<u8>,
}

impl ProcReader {
    pub(crate) fn new() -> Self {
        Self { line: Vec::new() }
    }

    pub(crate) fn stat(&mut self, pid: Pid) -> Option<Proc> {
        source::process(pid)
    }

    pub(crate) fn children(&mut self, pid: Pid, into: &mut Vec<Pid>) {
        into.extend(
            everything().into_iter().filter(|process| process.ppid == Some(pid)).map(|found| found.pid),
        );
    }

    /// Appends every process below `root`, parents first, and behind them the orphans of its session.
    pub(crate) fn descendants(&mut self, root: Pid, into: &mut Vec<Proc>) {
        let all = everything();
        let begin = into.len();
        append_below(&all, root, begin, into);
        let Some(session) = own_session(&all, root) else { return };
        let is_orphan = |process: &Proc| {
            process.session == session
                && process.pid.as_raw_nonzero().get() != session
                && process.pid != root
                && process.is_alive()
        };
        for orphan in all.iter().filter(|process| is_orphan(process)) {
            if !into[begin..].iter().any(|known| known.pid == orphan.pid) && into.len() < MAX_DESCENDANTS {
                let from = into.len();
                into.push(orphan.clone());
                append_below(&all, orphan.pid, from, into);
            }
        }
    }

    /// The command line of a process, in one piece.
    pub(crate) fn command_line(&mut self, pid: Pid) -> Option<&[u8]> {
        self.line.clear();
        for argument in arguments(pid)? {
            self.line.extend_from_slice(&argument);
            self.line.push(0);
        }
        Some(&self.line)
    }
}

/// Appends those of `all` that are below `root` and not in `into` from `begin` on yet.
fn append_below(all: &[Proc], root: Pid, begin: usize, into: &mut Vec<Proc>) {
    let mut next = into.len();
    let mut parent = root;
    loop {
        for child in all.iter().filter(|process| process.ppid == Some(parent)) {
            if into.len() < MAX_DESCENDANTS && !into[begin..].iter().any(|known| known.pid == child.pid) {
                into.push(child.clone());
            }
        }
        let Some(process) = into.get(next) else { return };
        parent = process.pid;
        next += 1;
    }
}

/// The session that was made for what a supervisor runs: its leader is the supervisor, or its parent of the same program.
fn own_session(all: &[Proc], root: Pid) -> Option<i32> {
    let process = all.iter().find(|process| process.pid == root)?;
    let leader = Pid::from_raw(process.session)?;
    if leader == root {
        return Some(process.session);
    }
    let is_parent = process.ppid == Some(leader);
    let is_same = || program_file(leader).is_some_and(|file| program_file(root) == Some(file));
    (is_parent && is_same()).then_some(process.session)
}

/// All processes.
#[must_use]
pub fn everything() -> Vec<Proc> {
    source::pids().into_iter().filter_map(source::process).collect()
}

/// Environments of others can't be read.
#[must_use]
pub fn environment_has(_pid: Pid, _variable: &[u8]) -> bool {
    false
}

/// Whether a process executes the same file as we do, by its name.
#[must_use]
pub fn executes_our_program(pid: Pid) -> Option<bool> {
    Some(program_file(pid)? == program_file(rustix::process::getpid())?)
}

/// Not told: whether a program has slept between two looks is judged by its CPU time.
#[must_use]
pub fn times_run(_pid: Pid) -> Option<u64> {
    None
}

/// What one of our own descriptors is, as far as two can be compared.
#[must_use]
pub fn descriptor_name(fd: RawFd) -> Option<String> {
    // SAFETY: only asked about, and only while it is open: `fstat` fails otherwise.
    #[expect(unsafe_code, reason = "a number that may not be open")]
    let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    let stat = rustix::fs::fstat(borrowed).ok()?;
    if rustix::termios::isatty(borrowed) {
        let name = rustix::termios::ttyname(borrowed, Vec::new()).ok()?;
        return Some(name.to_string_lossy().into_owned());
    }
    let kind = match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
        rustix::fs::FileType::Fifo => "pipe",
        rustix::fs::FileType::Socket => "socket",
        rustix::fs::FileType::RegularFile
        | rustix::fs::FileType::Directory
        | rustix::fs::FileType::Symlink
        | rustix::fs::FileType::CharacterDevice
        | rustix::fs::FileType::BlockDevice
        | rustix::fs::FileType::Unknown => "file",
    };
    Some(format!("{kind}:[{}:{}]", stat.st_dev, stat.st_ino))
}

/// Descriptors of others can't be seen.
#[must_use]
pub fn standard_descriptors(_pid: Pid) -> Vec<(i32, String)> {
    Vec::new()
}

/// The table shows everybody.
#[must_use]
pub fn hides_other_users() -> bool {
    false
}

/// There are no namespaces of processes.
#[must_use]
pub fn pid_namespace() -> Option<u64> {
    None
}

/// A process has one number.
#[must_use]
pub fn numbers(pid: Pid) -> Vec<i32> {
    vec![pid.as_raw_nonzero().get()]
}

/// There are no other namespaces to find it in.
#[must_use]
pub fn find_in(_namespace: u64, _number: i32, _started: u64) -> Option<Proc> {
    None
}

/// The number of a socket, for calls that take one.
pub(crate) fn raw(socket: &impl AsFd) -> RawFd {
    socket.as_fd().as_raw_fd()
}
