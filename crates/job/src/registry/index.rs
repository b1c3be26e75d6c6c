//! A memory of ended jobs, so that a list need not open and read every record: `<home>/index`.
//!
//! It holds nothing that is not in the jobs' folders, and may be deleted at any time. Whoever lists jobs reads it,
//! holds each entry against the files that it was made from, and replaces it when it has missed much. Nobody waits for
//! anybody: of two that replace it at the same moment, one wins, and nothing is lost that can't be read again.
//!
//! An entry is believed only while the job's record is the file it was, by number, size and time of its last change. Only
//! what can't change any more gets in: the job has ended, left nothing behind, and nobody keeps it, so its log is final
//! too. And only what has nothing to hide: one text is true for people and for agents, and no secret is written down once
//! more.

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

/// The first line: another number, or another version, which may hide other things, and the rest does not count.
const HEAD: &str = concat!("outlast-index 1 ", env!("CARGO_PKG_VERSION"), "\n");
/// An index larger than this is not read, and none is written.
const LARGEST: usize = 16 << 20;
/// A job with more to say than this is read from its own files.
const LARGEST_ENTRY: usize = 4 << 10;
/// So many jobs may be missing from it before it is worth to be replaced, or a part of all as large as that below.
const FEW: usize = 8;
const PART: usize = 32;
/// A file that changed this short a time ago may change again without showing it: times have a grain.
const GRAIN_MS: u64 = 50;
/// The same where times are whole seconds.
const COARSE_GRAIN_MS: u64 = 2_500;

/// An ended job, as it is read.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    pub(crate) job: Summary,
    pub(crate) log_end: u64,
    pub(crate) last_line: String,
}

/// An ended job, as it is written.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct EntryRef<'a> {
    #[serde(skip)]
    pub(crate) record: &'a Mark,
    pub(crate) job: &'a Summary,
    pub(crate) log_end: u64,
    pub(crate) last_line: &'a str,
}

/// What a file was: its number, its size, and when it last changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(u64, u64, u64, u64);

impl Mark {
    /// That of a job's record, in its open folder.
    pub(crate) fn of_job(job: &JobDir) -> Option<Self> {
        Self::of_record(job.as_fd(), layout::INFO)
    }

    fn of_record(dir: BorrowedFd<'_>, path: &str) -> Option<Self> {
        statat(dir, path, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| Self::of(&stat))
    }

    fn of(stat: &Stat) -> Self {
        Self(number(stat.st_ino), number(stat.st_size), number(stat.st_ctime), number(stat.st_ctime_nsec))
    }

    /// Whether it changed so long ago that a change from now on has another time.
    pub(crate) fn is_settled(&self) -> bool {
        let now = now_ms();
        let grain = if self.3 == 0 { COARSE_GRAIN_MS } else { GRAIN_MS };
        let changed = self.2.saturating_mul(1000).saturating_add(self.3 / 1_000_000);
        changed.saturating_add(grain) < now
    }
}

/// Numbers of files have other widths on other machines; none is negative but a time before 1970.
fn number(number: impl TryInto<u64>) -> u64 {
    number.try_into().unwrap_or(0)
}

/// The index of a home, as it was found.
#[derive(Debug)]
pub(crate) struct Index {
    bytes: Vec<u8>,
    /// By handle.
    entries: Peekable<IntoIter<Place>>,
    /// How many of them were of no use.
    stale: usize,
}

/// Where in the index a job's entry is, and what its record was then.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) handle: Handle,
    pub(crate) record: Mark,
    entry: Range<usize>,
}

impl Place {
    /// From a line: the handle, the four numbers of the mark, and what is said about the job.
    fn of_line(line: &str, start: usize) -> Option<Self> {
        let mut rest = line;
        let mut next = || -> Option<u64> {
            let (number, after) = rest.split_once(' ')?;
            rest = after;
            number.parse().ok()
        };
        let handle = Handle(next()?);
        let record = Mark(next()?, next()?, next()?, next()?);
        Some(Self { handle, record, entry: start + line.len() - rest.len()..start + line.len() })
    }
}

impl Index {
    /// What is there; nothing, if it is of another version or damaged.
    pub(crate) fn read(home: &Home) -> Self {
        let bytes = read_small(home.as_dir(), layout::INDEX, LARGEST).unwrap_or_default();
        let entries = places(&bytes).unwrap_or_default();
        Self { bytes, entries: entries.into_iter().peekable(), stale: 0 }
    }

    /// The place of a job's entry, if it still holds. Jobs are asked for in order.
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

    /// What it says in a place.
    pub(crate) fn entry(&self, place: &Place) -> Option<Entry> {
        let entry: Entry = serde_json::from_slice(self.bytes.get(place.entry.clone())?).ok()?;
        (entry.job.handle == place.handle).then_some(entry)
    }

    /// Whether it is worth to be replaced, now that all jobs have been asked for: so many were not in it, of so many.
    pub(crate) fn has_missed_much(&self, missed: usize, all: usize) -> bool {
        missed + self.stale + self.entries.len() >= FEW.max(all / PART)
    }
}

/// The places of all entries; none if it is another version, damaged or not in order.
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
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let texts = [&job.session, &job.command, &job.cwd].map(String::len).iter().sum::<usize>();
    texts + optional(&job.name) + optional(&job.description) + last_line.len() <= LARGEST_ENTRY
}

/// Whether nobody will ever write into a job's folder again.
pub(crate) fn is_final(job: &JobDir, summary: &Summary) -> bool {
    let receipt = summary.state.receipt();
    receipt.is_some_and(|receipt| receipt.left_behind.is_empty()) && claim::Lock::is_free(job)
}

/// Replaces the index. One that can't be written is only missed: a full or read-only disk keeps nobody from a list.
pub(crate) fn write(home: &Home, entries: &[EntryRef<'_>]) {
    let mut bytes = HEAD.as_bytes().to_vec();
    for entry in entries {
        let Mark(number, size, seconds, nanoseconds) = entry.record;
        let _ = write!(bytes, "{} {number} {size} {seconds} {nanoseconds} ", entry.job.handle);
        if serde_json::to_writer(&mut bytes, entry).is_err() || bytes.len() > LARGEST {
            return;
        }
        bytes.push(b'\n');
    }
    if entries.is_empty() {
        return forget(home);
    }
    let _ = replace(home.as_dir(), layout::INDEX, &bytes, Durability::Process);
}

/// Forgets it: what is said of jobs that are gone must not stay.
pub(crate) fn forget(home: &Home) {
    let _ = unlinkat(home.as_dir(), layout::INDEX, AtFlags::empty());
}
