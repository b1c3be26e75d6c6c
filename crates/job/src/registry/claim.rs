//! Claims a handle without a lock server, and the lock that proves a keeper lives.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{
    AtFlags, FallocateFlags, FlockOperation, Mode, OFlags, RenameFlags, fallocate, flock, mkdirat, openat,
    renameat_with, unlinkat,
};
use rustix::io::Errno;

use super::format::Info;
use super::replace::{Durability, read_small, replace};
use super::{Home, JobDir, layout};
use crate::failure::Failure;
use crate::spec::{Handle, JobSpec};

/// Held while keeper or heir lives: both have it by inheritance, and the kernel lets go of it with the last.
#[derive(Debug)]
pub struct Lock {
    _file: OwnedFd,
}

impl Lock {
    /// Takes the lock of a job if nobody holds it.
    #[must_use]
    pub fn take(job: &JobDir) -> Option<Self> {
        let file = open_lock(&job.dir).ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(Self { _file: file })
    }

    /// Whether someone holds the lock of a job, that is, whether its keeper lives.
    #[must_use]
    pub fn is_held(job: &JobDir) -> bool {
        Self::take(job).is_none()
    }
}

/// Room on the disk that is held for a receipt: it hangs on the lock file, whose own size stays 0.
const ROOM: u64 = 16 << 10;

/// Holds room for the receipt of a job, where the file system can: a full disk must not hide how a job ended.
pub(crate) fn hold_room(job: &JobDir) {
    let record = job.info().map_or(0, |info| info.to_bytes().len() as u64);
    if let Ok(file) = open_lock(&job.dir) {
        let _ = fallocate(&file, FallocateFlags::KEEP_SIZE, 0, ROOM + 2 * record);
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

/// Makes the folder of a new job and claims the next handle for it.
///
/// The folder is made whole under a name nobody looks at (locked, with its record), and then moved to its
/// number. A number that is taken refuses the move, so two clients never get the same.
///
/// # Errors
/// When the home can't be written.
pub fn claim(home: &Home, spec: &JobSpec, now: u64) -> Result<(JobDir, Info, Lock), Failure> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let broken = |error| Failure::system(format!("no job can be made in {}", home.path().display()), error);
    let fresh = format!(".new-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    mkdirat(home.jobs_dir(), &fresh, Mode::RWXU).map_err(broken)?;
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = openat(home.jobs_dir(), &fresh, flags, Mode::empty()).and_then(|dir| {
        let file = open_lock(&dir)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok((dir, Lock { _file: file }))
    });
    let claimed = made.and_then(|(dir, lock)| {
        let mut handle = next(home);
        loop {
            let info = Info::claimed(handle, spec, now);
            replace(&dir, layout::INFO, &info.to_bytes(), Durability::Process)?;
            match move_to_number(home, &fresh, handle) {
                Ok(()) => return Ok((dir, info, lock)),
                Err(Errno::EXIST | Errno::NOTEMPTY) => handle = next(home).max(Handle(handle.0 + 1)),
                Err(error) => return Err(error),
            }
        }
    });
    match claimed {
        Ok((dir, info, lock)) => {
            let job = JobDir { handle: info.handle, path: home.job_path(info.handle), dir };
            Ok((job, info, lock))
        }
        Err(error) => {
            discard(home, &fresh);
            Err(broken(error))
        }
    }
}

/// The number after all that are there or have been. Folders are looked at first: one that is removed in
/// between had its number retired before.
fn next(home: &Home) -> Handle {
    let highest = home.handles().into_iter().max().max(retired(home));
    Handle(highest.map_or(1, |handle| handle.0 + 1))
}

#[cfg(target_os = "linux")]
fn move_to_number(home: &Home, fresh: &str, handle: Handle) -> Result<(), Errno> {
    let jobs = home.jobs_dir();
    renameat_with(jobs, fresh, jobs, handle.to_string(), RenameFlags::NOREPLACE)
}

/// A plain rename refuses a folder that is not empty, and a claimed one never is.
#[cfg(not(target_os = "linux"))]
fn move_to_number(home: &Home, fresh: &str, handle: Handle) -> Result<(), Errno> {
    let jobs = home.jobs_dir();
    rustix::fs::renameat(jobs, fresh, jobs, handle.to_string())
}

fn discard(home: &Home, fresh: &str) {
    for file in [layout::INFO, layout::LOCK] {
        let _ = unlinkat(home.jobs_dir(), format!("{fresh}/{file}"), AtFlags::empty());
    }
    let _ = unlinkat(home.jobs_dir(), fresh, AtFlags::REMOVEDIR);
}

/// The highest handle whose folder was removed.
#[must_use]
pub fn retired(home: &Home) -> Option<Handle> {
    let bytes = read_small(home.as_dir(), layout::RETIRED, 64).ok()?;
    std::str::from_utf8(&bytes).ok()?.trim().parse().ok().map(Handle)
}

/// Notes that a handle's folder is about to be removed, so that its number is not used again. The caller holds
/// the home's lock.
pub(super) fn retire(home: &Home, handle: Handle) -> Result<(), Errno> {
    if retired(home).is_some_and(|highest| highest >= handle) {
        return Ok(());
    }
    replace(home.as_dir(), layout::RETIRED, format!("{handle}\n").as_bytes(), Durability::Machine)
}

/// Locks the whole home for a moment: for what only one may do at a time. The kernel lets go of it with us.
pub(super) fn lock_home(home: &Home, operation: FlockOperation) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(home.as_dir(), layout::HOME_LOCK, flags, Mode::RUSR | Mode::WUSR)?;
    flock(&file, operation)?;
    Ok(file)
}
