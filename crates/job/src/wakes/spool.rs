//! The spool: orders to wake somebody, on the disk until they are final.
//!
//! ```text
//! <home>/wakes/
//!   12.1.order     what to tell whom: the first order of job 12; never changed
//!   12.1.state     how far that is, and why it failed, once it was tried; replaced as a whole
//!   paused.json    for whom nothing is delivered now
//!   dropped        one byte for each order that found the spool full
//!   waits-PID-…    held by a hook of that agent, while it waits for orders
//!   left           held by the process that goes on with what dead keepers have left
//! ```
//!
//! A keeper writes an order before the entry that it is about is told, so neither can be lost without the other. A process that
//! tries to deliver one holds a lock on its file meanwhile. Orders are removed when they are delivered; those that failed
//! stay for a while, so that they can be tried again.

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::str::FromStr;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::Wake;
use crate::failure::Failure;
use crate::outbox::Entry;
use crate::registry::Home;
use crate::registry::replace::{Durability, read_small, replace, write_all};
use crate::session::agent_lives;
use crate::spec::Handle;

/// Below the home.
pub const FOLDER: &str = "wakes";
const ORDER: &str = ".order";
const STATE: &str = ".state";
const DROPPED: &str = "dropped";
const LEFT: &str = "left";
const WAITS: &str = "waits-";
/// More orders are not taken on, failed ones included.
const MAX_ORDERS: usize = 1000;
/// Failed orders that are kept for `wakes retry`.
const MAX_FAILED: usize = 100;
/// Failed orders older than this are forgotten.
const FAILED_FOR_MS: u64 = 7 * 24 * 3_600_000;
/// An order is no larger; its oldest entries go first.
const MAX_ORDER_BYTES: usize = 256 << 10;
const FORMAT: u32 = 1;

/// The number of an order: of which job, and which of its orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderId {
    /// The job.
    pub job: Handle,
    /// Counts from 1.
    pub number: u32,
}

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.job, self.number)
    }
}

impl FromStr for OrderId {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let read = || {
            let (job, number) = text.split_once('.')?;
            Some(Self { job: Handle::new(job.parse().ok()?), number: number.parse().ok()? })
        };
        read().ok_or_else(|| {
            Failure::usage(format!("{text:?} is not the number of a wake, such as 12.1"))
                .hint("see them: outlast wakes list")
        })
    }
}

/// What to tell whom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    format: u32,
    /// Whose events they are.
    pub session: String,
    /// Whom to wake, and how.
    pub wake: Wake,
    /// What for, oldest first. Those that were not in the outbox yet have the number 0.
    pub events: Vec<Entry>,
    /// How many older entries did not fit.
    #[serde(default)]
    pub left_out: usize,
    /// When it was written, in milliseconds since 1970.
    pub made_at: u64,
}

impl Order {
    pub(crate) fn new(session: &str, wake: Wake, events: Vec<Entry>) -> Self {
        let made_at = crate::clock::now_ms();
        Self { format: FORMAT, session: session.to_owned(), wake, events, left_out: 0, made_at }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut order = self.clone();
        loop {
            let bytes = crate::wire::line(&order);
            if bytes.len() <= MAX_ORDER_BYTES || order.events.len() <= 1 {
                return bytes;
            }
            let cut = order.events.len() / 2;
            order.events.drain(..cut);
            order.left_out += cut;
        }
    }
}

/// How far an order is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// How often it was tried since something was last delivered.
    pub tries: u32,
    /// How many of its events were delivered, one by one.
    pub done: usize,
    /// For how long a pane was waited for, in milliseconds.
    pub waited_ms: u64,
    /// Not before, in milliseconds since 1970.
    pub next_at: u64,
    /// What was last begun to be typed into a pane.
    pub typed: Option<String>,
    /// What went wrong at the last try.
    pub trouble: Option<String>,
    /// When it was given up, in milliseconds since 1970.
    pub failed_at: Option<u64>,
}

/// An order in the spool.
#[derive(Clone, Debug, PartialEq)]
pub struct Filed {
    /// Its number.
    pub id: OrderId,
    /// What to tell whom.
    pub order: Order,
    /// How far it is.
    pub progress: Progress,
}

impl Filed {
    /// Whether it was neither delivered nor given up.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.progress.failed_at.is_none()
    }
}

/// Why an order was not taken on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotFiled {
    #[error("{MAX_ORDERS} wakes wait already")]
    Full,
    #[error("{0}")]
    Disk(#[from] Errno),
}

/// Nobody else delivers, changes or removes the order while this lives.
#[derive(Debug)]
pub(crate) struct Held {
    _lock: OwnedFd,
}

/// The spool of a home.
#[derive(Debug)]
pub struct Spool {
    dir: OwnedFd,
    path: PathBuf,
}

const FOLDER_FLAGS: OFlags =
    OFlags::DIRECTORY.union(OFlags::RDONLY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FILE_FLAGS: OFlags = OFlags::RDWR.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

impl Spool {
    /// The spool of a home, if it has ever had one.
    #[must_use]
    pub fn existing(home: &Home) -> Option<Self> {
        let dir = openat(home.as_dir(), FOLDER, FOLDER_FLAGS, Mode::empty()).ok()?;
        Some(Self { dir, path: home.path().join(FOLDER) })
    }

    /// The spool of a home; made if need be.
    pub(crate) fn open(home: &Home) -> Result<Self, Errno> {
        if let Some(spool) = Self::existing(home) {
            return Ok(spool);
        }
        match mkdirat(home.as_dir(), FOLDER, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        Self::existing(home).ok_or(Errno::NOENT)
    }

    /// As [`existing`](Self::existing); made if need be.
    ///
    /// # Errors
    /// When the home can't be written.
    pub fn made(home: &Home) -> Result<Self, std::io::Error> {
        Self::open(home).map_err(Into::into)
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// The numbers of all orders, in order.
    pub(crate) fn ids(&self) -> Vec<OrderId> {
        let Ok(entries) = std::fs::read_dir(&self.path) else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut ids: Vec<OrderId> = names.filter_map(|name| name.strip_suffix(ORDER)?.parse().ok()).collect();
        ids.sort_unstable();
        ids
    }

    /// Writes an order down. Only the keeper of a job, or the process that holds the job's lock, adds to the job's orders.
    pub(crate) fn add(&self, job: Handle, order: &Order) -> Result<OrderId, NotFiled> {
        let ids = self.ids();
        if ids.len() >= MAX_ORDERS && self.forget_failed(&ids) == 0 {
            self.count_dropped();
            return Err(NotFiled::Full);
        }
        let last = ids.iter().filter(|id| id.job == job).map(|id| id.number).max().unwrap_or(0);
        let fresh = format!(".new-{job}-{}", std::process::id());
        let flags = FILE_FLAGS | OFlags::CREATE | OFlags::TRUNC;
        let file = openat(&self.dir, &fresh, flags, PRIVATE)?;
        let written = write_all(&file, &order.bytes()).and_then(|()| {
            let mut id = OrderId { job, number: last + 1 };
            loop {
                match rustix::fs::linkat(
                    &self.dir,
                    &fresh,
                    &self.dir,
                    format!("{id}{ORDER}"),
                    AtFlags::empty(),
                ) {
                    Err(Errno::EXIST) => id.number += 1,
                    linked => return linked.map(|()| id),
                }
            }
        });
        let _ = unlinkat(&self.dir, &fresh, AtFlags::empty());
        Ok(written?)
    }

    /// Removes failed orders that are old or too many; says how many.
    fn forget_failed(&self, ids: &[OrderId]) -> usize {
        let long_ago = crate::clock::now_ms().saturating_sub(FAILED_FOR_MS);
        let failed = ids.iter().filter_map(|id| Some((self.progress(*id).failed_at?, *id)));
        let mut failed: Vec<(u64, OrderId)> = failed.collect();
        failed.sort_unstable();
        let too_many = failed.len().saturating_sub(MAX_FAILED);
        let old = failed.iter().filter(|(at, _)| *at < long_ago).count();
        let gone = too_many.max(old);
        failed.iter().take(gone).for_each(|(_, id)| self.remove(*id));
        gone
    }

    /// Keeps the bound on failed orders.
    pub(crate) fn tidy(&self) {
        self.forget_failed(&self.ids());
    }

    fn count_dropped(&self) {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let Ok(file) = openat(&self.dir, DROPPED, flags, PRIVATE) {
            let _ = write_all(&file, b".");
        }
    }

    /// How many orders were not taken on because the spool was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        let stat = rustix::fs::statat(&self.dir, DROPPED, AtFlags::SYMLINK_NOFOLLOW);
        stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// One order, if it is there and can be read.
    #[must_use]
    pub fn get(&self, id: OrderId) -> Option<Filed> {
        let bytes = read_small(&self.dir, &format!("{id}{ORDER}"), 2 * MAX_ORDER_BYTES).ok()?;
        let order: Order = serde_json::from_slice(&bytes).ok()?;
        (order.format == FORMAT).then(|| Filed { id, order, progress: self.progress(id) })
    }

    fn progress(&self, id: OrderId) -> Progress {
        let bytes = read_small(&self.dir, &format!("{id}{STATE}"), 64 << 10).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// All orders.
    #[must_use]
    pub fn all(&self) -> Vec<Filed> {
        self.ids().into_iter().filter_map(|id| self.get(id)).collect()
    }

    /// Whether orders of a job are neither delivered nor given up.
    pub(crate) fn has_pending(&self, job: Handle) -> bool {
        self.ids().into_iter().any(|id| id.job == job && self.progress(id).failed_at.is_none())
    }

    /// Notes how far an order is. An order that is gone stays gone.
    pub(crate) fn note(&self, id: OrderId, progress: &Progress) {
        if self.is_there(id) {
            let bytes = crate::wire::line(progress);
            let _ = replace(&self.dir, &format!("{id}{STATE}"), &bytes, Durability::Process);
        }
    }

    pub(crate) fn is_there(&self, id: OrderId) -> bool {
        rustix::fs::accessat(&self.dir, format!("{id}{ORDER}"), rustix::fs::Access::EXISTS, AtFlags::empty())
            .is_ok()
    }

    /// Removes an order.
    pub(crate) fn remove(&self, id: OrderId) {
        let _ = unlinkat(&self.dir, format!("{id}{ORDER}"), AtFlags::empty());
        let _ = unlinkat(&self.dir, format!("{id}{STATE}"), AtFlags::empty());
    }

    /// Takes an order to oneself; none if it is gone, or another has it and `wait` was not asked for.
    pub(crate) fn hold(&self, id: OrderId, wait: bool) -> Option<Held> {
        let lock = openat(&self.dir, format!("{id}{ORDER}"), FILE_FLAGS, Mode::empty()).ok()?;
        let how = if wait { FlockOperation::LockExclusive } else { FlockOperation::NonBlockingLockExclusive };
        flock(&lock, how).ok()?;
        // It may have been delivered or cancelled by the process that had it.
        let there = rustix::fs::fstat(&lock).is_ok_and(|stat| stat.st_nlink > 0);
        there.then_some(Held { _lock: lock })
    }

    /// Brings an order to the disk before it is tried.
    pub(crate) fn sync(&self, id: OrderId) {
        if let Ok(file) = openat(&self.dir, format!("{id}{ORDER}"), FILE_FLAGS, Mode::empty()) {
            let _ = outlast_pty::system::sync_data(file);
        }
        let _ = rustix::fs::fsync(&self.dir);
    }

    /// The lock of the process that goes on with what dead keepers have left; none while somebody does.
    pub(crate) fn take_left(&self) -> Option<Held> {
        let lock = openat(&self.dir, LEFT, FILE_FLAGS | OFlags::CREATE, PRIVATE).ok()?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(Held { _lock: lock })
    }

    /// Notes that a hook of this agent waits; none if one does already. What dead agents have left is removed.
    pub(super) fn wait_as(&self, agent: &str) -> Option<Held> {
        let entries = std::fs::read_dir(&self.path).ok()?;
        for name in entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
            let waits = name.strip_prefix(WAITS);
            if waits.is_some_and(|other| agent_lives(other) == Some(false)) {
                let _ = unlinkat(&self.dir, &name, AtFlags::empty());
            }
        }
        let lock = openat(&self.dir, format!("{WAITS}{agent}"), FILE_FLAGS | OFlags::CREATE, PRIVATE).ok()?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(Held { _lock: lock })
    }

    /// The hook has ended.
    pub(super) fn no_longer_waits(&self, waits: Held, agent: &str) {
        let _ = unlinkat(&self.dir, format!("{WAITS}{agent}"), AtFlags::empty());
        drop(waits);
    }

    /// Has all who watch the folder look again.
    pub(super) fn ring(&self) {
        let name = format!(".ring-{}", std::process::id());
        if openat(&self.dir, &name, FILE_FLAGS | OFlags::CREATE, PRIVATE).is_ok() {
            let _ = unlinkat(&self.dir, &name, AtFlags::empty());
        }
    }

    pub(crate) fn as_dir(&self) -> impl AsFd + '_ {
        &self.dir
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::event::EntryKind;

    fn spool() -> (tempfile::TempDir, Spool) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        let spool = Spool::open(&home).unwrap();
        (folder, spool)
    }

    fn order(text: &str) -> Order {
        let entry = Entry::about(Handle::new(7), None, EntryKind::Exit, text);
        Order::new("s", Wake::parse("exec:true").unwrap(), vec![entry])
    }

    #[test]
    fn orders_are_numbered_for_each_job_and_removed_with_their_state() {
        let (_folder, spool) = spool();
        let first = spool.add(Handle::new(7), &order("a")).unwrap();
        let second = spool.add(Handle::new(7), &order("b")).unwrap();
        let other = spool.add(Handle::new(10), &order("c")).unwrap();
        assert_eq!([first, second, other].map(|id| id.to_string()), ["7.1", "7.2", "10.1"]);
        assert_eq!(spool.ids(), [first, second, other], "as numbers, not as words");
        spool.note(first, &Progress { tries: 2, ..Progress::default() });
        assert_eq!(spool.get(first).unwrap().progress.tries, 2);
        spool.remove(first);
        spool.note(first, &Progress::default());
        assert!(spool.get(first).is_none() && !spool.path().join("7.1.state").exists());
        assert_eq!("7.2".parse::<OrderId>().unwrap(), second);
        assert!("seven".parse::<OrderId>().is_err());
    }

    #[test]
    fn an_order_that_is_held_is_nobody_elses_and_one_that_is_gone_nobodys() {
        let (_folder, spool) = spool();
        let id = spool.add(Handle::new(7), &order("a")).unwrap();
        let held = spool.hold(id, false).unwrap();
        assert!(spool.hold(id, false).is_none());
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| spool.hold(id, true).is_some());
            spool.remove(id);
            drop(held);
            assert!(!waiter.join().unwrap());
        });
    }

    #[test]
    fn the_spool_is_bounded_and_counts_what_it_did_not_take() {
        let (_folder, spool) = spool();
        for _ in 0..MAX_ORDERS {
            spool.add(Handle::new(7), &order("a")).unwrap();
        }
        assert!(matches!(spool.add(Handle::new(7), &order("a")), Err(NotFiled::Full)));
        assert_eq!(spool.dropped(), 1);
        // Failed ones make room, the oldest first.
        for id in spool.ids().into_iter().take(MAX_FAILED + 2) {
            spool.note(id, &Progress { failed_at: Some(crate::clock::now_ms()), ..Progress::default() });
        }
        spool.add(Handle::new(7), &order("a")).unwrap();
        assert_eq!((spool.dropped(), spool.ids().len()), (1, MAX_ORDERS - 1));
    }

    #[test]
    fn an_order_that_is_too_large_keeps_its_newest_events() {
        let (_folder, spool) = spool();
        let mut large = order("x");
        large.events = (0..2000)
            .map(|n| Entry::about(Handle::new(7), None, EntryKind::Quiet, format!("{n}{}", "x".repeat(300))))
            .collect();
        let id = spool.add(Handle::new(7), &large).unwrap();
        let kept = spool.get(id).unwrap().order;
        assert_eq!(kept.left_out + kept.events.len(), 2000);
        assert!(kept.left_out > 0 && kept.events.last().unwrap().text.starts_with("1999"));
    }
}
