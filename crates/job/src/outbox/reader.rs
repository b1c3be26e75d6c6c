//! A reader with a name: how far it has come is on the disk.
//!
//! Into a pipe, an entry and the reader's place move in [one step](outlast_pty::place): whenever the reader is killed,
//! it has handed an entry over and its place says so, or neither. Into anything else the two are two steps: an entry
//! that was on its way when the reader died comes again, marked as such; no other does.
//!
//! A reader that *holds* never moves on by itself: whoever deals with the entries says so, by number.

use std::os::fd::BorrowedFd;
use std::path::Path;

use outlast_pty::place::{Place, mark_in, number_in};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::Errno;

use super::{Entry, Outbox, folder_name};
use crate::failure::Failure;
use crate::registry::replace::{read_small, write_all};

const PREFIX: &str = "reader-";
/// The mark of a place whose reader holds it; otherwise it is the number of the entry that is on its way.
const HOLDS: u64 = u64::MAX;

fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::system("the reader's place can't be kept", error)
}

/// A reader with a name; one process at a time.
#[derive(Debug)]
pub struct Reader {
    place: Place,
    seen: u64,
    doubtful: Option<u64>,
    holds: bool,
}

impl Reader {
    /// Takes up where the reader of that name was. A new one begins with what is not acknowledged.
    ///
    /// # Errors
    /// When another process reads under that name now, or the disk says no.
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

    /// The number of the last entry that need not come any more.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Hands an entry over: the line, which is told whether it may have been handed over before, is written to `to`.
    /// False when nobody reads there any more; the entry then comes again.
    ///
    /// # Errors
    /// When the place can't be kept.
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

    /// All there was is handed over: the place is to survive the machine too.
    pub fn sync(&self) {
        self.place.sync();
    }
}

/// How far a reader has come that says itself by [`acknowledge`] what it has.
///
/// # Errors
/// When the disk says no.
pub fn place(outbox: &Outbox, name: &str) -> Result<u64, Failure> {
    // Nothing is locked or written where it says already that its reader holds it.
    let known = read_small(&outbox.dir, &file_name(name), 4096).unwrap_or_default();
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

/// A reader says itself that it has everything up to a number; returns how far it is then.
///
/// # Errors
/// When a process that moves on by itself reads under that name now, or the disk says no.
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

fn file_name(reader: &str) -> String {
    format!("{PREFIX}{}", folder_name(reader))
}

/// A reader's place, and whether another process has it; it is ours while the place lives if not.
fn place_of(outbox: &Outbox, name: &str) -> Result<(Place, bool), Failure> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(&outbox.dir, file_name(name), flags, Mode::RUSR | Mode::WUSR).map_err(broken)?;
    let busy = match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => false,
        Err(Errno::AGAIN) => true,
        Err(error) => return Err(broken(error)),
    };
    let (place, new) = Place::new(file).map_err(broken)?;
    if new {
        place.raise(outbox.acked());
    }
    Ok((place, busy))
}

/// How far the slowest reader with a name is; none when there is none.
pub(super) fn slowest(folder: &Path) -> Option<u64> {
    places(folder).into_iter().min()
}

/// How far the fastest one is.
pub(super) fn furthest(folder: &Path) -> Option<u64> {
    places(folder).into_iter().max()
}

fn places(folder: &Path) -> Vec<u64> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX))
        .filter_map(|entry| number_in(&std::fs::read(entry.path()).ok()?))
        .collect()
}
