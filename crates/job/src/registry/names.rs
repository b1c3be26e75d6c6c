//! Names of jobs: one file per name, with the handle it stands for.
//!
//! A name belongs to one running job at a time. Once that job has ended, another one may take the name.

use rustix::fs::{FlockOperation, Mode, OFlags, openat};
use rustix::io::Errno;

use super::claim::lock_home;
use super::replace::{Durability, read_small, replace};
use super::{Home, layout};
use crate::failure::{Failure, Kind};
use crate::spec::Handle;
use outlast_protocol::near::is_near;
use outlast_protocol::{Call, Hint};

/// The handle that a name stands for.
pub(crate) fn resolve(home: &Home, name: &str) -> Result<Handle, Failure> {
    let known = |handle: Handle| home.job_path(handle).exists();
    if !name.contains('/')
        && !name.starts_with('.')
        && let Some(handle) = stored(home, name).filter(|handle| known(*handle))
    {
        return Ok(handle);
    }
    let near = near(home, name).map(|near| format!("did you mean {near:?}? ")).unwrap_or_default();
    Err(Failure::new(Kind::NoSuchJob, format!("there is no job named {name:?}"))
        .hint(Hint::call(format!("{near}see all jobs and their names: "), Call::AllJobs)))
}

/// A job's name that is nearly this one.
fn near(home: &Home, name: &str) -> Option<String> {
    let entries = rustix::fs::Dir::read_from(names_dir(home).ok()?).ok()?;
    let names =
        entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
    let near = |known: &String| is_near(name, known);
    let exists = |known: &String| stored(home, known).is_some_and(|handle| home.job_path(handle).exists());
    names.filter(near).filter(exists).min()
}

/// What a shell is stored as: no job can have such a name.
pub(crate) fn of_shell(scope: &str, name: &str) -> String {
    // FNV-1a: the same in every version of this program.
    let hash = scope.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("~{hash:016x}.{name}")
}

/// The job that is, or was last, the shell of this name.
pub(crate) fn shell(home: &Home, scope: &str, name: &str) -> Option<Handle> {
    stored(home, &of_shell(scope, name)).filter(|handle| home.job_path(*handle).exists())
}

fn names_dir(home: &Home) -> Result<std::os::fd::OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(home.as_dir(), layout::NAMES, flags, Mode::empty())
}

fn stored(home: &Home, name: &str) -> Option<Handle> {
    let bytes = read_small(names_dir(home).ok()?, name, 64).ok()?;
    std::str::from_utf8(&bytes).ok()?.trim().parse().ok().map(Handle::new)
}

/// Checks that no running job has a name.
///
/// # Errors
/// [`Kind::Usage`] if one has.
pub fn check_free(home: &Home, name: &str) -> Result<(), Failure> {
    match stored(home, name) {
        Some(owner)
            if home.job(owner).is_ok_and(|job| job.as_known().is_some_and(|info| info.state.is_live())) =>
        {
            Err(Failure::usage(format!("the name {name:?} belongs to job {owner}, which still runs")).hint(
                Hint::call("choose another name, or end that job first: ", Call::Kill(name.to_owned())),
            ))
        }
        _ => Ok(()),
    }
}

/// Gives a name to a job that is about to start.
///
/// # Errors
/// [`Kind::Usage`] if a running job has it.
pub fn take(home: &Home, name: &str, handle: Handle) -> Result<(), Failure> {
    let broken = |error: Errno| Failure::system(format!("the name {name:?} can't be taken"), error);
    let _held = lock_home(home, FlockOperation::LockExclusive).map_err(broken)?;
    check_free(home, name)?;
    let dir = names_dir(home).map_err(broken)?;
    replace(dir, name, format!("{handle}\n").as_bytes(), Durability::Process).map_err(broken)
}

/// Removes the name of a job that was removed. The caller holds the home's lock.
pub(super) fn forget(home: &Home, name: &str, handle: Handle) {
    if stored(home, name) == Some(handle)
        && let Ok(dir) = names_dir(home)
    {
        let _ = rustix::fs::unlinkat(dir, name, rustix::fs::AtFlags::empty());
    }
}
