//! Which file a process would execute, seen from where it stands: its own root, folder and descriptors.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::{Duration, SystemTime};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxFlags, fstat, fstatfs, open, openat, openat2,
    readlinkat, statx,
};
use rustix::io::Errno;
use rustix::process::Pid;

use super::ExecCall;
use super::search::Search;

/// As many links in a row as the kernel follows.
const MAX_LINKS: usize = 40;
const PROC_FS: i64 = 0x9fa0;

/// A file that a process would execute.
#[derive(Debug)]
pub struct Program {
    file: OwnedFd,
    /// Which file it is, and which state of it.
    pub identity: Identity,
    mode: u32,
}

/// Which file, in which state: it changes when the content does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The file system.
    pub device: u64,
    /// The file in it.
    pub inode: u64,
    /// Its length.
    pub size: u64,
    changed: (i64, u64),
}

impl Identity {
    /// Whether it has not changed for at least this long.
    #[must_use]
    pub fn is_older_than(&self, time: Duration) -> bool {
        let (seconds, nanoseconds) = self.changed;
        let nanoseconds = u32::try_from(nanoseconds).unwrap_or(0);
        let changed = Duration::new(u64::try_from(seconds).unwrap_or(0), nanoseconds);
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + changed).is_ok_and(|age| age >= time)
    }
}

impl Program {
    /// Finds the program of a call. A miss is noted for the search that it may be a part of.
    ///
    /// # Errors
    /// `ENOENT` and the like if there is no such file; others if it cannot be looked at.
    pub fn of(call: &ExecCall, path: &[u8], search: &mut Search) -> Result<Self, Errno> {
        search.ends();
        let pid = call.pid;
        if path.is_empty() {
            if !call.at {
                return Err(Errno::NOENT);
            }
            // The descriptor itself.
            let link = format!("/proc/{}/fd/{}", pid.as_raw_nonzero(), descriptor(call));
            return Self::new(open(link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?);
        }
        let descriptor = descriptor(call);
        if call.at && descriptor != libc::AT_FDCWD {
            let folder = format!("/proc/{}/fd/{descriptor}", pid.as_raw_nonzero());
            return Self::find(pid, &root_of(pid)?, &folder, path);
        }
        let root = root_of(pid)?;
        let found = Self::find(pid, &root, &format!("/proc/{}/cwd", pid.as_raw_nonzero()), path);
        if !call.at && found.as_ref().is_err_and(|error| is_missing(*error)) {
            search.has_missed(call, path, root);
        }
        found
    }

    /// Finds a program by a path, as a process would.
    ///
    /// # Errors
    /// As [`Program::of`].
    pub fn at(pid: Pid, path: &[u8]) -> Result<Self, Errno> {
        Self::find(pid, &root_of(pid)?, &format!("/proc/{}/cwd", pid.as_raw_nonzero()), path)
    }

    fn find(pid: Pid, root: &OwnedFd, folder: &str, path: &[u8]) -> Result<Self, Errno> {
        let look = OFlags::PATH | OFlags::CLOEXEC;
        let absolute = path.starts_with(b"/");
        let (start, resolve) = if absolute {
            (None, ResolveFlags::IN_ROOT)
        } else if is_our_root(root) {
            (Some(open(folder, look, Mode::empty())?), ResolveFlags::empty())
        } else {
            // What leads out of the folder would be taken from our root instead of theirs.
            (Some(open(folder, look, Mode::empty())?), ResolveFlags::BENEATH)
        };
        let from = start.as_ref().unwrap_or(root);
        let name = OsStr::from_bytes(path);
        match openat2(from, name, look, Mode::empty(), resolve | ResolveFlags::NO_MAGICLINKS) {
            Ok(file) => Self::new(file),
            // Links of `/proc` mean something else to each process, and old kernels lack the call. What is not there may be
            // behind such a link: `self` is ourselves here, and nobody in another process namespace.
            Err(
                Errno::LOOP
                | Errno::XDEV
                | Errno::NOSYS
                | Errno::AGAIN
                | Errno::NOENT
                | Errno::NOTDIR
                | Errno::ACCESS,
            ) => {
                let from = from.try_clone().map_err(|_| Errno::MFILE)?;
                Self::new(walk(pid, root, from, path)?)
            }
            Err(error) => Err(error),
        }
    }

    /// A file of our own view.
    ///
    /// # Errors
    /// As [`Program::of`].
    pub fn ours(path: &std::path::Path) -> Result<Self, Errno> {
        Self::new(open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
    }

    fn new(file: OwnedFd) -> Result<Self, Errno> {
        let stat = fstat(&file)?;
        let identity = Identity {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        };
        Ok(Self { file, identity, mode: stat.st_mode })
    }

    /// Whether the kernel could execute it at all: a regular file that somebody may execute.
    #[must_use]
    pub fn is_executable(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::RegularFile && self.mode & 0o111 != 0
    }

    /// Opens it to read what is in it.
    ///
    /// # Errors
    /// It may not be read.
    pub fn open(&self) -> Result<OwnedFd, Errno> {
        let link = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        open(link, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty())
    }

    /// What it is called where it lies.
    #[must_use]
    pub fn name(&self) -> OsString {
        let link = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let path =
            rustix::fs::readlink(link, Vec::new()).map(std::ffi::CString::into_bytes).unwrap_or_default();
        OsString::from_vec(path)
    }
}

/// Whether an error says that there is no such file.
#[must_use]
pub fn is_missing(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG)
}

/// The root of a process.
fn root_of(pid: Pid) -> Result<OwnedFd, Errno> {
    open(format!("/proc/{}/root", pid.as_raw_nonzero()), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// The descriptor of an `execveat`: the lower half of its first argument.
fn descriptor(call: &ExecCall) -> i32 {
    u32::try_from(call.arguments[0] & u64::from(u32::MAX)).unwrap_or(u32::MAX).cast_signed()
}

/// Whether a process has our root, in our mount namespace: elsewhere other things may be mounted below it.
fn is_our_root(root: &OwnedFd) -> bool {
    open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).is_ok_and(|ours| is_same_place(root, &ours))
}

/// Whether two descriptors are the same folder of the same mount. Where the kernel can't tell mounts apart, none are.
fn is_same_place(one: &OwnedFd, other: &OwnedFd) -> bool {
    let place = |of: &OwnedFd| {
        let stat = statx(of, "", AtFlags::EMPTY_PATH, StatxFlags::INO | StatxFlags::MNT_ID).ok()?;
        let has_mount = stat.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        has_mount.then_some((stat.stx_mnt_id, stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino))
    };
    place(one).is_some_and(|one| place(other) == Some(one))
}

/// Follows a path step by step, with its root and `/proc/self` and the like as they are for that process.
fn walk(pid: Pid, root: &OwnedFd, start: OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    let look = OFlags::PATH | OFlags::CLOEXEC;
    let again = |root: &OwnedFd| root.try_clone().map_err(|_| Errno::MFILE);
    let split = |path: &[u8]| path.split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let mut here = start;
    let mut steps: VecDeque<Vec<u8>> = split(path).into();
    let mut links = 0;
    // In the folder of the process in our own `/proc`, which is the same but for the way up.
    let mut in_our_proc = false;
    while let Some(step) = steps.pop_front() {
        if step.is_empty() || step == b"." {
            continue;
        }
        if step == b".." {
            if in_our_proc {
                return Err(Errno::PERM);
            }
            if is_same_place(&here, root) {
                continue;
            }
        }
        let name = OsStr::from_bytes(&step);
        let next = openat(&here, name, look | OFlags::NOFOLLOW, Mode::empty())?;
        if FileType::from_raw_mode(fstat(&next)?.st_mode) != FileType::Symlink {
            here = next;
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(Errno::LOOP);
        }
        let in_proc = fstatfs(&next).is_ok_and(|of| of.f_type == PROC_FS);
        let target = match step.as_slice() {
            // Its number may be another in the namespace of that `/proc`.
            b"self" | b"thread-self" if in_proc => {
                here = open(format!("/proc/{}", pid.as_raw_nonzero()), look, Mode::empty())?;
                in_our_proc = true;
                continue;
            }
            // All others of a process jump straight to a file.
            _ if in_proc && step != b"mounts" && step != b"net" => {
                here = openat(&here, name, look, Mode::empty())?;
                in_our_proc = false;
                continue;
            }
            _ => readlinkat(next.as_fd(), "", Vec::new())?.into_bytes(),
        };
        if target.starts_with(b"/") {
            here = again(root)?;
            in_our_proc = false;
        }
        for step in split(&target).into_iter().rev() {
            steps.push_front(step);
        }
    }
    Ok(here)
}
