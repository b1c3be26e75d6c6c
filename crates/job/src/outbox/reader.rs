//! A named reader: its position is on the disk.
//!
//! Into a pipe, an entry and the reader's position advance in [one step](outlast_pty::reader_position): if
//! the reader is killed, either it has handed over an entry and its position says so, or neither. Into
//! anything else these are two steps: an entry that was in flight when the reader died comes again, marked as
//! such; no other does.
//!
//! A reader that *holds* never advances by itself: the process that handles the entries acknowledges them by
//! number.

use std::os::fd::BorrowedFd;
use std::path::Path;

use outlast_pty::reader_position::{ReaderPosition, mark_in, number_in};
use rustix::fs::{Access, AtFlags, FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::Errno;

use super::{Entry, Outbox};
use crate::failure::Failure;
use crate::registry::replace::{read_small, write_all};
use crate::registry::stable_name::{all_names, stable_name};

/// The reader that brings events to a fleet. What it has taken does not count as read by anybody, and is not removed before.
pub const FLEET: &str = "outlast-fleet";

const PREFIX: &str = "reader-";
/// In the home of a machine that is in a fleet: held by its node.
const FLEET_LOCK: &str = "fleet/lock";
/// The mark of a position whose reader holds; otherwise the mark is the number of the entry in flight.
const HOLDS: u64 = u64::MAX;

fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::system("the reader's place can't be kept", error)
}

/// A named reader; only one process at a time.
#[derive(Debug)]
pub struct Reader {
    place: ReaderPosition,
    seen: u64,
    doubtful: Option<u64>,
    holds: bool,
}

impl Reader {
    /// Continues where the reader of that name was. A new one starts with the first unacknowledged entry.
    ///
    /// # Errors
    /// If another process reads under that name now, or the disk fails.
    pub fn open(outbox: &Outbox, name: &str, holds: bool) -> Result<Self, Failure> {
        let (place, busy) = place_of(outbox, name)?;
        if busy {
            return Err(Failure::usage(format!("another process reads as {name:?} right now"))
                .hint("end it first, or read under another name"));
        }
        let doubtful = Some(place.mark()).filter(|mark| *mark != HOLDS && *mark > place.number());
        place.set_mark(if holds { HOLDS } else { doubtful.unwrap_or(0) });
        Ok(Self { seen: place.number(), place, doubtful, holds })
    }

    /// The number of the last entry that need not come again.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Hands an entry over: writes the line to `to`. The line depends on whether it may have been handed over
    /// before. Returns false if nothing reads there any more; the entry then comes again.
    ///
    /// # Errors
    /// If the position cannot be stored.
    pub fn hand_over(
        &mut self,
        entry: &Entry,
        to: BorrowedFd<'_>,
        line: impl Fn(bool) -> Vec<u8>,
    ) -> Result<bool, Failure> {
        if entry.n <= self.seen {
            return Ok(true);
        }
        let again = self.doubtful == Some(entry.n);
        let line = line(again);
        let given = if self.holds {
            write_all(to, &line).is_ok()
        } else {
            match self.place.hand_over(to, &line, entry.n) {
                Ok(()) => true,
                Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {
                    self.in_two_steps(entry.n, to, &line)
                }
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => false,
                Err(error) => return Err(broken(error)),
            }
        };
        if given {
            self.seen = entry.n;
            self.doubtful = None;
        }
        Ok(given)
    }

    fn in_two_steps(&self, number: u64, to: BorrowedFd<'_>, line: &[u8]) -> bool {
        self.place.set_mark(number);
        let given = write_all(to, line).is_ok();
        if given {
            self.place.raise(number);
            self.place.set_mark(0);
        }
        given
    }

    /// Everything is handed over: syncs the position to the disk.
    pub fn sync(&self) {
        self.place.sync();
    }
}

/// The position of a reader that acknowledges by [`acknowledge`].
///
/// # Errors
/// If the disk fails.
pub fn place(outbox: &Outbox, name: &str) -> Result<u64, Failure> {
    // Nothing is locked or written if the file already says that its reader holds.
    let known = read_small(&outbox.dir, &file_name(outbox, name), 4096).unwrap_or_default();
    if mark_in(&known) == Some(HOLDS)
        && let Some(number) = number_in(&known)
    {
        return Ok(number);
    }
    let (place, busy) = place_of(outbox, name)?;
    if !busy {
        place.set_mark(HOLDS);
    }
    Ok(place.number())
}

/// Acknowledges everything up to a number for a reader; returns its position.
///
/// # Errors
/// If a process that advances by itself reads under that name now, or the disk fails.
pub fn acknowledge(outbox: &Outbox, name: &str, number: u64) -> Result<u64, Failure> {
    let (place, busy) = place_of(outbox, name)?;
    if busy && place.mark() != HOLDS {
        return Err(Failure::usage(format!("another process reads as {name:?} and moves on by itself"))
            .hint("let it read with --hold to acknowledge by number"));
    }
    place.raise(number);
    place.sync();
    Ok(place.number())
}

/// The file of a reader's place; one that 0.1 has made keeps its name.
fn file_name(outbox: &Outbox, reader: &str) -> String {
    let mut names = all_names(reader).map(|name| format!("{PREFIX}{name}"));
    let there =
        |name: &String| rustix::fs::accessat(&outbox.dir, name, Access::EXISTS, AtFlags::empty()).is_ok();
    names.find(there).unwrap_or_else(|| format!("{PREFIX}{}", stable_name(reader)))
}

/// A reader's position, and whether another process has it; if not, it is ours while it is open.
fn place_of(outbox: &Outbox, name: &str) -> Result<(ReaderPosition, bool), Failure> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file =
        openat(&outbox.dir, file_name(outbox, name), flags, Mode::RUSR | Mode::WUSR).map_err(broken)?;
    let busy = match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => false,
        Err(Errno::AGAIN) => true,
        Err(error) => return Err(broken(error)),
    };
    let (place, new) = ReaderPosition::new(file).map_err(broken)?;
    // A fleet is told also what was acknowledged before it could be.
    if new && name != FLEET {
        place.raise(outbox.acked());
    }
    Ok((place, busy))
}

/// The position of the slowest named reader; `None` if there is none.
pub(super) fn slowest(folder: &Path) -> Option<u64> {
    places(folder, |_| true).into_iter().min()
}

/// The position of the fastest one that reads for somebody.
pub(super) fn furthest(folder: &Path) -> Option<u64> {
    let fleet = format!("{PREFIX}{}", stable_name(FLEET));
    places(folder, |name| name != fleet).into_iter().max()
}

/// How far the fleet was told, on a machine that is in one.
pub(super) fn told_to_fleet(folder: &Path) -> Option<u64> {
    let home = folder.ancestors().nth(2)?;
    if !home.join(FLEET_LOCK).exists() {
        return None;
    }
    let name = format!("{PREFIX}{}", stable_name(FLEET));
    Some(std::fs::read(folder.join(name)).ok().and_then(|place| number_in(&place)).unwrap_or(0))
}

fn places(folder: &Path, counts: impl Fn(&str) -> bool) -> Vec<u64> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with(PREFIX) && counts(&name)
        })
        .filter_map(|entry| number_in(&std::fs::read(entry.path()).ok()?))
        .collect()
}
