//! Slots: places for jobs that must not all run at once. There is no daemon: the line is a folder of the home.
//!
//! A job has two named pipes in `slots/NAME`: `17.waits` while it is in line, `17.runs` while it has a place. Both are open and
//! locked in its keeper and its heir, so that the kernel says whether the job lives. Whoever waits opens the pipe of the job
//! before it, or, if it is the first, those of the jobs that have the places, and sleeps until one of them is written to or has
//! nobody left at its other end. So nothing polls, each change wakes one job or a few, and a keeper that is killed with its heir
//! frees its place.
//!
//! A pipe that is not in line yet has a dot before its name. Names change, and what is dead is removed, only under the lock of
//! the folder. The order is that of the jobs' numbers: first come, first served.

mod load;
mod pressure;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, flock, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::registry::{Home, layout};
use crate::spec::Handle;
use outlast_protocol::Queued;
use outlast_protocol::lifecycle::State;

pub(crate) use load::load;
pub(crate) use pressure::{LOOK_AGAIN, Pressure};

/// In the folder of a slot: locked while names change.
const LOCK: &str = "lock";
const WAITS: &str = "waits";
const RUNS: &str = "runs";

/// A job's two pipes in a slot, open in its keeper and in its heir.
#[derive(Debug)]
pub(crate) struct Ticket {
    slot: OwnedFd,
    handle: Handle,
    waits: OwnedFd,
    runs: OwnedFd,
}

/// What came of asking for a place.
#[derive(Debug)]
pub(crate) enum Place {
    /// It is the job's.
    Granted,
    /// One of these must change first.
    Taken(Vec<OwnedFd>),
}

/// A job in a slot, as its pipe's name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    handle: Handle,
    runs: bool,
}

impl Entry {
    fn name(self) -> String {
        format!("{}.{}", self.handle.number(), if self.runs { RUNS } else { WAITS })
    }

    fn parse(name: &str) -> Option<Self> {
        let (number, what) = name.split_once('.')?;
        let runs = match what {
            RUNS => true,
            WAITS => false,
            _ => return None,
        };
        Some(Self { handle: Handle::new(number.parse().ok()?), runs })
    }
}

impl Ticket {
    /// Makes the pipes of a job. It is not in line yet.
    pub(crate) fn make(home: &Home, slot: &str, handle: Handle) -> Result<Self, Errno> {
        let slot = open_slot(home, slot, true)?;
        let _lock = lock(&slot)?;
        remove_dead_hidden(&slot);
        let waits = make_pipe(&slot, &hidden(handle, false))?;
        let runs = make_pipe(&slot, &hidden(handle, true))?;
        Ok(Self { slot, handle, waits, runs })
    }

    /// Gets in line, unless it is already, and takes a place if fewer than `places` are taken and no job is before it.
    /// `may_take` is asked only then.
    pub(crate) fn ask(&self, places: u32, may_take: impl FnOnce() -> bool) -> Result<Place, Errno> {
        let _lock = lock(&self.slot)?;
        if self.has(true) {
            return Ok(Place::Granted);
        }
        if !self.has(false) {
            renameat(&self.slot, hidden(self.handle, false), &self.slot, self.own(false).name())?;
        }
        let mut before = None;
        let mut holders = Vec::new();
        for entry in entries(&self.slot)? {
            if entry.handle == self.handle || (!entry.runs && entry.handle > self.handle) {
                continue;
            }
            match open_living(&self.slot, entry)? {
                None => drop(unlinkat(&self.slot, entry.name(), AtFlags::empty())),
                Some(pipe) if entry.runs => holders.push(pipe),
                // In order: the last one is the job just before this one.
                Some(pipe) => before = Some(pipe),
            }
        }
        if let Some(before) = before {
            return Ok(Place::Taken(vec![before]));
        }
        if holders.len() >= places as usize {
            return Ok(Place::Taken(holders));
        }
        if !may_take() {
            return Ok(Place::Taken(Vec::new()));
        }
        renameat(&self.slot, hidden(self.handle, true), &self.slot, self.own(true).name())?;
        self.step_out(false);
        Ok(Place::Granted)
    }

    /// Gives the place back, or leaves the line. Whoever waits for that is told.
    pub(crate) fn leave(&self) {
        let Ok(_lock) = lock(&self.slot) else { return };
        for runs in [false, true] {
            let _ = unlinkat(&self.slot, hidden(self.handle, runs), AtFlags::empty());
            self.step_out(runs);
        }
    }

    fn step_out(&self, runs: bool) {
        let pipe = if runs { &self.runs } else { &self.waits };
        let _ = unlinkat(&self.slot, self.own(runs).name(), AtFlags::empty());
        // Our heir still has it open: a byte says what its end would say.
        let _ = rustix::io::write(pipe, b".");
    }

    fn own(&self, runs: bool) -> Entry {
        Entry { handle: self.handle, runs }
    }

    fn has(&self, runs: bool) -> bool {
        rustix::fs::statat(&self.slot, self.own(runs).name(), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }
}

fn hidden(handle: Handle, runs: bool) -> String {
    format!(".{}", Entry { handle, runs }.name())
}

fn open_slot(home: &Home, slot: &str, make: bool) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |dir: BorrowedFd<'_>, name: &str| {
        if make {
            match mkdirat(dir, name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
        openat(dir, name, flags, Mode::empty())
    };
    let slots = open(home.as_dir().as_fd(), layout::SLOTS)?;
    open(slots.as_fd(), slot)
}

/// Held for a few system calls at a time.
fn lock(slot: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(slot, LOCK, flags, Mode::RUSR | Mode::WUSR)?;
    rustix::io::retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))?;
    Ok(file)
}

fn make_pipe(slot: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    match outlast_pty::system::make_fifo(slot, name) {
        // Numbers are not used again, but a home may be an old copy.
        Err(Errno::EXIST) => {
            unlinkat(slot, name, AtFlags::empty())?;
            outlast_pty::system::make_fifo(slot, name)?;
        }
        made => made?,
    }
    // Both ends: it can be opened without waiting for a reader, and what is written stays.
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let pipe = openat(slot, name, flags, Mode::empty())?;
    flock(&pipe, FlockOperation::LockExclusive)?;
    Ok(pipe)
}

/// The jobs of a slot by number, each in line or with a place; some may be dead.
fn entries(slot: &OwnedFd) -> Result<Vec<Entry>, Errno> {
    let dir = Dir::read_from(slot)?;
    let parse = |name: &std::ffi::CStr| name.to_str().ok().and_then(Entry::parse);
    let mut entries: Vec<Entry> = dir.flatten().filter_map(|entry| parse(entry.file_name())).collect();
    entries.sort_unstable();
    Ok(entries)
}

/// Removes what dead jobs have left that were not in line yet, or had no place. Under the lock a pipe of a living job is
/// locked.
fn remove_dead_hidden(slot: &OwnedFd) {
    let Ok(dir) = Dir::read_from(slot) else { return };
    let hidden = dir.flatten().filter_map(|entry| {
        let name = entry.file_name().to_str().ok()?.to_owned();
        name.strip_prefix('.').and_then(Entry::parse).map(|_| name)
    });
    for name in hidden.collect::<Vec<String>>() {
        if matches!(open_pipe(slot, &name), Ok(None)) {
            let _ = unlinkat(slot, &name, AtFlags::empty());
        }
    }
}

/// The pipe of a job that lives. It is opened before its lock is looked at: the kernel lets go of the lock before it tells the
/// readers of a pipe that its last writer has left, so who finds it locked is told.
/// A pipe that cannot be looked at says nothing about its job.
fn open_living(slot: &OwnedFd, entry: Entry) -> Result<Option<OwnedFd>, Errno> {
    open_pipe(slot, &entry.name())
}

fn open_pipe(slot: &OwnedFd, name: &str) -> Result<Option<OwnedFd>, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let pipe = match openat(slot, name, flags, Mode::empty()) {
        Ok(pipe) => pipe,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error),
    };
    match flock(&pipe, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(None),
        Err(Errno::WOULDBLOCK) => Ok(Some(pipe)),
        Err(error) => Err(error),
    }
}

/// The living jobs of a slot: those that have a place, and those in line, the next one first.
fn members(slot: &OwnedFd) -> (Vec<Handle>, Vec<Handle>) {
    let all = entries(slot).unwrap_or_default();
    let living = all.into_iter().filter(|entry| !matches!(open_living(slot, *entry), Ok(None)));
    let (run, wait): (Vec<Entry>, Vec<Entry>) = living.partition(|entry| entry.runs);
    let handles = |entries: Vec<Entry>| entries.into_iter().map(|entry| entry.handle).collect();
    (handles(run), handles(wait))
}

/// Adds to the state of a queued job where it is in the line now.
pub(crate) fn locate(home: &std::path::Path, handle: Handle, state: &mut State) {
    if let State::Queued(queued) = state
        && let Ok(home) = Home::open(home)
    {
        Lines::of(&home).locate(handle, queued);
    }
}

/// The lines of a home, each looked at once: for lists of many queued jobs.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    home: &'a Home,
    seen: std::collections::BTreeMap<String, (Vec<Handle>, Vec<Handle>)>,
}

impl<'a> Lines<'a> {
    pub(crate) fn of(home: &'a Home) -> Self {
        Self { home, seen: std::collections::BTreeMap::new() }
    }

    /// Adds where a queued job is in its line.
    pub(crate) fn locate(&mut self, handle: Handle, queued: &mut Queued) {
        let Some(name) = &queued.slot else { return };
        let home = self.home;
        let (run, wait) = self
            .seen
            .entry(name.clone())
            .or_insert_with(|| open_slot(home, name, false).map(|slot| members(&slot)).unwrap_or_default());
        let at = wait.iter().position(|other| other.number() == handle.number());
        queued.position = at.and_then(|at| u32::try_from(at + 1).ok());
        queued.held_by = run.iter().map(|job| job.number()).collect();
        if at != Some(0) || run.len() >= queued.places.unwrap_or(1) as usize {
            queued.pressure = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(&folder.path().join("home")).unwrap();
        (folder, home)
    }

    fn is_told(pipes: &[OwnedFd]) -> bool {
        let mut fds: Vec<PollFd<'_>> = pipes.iter().map(|pipe| PollFd::new(pipe, PollFlags::IN)).collect();
        poll(&mut fds, Some(&Timespec::default())).unwrap() > 0
    }

    fn taken(place: Place) -> Vec<OwnedFd> {
        match place {
            Place::Taken(pipes) => pipes,
            Place::Granted => panic!("it got a place"),
        }
    }

    #[test]
    fn places_are_given_in_order_and_waiting_is_told_of_a_change() {
        let (_folder, home) = home();
        let ticket = |number| Ticket::make(&home, "build", Handle::new(number)).unwrap();
        let (first, second, third, fourth) = (ticket(1), ticket(2), ticket(3), ticket(4));
        assert!(matches!(first.ask(2, || true), Ok(Place::Granted)));
        assert!(matches!(second.ask(2, || true), Ok(Place::Granted)));
        let third_waits = taken(third.ask(2, || true).unwrap());
        assert_eq!(third_waits.len(), 2, "it is next: it waits for those with a place");
        let fourth_waits = taken(fourth.ask(2, || true).unwrap());
        assert_eq!(fourth_waits.len(), 1, "it waits for the one before it");
        assert!(!is_told(&third_waits) && !is_told(&fourth_waits));
        second.leave();
        assert!(is_told(&third_waits) && !is_told(&fourth_waits), "only the next one is woken");
        assert_eq!(taken(fourth.ask(2, || true).unwrap()).len(), 1, "nobody overtakes");
        assert!(matches!(third.ask(2, || true), Ok(Place::Granted)));
        assert!(is_told(&fourth_waits), "the one before it has its place");
        assert!(matches!(third.ask(2, || true), Ok(Place::Granted)), "asked again, it still has its place");
    }

    #[test]
    fn a_job_that_dies_frees_its_place_and_its_place_in_line() {
        let (_folder, home) = home();
        let ticket = |number| Ticket::make(&home, "build", Handle::new(number)).unwrap();
        let (first, second, third) = (ticket(1), ticket(2), ticket(3));
        assert!(matches!(first.ask(1, || true), Ok(Place::Granted)));
        let _ = taken(second.ask(1, || true).unwrap());
        let third_waits = taken(third.ask(1, || true).unwrap());
        // As when keeper and heir are killed: nobody removes anything.
        drop(second);
        assert!(is_told(&third_waits));
        let third_waits = taken(third.ask(1, || true).unwrap());
        drop(first);
        assert!(is_told(&third_waits));
        assert!(matches!(third.ask(1, || true), Ok(Place::Granted)));
        let slot = open_slot(&home, "build", false).unwrap();
        assert_eq!(
            entries(&slot).unwrap(),
            [Entry { handle: Handle::new(3), runs: true }],
            "what is dead is removed"
        );
    }

    #[test]
    fn what_killed_jobs_have_left_is_removed_by_the_next() {
        let (_folder, home) = home();
        let ticket = |number| Ticket::make(&home, "build", Handle::new(number)).unwrap();
        let living = ticket(1);
        drop(ticket(2));
        let running = ticket(3);
        assert!(matches!(running.ask(1, || true), Ok(Place::Granted)));
        drop(running);
        let _next = ticket(4);
        let slot = open_slot(&home, "build", false).unwrap();
        let names = Dir::read_from(&slot).unwrap().flatten();
        let names = names.map(|entry| entry.file_name().to_str().unwrap().to_owned());
        let mut names: Vec<String> =
            names.filter(|name| name.contains(".waits") || name.contains(".runs")).collect();
        names.sort_unstable();
        assert_eq!(names, [".1.runs", ".1.waits", ".4.runs", ".4.waits", "3.runs"]);
        drop(living);
    }

    #[test]
    fn a_job_that_had_to_wait_for_others_keeps_its_turn() {
        let (_folder, home) = home();
        let ticket = |number| Ticket::make(&home, "build", Handle::new(number)).unwrap();
        let (late, holder, early) = (ticket(1), ticket(2), ticket(3));
        assert!(
            matches!(holder.ask(1, || true), Ok(Place::Granted)),
            "who is not in line yet holds nobody up"
        );
        let _ = taken(early.ask(1, || true).unwrap());
        let _ = taken(late.ask(1, || true).unwrap());
        holder.leave();
        assert_eq!(taken(early.ask(1, || true).unwrap()).len(), 1, "the older job is before it now");
        assert!(matches!(late.ask(1, || true), Ok(Place::Granted)));
    }

    #[test]
    fn a_place_is_not_taken_while_the_machine_is_busy() {
        let (_folder, home) = home();
        let ticket = Ticket::make(&home, "build", Handle::new(1)).unwrap();
        assert!(taken(ticket.ask(1, || false).unwrap()).is_empty());
        let mut queued = Queued { slot: Some("build".into()), ..Queued::default() };
        Lines::of(&home).locate(Handle::new(1), &mut queued);
        assert_eq!(queued.position, Some(1));
        assert!(matches!(ticket.ask(1, || true), Ok(Place::Granted)));
    }
}
