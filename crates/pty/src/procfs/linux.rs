//! What `/proc` says, read without an allocation for each file.

use std::fmt;
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;

use super::stat_line::parse_stat;
use super::{MAX_DESCENDANTS, Proc, number, stat};

/// Whether a variable is in the environment that a process was started with, as `NAME=value`. False where that may not be read.
#[must_use]
pub fn environment_has(pid: Pid, variable: &[u8]) -> bool {
    let path = format!("/proc/{}/environ", pid.as_raw_nonzero());
    std::fs::read(path).is_ok_and(|all| all.split(|byte| *byte == 0).any(|one| one == variable))
}

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
    pub(super) fn children_by_parent(&mut self, pid: Pid, into: &mut Vec<Pid>) {
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

    /// The command line of a process, in one piece.
    pub(crate) fn command_line(&mut self, pid: Pid) -> Option<&[u8]> {
        self.read_record(format_args!("/proc/{pid}/cmdline")).ok()
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

/// The number in `pipe:[123]` or `socket:[123]`.
pub(crate) fn inode_in(link: &[u8], kind: &[u8]) -> Option<u64> {
    let digits = link.strip_prefix(kind)?.strip_suffix(b"]")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
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
#[must_use]
pub fn peer_of(socket: impl std::os::fd::AsFd) -> Option<Pid> {
    credentials(socket).and_then(|peer| Pid::from_raw(peer.pid))
}

/// The user at the other end of a Unix socket, also where its process is not visible to us.
#[must_use]
pub fn peer_user(socket: impl std::os::fd::AsFd) -> Option<u32> {
    credentials(socket).map(|peer| peer.uid)
}

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
