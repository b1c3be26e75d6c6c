//! What a file descriptor of another process leads to: who could wake the process through it.
//!
//! A thread that polls its terminal *and* a socket may wake for either. A thread that polls its terminal and
//! a pipe of which it holds both ends can only be woken by itself, so the pipe does not matter. So
//! descriptors are classified by who could make them ready.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rustix::fs::{major, minor};
use rustix::process::Pid;

use super::alarms::Alarm;
use super::terminal::TtyIndex;
use crate::procfs::{Proc, ProcReader, inode_in};
use crate::sockdiag::{SockDiag, UnixSocket};

/// Who could make a descriptor ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Someone who types at this terminal.
    Terminal(TtyIndex),
    /// The programs on the terminal of which this is the master.
    Relay(TtyIndex),
    /// Only the process itself, or a signal to it.
    Internal,
    /// A timer.
    Timer(Alarm),
    /// A change of some file: it may wake the process, but matters little.
    Soft,
    /// Another process or machine.
    External(Outside),
}

/// What kind of other process or machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outside {
    /// The other end of a network connection.
    Network,
    /// The other end of a Unix socket.
    UnixSocket,
    /// A pipe, a device, or anything else.
    Other,
}

/// How long it is cached that a process holds both ends of something. Checking means a walk over all of its
/// descriptors, and programs create such pairs once, at their start.
const PAIR_CACHE_TTL: Duration = Duration::from_secs(2);

/// Classifies descriptors, with a cache for what is expensive to find out.
#[derive(Debug)]
pub(super) struct Descriptors {
    diag: Option<SockDiag>,
    pairs: HashMap<(Pid, u64), (Instant, Pair)>,
    /// The job's own terminal.
    own: Option<TtyIndex>,
    /// The devpts file system that it is in: others may use the same numbers.
    devpts: Option<u64>,
}

/// Both ends of a pipe or socket, as one process sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pair {
    BothHeld,
    UnixSocket,
    Network,
    OtherPipe,
}

/// Terminals of another devpts (a container's) get numbers from here on, so that none is mistaken for ours.
const FOREIGN_TTY_BASE: u32 = 1 << 24;

impl Descriptors {
    pub(super) fn new() -> Self {
        Self { diag: None, pairs: HashMap::new(), own: None, devpts: None }
    }

    /// Sets which terminal is the job's, and which file system it is in.
    pub(super) fn learn_terminal(&mut self, index: TtyIndex) {
        self.own = Some(index);
        self.devpts = rustix::fs::stat(index.path()).ok().map(|stat| stat.st_dev);
    }

    /// Drops cache entries that may be out of date.
    pub(super) fn forget_old(&mut self, now: Instant) {
        self.pairs.retain(|_, (at, _)| now.duration_since(*at) < PAIR_CACHE_TTL);
    }

    /// What a descriptor leads to; `None` if it is not open or may not be inspected.
    pub(super) fn source(&mut self, reader: &mut ProcReader, process: &Proc, fd: i32) -> Option<Source> {
        let pid = process.pid;
        let link = reader.link(format_args!("/proc/{pid}/fd/{fd}")).ok()?;
        if let Some(kind) = link.strip_prefix(b"anon_inode:") {
            return Some(match kind {
                b"[eventfd]" | b"[signalfd]" | b"[io_uring]" => Source::Internal,
                b"inotify" | b"[fanotify]" => Source::Soft,
                b"[timerfd]" => timer(reader, pid, fd),
                _ => Source::External(Outside::Other),
            });
        }
        if let Some(inode) = inode_in(link, b"pipe:[") {
            return Some(self.pipe(reader, process, fd, inode));
        }
        if let Some(inode) = inode_in(link, b"socket:[") {
            return Some(self.socket(reader, process, inode));
        }
        if link.starts_with(b"/dev/") {
            return self.device(reader, process, fd);
        }
        // A plain file would always be ready, so this is a named pipe. A process that opened it for both
        // directions waits for no one in particular.
        let flags = open_flags(reader, pid, fd)?;
        let both = flags & libc::O_ACCMODE == libc::O_RDWR;
        Some(if both { Source::Internal } else { Source::External(Outside::Other) })
    }

    /// Whether a descriptor in a set is itself an epoll set, whose members then count too.
    pub(super) fn is_epoll(reader: &mut ProcReader, pid: Pid, fd: i32) -> bool {
        reader.link(format_args!("/proc/{pid}/fd/{fd}")).is_ok_and(|link| link == b"anon_inode:[eventpoll]")
    }

    /// Follows only links into `/dev`: any other could lead to a file system that no longer responds.
    fn device(&mut self, reader: &mut ProcReader, process: &Proc, fd: i32) -> Option<Source> {
        let pid = process.pid;
        let stat = rustix::fs::stat(format!("/proc/{pid}/fd/{fd}")).ok()?;
        let (major, minor) = (major(stat.st_rdev), minor(stat.st_rdev));
        let on_other_devpts =
            |path_says_devpts: bool| path_says_devpts && self.devpts.is_some_and(|ours| ours != stat.st_dev);
        Some(match (major, minor) {
            // /dev/null and similar devices are always ready.
            (1, _) => Source::Internal,
            // /dev/tty is the terminal that the process had when it opened it. A process without one has left
            // its session since, so it most likely means the job's.
            (5, 0) => TtyIndex::of_tty_nr(process.tty_nr)
                .or(self.own)
                .map_or(Source::External(Outside::Other), Source::Terminal),
            (5, 2) => {
                let in_devpts = reader
                    .link(format_args!("/proc/{pid}/fd/{fd}"))
                    .is_ok_and(|link| link.ends_with(b"/pts/ptmx"));
                let foreign = if on_other_devpts(in_devpts) { FOREIGN_TTY_BASE } else { 0 };
                let info = reader.read(format_args!("/proc/{pid}/fdinfo/{fd}")).ok()?;
                let index = field(info, b"tty-index:").and_then(crate::procfs::number);
                match index.and_then(|index| u32::try_from(index).ok()) {
                    Some(index) => Source::Relay(TtyIndex(index | foreign)),
                    None => Source::External(Outside::Other),
                }
            }
            (136..=143, _) => {
                let foreign = if on_other_devpts(true) { FOREIGN_TTY_BASE } else { 0 };
                Source::Terminal(TtyIndex(((major - 136) * 256 + minor) | foreign))
            }
            _ => Source::External(Outside::Other),
        })
    }

    fn pipe(&mut self, reader: &mut ProcReader, process: &Proc, fd: i32, inode: u64) -> Source {
        let pair = self.remembered(process.pid, inode, || {
            let held = another_end(reader, process.pid, fd, inode);
            if held { Pair::BothHeld } else { Pair::OtherPipe }
        });
        if pair == Pair::BothHeld { Source::Internal } else { Source::External(Outside::Other) }
    }

    fn socket(&mut self, reader: &mut ProcReader, process: &Proc, inode: u64) -> Source {
        let mut diag = self.diag.take().or_else(|| SockDiag::open().ok());
        let pair = self.remembered(process.pid, inode, || {
            let number = u32::try_from(inode).unwrap_or(0);
            match diag.as_mut().map(|diag| diag.unix_peer(number)) {
                Some(Ok(UnixSocket::Peer(peer))) if holds_socket(reader, process.pid, peer) => Pair::BothHeld,
                Some(Ok(UnixSocket::Peer(_) | UnixSocket::Alone)) => Pair::UnixSocket,
                Some(Ok(UnixSocket::NotUnix)) => Pair::Network,
                // Unknown, so assume the worse: another process or machine.
                Some(Err(_)) | None => Pair::Network,
            }
        });
        self.diag = diag;
        match pair {
            Pair::BothHeld => Source::Internal,
            Pair::UnixSocket => Source::External(Outside::UnixSocket),
            Pair::Network | Pair::OtherPipe => Source::External(Outside::Network),
        }
    }

    fn remembered(&mut self, pid: Pid, inode: u64, find_out: impl FnOnce() -> Pair) -> Pair {
        self.pairs.entry((pid, inode)).or_insert_with(|| (Instant::now(), find_out())).1
    }
}

/// Whether the process also holds the other end of a pipe that it reads or writes.
fn another_end(reader: &mut ProcReader, pid: Pid, fd: i32, inode: u64) -> bool {
    let Some(mine) = open_flags(reader, pid, fd).map(|flags| flags & libc::O_ACCMODE) else { return false };
    if mine == libc::O_RDWR {
        return true;
    }
    let mut fds = Vec::new();
    if reader.numbers(format_args!("/proc/{pid}/fd"), |fd| fds.push(fd)).is_err() {
        return false;
    }
    fds.into_iter().filter(|other| *other != fd).any(|other| {
        let same = reader
            .link(format_args!("/proc/{pid}/fd/{other}"))
            .is_ok_and(|link| inode_in(link, b"pipe:[") == Some(inode));
        same && open_flags(reader, pid, other).is_some_and(|flags| flags & libc::O_ACCMODE != mine)
    })
}

fn holds_socket(reader: &mut ProcReader, pid: Pid, inode: u32) -> bool {
    let mut fds = Vec::new();
    if reader.numbers(format_args!("/proc/{pid}/fd"), |fd| fds.push(fd)).is_err() {
        return false;
    }
    fds.into_iter().any(|fd| {
        reader
            .link(format_args!("/proc/{pid}/fd/{fd}"))
            .is_ok_and(|link| inode_in(link, b"socket:[") == Some(u64::from(inode)))
    })
}

/// A timer that is not armed wakes no one.
fn timer(reader: &mut ProcReader, pid: Pid, fd: i32) -> Source {
    let Ok(info) = reader.read(format_args!("/proc/{pid}/fdinfo/{fd}")) else {
        return Source::Timer(Alarm::Unknown);
    };
    match Alarm::of_timerfd(field(info, b"it_value:"), field(info, b"it_interval:")) {
        Alarm::Never => Source::Internal,
        alarm => Source::Timer(alarm),
    }
}

/// The flags that a descriptor was opened with.
pub(super) fn open_flags(reader: &mut ProcReader, pid: Pid, fd: i32) -> Option<i32> {
    let info = reader.read(format_args!("/proc/{pid}/fdinfo/{fd}")).ok()?;
    let octal = std::str::from_utf8(field(info, b"flags:")?).ok()?;
    i32::from_str_radix(octal, 8).ok()
}

/// The value behind a name in an `fdinfo` file.
fn field<'a>(info: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    info.split(|byte| *byte == b'\n').find_map(|line| Some(line.strip_prefix(name)?.trim_ascii()))
}
