//! One after the other: submissions to the same pane take a number and wait for those before them, and a process that types
//! into a pane (a submission, a notice, a wake) does so alone.
//!
//! Both are kept beside the tmux socket, so that they hold for all homes of a user: a folder for each server, known by
//! its process and when it was started, with one folder for each pane.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};

use super::pane::Identity;
use outlast_protocol::failure::{Failure, Kind};

/// A number that nobody has taken up for so long belongs to somebody who died.
const ABANDONED: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(50);

/// The folder of a pane's queue, made if need be.
pub(super) fn folder(pane: &Identity) -> Result<PathBuf, Failure> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    let uid = rustix::process::getuid().as_raw();
    let all = PathBuf::from(format!("{}.outlast-{uid}", pane.socket));
    let make = |path: &Path| {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| {
            Failure::system(format!("the pane's queue {} cannot be made", path.display()), error)
        })
    };
    make(&all)?;
    // The socket may be in a folder of everybody's.
    let ours = std::fs::symlink_metadata(&all)
        .is_ok_and(|data| data.is_dir() && data.uid() == uid && data.mode() & 0o077 == 0);
    if !ours {
        let why = format!("{} is not a private folder of ours", all.display());
        return Err(Failure::new(Kind::System, why).hint("remove it, or use another tmux socket"));
    }
    let server = format!("{}-{}", pane.server, pane.started);
    forget_others(&all, &server);
    let folder = all.join(server).join(format!("{}-{}", pane.id.trim_start_matches('%'), pane.pid));
    make(&folder)?;
    Ok(folder)
}

/// Removes what servers that are gone have left, but for those that somebody still waits for.
fn forget_others(all: &Path, server: &str) {
    let below = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        entries.filter_map(Result::ok).map(|entry| entry.path()).collect::<Vec<_>>()
    };
    for other in below(all).into_iter().filter(|path| !path.ends_with(server)) {
        for pane in below(&other).into_iter().filter(|pane| numbers(pane).is_empty()) {
            let _ = std::fs::remove_file(pane.join(HANDS));
            let _ = std::fs::remove_dir(pane);
        }
        let _ = std::fs::remove_file(other.join(CLIENTS));
        let _ = std::fs::remove_dir(other);
    }
}

const CLIENTS: &str = "clients";
/// Nobody comes or goes for longer.
const DOOR_TIMEOUT: Duration = Duration::from_secs(2);
const DOOR_LOOK: Duration = Duration::from_millis(2);

/// Where those who come to a tmux server or leave it as control clients wait for each other. tmux 3.3a tells every control
/// client that another one has left, also one that is still on its way in, and dies of that.
pub(super) fn door(pane: &Identity) -> Option<PathBuf> {
    Some(folder(pane).ok()?.parent()?.join(CLIENTS))
}

/// Nobody else comes or goes while this lives. None if that can't be had in time: then it is done all the same.
pub(super) fn pass_door(door: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = rustix::fs::open(door, flags, Mode::RUSR | Mode::WUSR).ok()?;
    let deadline = Instant::now() + DOOR_TIMEOUT;
    while flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(DOOR_LOOK);
    }
    Some(lock)
}

const HANDS: &str = "typing";

/// Nobody else types into the pane while this lives.
#[derive(Debug)]
pub(super) struct Hands {
    _lock: OwnedFd,
}

impl Hands {
    /// Waits for the process that types there now, but no longer than until the deadline.
    pub(super) fn take(pane: &Identity, deadline: Instant) -> Result<Self, Failure> {
        let broken = |error| Failure::system("the pane's lock cannot be taken", error);
        let path = folder(pane)?.join(HANDS);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(broken)?;
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { _lock: lock }),
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => std::thread::sleep(LOOK),
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    let why = format!("nothing was typed into {}: others type there all the time", pane.id);
                    return Err(Failure::new(Kind::System, why));
                }
                Err(error) => return Err(broken(error)),
            }
        }
    }
}

fn number(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.parse().ok()
}

fn numbers(folder: &Path) -> Vec<u64> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut all: Vec<u64> =
        entries.filter_map(Result::ok).filter_map(|entry| number(&entry.path())).collect();
    all.sort_unstable();
    all
}

/// Takes the next number in a queue's folder, and leaves there what it is for.
pub(super) fn take_number(folder: &Path, what: &impl serde::Serialize) -> Result<PathBuf, Failure> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    let broken = |error| Failure::system("cannot take a place in the pane's queue", error);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(broken)?;
    let mut next = numbers(folder).last().map_or(1, |last| last + 1);
    loop {
        let path = folder.join(next.to_string());
        match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(mut file) => {
                file.write_all(&outlast_protocol::wire::line(what)).map_err(broken)?;
                return Ok(path);
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => next += 1,
            Err(error) => return Err(broken(error)),
        }
    }
}

/// Our turn, for as long as this lives.
#[derive(Debug)]
pub(super) struct Turn {
    path: PathBuf,
    _lock: OwnedFd,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Turn {
    /// Waits until all with a smaller number are done or dead; says before whom it waits.
    pub(super) fn wait_for(path: PathBuf, mut say: impl FnMut(usize)) -> Result<Self, Failure> {
        let broken = |error| Failure::system("the place in the pane's queue is gone", error);
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |path: &Path| rustix::fs::open(path, flags, Mode::empty());
        let lock = open(&path).map_err(broken)?;
        flock(&lock, FlockOperation::LockExclusive).map_err(broken)?;
        let turn = Self { path, _lock: lock };
        let ours = number(&turn.path).unwrap_or(u64::MAX);
        let folder = turn.path.parent().unwrap_or(Path::new("/")).to_owned();
        let mut said = 0;
        loop {
            let before: Vec<u64> = numbers(&folder).into_iter().filter(|other| *other < ours).collect();
            let Some(first) = before.first() else { return Ok(turn) };
            if before.len() != said {
                said = before.len();
                say(said);
            }
            let theirs = folder.join(first.to_string());
            let Ok(file) = open(&theirs) else { continue };
            // Held for as long as its owner lives.
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                let _ = flock(&file, FlockOperation::LockExclusive);
            }
            if !theirs.exists() {
                continue;
            }
            // Not held and still there: its owner is about to take it up, or died.
            drop(file);
            let age = std::fs::metadata(&theirs)
                .and_then(|data| data.modified())
                .map(|made| SystemTime::now().duration_since(made).unwrap_or_default());
            if age.map_or(true, |age| age > ABANDONED) {
                let _ = std::fs::remove_file(&theirs);
            } else {
                std::thread::sleep(LOOK);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_served_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("queue");
        let paths: Vec<PathBuf> = (0..5).map(|_| take_number(&folder, &()).unwrap()).collect();
        let served = std::sync::Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for path in paths.iter().rev() {
                scope.spawn(|| {
                    let turn = Turn::wait_for(path.clone(), |_| {}).unwrap();
                    served.lock().unwrap().push(number(&turn.path).unwrap());
                });
            }
        });
        assert_eq!(served.into_inner().unwrap(), [1, 2, 3, 4, 5]);
        assert!(numbers(&folder).is_empty());
    }
}
