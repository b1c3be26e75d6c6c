//! Placeholders for protected names that do not exist yet: something must be there to mount over.
//!
//! A file is a socket that nobody can open, which git and other tools pass over; a folder is an empty one. Both
//! have the sticky bit, by which they are known again. All jobs in a folder share them, under a shared lock on
//! that folder; the last one takes them away.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, flock, mkdirat, mknodat, open, openat, statat, unlinkat,
};

const FOLDER: u32 = libc::S_IFDIR | 0o1700;
const FILE: u32 = libc::S_IFSOCK | 0o1600;
const DOT: u32 = libc::S_IFREG | 0o1600;

/// What a placeholder is, by its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Kind {
    /// An empty folder.
    Folder = FOLDER,
    /// A socket that nobody can open.
    Socket = FILE,
    /// A file with a dot in it: for git's `commondir`, the folder that it is in.
    Dot = DOT,
}

/// A protected name that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder {
    /// Where it would be.
    pub path: PathBuf,
    kind: Kind,
}

impl Placeholder {
    /// One for a folder or a file.
    #[must_use]
    pub fn of(path: PathBuf, is_folder: bool) -> Self {
        Self { path, kind: if is_folder { Kind::Folder } else { Kind::Socket } }
    }

    /// A file with nothing but a dot in it.
    #[must_use]
    pub fn with_dot(path: PathBuf) -> Self {
        Self { path, kind: Kind::Dot }
    }

    /// Whether there is nothing at a path, or only what was left by us. It is one look: another job may take its
    /// placeholders away at this moment.
    #[must_use]
    pub fn is_missing(path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt;
        let Ok(found) = std::fs::symlink_metadata(path) else { return true };
        match found.mode() {
            FILE => true,
            DOT => found.len() <= 2,
            FOLDER => std::fs::read_dir(path).map_or(true, |mut entries| entries.next().is_none()),
            _ => false,
        }
    }
}

/// A placeholder that was made, with its folder open and locked.
#[derive(Debug)]
pub(super) struct PlaceholderFd {
    parent: Rc<OwnedFd>,
    name: CString,
    kind: Kind,
}

impl PlaceholderFd {
    pub(super) fn raw(&self) -> RawFd {
        self.parent.as_raw_fd()
    }
}

/// Makes those that are not there.
pub(super) fn make(placeholders: &[Placeholder]) -> io::Result<Vec<PlaceholderFd>> {
    let mut made: Vec<PlaceholderFd> = Vec::new();
    let mut last: Option<(&Path, Rc<OwnedFd>)> = None;
    for Placeholder { path, kind } in placeholders {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { continue };
        let parent = match &last {
            Some((known, parent)) if *known == folder => parent.clone(),
            _ => {
                let parent = Rc::new(open_parent(folder)?);
                lock(&parent);
                last = Some((folder, parent.clone()));
                parent
            }
        };
        let mode = Mode::from_raw_mode(*kind as u32 & 0o7777);
        let done = match kind {
            Kind::Folder => mkdirat(&*parent, name, mode),
            Kind::Socket => make_socket(&made, &parent, name, mode),
            Kind::Dot => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                openat(&*parent, name, flags, mode)
                    .and_then(|file| rustix::io::write(&file, b".\n").map(drop))
            }
        };
        match done {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => {
                remove_held(&made);
                return Err(error.into());
            }
        }
        let name = CString::new(name.as_bytes()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        made.push(PlaceholderFd { parent, name, kind: *kind });
    }
    Ok(made)
}

/// Makes a socket, as another name of the one that was made in this folder before, if there is one: a new file takes the file
/// system ten times as long as a name.
fn make_socket(
    made: &[PlaceholderFd],
    parent: &Rc<OwnedFd>,
    name: &std::ffi::OsStr,
    mode: Mode,
) -> rustix::io::Result<()> {
    let same = |other: &&PlaceholderFd| other.kind == Kind::Socket && Rc::ptr_eq(&other.parent, parent);
    if let Some(other) = made.iter().rev().find(same)
        && statat(&**parent, &other.name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|found| found.st_mode == Kind::Socket as u32)
    {
        match rustix::fs::linkat(&**parent, &other.name, &**parent, name, AtFlags::empty()) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::EXIST) => return Err(rustix::io::Errno::EXIST),
            // A file system without links, or it was taken away at this moment.
            Err(_) => {}
        }
    }
    mknodat(&**parent, name, FileType::Socket, mode, 0)
}

/// Locks a folder as one of those who need its placeholders. The one that takes them away has the lock for a moment only;
/// a program that has it for longer is none of ours, and does not hold up a job.
fn lock(folder: &OwnedFd) {
    for _ in 0..100 {
        match flock(folder, FlockOperation::NonBlockingLockShared) {
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(std::time::Duration::from_millis(1)),
            Ok(()) | Err(_) => return,
        }
    }
}

fn open_parent(folder: &Path) -> io::Result<OwnedFd> {
    let fd = open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    crate::spawn::above_stdio(fd)
}

/// Takes them away, unless another job needs them. It may run between fork and exec, so it only makes system
/// calls.
pub(super) fn remove_held(placeholders: &[PlaceholderFd]) {
    for PlaceholderFd { parent, name, kind } in placeholders {
        if flock(&**parent, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        let found = statat(&**parent, name, AtFlags::SYMLINK_NOFOLLOW);
        if found.is_ok_and(|found| found.st_mode == *kind as u32) {
            let flags = if *kind == Kind::Folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            let _ = unlinkat(&**parent, name, flags);
        }
        let _ = flock(&**parent, FlockOperation::Unlock);
    }
}

/// The locks of this process on folders whose placeholders its job needs.
static KEPT: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

/// Takes away what jobs have left that can't do so any more, unless another job needs them. The job of this process does not any
/// more.
pub fn remove(placeholders: &[Placeholder]) {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let mut held = Vec::new();
    for Placeholder { path, kind } in placeholders {
        if let (Some(folder), Some(name)) = (path.parent(), path.file_name())
            && Placeholder::is_missing(path)
            && let Ok(parent) = open_parent(folder)
            && let Ok(name) = CString::new(name.as_bytes())
        {
            held.push(PlaceholderFd { parent: Rc::new(parent), name, kind: *kind });
        }
    }
    remove_held(&held);
}

/// Makes placeholders for a job whose namespaces another program makes. They stay while this process lives, or until it
/// [removes](remove) them.
///
/// # Errors
/// The kernel's error.
pub fn keep(placeholders: &[Placeholder]) -> io::Result<()> {
    let held = make(placeholders)?;
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    for (i, one) in held.iter().enumerate() {
        if !held[..i].iter().any(|before| Rc::ptr_eq(&before.parent, &one.parent)) {
            kept.push(one.parent.try_clone()?);
        }
    }
    Ok(())
}
