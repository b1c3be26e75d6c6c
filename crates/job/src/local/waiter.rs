//! One thread for all waits and subscriptions of a program that holds many, such as a server.
//!
//! It polls the connections to keepers and one inotify instance, and calls back what was handed to it. A callback runs in
//! this thread, so it must not block: it hands the result on. The thread starts with the first wait and ends with its
//! [`Waiter`]. `poll` is enough here: a thousand descriptors cost it a tenth of a millisecond.

use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use outlast_pty::system::Bell;
use rustix::event::{PollFd, PollFlags, poll};

use super::attach::LocalView;
use super::folders::{FolderKind, Folders};
use super::follow::{LocalFollower, News};
use super::wait::{PendingWait, Progress};
use crate::clock::{earliest, time_until};
use crate::failure::Failure;
use crate::wire::Waited;

/// How a wait is told that it is over: with the number of the job that ended it.
pub(crate) type Done = Box<dyn FnOnce(Result<(usize, Waited), Failure>) + Send>;
/// How a subscriber is told; false when it wants no more.
pub(crate) type Tell = Box<dyn FnMut(News) -> bool + Send>;

/// What is handed to the thread.
enum Command {
    Wait { wait: PendingWait, done: Done },
    Follow { followed: Followed, tell: Tell },
    Folder { kind: FolderKind, tell: Tell },
    Cancel,
}

/// What is asked of the thread, and how it is woken.
struct Mailbox {
    commands: Mutex<Vec<(u64, Command)>>,
    wake: Bell,
    /// Nobody can ask any more.
    closed: AtomicBool,
}

impl Mailbox {
    fn send(&self, id: u64, command: Command) {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).push((id, command));
        self.wake.ring();
    }

    fn take(&self) -> Vec<(u64, Command)> {
        self.wake.hear();
        std::mem::take(&mut *self.commands.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").field("wake", &self.wake).finish_non_exhaustive()
    }
}

/// The thread, once there is one.
#[derive(Debug, Default)]
pub(crate) struct Waiter {
    running: Mutex<Option<Arc<Mailbox>>>,
    next_id: AtomicU64,
}

/// Ends a wait or a subscription when it is dropped. A wait is then over as if its time were up.
#[must_use = "what it stands for is cancelled when it is dropped"]
pub struct Waiting {
    cancel: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl Waiting {
    /// Something that is ended by this call.
    pub fn new(cancel: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self { cancel: Some(Box::new(cancel)) }
    }

    /// Something that is over already.
    pub fn over() -> Self {
        Self { cancel: None }
    }

    /// Lets it go on without anybody who could end it.
    pub fn detach(mut self) {
        self.cancel = None;
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").finish_non_exhaustive()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(cancel) = self.cancel.take() {
            cancel();
        }
    }
}

impl Waiter {
    pub(crate) fn wait(&self, wait: PendingWait, done: Done) -> Result<Waiting, Failure> {
        self.send(Command::Wait { wait, done })
    }

    pub(crate) fn follow(&self, followed: Followed, tell: Tell) -> Result<Waiting, Failure> {
        self.send(Command::Follow { followed, tell })
    }

    pub(crate) fn folder(&self, kind: FolderKind, tell: Tell) -> Result<Waiting, Failure> {
        self.send(Command::Folder { kind, tell })
    }

    fn send(&self, command: Command) -> Result<Waiting, Failure> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let mailbox = match &*running {
            Some(mailbox) => Arc::clone(mailbox),
            None => Arc::clone(running.insert(start()?)),
        };
        drop(running);
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        mailbox.send(id, command);
        let mailbox = Arc::downgrade(&mailbox);
        Ok(Waiting::new(move || {
            if let Some(mailbox) = Weak::upgrade(&mailbox) {
                mailbox.send(id, Command::Cancel);
            }
        }))
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(mailbox) = running.take() {
            mailbox.closed.store(true, Ordering::SeqCst);
            mailbox.wake.ring();
        }
    }
}

fn start() -> Result<Arc<Mailbox>, Failure> {
    let broken = |error: &dyn fmt::Display| Failure::system("cannot start the waiting thread", error);
    let wake = Bell::new().map_err(|error| broken(&error))?;
    let mailbox = Arc::new(Mailbox { commands: Mutex::default(), wake, closed: AtomicBool::new(false) });
    let ours = Arc::clone(&mailbox);
    std::thread::Builder::new()
        .name("waiter".into())
        .spawn(move || Table::default().run(&ours))
        .map_err(|error| broken(&error))?;
    Ok(mailbox)
}

/// A job whose news are passed on.
#[derive(Debug)]
pub(crate) enum Followed {
    Job(LocalFollower),
    /// With its terminal.
    View(LocalView),
}

impl Followed {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Job(follower) => follower.fd(),
            Self::View(view) => Some(view.fd()),
        }
    }

    fn next_now(&mut self) -> Result<Option<News>, Failure> {
        match self {
            Self::Job(follower) => follower.next_now(),
            Self::View(view) => view.next_news(),
        }
    }
}

/// All that is waited for.
#[derive(Default)]
struct Table {
    waits: BTreeMap<u64, Entry>,
    followers: BTreeMap<u64, (Followed, Tell)>,
    folders: Folders,
}

struct Entry {
    wait: PendingWait,
    done: Done,
    /// When to look at it again, whatever its connections say.
    wake_at: Option<Instant>,
}

/// What a polled descriptor belongs to.
#[derive(Clone, Copy)]
enum Source {
    Mailbox,
    Folders,
    Wait(u64),
    Follower(u64),
}

impl Table {
    fn run(mut self, mailbox: &Mailbox) {
        loop {
            for (id, command) in mailbox.take() {
                self.obey(id, command);
            }
            if mailbox.closed.load(Ordering::SeqCst) {
                return;
            }
            for source in self.sleep(mailbox) {
                match source {
                    Source::Mailbox => {}
                    Source::Folders => self.folders.read(),
                    Source::Wait(id) => self.advance(id),
                    Source::Follower(id) => self.pass_on(id),
                }
            }
            let now = Instant::now();
            let is_due = |entry: &Entry| entry.wake_at.is_some_and(|at| at <= now);
            let due: Vec<u64> = self.waits.iter().filter(|(_, one)| is_due(one)).map(|(id, _)| *id).collect();
            due.into_iter().for_each(|id| self.advance(id));
            self.folders.look_if_due(now);
        }
    }

    fn obey(&mut self, id: u64, command: Command) {
        match command {
            Command::Wait { wait, done } => {
                self.waits.insert(id, Entry { wait, done, wake_at: None });
                self.advance(id);
            }
            Command::Follow { followed, tell } => {
                self.followers.insert(id, (followed, tell));
                self.pass_on(id);
            }
            Command::Folder { kind, tell } => self.folders.add(id, kind, tell),
            Command::Cancel => {
                if let Some(Entry { wait, done, .. }) = self.waits.remove(&id) {
                    done(Ok((0, wait.give_up())));
                }
                self.followers.remove(&id);
                self.folders.remove(id);
            }
        }
    }

    /// Sleeps until something has come or is due; says where from.
    fn sleep(&self, mailbox: &Mailbox) -> Vec<Source> {
        let mut sources = vec![Source::Mailbox];
        let mut fds = vec![mailbox.wake.as_fd()];
        let mut add = |source, fd| {
            sources.push(source);
            fds.push(fd);
        };
        self.folders.fd().into_iter().for_each(|fd: BorrowedFd<'_>| add(Source::Folders, fd));
        let mut wake_at = self.folders.look_at();
        for (id, entry) in &self.waits {
            entry.wait.fds().for_each(|fd| add(Source::Wait(*id), fd));
            wake_at = earliest(wake_at, entry.wake_at);
        }
        for (id, (followed, _)) in &self.followers {
            followed.fd().into_iter().for_each(|fd| add(Source::Follower(*id), fd));
        }
        let mut fds: Vec<PollFd<'_>> =
            fds.into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let timeout = wake_at.map(time_until);
        let _ = poll(&mut fds, timeout.as_ref());
        let ready = fds.iter().zip(&sources).filter(|(fd, _)| !fd.revents().is_empty());
        ready.map(|(_, source)| *source).collect()
    }

    fn advance(&mut self, id: u64) {
        let Some(entry) = self.waits.get_mut(&id) else { return };
        let ended = match entry.wait.advance() {
            Ok(Progress::Waiting) => {
                entry.wake_at = entry.wait.wake_at();
                return;
            }
            Ok(Progress::Ended(which, waited)) => Ok((which, *waited)),
            Ok(Progress::SearchFiles) => return self.search_files(id),
            Err(failure) => Err(failure),
        };
        if let Some(entry) = self.waits.remove(&id) {
            (entry.done)(ended);
        }
    }

    /// A keeper vanished, and a pattern is to be looked for in what may be a large log: not in this thread.
    fn search_files(&mut self, id: u64) {
        let Some(Entry { wait, done, .. }) = self.waits.remove(&id) else { return };
        let done = Arc::new(Mutex::new(Some(done)));
        let in_thread = Arc::clone(&done);
        let tell = move |done: &Mutex<Option<Done>>, ended| {
            if let Some(done) = done.lock().unwrap_or_else(PoisonError::into_inner).take() {
                done(ended);
            }
        };
        let spawned = std::thread::Builder::new()
            .name("search".into())
            .spawn(move || tell(&in_thread, super::wait::wait_any(wait, None)));
        if let Err(error) = spawned {
            tell(&done, Err(Failure::system("cannot start a thread to search a log", error)));
        }
    }

    fn pass_on(&mut self, id: u64) {
        let Some((followed, tell)) = self.followers.get_mut(&id) else { return };
        let mut wanted = true;
        while wanted {
            wanted = match followed.next_now() {
                Ok(Some(News::Over)) | Err(_) => {
                    tell(News::Over);
                    false
                }
                Ok(Some(news)) => tell(news),
                Ok(None) => return,
            };
        }
        self.followers.remove(&id);
    }
}
