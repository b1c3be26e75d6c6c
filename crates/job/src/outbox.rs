//! The outbox: what a session's jobs have to tell, numbered without gaps, on the disk until it is acknowledged.
//!
//! ```text
//! <home>/outbox/<session>/
//!   events.jsonl      one entry a line; only ever appended to, or replaced as a whole by a shorter one
//!   lock              held for a moment to append or replace
//!   acked             the highest number that was acknowledged
//!   reader-<name>     how far a reader with a name has come, see [`reader`]
//! <home>/outbox/.highest    no number up to this one is used again; known from outboxes that were removed
//! ```
//!
//! Keepers append, several at once; a line that a dying writer left unfinished is cut off by the next. Readers take
//! no lock: they read whole lines and remember a number.

pub mod claims;
pub mod follow;
pub(crate) mod inotify;
pub mod reader;
pub mod tail;

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, ftruncate, mkdirat, openat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::lifecycle::State;
use crate::log::writer::read_exact_at;
use crate::registry::Home;
use crate::registry::replace::{Durability, hold_room_after, read_small, replace, write_all};
use crate::registry::stable_name::{all_names, stable_name, text_of};
use crate::registry::sweep::remove_flat_folder;
use crate::spec::Handle;
use crate::wire::event::{EntryKind, EventKind};
use crate::wire::line;

/// Below the home: one folder a session.
pub const FOLDER: &str = "outbox";
const EVENTS: &str = "events.jsonl";
const LOCK: &str = "lock";
const ACKED: &str = "acked";
const HIGHEST: &str = ".highest";
/// Past this the oldest go, acknowledged ones first, and an entry says which.
const CAP: u64 = 1 << 20;
/// Longer texts of a job are cut: an entry is a pointer, not the output.
const LONGEST_TEXT: usize = 400;

/// One thing worth knowing about a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Counts from 1 in each session, without gaps. 0 until it is in the outbox.
    pub n: u64,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// Whose it is.
    pub job: Handle,
    /// The job's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The number of the job's own event; 0 for what the outbox itself has to tell.
    #[serde(default)]
    pub seq: u64,
    /// What kind of thing.
    #[serde(deserialize_with = "EntryKind::read")]
    pub event: EntryKind,
    /// How many of them this stands for.
    pub count: u64,
    /// Where in the log the first of them was.
    pub from: u64,
    /// Where the last of them was.
    pub offset: u64,
    /// In a line, for a person or a model.
    pub text: String,
    /// The call that tells more.
    #[serde(default)]
    pub more: String,
    /// The job's own event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<EventKind>,
}

impl Entry {
    /// An entry about a job that stands for one thing.
    #[must_use]
    pub fn about(job: Handle, name: Option<&str>, event: EntryKind, text: impl Into<String>) -> Self {
        Self::about_at(crate::clock::now_ms(), job, name, event, text)
    }

    /// The same, of a moment in milliseconds since 1970.
    pub(crate) fn about_at(
        at: u64,
        job: Handle,
        name: Option<&str>,
        event: EntryKind,
        text: impl Into<String>,
    ) -> Self {
        let mut text = visible(&text.into());
        if text.len() > LONGEST_TEXT {
            text.truncate(text.floor_char_boundary(LONGEST_TEXT));
            text.push_str("...");
        }
        Self {
            n: 0,
            at,
            job,
            name: name.map(ToOwned::to_owned),
            seq: 0,
            event,
            count: 1,
            from: 0,
            offset: 0,
            text,
            more: format!("outlast read {job}"),
            detail: None,
        }
    }

    /// The entry in one short line.
    #[must_use]
    pub fn line(&self) -> String {
        let name = self.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        let times = if self.count > 1 { format!(", {} times", self.count) } else { String::new() };
        let Self { n, job, event, text, more, .. } = self;
        format!("{n} job {job}{name} {event}{times}: {text}   {more}")
    }
}

/// Control characters of a job never reach anybody's terminal.
fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}

/// A session's outbox.
#[derive(Debug)]
pub struct Outbox {
    pub(crate) dir: OwnedFd,
    pub(crate) path: std::path::PathBuf,
    session: String,
}

const FOLDER_FLAGS: OFlags =
    OFlags::DIRECTORY.union(OFlags::RDONLY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

fn open_folder(parent: impl AsFd, name: &str) -> Result<OwnedFd, Errno> {
    // It is there, but for the first time.
    match openat(&parent, name, FOLDER_FLAGS, Mode::empty()) {
        Err(Errno::NOENT) => {}
        opened => return opened,
    }
    match mkdirat(&parent, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error),
    }
    openat(&parent, name, FOLDER_FLAGS, Mode::empty())
}

impl Outbox {
    /// Opens a session's outbox, making it if it is not there.
    ///
    /// # Errors
    /// When the home can't be written.
    pub fn open(home: &Home, session: &str) -> Result<Self, Failure> {
        if let Some(existing) = Self::existing(home, session) {
            return Ok(existing);
        }
        let folder = stable_name(session);
        let dir = open_folder(home.as_dir(), FOLDER)
            .and_then(|all| open_folder(&all, &folder))
            .map_err(|error| Failure::system("the outbox can't be opened", error))?;
        let path = home.path().join(FOLDER).join(&folder);
        Ok(Self { dir, path, session: session.to_owned() })
    }

    /// A session's outbox, if it has one; also one that 0.1 has begun, whose keepers may still write into it.
    #[must_use]
    pub fn existing(home: &Home, session: &str) -> Option<Self> {
        all_names(session).find_map(|folder| {
            let dir =
                openat(home.as_dir(), format!("{FOLDER}/{folder}"), FOLDER_FLAGS, Mode::empty()).ok()?;
            let path = home.path().join(FOLDER).join(folder);
            Some(Self { dir, path, session: session.to_owned() })
        })
    }

    /// Every session's outbox.
    #[must_use]
    pub fn all(home: &Home) -> Vec<Self> {
        let Ok(all) = open_folder(home.as_dir(), FOLDER) else { return Vec::new() };
        let folder = home.path().join(FOLDER);
        let Ok(entries) = std::fs::read_dir(&folder) else { return Vec::new() };
        let names = entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        let open = |name: String| {
            let dir = openat(&all, &name, FOLDER_FLAGS, Mode::empty()).ok()?;
            Some(Self { dir, path: folder.join(&name), session: text_of(&name) })
        };
        names.into_iter().filter_map(open).collect()
    }

    /// Whose it is.
    #[must_use]
    pub fn session(&self) -> &str {
        &self.session
    }

    fn lock(&self, operation: FlockOperation) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.dir, LOCK, flags, PRIVATE)?;
        flock(&file, operation)?;
        // Removed while we waited for it: what is written here would be read by nobody.
        if rustix::fs::fstat(&file)?.st_nlink == 0 {
            return Err(Errno::STALE);
        }
        Ok(file)
    }

    /// The name of its folder.
    pub(crate) fn folder(&self) -> &str {
        self.path.file_name().and_then(std::ffi::OsStr::to_str).unwrap_or_default()
    }

    /// When something was last written or read here, in milliseconds since 1970.
    pub(crate) fn changed_at(&self) -> u64 {
        let Ok(files) = std::fs::read_dir(&self.path) else { return u64::MAX };
        let changed = files.filter_map(|file| file.ok()?.metadata().ok()?.modified().ok());
        let changed = changed.filter_map(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        changed.map(crate::clock::millis).max().unwrap_or(0)
    }

    /// Removes it. Its numbers are not used again: somebody may remember how far it has read.
    pub(crate) fn retire(&self, home: &Home) -> Result<(), Errno> {
        let _held = self.lock(FlockOperation::NonBlockingLockExclusive)?;
        let all = open_folder(home.as_dir(), FOLDER)?;
        let last = self.entries(0).last().map_or(0, |entry| entry.n).max(self.acked());
        if last > number_of(&all, HIGHEST) {
            replace(&all, HIGHEST, last.to_string().as_bytes(), Durability::Machine)?;
        }
        // Out of sight first: a reader sees a whole outbox or none.
        let gone = format!(".gone-{}", self.folder());
        // What an earlier one that was cut short has left.
        let _ = remove_flat_folder(&all, &gone);
        rustix::fs::renameat(&all, self.folder(), &all, &gone)?;
        remove_flat_folder(&all, &gone)
    }

    /// Numbers entries and appends them; waits while somebody else does.
    ///
    /// # Errors
    /// A full disk; nothing is then appended.
    pub fn append(&self, entries: &mut [Entry]) -> Result<(), Errno> {
        let _held = self.lock(FlockOperation::LockExclusive)?;
        self.append_locked(entries, Durability::Machine)
    }

    /// As [`append`](Self::append), without waiting for anybody: `EAGAIN` when somebody else is at it.
    pub(crate) fn try_append(&self, entries: &mut [Entry]) -> Result<(), Errno> {
        let _held = self.lock(FlockOperation::NonBlockingLockExclusive)?;
        self.append_locked(entries, Durability::Process)
    }

    /// Makes everything that an entry needs, and holds room for some: the end of a job must be told on a full disk
    /// too.
    pub(crate) fn hold_room(&self) {
        let Ok(_held) = self.lock(FlockOperation::NonBlockingLockExclusive) else { return };
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let Ok(file) = openat(&self.dir, EVENTS, flags, PRIVATE) {
            let size = rustix::fs::fstat(&file).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
            hold_room_after(&file, size);
        }
    }

    /// Makes sure that what was appended survives the machine.
    pub fn sync(&self) {
        if let Ok(file) = openat(&self.dir, EVENTS, OFlags::RDWR | OFlags::CLOEXEC, PRIVATE) {
            let _ = outlast_pty::system::sync_data(file);
        }
        // Its name too, if it is new.
        let _ = rustix::fs::fsync(&self.dir);
    }

    fn append_locked(&self, entries: &mut [Entry], durability: Durability) -> Result<(), Errno> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.dir, EVENTS, flags, PRIVATE)?;
        let (size, last) = mend(&file);
        let mut last = last.max(self.acked());
        if last == 0 {
            // A new one; there may have been one of this session before.
            last =
                openat(&self.dir, "..", FOLDER_FLAGS, Mode::empty()).map_or(0, |all| number_of(all, HIGHEST));
        }
        let mut bytes = Vec::new();
        for (entry, number) in entries.iter_mut().zip(last + 1..) {
            entry.n = number;
            bytes.extend_from_slice(&line(&entry));
        }
        if let Err(error) = write_all(&file, &bytes) {
            // Half an entry is worse than none.
            let _ = ftruncate(&file, size);
            hold_room_after(&file, size);
            return Err(error);
        }
        hold_room_after(&file, size + bytes.len() as u64);
        if durability == Durability::Machine {
            outlast_pty::system::sync_data(&file)?;
        }
        if size + bytes.len() as u64 > CAP {
            self.shorten(CAP / 2)?;
        }
        Ok(())
    }

    /// Replaces the file by one without what is acknowledged. If that is not enough, what every named reader has
    /// taken goes too, and then what must go. Leaves at most `target` bytes, the newest entry, and a word about
    /// what went unread.
    fn shorten(&self, target: u64) -> Result<(), Errno> {
        let acked = self.acked();
        // What the fleet was not told yet stays, although it is acknowledged here.
        let done = reader::told_to_fleet(&self.path).map_or(acked, |told| acked.min(told));
        let all = self.entries(0);
        let mut kept: Vec<&Entry> = all.iter().filter(|entry| entry.n > done).collect();
        let mut lines: Vec<Vec<u8>> = kept.iter().map(line).collect();
        let mut size: u64 = lines.iter().map(|line| line.len() as u64).sum();
        if size > target {
            let taken = reader::slowest(&self.path).unwrap_or(0);
            let first = kept.partition_point(|entry| entry.n <= taken);
            kept.drain(..first);
            size -= lines.drain(..first).map(|line| line.len() as u64).sum::<u64>();
        }
        let mut cut = 0;
        while size > target && cut + 1 < lines.len() {
            size -= lines[cut].len() as u64;
            cut += 1;
        }
        let mut bytes = Vec::new();
        if cut > 0 {
            let gone: Vec<&Entry> = kept.drain(..cut).collect();
            lines.drain(..cut);
            if let (Some(first), Some(last)) = (gone.first(), gone.last()) {
                // One that says so already counts for all that it stands for.
                let count =
                    gone.iter().map(|e| if e.event == EntryKind::Dropped { e.count } else { 1 }).sum();
                let text = format!("the outbox was full: {count} events up to number {} are gone", last.n);
                let mut word = Entry::about(last.job, None, EntryKind::Dropped, text);
                word.more = "outlast jobs --all".into();
                (word.n, word.count, word.from, word.at) = (last.n, count, first.from, last.at);
                bytes.extend_from_slice(&line(&word));
            }
        }
        lines.iter().for_each(|line| bytes.extend_from_slice(line));
        if bytes.is_empty() {
            // The number of the last one must not be forgotten.
            let last = all.last().map_or(acked, |entry| entry.n).max(acked);
            replace(&self.dir, ACKED, last.to_string().as_bytes(), Durability::Process)?;
        }
        replace(&self.dir, EVENTS, &bytes, Durability::Process)
    }

    /// The highest number that was acknowledged.
    #[must_use]
    pub fn acked(&self) -> u64 {
        number_of(&self.dir, ACKED)
    }

    /// Acknowledges everything up to a number, or all there is; returns the number.
    ///
    /// # Errors
    /// A full disk.
    pub fn ack(&self, up_to: Option<u64>) -> Result<u64, Failure> {
        let broken = |error| Failure::system("the outbox can't be written", error);
        let _held = self.lock(FlockOperation::LockExclusive).map_err(broken)?;
        let last = self.entries(0).last().map_or(0, |entry| entry.n);
        let before = self.acked();
        let number = up_to.unwrap_or(last).min(last).max(before);
        if number > before {
            self.mark_read(number);
            replace(&self.dir, ACKED, number.to_string().as_bytes(), Durability::Machine).map_err(broken)?;
            self.shorten(CAP).map_err(broken)?;
        }
        Ok(number)
    }

    /// Acknowledging the end of a job means that it is known.
    fn mark_read(&self, up_to: u64) {
        let Some(home) = self.path.ancestors().nth(2).and_then(|home| Home::open(home).ok()) else { return };
        for job in self.ended(up_to) {
            if let Ok(job) = home.job(job) {
                job.mark_read();
            }
        }
    }

    /// The jobs whose end is among the entries up to a number.
    fn ended(&self, up_to: u64) -> Vec<Handle> {
        let ends =
            self.entries(0).into_iter().filter(|entry| entry.n <= up_to && entry.event == EntryKind::Exit);
        ends.map(|entry| entry.job).collect()
    }

    /// The jobs whose end a reader with a name has taken.
    pub(crate) fn ends_taken(&self) -> Vec<Handle> {
        reader::furthest(&self.path).map_or_else(Vec::new, |up_to| self.ended(up_to))
    }

    /// The entries after a number, once they are on the disk: a reader may remember their numbers, and a
    /// number that a crash of the machine has taken back would be given to something else.
    #[must_use]
    pub fn settled(&self, after: u64) -> Vec<Entry> {
        let entries = self.entries(after);
        if !entries.is_empty() {
            self.sync();
        }
        entries
    }

    /// The entries after a number, in order. A line that is being written is not among them.
    #[must_use]
    pub fn entries(&self, after: u64) -> Vec<Entry> {
        let bytes = read_small(&self.dir, EVENTS, 64 << 20).unwrap_or_default();
        whole_entries(&bytes).filter(|entry| entry.n > after).collect()
    }
}

/// How a job ended, if a session's outbox says so.
pub(crate) fn end_of(home: &std::path::Path, session: &str, job: Handle) -> Option<State> {
    let all = home.join(FOLDER);
    let bytes = all_names(session).find_map(|folder| std::fs::read(all.join(folder).join(EVENTS)).ok())?;
    whole_entries(&bytes).filter(|entry| entry.job == job).find_map(|entry| match entry.detail {
        Some(EventKind::Exit { state }) => Some(state),
        _ => None,
    })
}

/// The number that a small file holds; 0 without one.
fn number_of(dir: impl AsFd, name: &str) -> u64 {
    let text = read_small(dir, name, 64).unwrap_or_default();
    std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// The entries in whole lines; what a newer version wrote in another form is passed over.
pub(crate) fn whole_entries(bytes: &[u8]) -> impl Iterator<Item = Entry> {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    bytes[..end].split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

/// Cuts off a line that was never finished; returns the size and the last number.
fn mend(file: &OwnedFd) -> (u64, u64) {
    let size = rustix::fs::fstat(file).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
    let from = size.saturating_sub(64 << 10);
    let mut tail = vec![0; usize::try_from(size - from).unwrap_or(0)];
    let got = read_exact_at(file, &mut tail, from);
    tail.truncate(got);
    let whole = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if whole < tail.len() {
        let _ = ftruncate(file, from + whole as u64);
    }
    let lines = tail[..whole].rsplit(|byte| *byte == b'\n');
    let last = lines.filter_map(|line| serde_json::from_slice::<Entry>(line).ok()).next();
    (from + whole as u64, last.map_or(0, |entry| entry.n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::stable_name::name_of_0_1;

    fn home() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(&folder.path().join("home")).unwrap();
        (folder, home)
    }

    fn entry(text: &str) -> Entry {
        Entry::about(Handle::new(1), None, EntryKind::Pattern, text)
    }

    fn numbers(outbox: &Outbox) -> Vec<u64> {
        outbox.entries(0).iter().map(|entry| entry.n).collect()
    }

    #[test]
    fn an_outbox_that_0_1_named_is_found_and_gone_on_with() {
        let (_folder, home) = home();
        let session = "s".repeat(400);
        let old = name_of_0_1(&session).unwrap();
        let path = home.path().join(FOLDER).join(&old);
        std::fs::create_dir_all(&path).unwrap();
        let mut line = serde_json::to_vec(&Entry { n: 1, ..entry("from 0.1") }).unwrap();
        line.push(b'\n');
        std::fs::write(path.join(EVENTS), line).unwrap();
        let outbox = Outbox::open(&home, &session).unwrap();
        assert_eq!(outbox.folder(), old);
        assert_eq!(numbers(&outbox), [1]);
        assert_eq!(numbers(&Outbox::existing(&home, &session).unwrap()), [1]);
        assert!(Outbox::open(&home, &"t".repeat(400)).unwrap().folder().ends_with("%-4c3452b80f4650a5"));
    }

    #[test]
    fn a_torn_line_is_cut_off_and_numbers_go_on() {
        let (_folder, home) = home();
        let outbox = Outbox::open(&home, "s").unwrap();
        outbox.append(&mut [entry("one"), entry("two")]).unwrap();
        let file = openat(&outbox.dir, EVENTS, OFlags::WRONLY | OFlags::APPEND, PRIVATE).unwrap();
        write_all(&file, b"{\"n\":3,\"at\":1").unwrap();
        assert_eq!(numbers(&outbox), [1, 2]);
        outbox.append(&mut [entry("three")]).unwrap();
        assert_eq!(numbers(&outbox), [1, 2, 3]);
    }

    #[test]
    fn what_is_acknowledged_goes_and_its_numbers_are_not_used_again() {
        let (_folder, home) = home();
        let outbox = Outbox::open(&home, "s").unwrap();
        outbox.append(&mut [entry("one"), entry("two")]).unwrap();
        assert_eq!(outbox.ack(None).unwrap(), 2);
        assert_eq!(numbers(&outbox), Vec::<u64>::new());
        outbox.append(&mut [entry("three")]).unwrap();
        assert_eq!(numbers(&outbox), [3]);
        assert_eq!(outbox.ack(Some(99)).unwrap(), 3, "what is not there yet can't be acknowledged");
    }

    #[test]
    fn a_full_outbox_says_what_is_gone() {
        let (_folder, home) = home();
        let outbox = Outbox::open(&home, "s").unwrap();
        let text = "x".repeat(300);
        for _ in 0..60 {
            let mut many: Vec<Entry> = (0..100).map(|_| entry(&text)).collect();
            outbox.append(&mut many).unwrap();
        }
        let entries = outbox.entries(0);
        let word = entries.first().unwrap();
        assert_eq!((word.event, word.count), (EntryKind::Dropped, word.n));
        let after: Vec<u64> = entries.iter().skip(1).map(|entry| entry.n).collect();
        assert_eq!(after, (word.n + 1..=6000).collect::<Vec<_>>());
        let size = std::fs::metadata(outbox.path.join(EVENTS)).unwrap().len();
        assert!(size <= CAP + (64 << 10), "{size}");
    }

    #[test]
    fn one_that_is_removed_leaves_its_numbers_behind() {
        let (_folder, home) = home();
        let outbox = Outbox::open(&home, "s").unwrap();
        outbox.append(&mut [entry("one"), entry("two")]).unwrap();
        outbox.retire(&home).unwrap();
        assert!(outbox.append(&mut [entry("lost")]).is_err(), "nobody would read it");
        assert!(Outbox::all(&home).is_empty());
        let outbox = Outbox::open(&home, "s").unwrap();
        outbox.append(&mut [entry("three")]).unwrap();
        assert_eq!(numbers(&outbox), [3]);
    }

    #[test]
    fn several_writers_leave_no_gap() {
        let (_folder, home) = home();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let outbox = Outbox::open(&home, "s").unwrap();
                    (0..50).for_each(|_| outbox.append(&mut [entry("x")]).unwrap());
                });
            }
        });
        let outbox = Outbox::open(&home, "s").unwrap();
        assert_eq!(numbers(&outbox), (1..=200).collect::<Vec<_>>());
    }
}
