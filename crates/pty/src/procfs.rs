//! Reads what `/proc` says about processes: their ids, their children, their start times.
//!
//! Pids are recycled, so a process that may end in the meantime is identified by its pid *and* its start
//! time. Everything here returns `None` or nothing if the process has ended, if the kernel refuses, and on
//! systems without a `/proc`: callers must treat that as "unknown", never as "does not exist".
//!
//! Any of these calls may block for as long as the kernel holds the process's locks (if it executes a file
//! from a dead network mount, for example). Never call them in a thread that moves bytes.

mod numbers;

use std::fmt;
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;

pub use numbers::{boot_id, find_in, numbers, pid_namespace};

/// What a process's main thread is doing, by the letter in its `stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Running, or ready to run.
    Running,
    /// Asleep until something happens.
    Sleeping,
    /// Asleep in the kernel and not interruptible: usually waiting for a disk.
    Disk,
    /// Stopped by a signal.
    Stopped,
    /// Stopped by a debugger.
    Traced,
    /// Ended but not yet reaped, or being torn down.
    Dead,
    /// Some other letter.
    Other,
}

impl State {
    fn of(letter: u8) -> Self {
        match letter {
            b'R' => Self::Running,
            b'S' | b'I' => Self::Sleeping,
            b'D' => Self::Disk,
            b'T' => Self::Stopped,
            b't' => Self::Traced,
            b'Z' | b'X' | b'x' => Self::Dead,
            _ => Self::Other,
        }
    }
}

/// A snapshot of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proc {
    /// Its id, which may be reused later.
    pub pid: Pid,
    /// Its parent; `None` if that is outside our pid namespace.
    pub ppid: Option<Pid>,
    /// Its process group; 0 if the group is outside our pid namespace.
    pub pgrp: i32,
    /// Its session; 0 when outside our pid namespace.
    pub session: i32,
    /// Its controlling terminal as a device number, 0 for none.
    pub tty_nr: i32,
    /// The foreground group of that terminal, -1 for none.
    pub tpgid: i32,
    /// When it started, in clock ticks since boot. Together with the pid it identifies a process.
    pub start_time: u64,
    /// What its main thread does.
    pub state: State,
    /// How many threads it has.
    pub threads: u32,
    /// The name of its main thread: the program's, cut to 15 bytes, unless it was changed.
    pub comm: String,
}

impl Proc {
    /// Whether it can still run code.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.state != State::Dead
    }
}

/// Reads `/proc/P/stat` of one process.
#[must_use]
pub fn stat(pid: Pid) -> Option<Proc> {
    ProcReader::new().stat(pid)
}

/// When a process started, in clock ticks since boot; `None` if there is no such process.
#[must_use]
pub fn start_time(pid: Pid) -> Option<u64> {
    stat(pid).map(|process| process.start_time)
}

/// The direct children of a process, of all its threads, zombies included.
///
/// The kernel does not guarantee anything about children that come or go in the meantime: look twice before
/// relying on it.
#[must_use]
pub fn children(pid: Pid) -> Vec<Pid> {
    let mut found = Vec::new();
    ProcReader::new().children(pid, &mut found);
    found
}

/// Every process below `root`, parents before their children; not `root` itself.
///
/// If `root` is a subreaper this is the whole job, including daemons that forked twice.
#[must_use]
pub fn descendants(root: Pid) -> Vec<Proc> {
    let mut found = Vec::new();
    ProcReader::new().descendants(root, &mut found);
    found
}

/// Whether a variable is in the environment that a process was started with, as `NAME=value`. False where that may not be read.
#[must_use]
pub fn environment_has(pid: Pid, variable: &[u8]) -> bool {
    let path = format!("/proc/{}/environ", pid.as_raw_nonzero());
    std::fs::read(path).is_ok_and(|all| all.split(|byte| *byte == 0).any(|one| one == variable))
}

/// The most descendants that a walk returns: a fork bomb must not take down the keeper.
const MAX_DESCENDANTS: usize = 20_000;

/// Reads small kernel files without allocating for each.
#[derive(Debug)]
pub(crate) struct ProcReader {
    path: String,
    bytes: Vec<u8>,
    /// A buffer for folder listings.
    listing: Vec<u8>,
    /// A buffer for the thread ids of one process.
    tids: Vec<Pid>,
    /// A buffer for the children of one process.
    queue: Vec<Pid>,
}

impl ProcReader {
    pub(crate) fn new() -> Self {
        Self {
            path: String::with_capacity(64),
            bytes: vec![0; 4096],
            listing: Vec::with_capacity(4096),
            tids: Vec::with_capacity(16),
            queue: Vec::with_capacity(16),
        }
    }

    /// Reads a small file completely.
    pub(crate) fn read(&mut self, path: fmt::Arguments<'_>) -> Result<&[u8], Errno> {
        self.read_until(path, false)
    }

    /// Reads a file that the kernel writes in one go: if it leaves space in the buffer, that is all of it.
    pub(crate) fn read_record(&mut self, path: fmt::Arguments<'_>) -> Result<&[u8], Errno> {
        self.read_until(path, true)
    }

    fn read_until(&mut self, path: fmt::Arguments<'_>, one_record: bool) -> Result<&[u8], Errno> {
        self.set_path(path);
        let file = rustix::fs::open(self.path.as_str(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut filled = 0;
        loop {
            if filled == self.bytes.len() {
                self.bytes.resize(filled * 2, 0);
            }
            match rustix::io::read(&file, &mut self.bytes[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error),
            }
            if one_record && filled < self.bytes.len() {
                break;
            }
        }
        Ok(&self.bytes[..filled])
    }

    /// The target of a link.
    pub(crate) fn link(&mut self, path: fmt::Arguments<'_>) -> Result<&[u8], Errno> {
        self.set_path(path);
        let room = self.bytes.as_mut_slice();
        let n = rustix::fs::readlinkat_raw(rustix::fs::CWD, self.path.as_str(), room)?;
        Ok(&self.bytes[..n])
    }

    /// The numbers that name the entries of a folder: pids, thread ids, file descriptors.
    #[cfg(target_os = "linux")]
    pub(crate) fn numbers(
        &mut self,
        path: fmt::Arguments<'_>,
        mut each: impl FnMut(i32),
    ) -> Result<(), Errno> {
        self.set_path(path);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(self.path.as_str(), flags, Mode::empty())?;
        let mut entries = rustix::fs::RawDir::new(&folder, self.listing.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            if let Some(number) = number(entry?.file_name().to_bytes()) {
                each(number);
            }
        }
        Ok(())
    }

    /// Without a `/proc` there is nothing to list.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn numbers(&mut self, _: fmt::Arguments<'_>, _: impl FnMut(i32)) -> Result<(), Errno> {
        Err(Errno::NOENT)
    }

    pub(crate) fn stat(&mut self, pid: Pid) -> Option<Proc> {
        parse_stat(self.read_record(format_args!("/proc/{pid}/stat")).ok()?)
    }

    /// The threads of a process.
    pub(crate) fn threads(&mut self, pid: Pid, into: &mut Vec<Pid>) -> Result<(), Errno> {
        into.clear();
        self.numbers(format_args!("/proc/{pid}/task"), |tid| into.extend(Pid::from_raw(tid)))
    }

    pub(crate) fn children(&mut self, pid: Pid, into: &mut Vec<Pid>) {
        let mut tids = std::mem::take(&mut self.tids);
        if self.threads(pid, &mut tids).is_ok() {
            self.children_of_threads(pid, &tids, into);
        }
        self.tids = tids;
    }

    fn children_of_threads(&mut self, pid: Pid, tids: &[Pid], into: &mut Vec<Pid>) {
        for tid in tids {
            if let Ok(list) = self.read(format_args!("/proc/{pid}/task/{tid}/children")) {
                let words = list.split(u8::is_ascii_whitespace);
                into.extend(words.filter_map(number).filter_map(Pid::from_raw));
            } else if *tid == pid && self.stat(pid).is_some() {
                // Other threads may have ended. But if the main thread exists and its list does not, the
                // kernel was built without these lists.
                return self.children_by_parent(pid, into);
            }
        }
    }

    /// The slow way to find children, for kernels without lists: read the parent of every process.
    fn children_by_parent(&mut self, pid: Pid, into: &mut Vec<Pid>) {
        let mut everybody = Vec::new();
        if self.numbers(format_args!("/proc"), |pid| everybody.extend(Pid::from_raw(pid))).is_err() {
            return;
        }
        into.extend(
            everybody
                .into_iter()
                .filter(|candidate| self.stat(*candidate).is_some_and(|process| process.ppid == Some(pid))),
        );
    }

    /// Appends every process below `root`, parents first.
    pub(crate) fn descendants(&mut self, root: Pid, into: &mut Vec<Proc>) {
        let mut queue = std::mem::take(&mut self.queue);
        queue.clear();
        self.children(root, &mut queue);
        let mut next = 0;
        while next < queue.len() && into.len() < MAX_DESCENDANTS {
            let pid = queue[next];
            next += 1;
            let Some(process) = self.stat(pid) else { continue };
            // Most processes have a single thread, and need no listing of the task folder.
            if process.is_alive() && process.threads <= 1 {
                self.children_of_threads(pid, &[pid], &mut queue);
            } else if process.is_alive() {
                self.children(pid, &mut queue);
            }
            into.push(process);
        }
        self.queue = queue;
    }

    /// The name of a program as its user knows it: the name of its main thread, unless that was changed
    /// (`MainThread`, `tmux: client`) to something that is not in its command line.
    pub(crate) fn program(&mut self, pid: Pid, comm: &str) -> String {
        let Ok(line) = self.read(format_args!("/proc/{pid}/cmdline")) else { return comm.to_owned() };
        let base = |word: &[u8]| {
            let name = word.rsplit(|byte| *byte == b'/').next().unwrap_or(word);
            String::from_utf8_lossy(name.strip_prefix(b"-").unwrap_or(name)).into_owned()
        };
        let mut words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty()).map(base);
        let Some(first) = words.next() else { return comm.to_owned() };
        let known = first.starts_with(comm) || words.take(2).any(|word| word.starts_with(comm));
        if known { comm.to_owned() } else { first }
    }

    fn set_path(&mut self, path: fmt::Arguments<'_>) {
        self.path.clear();
        // Writing to a string can't fail.
        let _ = self.path.write_fmt(path);
    }
}

/// A non-negative decimal number and nothing else.
pub(crate) fn number(digits: &[u8]) -> Option<i32> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_i32, |sum, digit| {
        let digit = digit.is_ascii_digit().then(|| i32::from(digit - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

/// The number in `pipe:[123]` or `socket:[123]`.
pub(crate) fn inode_in(link: &[u8], kind: &[u8]) -> Option<u64> {
    let digits = link.strip_prefix(kind)?.strip_suffix(b"]")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Parses a `stat` line. The name in it may contain blanks and brackets, so the last `)` ends it.
fn parse_stat(line: &[u8]) -> Option<Proc> {
    let open = line.iter().position(|byte| *byte == b'(')?;
    let close = line.iter().rposition(|byte| *byte == b')')?;
    let pid = Pid::from_raw(number(line[..open].trim_ascii())?)?;
    let comm = String::from_utf8_lossy(line.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = State::of(*fields.next()?.as_bytes().first()?);
    let mut int = || fields.next()?.parse::<i32>().ok();
    let (ppid, pgrp, session, tty_nr, tpgid) = (int()?, int()?, int()?, int()?, int()?);
    // Numbered as in proc(5): tpgid is field 8, num_threads 20, starttime 22.
    let threads = fields.nth(11)?.parse().ok()?;
    let start_time = fields.nth(1)?.parse().ok()?;
    let ppid = Pid::from_raw(ppid);
    Some(Proc { pid, ppid, pgrp, session, tty_nr, tpgid, start_time, state, threads, comm })
}

/// The command line of a process, as it was started.
#[must_use]
pub fn arguments(pid: Pid) -> Option<Vec<Vec<u8>>> {
    let bytes = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).ok()?;
    let text = bytes.strip_suffix(&[0]).unwrap_or(&bytes);
    Some(text.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect())
}

/// The file that a process executes, whatever its name; `None` also if the kernel does not say.
#[must_use]
pub fn program_file(pid: Pid) -> Option<String> {
    let link = std::fs::read_link(format!("/proc/{}/exe", pid.as_raw_nonzero())).ok()?;
    let path = link.to_string_lossy();
    Some(path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned())
}

/// Whether a process executes the same file as we do, not only one of the same name; `None` if the kernel does not say.
#[must_use]
pub fn executes_our_program(pid: Pid) -> Option<bool> {
    let file = |of: &str| {
        let found = std::fs::metadata(format!("/proc/{of}/exe")).ok()?;
        Some((found.dev(), found.ino()))
    };
    Some(file(&pid.as_raw_nonzero().to_string())? == file("self")?)
}

/// How often a process's main thread has been scheduled. If two calls return the same number, it has slept in
/// between.
#[must_use]
pub fn times_run(pid: Pid) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{}/schedstat", pid.as_raw_nonzero())).ok()?;
    text.split_ascii_whitespace().nth(2)?.parse().ok()
}

/// The kernel's name of one of our own descriptors: a terminal's path, or a pipe's number.
#[must_use]
pub fn descriptor_name(fd: std::os::fd::RawFd) -> Option<String> {
    let link = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
    Some(link.to_string_lossy().into_owned())
}

/// A process's three standard descriptors, as far as they are open, with the kernel's names of them.
#[must_use]
pub fn standard_descriptors(pid: Pid) -> Vec<(i32, String)> {
    let name = |fd: i32| {
        let link = std::fs::read_link(format!("/proc/{}/fd/{fd}", pid.as_raw_nonzero())).ok()?;
        Some((fd, link.to_string_lossy().into_owned()))
    };
    (0..3).filter_map(name).collect()
}

/// Whether `/proc` shows only our own processes (`hidepid`): the first one is always there, and is another user's.
#[must_use]
pub fn hides_other_users() -> bool {
    std::fs::read("/proc/1/stat").is_err()
}

/// All processes.
#[must_use]
pub fn everything() -> Vec<Proc> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
        .filter_map(stat)
        .collect()
}

/// The process at the other end of a Unix socket, as it was when it connected; `None` if it is not visible to
/// us.
#[cfg(target_os = "linux")]
#[must_use]
pub fn peer_of(socket: impl std::os::fd::AsFd) -> Option<Pid> {
    credentials(socket).and_then(|peer| Pid::from_raw(peer.pid))
}

/// The user at the other end of a Unix socket, also where its process is not visible to us.
#[cfg(target_os = "linux")]
#[must_use]
pub fn peer_user(socket: impl std::os::fd::AsFd) -> Option<u32> {
    credentials(socket).map(|peer| peer.uid)
}

#[cfg(target_os = "linux")]
fn credentials(socket: impl std::os::fd::AsFd) -> Option<libc::ucred> {
    use std::os::fd::AsRawFd;
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes into `peer`, and both outlive the call.
    #[expect(unsafe_code, reason = "the safe wrapper cannot represent an invisible process")]
    let done = unsafe {
        let fd = socket.as_fd().as_raw_fd();
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut peer).cast(), &raw mut size)
    };
    (done == 0).then_some(peer)
}

/// Not supported on other systems.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn peer_of(_socket: impl std::os::fd::AsFd) -> Option<Pid> {
    None
}

/// Walks from a process to its parent, and so on, while `each` returns true. It can ask for the arguments of
/// each process. Returns false if one ended before its parent was known: then there may be more ancestors
/// than were visited.
pub fn walk_up(from: Pid, mut each: impl FnMut(&Proc, &mut Arguments<'_>) -> bool) -> bool {
    let mut reader = ProcReader::new();
    let mut seen = Vec::new();
    let mut next = Some(from);
    while let Some(pid) = next.filter(|pid| !seen.contains(pid)) {
        let Some(process) = reader.stat(pid) else { return false };
        seen.push(pid);
        next = process.ppid;
        if !each(&process, &mut Arguments { reader: &mut reader, pid }) {
            return true;
        }
    }
    true
}

/// The arguments of a process, read on demand.
#[derive(Debug)]
pub struct Arguments<'a> {
    reader: &'a mut ProcReader,
    pid: Pid,
}

impl Arguments<'_> {
    /// All arguments, the program's name first; empty if the kernel does not say.
    pub fn read(&mut self) -> Vec<&[u8]> {
        let pid = self.pid;
        let Ok(bytes) = self.reader.read_record(format_args!("/proc/{pid}/cmdline")) else {
            return Vec::new();
        };
        bytes.strip_suffix(&[0]).unwrap_or(bytes).split(|byte| *byte == 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_shift_the_fields() {
        let line = b"42 (a) b (c)) S 7 42 40 34817 42 4194560 1 2 3 4 5 6 7 8 20 0 3 0 991 1 2 3\n";
        let process = parse_stat(line).unwrap();
        assert_eq!(process.comm, "a) b (c)");
        assert_eq!(process.ppid, Pid::from_raw(7));
        assert_eq!((process.pgrp, process.session), (42, 40));
        assert_eq!((process.tty_nr, process.tpgid), (34817, 42));
        assert_eq!((process.threads, process.start_time), (3, 991));
        assert_eq!(process.state, State::Sleeping);
    }

    #[test]
    fn truncated_lines_are_refused() {
        let line = b"42 (sh) S 7 42 40 34817 42 4194560 1 2 3 4 5 6 7 8 20 0 3 0 991";
        for end in 0..line.len() - 3 {
            let cut = parse_stat(&line[..end]);
            assert!(cut.is_none(), "{end}: {cut:?}");
        }
    }

    #[test]
    fn only_plain_digits_are_numbers() {
        assert_eq!(number(b"0"), Some(0));
        assert_eq!(number(b"2147483647"), Some(i32::MAX));
        for bad in [&b""[..], b"-1", b"+1", b" 1", b"2147483648", b"1x", b".", b".."] {
            assert_eq!(number(bad), None, "{bad:?}");
        }
    }

    #[cfg(target_os = "linux")]
    mod on_this_machine {
        use super::super::*;
        use std::process::{Child, Command, Stdio};

        /// Ends and reaps a child even if the test fails.
        struct Ended(Child);

        impl Drop for Ended {
            fn drop(&mut self) {
                let _ = self.0.kill();
                let _ = self.0.wait();
            }
        }

        fn pid_of(child: &Ended) -> Pid {
            Pid::from_child(&child.0)
        }

        fn a_sleeper() -> Ended {
            Ended(Command::new("sleep").arg("30").stdin(Stdio::null()).spawn().unwrap())
        }

        #[test]
        fn children_of_every_thread_are_found() {
            let here = a_sleeper();
            let elsewhere = std::thread::spawn(a_sleeper);
            let me = rustix::process::getpid();
            let elsewhere = elsewhere.join().unwrap();
            let found = children(me);
            assert!(found.contains(&pid_of(&here)) && found.contains(&pid_of(&elsewhere)), "{found:?}");
        }

        #[test]
        fn the_slow_way_finds_the_same_children() {
            let child = a_sleeper();
            let mut found = Vec::new();
            ProcReader::new().children_by_parent(rustix::process::getpid(), &mut found);
            assert!(found.contains(&pid_of(&child)));
        }

        #[test]
        fn grandchildren_come_after_their_parents() {
            let mut shell = Command::new("sh");
            shell.args(["-c", "sleep 30 & echo started; wait"]).stdin(Stdio::null()).stdout(Stdio::piped());
            let mut shell = Ended(shell.spawn().unwrap());
            let mut said = [0; 8];
            std::io::Read::read_exact(shell.0.stdout.as_mut().unwrap(), &mut said).unwrap();
            let found = descendants(rustix::process::getpid());
            let place = |pid| found.iter().position(|process| process.pid == pid);
            let parent = place(pid_of(&shell)).unwrap();
            let child = found.iter().position(|process| process.ppid == Some(pid_of(&shell))).unwrap();
            let grandchild = found[child].pid;
            assert!(parent < child);
            assert!(start_time(grandchild) >= start_time(pid_of(&shell)));
            rustix::process::kill_process(grandchild, rustix::process::Signal::KILL).unwrap();
        }

        #[test]
        fn dead_processes_are_unknown() {
            let mut child = a_sleeper();
            let pid = pid_of(&child);
            assert!(stat(pid).unwrap().is_alive());
            child.0.kill().unwrap();
            child.0.wait().unwrap();
            assert_eq!(stat(pid), None);
            assert_eq!(children(pid), Vec::new());
        }

        #[test]
        fn the_boot_has_an_id() {
            assert_eq!(boot_id().unwrap().len(), 36);
        }
    }
}
