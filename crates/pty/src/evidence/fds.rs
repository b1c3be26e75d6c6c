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
    /// The other end of a Unix socket, with its number if it is known.
    UnixSocket(Option<u64>),
    /// The other end of this pipe.
    Pipe(u64),
    /// The programs on a terminal of which it holds the master.
    Inner(TtyIndex),
    /// A device, or anything else.
    Other,
}

impl Outside {
    /// The pipe or socket by which another process of the job could be at the other end.
    pub(super) fn link(self) -> Option<Link> {
        match self {
            Self::Pipe(inode) => Some(Link::Pipe(inode)),
            Self::UnixSocket(peer) => peer.map(Link::Socket),
            Self::Network | Self::Inner(_) | Self::Other => None,
        }
    }
}

/// One end of a connection between processes, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Link {
    Pipe(u64),
    Socket(u64),
}

/// How long it is cached that a process holds both ends of something. Checking means a walk over all of its
/// descriptors, and programs create such pairs once, at their start.
const PAIR_CACHE_TTL: Duration = Duration::from_secs(2);

/// Classifies descriptors, with a cache for what is expensive to find out.
#[derive(Debug)]
pub(super) struct Descriptors {
    diag: Option<SockDiag>,
    pairs: HashMap<(Pid, u64), (Instant, Pair)>,
    /// The pipes and sockets of processes that were asked about in this sample, with the descriptors.
    held: HashMap<Pid, Vec<(i32, Link)>>,
    /// A pipe that stands in for the terminal: the standard input of a job that has none.
    stdin_pipe: Option<u64>,
    /// The job's own terminal.
    own: Option<TtyIndex>,
    /// The devpts file system that it is in: others may use the same numbers.
    devpts: Option<u64>,
}

/// Both ends of a pipe or socket, as one process sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pair {
    BothHeld,
    UnixSocket(Option<u64>),
    Network,
    OtherPipe,
}

/// Terminals of another devpts (a container's) get numbers from here on, so that none is mistaken for ours.
const FOREIGN_TTY_BASE: u32 = 1 << 24;

impl Descriptors {
    pub(super) fn new() -> Self {
        Self {
            diag: None,
            pairs: HashMap::new(),
            held: HashMap::new(),
            stdin_pipe: None,
            own: None,
            devpts: None,
        }
    }

    /// Sets which terminal is the job's, and which file system it is in.
    pub(super) fn learn_terminal(&mut self, index: TtyIndex) {
        self.own = Some(index);
        self.devpts = rustix::fs::stat(index.path()).ok().map(|stat| stat.st_dev);
    }

    /// Sets which pipe is the job's standard input, in place of a terminal.
    pub(super) fn learn_stdin(&mut self, inode: u64) {
        self.stdin_pipe = Some(inode);
        self.own = Some(TtyIndex::STDIN);
    }

    /// Drops cache entries that may be out of date.
    pub(super) fn forget_old(&mut self, now: Instant) {
        self.held.clear();
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
            if self.stdin_pipe == Some(inode) {
                return Some(Source::Terminal(TtyIndex::STDIN));
            }
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
        let pair = self.remembered(process.pid, inode).unwrap_or_else(|| {
            let held = self.another_end(reader, process.pid, fd, inode);
            self.remember(process.pid, inode, if held { Pair::BothHeld } else { Pair::OtherPipe })
        });
        if pair == Pair::BothHeld { Source::Internal } else { Source::External(Outside::Pipe(inode)) }
    }

    fn socket(&mut self, reader: &mut ProcReader, process: &Proc, inode: u64) -> Source {
        let pair = self.remembered(process.pid, inode).unwrap_or_else(|| {
            if self.diag.is_none() {
                self.diag = SockDiag::open().ok();
            }
            let number = u32::try_from(inode).unwrap_or(0);
            let pair = match self.diag.as_mut().map(|diag| diag.unix_peer(number)) {
                Some(Ok(UnixSocket::Peer(peer))) => {
                    let peer = u64::from(peer);
                    let held =
                        self.holds(reader, process.pid).iter().any(|(_, link)| *link == Link::Socket(peer));
                    if held { Pair::BothHeld } else { Pair::UnixSocket(Some(peer)) }
                }
                Some(Ok(UnixSocket::Alone)) => Pair::UnixSocket(None),
                Some(Ok(UnixSocket::NotUnix)) => Pair::Network,
                // Unknown, so assume the worse: another process or machine.
                Some(Err(_)) | None => Pair::Network,
            };
            self.remember(process.pid, inode, pair)
        });
        match pair {
            Pair::BothHeld => Source::Internal,
            Pair::UnixSocket(peer) => Source::External(Outside::UnixSocket(peer)),
            Pair::Network | Pair::OtherPipe => Source::External(Outside::Network),
        }
    }

    fn remembered(&self, pid: Pid, inode: u64) -> Option<Pair> {
        self.pairs.get(&(pid, inode)).map(|(_, pair)| *pair)
    }

    fn remember(&mut self, pid: Pid, inode: u64, pair: Pair) -> Pair {
        self.pairs.insert((pid, inode), (Instant::now(), pair));
        pair
    }

    /// The pipes and sockets that a process holds, listed once a sample.
    pub(super) fn holds(&mut self, reader: &mut ProcReader, pid: Pid) -> &[(i32, Link)] {
        self.held.entry(pid).or_insert_with(|| {
            let mut fds = Vec::new();
            if reader.numbers(format_args!("/proc/{pid}/fd"), |fd| fds.push(fd)).is_err() {
                return Vec::new();
            }
            let link_of = |fd: i32| {
                let link = reader.link(format_args!("/proc/{pid}/fd/{fd}")).ok()?;
                let pipe = inode_in(link, b"pipe:[").map(Link::Pipe);
                Some((fd, pipe.or_else(|| inode_in(link, b"socket:[").map(Link::Socket))?))
            };
            fds.into_iter().filter_map(link_of).collect()
        })
    }

    /// Whether the process also holds the other end of a pipe that it reads or writes.
    fn another_end(&mut self, reader: &mut ProcReader, pid: Pid, fd: i32, inode: u64) -> bool {
        let Some(mine) = open_flags(reader, pid, fd).map(|flags| flags & libc::O_ACCMODE) else {
            return false;
        };
        if mine == libc::O_RDWR {
            return true;
        }
        let same =
            |(other, link): &(i32, Link)| (*other != fd && *link == Link::Pipe(inode)).then_some(*other);
        let others: Vec<i32> = self.holds(reader, pid).iter().filter_map(same).collect();
        others
            .into_iter()
            .any(|other| open_flags(reader, pid, other).is_some_and(|flags| flags & libc::O_ACCMODE != mine))
    }
}

/// A timer that is not armed wakes no one.
fn timer(reader: &mut ProcReader, pid: Pid, fd: i32) -> Source {
    let Ok(info) = reader.read(format_args!("/proc/{pid}/fdinfo/{fd}")) else {
        return Source::Timer(Alarm::Unknown);
    };
    match Alarm::of_timerfd(field(info, b"it_value:"), field(info, b"it_interval:")) {
        Alarm::Never => Source::Internal,
        alarm @ (Alarm::Unknown | Alarm::Housekeeping | Alarm::After(_) | Alarm::In(_)) => {
            Source::Timer(alarm)
        }
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
