//! A reader with a name: how far it has come is on the disk.
//!
//! Its file holds two numbers: the last entry that was handed over, and the one that is being handed over. If the
//! reader dies between the two, it may have seen that entry or not: it comes again, marked as such. Every other
//! entry comes once.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::{Errno, pwrite};

use super::{Entry, Outbox, folder_name};
use crate::failure::Failure;
use crate::log::writer::read_exact_at;

const PREFIX: &str = "reader-";
/// Two numbers of twenty digits, a blank and a line's end: always written as one piece over the old ones.
const WIDTH: usize = 42;

/// A reader with a name; one process at a time.
#[derive(Debug)]
pub struct Reader {
    file: OwnedFd,
    done: u64,
    doubtful: Option<u64>,
}

impl Reader {
    /// Takes up where the reader of that name was. A new one begins with what is not acknowledged.
    ///
    /// # Errors
    /// When another process reads under that name now, or the disk says no.
    pub fn open(outbox: &Outbox, name: &str) -> Result<Self, Failure> {
        let broken = |error: Errno| Failure::system("the reader's place can't be kept", error);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file =
            openat(&outbox.dir, format!("{PREFIX}{}", folder_name(name)), flags, Mode::RUSR | Mode::WUSR)
                .map_err(broken)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::AGAIN) => {
                return Err(Failure::usage(format!("another process reads as {name:?} right now"))
                    .hint("end it first, or read under another name"));
            }
            Err(error) => return Err(broken(error)),
        }
        let mut bytes = [0; WIDTH];
        let got = read_exact_at(&file, &mut bytes, 0);
        let (done, doing) = numbers(&bytes[..got]).unwrap_or((outbox.acked(), 0));
        let doubtful = (doing > done).then_some(doing);
        let reader = Self { file, done, doubtful };
        reader.note(done, done.max(doing)).map_err(broken)?;
        Ok(reader)
    }

    /// The number of the last entry that was handed over.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Hands an entry over: `give` gets it, and whether it may have been handed over before. False ends it, and the
    /// entry comes again.
    ///
    /// # Errors
    /// When the place can't be written.
    pub fn hand_over(&mut self, entry: &Entry, give: impl FnOnce(bool) -> bool) -> Result<bool, Failure> {
        let broken = |error| Failure::system("the reader's place can't be kept", error);
        if entry.n <= self.done {
            return Ok(true);
        }
        let again = self.doubtful == Some(entry.n);
        self.note(self.done, entry.n).map_err(broken)?;
        if !give(again) {
            return Ok(false);
        }
        self.done = entry.n;
        self.doubtful = None;
        self.note(self.done, self.done).map_err(broken)?;
        Ok(true)
    }

    /// The reader says itself that it has everything up to a number.
    ///
    /// # Errors
    /// When the place can't be written.
    pub fn ack(&mut self, number: u64) -> Result<(), Failure> {
        self.done = self.done.max(number);
        self.note(self.done, self.done)
            .map_err(|error| Failure::system("the reader's place can't be kept", error))
    }

    fn note(&self, done: u64, doing: u64) -> Result<(), Errno> {
        pwrite(&self.file, format!("{done:020} {doing:020}\n").as_bytes(), 0).map(drop)
    }
}

fn numbers(bytes: &[u8]) -> Option<(u64, u64)> {
    let (done, doing) = std::str::from_utf8(bytes).ok()?.trim_end().split_once(' ')?;
    Some((done.parse().ok()?, doing.parse().ok()?))
}

/// How far the slowest reader with a name is; none when there is none.
pub(super) fn slowest(folder: &Path) -> Option<u64> {
    let entries = std::fs::read_dir(folder).ok()?;
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX))
        .filter_map(|entry| Some(numbers(&std::fs::read(entry.path()).ok()?)?.0))
        .min()
}
