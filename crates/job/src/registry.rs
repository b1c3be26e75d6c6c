//! The home and its jobs in the file system: create, find, list.
//!
//! There is no lock server. A handle is claimed by renaming a complete folder to its number, which only one
//! client can do. That a keeper lives is proved by the lock it holds in the folder. Only the keeper (or the
//! process that holds the lock after it) writes into a job's folder.

pub mod claim;
pub mod format;
pub(crate) mod index;
pub mod layout;
pub mod names;
pub(crate) mod numbers;
pub(crate) mod orders;
pub mod replace;
pub mod stable_name;
pub mod summary;
pub mod sweep;
pub(crate) mod event_lines;
mod untold;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

use crate::failure::{Failure, Kind};
use crate::lifecycle::State;
use crate::log::mark;
use crate::spec::Handle;
use crate::wire::event::{Event, EventKind};
use format::Info;
use outlast_protocol::{Call, Hint};
use replace::{Displaced, Durability, PreparedFile, replace};

/// More than any `info.json` has, including environment names and a 300 KB command line.
pub(crate) const INFO_LIMIT: usize = 16 << 20;

/// The folder of all jobs.
#[derive(Debug)]
pub struct Home {
    path: PathBuf,
    home: OwnedFd,
    jobs: OwnedFd,
}

impl Home {
    /// `$OUTLAST_HOME`, else `$XDG_STATE_HOME/outlast`, else `~/.local/state/outlast`.
    ///
    /// # Errors
    /// If none of the three variables is set.
    pub fn default_path() -> Result<PathBuf, Failure> {
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        var("OUTLAST_HOME")
            .or_else(|| var("XDG_STATE_HOME").map(|state| state.join("outlast")))
            .or_else(|| var("HOME").map(|home| home.join(".local/state/outlast")))
            .ok_or_else(|| {
                Failure::new(Kind::BadHome, "there is no folder for jobs: HOME is not set")
                    .hint("set OUTLAST_HOME to a folder of your own")
            })
    }

    /// Opens a home, creating it if necessary.
    ///
    /// # Errors
    /// [`Kind::BadHome`] if it is a file, belongs to another user, or can be written by others.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let bad = |what: String| Failure::new(Kind::BadHome, what);
        let shown = path.display();
        let absolute = std::path::absolute(path).map_err(|e| bad(format!("{shown} is not a path: {e}")))?;
        if !absolute.is_dir() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&absolute).map_err(|error| {
                bad(format!("the home {shown} can't be made: {error}"))
                    .hint("set OUTLAST_HOME to a folder that you own")
            })?;
        }
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let home = rustix::fs::open(&absolute, flags, Mode::empty())
            .map_err(|error| bad(format!("the home {shown} can't be opened: {error}")))?;
        let stat = rustix::fs::fstat(&home).map_err(|error| Failure::system("fstat of the home", error))?;
        let me = rustix::process::geteuid().as_raw();
        if stat.st_uid != me {
            return Err(bad(format!("the home {shown} belongs to user {}, not to you ({me})", stat.st_uid))
                .hint("set OUTLAST_HOME to a folder that you own"));
        }
        if stat.st_mode & 0o022 != 0 {
            return Err(bad(format!("others can write to the home {shown}"))
                .hint(format!("close it first: chmod 700 {shown}")));
        }
        for folder in [layout::JOBS, layout::NAMES] {
            match mkdirat(&home, folder, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(bad(format!("nothing can be made in the home {shown}: {error}"))),
            }
        }
        let jobs = openat(&home, layout::JOBS, flags | OFlags::NOFOLLOW, Mode::empty())
            .map_err(|error| bad(format!("{shown}/jobs can't be opened: {error}")))?;
        Ok(Self { path: absolute, home, jobs })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of a job, whether it exists or not.
    #[must_use]
    pub fn job_path(&self, handle: Handle) -> PathBuf {
        self.path.join(layout::JOBS).join(handle.to_string())
    }

    /// What the processes of a job carry in their environment, here and on no other home of this machine.
    pub(crate) fn mark_of(&self, handle: Handle, created_at: u64) -> String {
        let home = rustix::fs::fstat(&self.home).map_or(0, |stat| stat.st_ino);
        format!("{home:x}.{created_at:x}.{handle}")
    }

    pub(crate) fn as_dir(&self) -> BorrowedFd<'_> {
        self.home.as_fd()
    }

    pub(crate) fn jobs_dir(&self) -> BorrowedFd<'_> {
        self.jobs.as_fd()
    }

    /// The job with a number or a name.
    ///
    /// # Errors
    /// [`Kind::NoSuchJob`].
    pub fn find(&self, reference: &str) -> Result<JobDir, Failure> {
        let handle = match reference.parse::<u64>() {
            Ok(number) => Handle::new(number),
            Err(_) => names::resolve(self, reference)?,
        };
        self.job(handle)
    }

    /// The job with a handle.
    ///
    /// # Errors
    /// [`Kind::NoSuchJob`].
    pub fn job(&self, handle: Handle) -> Result<JobDir, Failure> {
        if handle.host().is_some() {
            return Err(self.no_such_job(handle));
        }
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.jobs, handle.to_string(), flags, Mode::empty()) {
            Ok(dir) => Ok(JobDir { handle, path: self.job_path(handle), dir }),
            Err(Errno::NOENT) => Err(self.no_such_job(handle)),
            Err(error) => Err(Failure::system(format!("the folder of job {handle} can't be opened"), error)),
        }
    }

    fn no_such_job(&self, handle: Handle) -> Failure {
        let highest = self.handles().into_iter().max().max(claim::retired(self));
        let why = if highest.is_some_and(|highest| handle <= highest && handle.number() > 0) {
            format!("job {handle} is gone: it ended and was pruned")
        } else {
            format!("there is no job {handle}")
        };
        Failure::new(Kind::NoSuchJob, why).hint(Hint::call("see all jobs: ", Call::AllJobs))
    }

    /// All handles that have a folder, unordered.
    #[must_use]
    pub fn handles(&self) -> Vec<Handle> {
        let Ok(dir) = Dir::read_from(&self.jobs) else { return Vec::new() };
        dir.filter_map(Result::ok)
            .filter_map(|entry| entry.file_name().to_str().ok()?.parse().ok())
            .map(Handle::new)
            .collect()
    }

    /// All readable jobs, oldest first. This also detects jobs that are lost because their keeper vanished.
    #[must_use]
    pub fn list(&self) -> Vec<Info> {
        let mut handles = self.handles();
        handles.sort_unstable();
        handles.into_iter().filter_map(|handle| self.job(handle).ok()?.as_known()).collect()
    }
}

/// Whether the machine was started anew since a job was.
pub(crate) fn is_of_earlier_boot(info: &Info) -> bool {
    let boot = outlast_pty::procfs::boot_id();
    !info.boot_id.is_empty() && boot.is_some_and(|boot| boot != info.boot_id)
}

/// An open job folder.
#[derive(Debug)]
pub struct JobDir {
    handle: Handle,
    path: PathBuf,
    dir: OwnedFd,
}

impl JobDir {
    /// Its handle.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of one of its files.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Opens one of its files for reading; never follows a symlink.
    ///
    /// # Errors
    /// `ENOENT` if it does not exist.
    pub fn open(&self, name: &str) -> Result<OwnedFd, Errno> {
        openat(&self.dir, name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
    }

    /// Opens one of its files to be written over.
    pub(crate) fn open_to_rewrite(&self, name: &str) -> Result<OwnedFd, Errno> {
        openat(&self.dir, name, OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
    }

    /// `info.json` as it is.
    ///
    /// # Errors
    /// An unknown format, or a damaged file.
    pub fn info(&self) -> Result<Info, Failure> {
        self.parse_info(replace::read_small(&self.dir, layout::INFO, INFO_LIMIT))
    }

    /// Parses the result of reading `info.json`.
    pub(crate) fn parse_info(&self, read: Result<Vec<u8>, Errno>) -> Result<Info, Failure> {
        let bytes = match read {
            Err(Errno::NOENT) if !self.path.exists() => {
                return Err(Failure::new(
                    Kind::NoSuchJob,
                    format!("job {} was pruned just now", self.handle),
                ));
            }
            read => read.map_err(|error| {
                Failure::system(format!("the record of job {} can't be read", self.handle), error)
            })?,
        };
        let mut info = Info::parse(self.handle, &bytes)?;
        self.note_losses(&mut info, false);
        Ok(info)
    }

    /// What the logs held when the job was over and do not hold any more is gone. With `sums`, their contents are looked at too
    /// if the machine was started anew since: a disk may have kept a file's length and not all that was in it.
    pub(crate) fn note_losses(&self, info: &mut Info, sums: bool) {
        let marks = [(info.log_mark, layout::OUTPUT), (info.errors_mark, layout::ERRORS)];
        for (index, (mark, log)) in marks.into_iter().enumerate() {
            let Some(mut mark) = mark else { continue };
            if !sums || !is_of_earlier_boot(info) {
                mark.crc = None;
            }
            let missing = match self.open(log) {
                Ok(log) => mark::missing_from(log, mark),
                Err(Errno::NOENT) => Some(0),
                Err(_) => None,
            };
            if let Some(from) = missing {
                let gone = if index == 0 { &mut info.gone } else { &mut info.errors_gone };
                gone.add(from, mark.end);
            }
        }
    }

    /// `info.json`, after checking that a job that is said to run still has a keeper. If it has none, the job
    /// is lost, unless its end was recorded elsewhere. This call then writes that.
    ///
    /// # Errors
    /// As [`JobDir::info`], and if it is unknown whether the job has a keeper.
    pub fn current(&self) -> Result<Info, Failure> {
        let info = self.info()?;
        if !info.state.is_live() {
            self.tell_if_cut_short(&info);
            return Ok(info);
        }
        let held = claim::Lock::take(self).map_err(|error| {
            Failure::system(format!("it can't be told whether job {} still runs", self.handle), error)
        })?;
        let Some(_held) = held else { return Ok(info) };
        // We got the lock, so no keeper lives. It may have written the end just before it exited.
        let mut info = self.info()?;
        if info.state.is_live() {
            let restarted = is_of_earlier_boot(&info);
            let lost = || State::Lost { found_at: crate::clock::now_ms(), restarted };
            info.state = self.told_end(&info).unwrap_or_else(lost);
            // Before the record says so: a process that finds the record is sure that it was told.
            self.tell_end(&info);
            // A read-only or full disk must not hide the job from the caller.
            let older = replace::read_small(&self.dir, layout::INFO, INFO_LIMIT).unwrap_or_default();
            let bytes = info.to_bytes_over(&older);
            let _ = replace(&self.dir, layout::INFO, &bytes, Durability::Process);
        }
        Ok(info)
    }

    /// Like [`current`](Self::current), or the record as it is if it is unknown whether the job has a keeper.
    pub(crate) fn as_known(&self) -> Option<Info> {
        self.current().or_else(|_| self.info()).ok()
    }

    /// How the job ended, if its event log or its session's outbox says so: perhaps only the record could not
    /// be written.
    fn told_end(&self, info: &Info) -> Option<State> {
        let ended = |event: Event| {
            if let EventKind::Exit { state } = event.what { Some(state) } else { None }
        };
        let home = self.path.ancestors().nth(2)?;
        let in_events = self.events().into_iter().rev().find_map(ended);
        in_events.or_else(|| crate::outbox::end_of(home, &info.session, self.handle))
    }

    /// Records that someone was told how the job ended, so that retention may remove it sooner. This mark and
    /// [the other](Self::pin) are the only files in the folder that the keeper does not write.
    pub(crate) fn mark_read(&self) {
        if !self.is_marked_read() {
            let _ = self.mark(layout::READ);
        }
    }

    pub(crate) fn is_marked_read(&self) -> bool {
        self.has_mark(layout::READ)
    }

    /// Keeps the job whatever its age, or no longer.
    pub(crate) fn pin(&self, pinned: bool) -> Result<(), Errno> {
        if pinned {
            return self.mark(layout::PINNED);
        }
        match rustix::fs::unlinkat(&self.dir, layout::PINNED, rustix::fs::AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            removed => removed,
        }
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.has_mark(layout::PINNED)
    }

    fn mark(&self, name: &str) -> Result<(), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.dir, name, flags, Mode::RUSR | Mode::WUSR).map(drop)
    }

    fn has_mark(&self, name: &str) -> bool {
        rustix::fs::statat(&self.dir, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    pub(crate) fn write_info(&self, info: &Info, durability: Durability) -> Result<(), Errno> {
        replace(&self.dir, layout::INFO, &info.to_bytes(), durability)
    }

    /// Prepares a file for the next record.
    pub(crate) fn prepare_info(&self) -> Result<PreparedFile, Errno> {
        PreparedFile::make(&self.dir, layout::INFO)
    }

    /// Replaces the record with a prepared file.
    pub(crate) fn swap_info(&self, info: &Info, file: PreparedFile) -> Result<(Displaced, OwnedFd), Errno> {
        file.put(&self.dir, layout::INFO, &info.to_bytes())
    }

    /// Syncs the record to the disk, so that it survives a crash of the machine.
    pub(crate) fn sync_info(&self) -> Result<(), Errno> {
        outlast_pty::system::sync_data(self.open(layout::INFO)?)?;
        rustix::fs::fsync(&self.dir)
    }
}

impl AsFd for JobDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}
