//! Retention: which ended jobs are kept, and the removal of the others.

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;

use super::claim::{Lock, lock_home, retire};
use super::format::Info;
use super::replace::{Durability, read_small, replace};
use super::stable_name::all_names;
use super::{Home, JobDir, index, layout, names};
use crate::failure::Failure;
use crate::lifecycle::State;
use crate::outbox::Outbox;
use crate::settings::Retention;
use crate::spec::Handle;
pub use outlast_protocol::request::OverBudget;
use outlast_protocol::{Call, Hint};

/// How often, at most, the end of a job triggers a sweep.
const SWEEP_EVERY_MS: u64 = 60_000;
/// The same for each job that there is: a sweep looks at all of them, and takes some hundredths of a millisecond for each.
const SWEEP_EVERY_MS_PER_JOB: u64 = 60;

/// What a sweep did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// The jobs that were removed.
    pub removed: Vec<Handle>,
    /// The disk space this freed, in bytes.
    pub freed: u64,
    /// The finished jobs that are kept.
    pub kept: usize,
    /// The disk space that those take, in bytes.
    pub kept_bytes: u64,
    /// Set if more jobs are kept than the limits allow, because they are recent or were not read.
    pub over: Option<OverBudget>,
}

struct Finished {
    info: Info,
    ended_at: u64,
    bytes: u64,
    read: bool,
}

/// Removes ended jobs that retention no longer covers, oldest first. Jobs that run, or whose children still
/// do, are never touched. Recent or unread jobs are not removed to free space.
///
/// # Errors
/// If the home cannot be locked.
pub fn sweep(home: &Home, keep: &Retention, now: u64, dry_run: bool) -> Result<Swept, Failure> {
    let _held = lock_home(home, FlockOperation::LockExclusive)
        .map_err(|error| Failure::system("the home can't be locked", error))?;
    let swept = sweep_locked(home, keep, now, dry_run);
    if !dry_run {
        // Limits that were given for this one sweep say nothing about the home's own.
        note_swept(home, swept.over.filter(|_| !keep.unread.is_zero()));
    }
    Ok(swept)
}

/// How far the home was over its budget when it was last swept.
#[must_use]
pub fn over_budget(home: &Home) -> Option<OverBudget> {
    serde_json::from_slice(&read_small(home.as_dir(), layout::SWEPT, 4096).ok()?).ok()
}

fn note_swept(home: &Home, over: Option<OverBudget>) {
    let said = over.and_then(|over| serde_json::to_vec(&over).ok()).unwrap_or_default();
    let _ = replace(home.as_dir(), layout::SWEPT, &said, Durability::Process);
}

/// Like [`sweep`], unless another process sweeps now, or did so a moment ago and there are not too many jobs.
pub(crate) fn sweep_in_passing(home: &Home, keep: &Retention, now: u64) {
    // A few too many are tolerated: a sweep costs in proportion to the jobs, and must not run at the end of
    // each. Nor if the last one found that nothing more can be removed.
    let jobs = home.handles().len();
    let crowded = jobs > keep.jobs + keep.jobs / 8 && over_budget(home).is_none();
    let pause = SWEEP_EVERY_MS.max(SWEEP_EVERY_MS_PER_JOB * jobs as u64);
    if !crowded && was_swept_since(home, now.saturating_sub(pause)) {
        return;
    }
    if let Ok(_held) = lock_home(home, FlockOperation::NonBlockingLockExclusive) {
        let swept = sweep_locked(home, keep, now, false);
        note_swept(home, swept.over);
    }
}

/// Removes one job that has ended, and says how much disk space that gave back.
///
/// # Errors
/// A usage failure for a job that runs, or that left processes which still run.
pub(crate) fn remove_job(home: &Home, handle: Handle) -> Result<u64, Failure> {
    let _held = lock_home(home, FlockOperation::LockExclusive)
        .map_err(|error| Failure::system("the home can't be locked", error))?;
    let job = home.job(handle)?;
    let info = job.current()?;
    if info.state.is_live() || !Lock::is_free(&job) {
        return Err(Failure::usage(format!("job {handle} still runs"))
            .hint(Hint::call("end it first: ", Call::Kill(handle.to_string()))));
    }
    let (ended_at, bytes) = (0, disk_use(&job));
    remove(home, &Finished { info, ended_at, bytes, read: true })
        .map_err(|error| Failure::system(format!("job {handle} can't be removed"), error))?;
    index::forget(home);
    Ok(bytes)
}

fn was_swept_since(home: &Home, then: u64) -> bool {
    rustix::fs::statat(home.as_dir(), layout::SWEPT, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| u64::try_from(stat.st_mtime).unwrap_or(0) * 1000 > then)
}

fn sweep_locked(home: &Home, keep: &Retention, now: u64, dry_run: bool) -> Swept {
    let mut finished = finished_jobs(home, !keep.unread.is_zero());
    finished.sort_by_key(|job| std::cmp::Reverse(job.ended_at));
    let before = |time: Duration| now.saturating_sub(crate::clock::millis(time));
    let oldest = before(keep.age);
    let mut swept = Swept::default();
    let mut bytes = 0_u64;
    for job in finished {
        bytes = bytes.saturating_add(job.bytes);
        let limit = if job.read { oldest } else { before(keep.age.max(keep.unread)) };
        let makes_room = job.read && job.ended_at <= before(keep.young);
        let too_many = swept.kept >= keep.jobs || bytes > keep.bytes;
        if job.ended_at >= limit && !(too_many && makes_room) {
            swept.kept += 1;
            continue;
        }
        bytes -= job.bytes;
        if dry_run || remove(home, &job).is_ok() {
            swept.removed.push(job.info.handle);
            swept.freed += job.bytes;
        }
    }
    swept.kept_bytes = bytes;
    if swept.kept > keep.jobs || bytes > keep.bytes {
        swept.over = Some(OverBudget { jobs: swept.kept, bytes });
    }
    if !dry_run {
        if !swept.removed.is_empty() {
            index::forget(home);
        }
        remove_abandoned(home);
        remove_outboxes(home, oldest);
    }
    swept.removed.sort_unstable();
    swept
}

/// All ended jobs that are not pinned. With `unread_matter` false, all count as read.
fn finished_jobs(home: &Home, unread_matter: bool) -> Vec<Finished> {
    let taken: HashSet<Handle> = if unread_matter {
        Outbox::all(home).iter().flat_map(Outbox::ends_taken).collect()
    } else {
        HashSet::new()
    };
    let read = |handle| {
        let job = home.job(handle).ok()?;
        let info = job.current().ok()?;
        let ended_at = match &info.state {
            State::Queued(_) | State::Starting | State::Running { .. } => return None,
            State::Lost { found_at, .. } => *found_at,
            ended @ (State::Completed(_) | State::Failed(_) | State::Killed(_)) => ended.receipt()?.ended_at,
        };
        let bytes = disk_use(&job);
        let read = !unread_matter || job.is_marked_read() || taken.contains(&handle);
        (Lock::is_free(&job) && !job.is_pinned()).then_some(Finished { info, ended_at, bytes, read })
    };
    home.handles().into_iter().filter_map(read).collect()
}

/// The disk space that a job's files really take: holes cost nothing.
pub(crate) fn disk_use(job: &JobDir) -> u64 {
    let Ok(dir) = Dir::read_from(&job.dir) else { return 0 };
    dir.filter_map(Result::ok)
        .filter_map(|entry| rustix::fs::statat(&job.dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW).ok())
        .map(|stat| u64::try_from(stat.st_blocks).unwrap_or(0) * 512)
        .sum()
}

fn remove(home: &Home, finished: &Finished) -> Result<(), Errno> {
    retire(home, finished.info.handle)?;
    if let Some(name) = &finished.info.name {
        names::forget(home, name, finished.info.handle);
    }
    if let Some(shell) = &finished.info.shell {
        let name = names::of_shell(&shell.scope, &shell.name);
        names::forget(home, &name, finished.info.handle);
    }
    let temporary = home.path().join(layout::TEMPORARY).join(finished.info.handle.to_string());
    let _ = std::fs::remove_dir_all(temporary);
    // Rename it first: a reader sees a complete job or none.
    let gone = format!(".gone-{}", finished.info.handle);
    rustix::fs::renameat(home.jobs_dir(), finished.info.handle.to_string(), home.jobs_dir(), &gone)?;
    // From here on the job is gone. A file that somebody wrote into the folder meanwhile goes with the next sweep.
    let _ = remove_flat_folder(home.jobs_dir(), &gone);
    Ok(())
}

/// Removes outboxes of sessions without jobs, if nothing has happened in them for as long as jobs are kept.
fn remove_outboxes(home: &Home, oldest: u64) {
    let sessions: HashSet<String> = home
        .handles()
        .into_iter()
        .filter_map(|handle| Some(home.job(handle).ok()?.info().ok()?.session))
        .flat_map(|session| all_names(&session).collect::<Vec<_>>())
        .collect();
    for outbox in Outbox::all(home) {
        if !sessions.contains(outbox.folder()) && outbox.changed_at() < oldest {
            // One that is in use now is tried again next time.
            let _ = outbox.retire(home);
        }
    }
}

/// Removes a folder that only has files, as all of ours do.
pub(crate) fn remove_flat_folder(parent: impl AsFd, name: &str) -> Result<(), Errno> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = openat(&parent, name, flags, Mode::empty())?;
    for entry in Dir::read_from(&dir)?.filter_map(Result::ok) {
        let file = entry.file_name();
        if file != c"." && file != c".." {
            unlinkat(&dir, file, AtFlags::empty())?;
        }
    }
    unlinkat(&parent, name, AtFlags::REMOVEDIR)
}

/// Cleans up after clients that died while they claimed a handle, and after interrupted sweeps.
fn remove_abandoned(home: &Home) {
    let Ok(dir) = Dir::read_from(home.jobs_dir()) else { return };
    for entry in dir.filter_map(Result::ok) {
        let Ok(name) = entry.file_name().to_str() else { continue };
        let unlocked = || {
            let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let dir = openat(home.jobs_dir(), name, flags, Mode::empty()).ok()?;
            let old = rustix::fs::fstat(&dir).ok()?.st_mtime;
            let job = JobDir { handle: Handle::new(0), path: home.path().join(name), dir };
            let minute_ago = crate::clock::now_ms() / 1000 - 60;
            (u64::try_from(old).unwrap_or(0) < minute_ago && Lock::is_free(&job)).then_some(())
        };
        if name.starts_with(".gone-") || (name.starts_with(".new-") && unlocked().is_some()) {
            let _ = remove_flat_folder(home.jobs_dir(), name);
        }
    }
}
