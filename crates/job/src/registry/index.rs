//! A cache of ended jobs, so that a list need not open and read every record: `<home>/index`.
//!
//! It holds nothing that is not in the jobs' folders, and may be deleted at any time. A process that lists
//! jobs reads it, checks each entry against the files that it was made from, and replaces it if too much is
//! missing. There is no lock: if two processes replace it at the same moment, one wins, and nothing is lost
//! that cannot be read again.
//!
//! An entry is valid only while the job's record is the same file, by inode, size and time of its last
//! change. Only what cannot change any more is stored: the job has ended, left nothing behind, and has no
//! keeper, so its log is final too. And only what has no secrets in it: the same text is valid for people and
//! for agents, and no secret is written to the disk again.

use std::io::Write;
use std::iter::Peekable;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::vec::IntoIter;

use rustix::fs::{AtFlags, Stat, statat, unlinkat};
use serde::{Deserialize, Serialize};

use super::replace::{Durability, read_small, replace};
use super::summary::Summary;
use super::{Home, JobDir, claim, layout};
use crate::clock::now_ms;
use crate::spec::Handle;

/// The first line. With another format number or program version (which may hide other things), the rest is
/// ignored.
const HEAD: &str = concat!("outlast-index 1 ", env!("CARGO_PKG_VERSION"), "\n");
/// A larger index is neither read nor written.
const MAX_INDEX_BYTES: usize = 16 << 20;
/// A job with a larger entry is read from its own files.
const MAX_ENTRY_BYTES: usize = 4 << 10;
/// The index is replaced if more jobs than this are missing, or more than one in [`MISSED_DIVISOR`].
const MAX_MISSED: usize = 8;
/// See [`MAX_MISSED`].
const MISSED_DIVISOR: usize = 32;
/// A file that changed more recently than this may change again with the same time: timestamps are not finer.
const GRAIN_MS: u64 = 50;
/// The same on file systems whose timestamps are whole seconds.
const COARSE_GRAIN_MS: u64 = 2_500;

/// The entry of an ended job, as it is read.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    pub(crate) job: Summary,
    pub(crate) log_end: u64,
    pub(crate) last_line: String,
}

/// The entry of an ended job, as it is written.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct EntryRef<'a> {
    #[serde(skip)]
    pub(crate) record: &'a Mark,
    pub(crate) job: &'a Summary,
    pub(crate) log_end: u64,
    pub(crate) last_line: &'a str,
}

/// The identity of a file: its inode, its size, and when it last changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(u64, u64, u64, u64);

impl Mark {
    /// Of a job's record, in its open folder.
    pub(crate) fn of_job(job: &JobDir) -> Option<Self> {
        Self::of_record(job.as_fd(), layout::INFO)
    }

    fn of_record(dir: BorrowedFd<'_>, path: &str) -> Option<Self> {
        statat(dir, path, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| Self::of(&stat))
    }

    fn of(stat: &Stat) -> Self {
        Self(number(stat.st_ino), number(stat.st_size), number(stat.st_ctime), number(stat.st_ctime_nsec))
    }

    /// Whether it changed so long ago that another change would have another time.
    pub(crate) fn is_settled(&self) -> bool {
        let now = now_ms();
        let grain = if self.3 == 0 { COARSE_GRAIN_MS } else { GRAIN_MS };
        let changed = self.2.saturating_mul(1000).saturating_add(self.3 / 1_000_000);
        changed.saturating_add(grain) < now
    }
}

/// Inode numbers have other types on other machines; only a time before 1970 could be negative.
fn number(number: impl TryInto<u64>) -> u64 {
    number.try_into().unwrap_or(0)
}

/// The index of a home, as it was read.
#[derive(Debug)]
pub(crate) struct Index {
    bytes: Vec<u8>,
    /// By handle.
    entries: Peekable<IntoIter<Place>>,
    /// How many of them were stale.
    stale: usize,
}

/// Where in the index a job's entry is, and the identity of its record.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) handle: Handle,
    pub(crate) record: Mark,
    entry: Range<usize>,
}

impl Place {
    /// Parses a line: the handle, the four numbers of the file's identity, and the entry.
    fn of_line(line: &str, start: usize) -> Option<Self> {
        let mut rest = line;
        let mut next = || -> Option<u64> {
            let (number, after) = rest.split_once(' ')?;
            rest = after;
            number.parse().ok()
        };
        let handle = Handle::new(next()?);
        let record = Mark(next()?, next()?, next()?, next()?);
        Some(Self { handle, record, entry: start + line.len() - rest.len()..start + line.len() })
    }
}

impl Index {
    /// Reads the index; it is empty if it is of another version or damaged.
    pub(crate) fn read(home: &Home) -> Self {
        let bytes = read_small(home.as_dir(), layout::INDEX, MAX_INDEX_BYTES).unwrap_or_default();
        let entries = places(&bytes).unwrap_or_default();
        Self { bytes, entries: entries.into_iter().peekable(), stale: 0 }
    }

    /// The position of a job's entry, if it is still valid. Jobs are looked up in order.
    pub(crate) fn take(&mut self, home: &Home, handle: Handle) -> Option<Place> {
        while self.entries.next_if(|place| place.handle < handle).is_some() {
            self.stale += 1;
        }
        let place = self.entries.next_if(|place| place.handle == handle)?;
        let holds =
            Mark::of_record(home.jobs_dir(), &format!("{handle}/{}", layout::INFO)) == Some(place.record);
        self.stale += usize::from(!holds);
        holds.then_some(place)
    }

    /// The jobs in it. All of them are final, whether or not their entries still hold.
    pub(crate) fn handles(self) -> impl Iterator<Item = Handle> {
        self.entries.map(|place| place.handle)
    }

    /// The entry at a position.
    pub(crate) fn entry(&self, place: &Place) -> Option<Entry> {
        let entry: Entry = serde_json::from_slice(self.bytes.get(place.entry.clone())?).ok()?;
        (entry.job.handle == place.handle).then_some(entry)
    }

    /// Whether it should be replaced, after all jobs were looked up.
    pub(crate) fn has_missed_much(&self, missed: usize, all: usize) -> bool {
        missed + self.stale + self.entries.len() >= MAX_MISSED.max(all / MISSED_DIVISOR)
    }
}

/// The positions of all entries; `None` if it is of another version, damaged or not in order.
fn places(bytes: &[u8]) -> Option<Vec<Place>> {
    let text = std::str::from_utf8(bytes).ok()?.strip_prefix(HEAD)?.strip_suffix('\n')?;
    let mut at = HEAD.len();
    let mut places = Vec::new();
    for line in text.split('\n') {
        places.push(Place::of_line(line, at)?);
        at += line.len() + 1;
    }
    places.is_sorted_by_key(|place| place.handle).then_some(places)
}

/// Whether a job's entry is small enough.
pub(crate) fn has_room_for(job: &Summary, last_line: &str) -> bool {
    // Every field is named here: one that is new needs another number in `HEAD`, or an index of a build without it would
    // be trusted.
    let Summary { handle: _, name, session, command, description, cwd, created_at: _, pid: _, state: _ } =
        job;
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let texts = [session, command, cwd].map(String::len).iter().sum::<usize>();
    texts + optional(name) + optional(description) + last_line.len() <= MAX_ENTRY_BYTES
}

/// Whether no process will ever write into a job's folder again.
pub(crate) fn is_final(job: &JobDir, summary: &Summary) -> bool {
    let receipt = summary.state.receipt();
    receipt.is_some_and(|receipt| receipt.left_behind.is_empty()) && claim::Lock::is_free(job)
}

/// Replaces the index. If it cannot be written (a full or read-only disk), lists are only slower.
pub(crate) fn write(home: &Home, entries: &[EntryRef<'_>]) {
    let mut bytes = HEAD.as_bytes().to_vec();
    for entry in entries {
        let Mark(number, size, seconds, nanoseconds) = entry.record;
        let _ = write!(bytes, "{} {number} {size} {seconds} {nanoseconds} ", entry.job.handle);
        if serde_json::to_writer(&mut bytes, entry).is_err() || bytes.len() > MAX_INDEX_BYTES {
            return;
        }
        bytes.push(b'\n');
    }
    if entries.is_empty() {
        return forget(home);
    }
    let _ = replace(home.as_dir(), layout::INDEX, &bytes, Durability::Process);
}

/// Deletes it: the entries of removed jobs must not stay.
pub(crate) fn forget(home: &Home) {
    let _ = unlinkat(home.as_dir(), layout::INDEX, AtFlags::empty());
}
