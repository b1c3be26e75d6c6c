//! Claims a handle without a lock server, and implements the lock that proves that a keeper lives.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, mkdirat, openat};
use rustix::io::Errno;

use super::format::{self, Info};
use super::replace::{Durability, read_small, replace, write_new};
use super::sweep::remove_flat_folder;
use super::{Home, JobDir, layout, numbers};
use crate::failure::Failure;
use crate::spec::{Handle, KeeperSpec};

/// Held while the keeper or the heir lives: both inherit it, and the kernel releases it with the last of
/// them.
#[derive(Debug)]
pub struct Lock {
    _file: OwnedFd,
}

impl Lock {
    /// Takes the lock of a job; `None` if another process holds it.
    ///
    /// # Errors
    /// If that is unknown: then the job's keeper may live or not.
    pub fn take(job: &JobDir) -> Result<Option<Self>, Errno> {
        let file = match open_lock(&job.dir) {
            // A lock does not need write permission.
            Err(Errno::ROFS | Errno::ACCESS) => job.open(layout::LOCK)?,
            opened => opened?,
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the lock of a job is held, that is, whether its keeper lives.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn is_held(job: &JobDir) -> Result<bool, Errno> {
        Ok(Self::take(job)?.is_none())
    }

    /// Whether a job certainly has no keeper.
    #[must_use]
    pub fn is_free(job: &JobDir) -> bool {
        matches!(Self::is_held(job), Ok(false))
    }
}

/// Sets or clears a second lock, on the open event log. It means that the job has ended but its record could
/// not be written, so clients must ask the keeper how it ended. It is released with the keeper and its heir.
pub(crate) fn set_end_unsaved(events: &OwnedFd, unsaved: bool) {
    let operation =
        if unsaved { FlockOperation::NonBlockingLockExclusive } else { FlockOperation::NonBlockingUnlock };
    let _ = flock(events, operation);
}

/// Whether the keeper has set that lock.
pub(crate) fn is_end_unsaved(job: &JobDir) -> bool {
    let locked = |events| flock(events, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK);
    job.open(layout::EVENTS).is_ok_and(locked)
}

/// Room on the disk that is held for a receipt: it hangs on the lock file, whose own size stays 0.
const ROOM: u64 = 16 << 10;

/// Holds room for the receipt of a job, where the file system can: a full disk must not hide how a job ended.
pub(crate) fn hold_room(job: &JobDir) {
    let record = job.info().map_or(0, |info| info.to_bytes().len() as u64);
    if let Ok(file) = open_lock(&job.dir) {
        let _ = outlast_pty::system::reserve(&file, 0, ROOM + 2 * record);
    }
}

/// Gives that room back to the disk, for the receipt itself or for good.
pub(crate) fn give_room_back(job: &JobDir) {
    if let Ok(file) = open_lock(&job.dir) {
        let _ = rustix::fs::ftruncate(&file, 0);
    }
}

fn open_lock(dir: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(dir, layout::LOCK, flags, Mode::RUSR | Mode::WUSR)
}

/// A folder that will be a job's: locked, and under a name that nothing looks at. Everything that a job needs
/// before its command is known can be prepared in it.
#[derive(Debug)]
pub struct Fresh {
    name: String,
    /// The folder, as a job without a number.
    pub(crate) job: JobDir,
    lock: Lock,
}

impl Fresh {
    /// Creates the folder.
    ///
    /// # Errors
    /// If the home cannot be written.
    pub fn make(home: &Home) -> Result<Self, Failure> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(".new-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        mkdirat(home.jobs_dir(), &name, Mode::RWXU).map_err(|error| broken(home, error))?;
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = openat(home.jobs_dir(), &name, flags, Mode::empty()).and_then(|dir| {
            let file = open_lock(&dir)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            Ok((dir, Lock { _file: file }))
        });
        match made {
            Ok((dir, lock)) => {
                let job =
                    JobDir { handle: Handle::new(0), path: home.path().join(layout::JOBS).join(&name), dir };
                Ok(Self { name, job, lock })
            }
            Err(error) => {
                let _ = remove_flat_folder(home.jobs_dir(), &name);
                Err(broken(home, error))
            }
        }
    }

    /// Claims the next handle for it: writes the job's record and renames the folder to its number. The
    /// rename fails if the number is taken, so two clients never get the same.
    ///
    /// # Errors
    /// If the home cannot be written.
    pub fn claim(self, home: &Home, spec: &KeeperSpec, now: u64) -> Result<(JobDir, Info, Lock), Failure> {
        match self.move_to_next(home, spec, now) {
            Ok(info) => {
                let job = JobDir { handle: info.handle, path: home.job_path(info.handle), ..self.job };
                Ok((job, info, self.lock))
            }
            Err(error) => {
                self.discard(home);
                Err(broken(home, error))
            }
        }
    }

    fn move_to_next(&self, home: &Home, spec: &KeeperSpec, now: u64) -> Result<Info, Errno> {
        let mut handle = next(home);
        loop {
            let info = format::claimed(handle, spec, now);
            // Nothing reads it yet.
            write_new(&self.job, layout::INFO, &info.to_bytes())?;
            match move_to_number(home, &self.name, handle) {
                Ok(()) => return Ok(info),
                Err(Errno::EXIST | Errno::NOTEMPTY) => {
                    handle = next(home).max(Handle::new(handle.number() + 1))
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes it, if it is not needed.
    pub fn discard(self, home: &Home) {
        let _ = remove_flat_folder(home.jobs_dir(), &self.name);
    }
}

fn broken(home: &Home, error: Errno) -> Failure {
    Failure::system(format!("no job can be made in {}", home.path().display()), error)
}

/// The number after all existing and retired ones. Folders are listed first: one that is removed in between
/// had its number retired before.
fn next(home: &Home) -> Handle {
    let highest = home.handles().into_iter().max().max(retired(home)).map_or(0, Handle::number);
    Handle::new(numbers::next(home, highest))
}

#[cfg(all(target_os = "linux", not(outlast_portable)))]
fn move_to_number(home: &Home, fresh: &str, handle: Handle) -> Result<(), Errno> {
    let jobs = home.jobs_dir();
    let flags = rustix::fs::RenameFlags::NOREPLACE;
    rustix::fs::renameat_with(jobs, fresh, jobs, handle.to_string(), flags)
}

/// A plain rename fails on a folder that is not empty, and a claimed one never is.
#[cfg(any(not(target_os = "linux"), outlast_portable))]
fn move_to_number(home: &Home, fresh: &str, handle: Handle) -> Result<(), Errno> {
    let jobs = home.jobs_dir();
    rustix::fs::renameat(jobs, fresh, jobs, handle.to_string())
}

/// The highest handle whose folder was removed.
#[must_use]
pub fn retired(home: &Home) -> Option<Handle> {
    let bytes = read_small(home.as_dir(), layout::RETIRED, 64).ok()?;
    std::str::from_utf8(&bytes).ok()?.trim().parse().ok().map(Handle::new)
}

/// Records that a handle's folder is about to be removed, so that its number is not used again. The caller
/// holds the home's lock.
pub(super) fn retire(home: &Home, handle: Handle) -> Result<(), Errno> {
    if retired(home).is_some_and(|highest| highest >= handle) {
        return Ok(());
    }
    replace(home.as_dir(), layout::RETIRED, format!("{handle}\n").as_bytes(), Durability::Machine)
}

/// Locks the whole home briefly, for what only one process may do at a time. The kernel releases the lock if
/// we die.
pub(super) fn lock_home(home: &Home, operation: FlockOperation) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(home.as_dir(), layout::HOME_LOCK, flags, Mode::RUSR | Mode::WUSR)?;
    flock(&file, operation)?;
    Ok(file)
}
