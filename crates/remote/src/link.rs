//! The near end of a link: carries requests to a relay, and makes the connection anew when it is cut.
//!
//! One thread for each link owns the connection and everything that is not answered yet. After a cut it runs the same command again and asks
//! again: what only looks as it was, a wait from where it began and with the time that is left, an order under the same name. Nobody who
//! asked notices, but that it takes longer; and is told so.

mod connection;
pub(crate) mod pending;

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use outlast_job::client::{Also, Answered, Link, Tell, Waiting};
use outlast_job::request::{Request, Subscription};
use outlast_job::system::Bell;
use outlast_job::{Failure, Kind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::message::{Caller, Hello};
use connection::{Connection, Heard};
use pending::{Asked, Pending};

/// After a cut, the first try comes at once, and each other after twice the time of the one before.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const SLOWEST_RETRY: Duration = Duration::from_secs(5);
/// How long it may take until a relay answers.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// A relay that says nothing for as long while it is waited for is asked whether it is there …
const PING_AFTER: Duration = Duration::from_secs(5);
/// … and is gone if that does not help.
const PONG_TIMEOUT: Duration = Duration::from_secs(8);
/// A connection without anything to wait for still says this often that it is there …
pub(crate) const IDLE_PING: Duration = Duration::from_secs(60);
/// … and is closed after this long.
const IDLE_CLOSE: Duration = Duration::from_secs(600);
/// Who waits is told after this long without a connection, and then as often.
const NOTICE_AFTER: Duration = Duration::from_secs(2);
const NOTICE_EVERY: Duration = Duration::from_secs(10);

/// How a far machine is reached.
#[derive(Clone)]
pub struct LinkOptions {
    /// What it is called, for messages.
    pub name: String,
    /// What gives a pipe to a relay.
    pub dial: Dial,
    /// How long a request may wait for a connection that was cut. Waits go by their own time, and subscriptions wait without limit.
    pub patience: Duration,
    /// Who asks.
    pub caller: Caller,
    /// Told when somebody waits for the connection.
    pub notice: Option<Notice>,
}

/// What gives a pipe to a relay.
#[derive(Clone)]
pub enum Dial {
    /// A program, and its arguments: the pipe is its standard input and output.
    Command(Vec<String>),
    /// A call that gives the near end of a pipe, or says why there is none.
    Pipe(OpenPipe),
}

/// Opens a pipe to a relay. It may block while the relay is looked for.
pub type OpenPipe = Arc<dyn Fn() -> Result<UnixStream, Failure> + Send + Sync>;

impl fmt::Debug for Dial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => write!(f, "{command:?}"),
            Self::Pipe(_) => f.write_str("a pipe"),
        }
    }
}

/// How a waiting caller is told so.
pub type Notice = Arc<dyn Fn(&str) + Send + Sync>;

impl fmt::Debug for LinkOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkOptions")
            .field("name", &self.name)
            .field("dial", &self.dial)
            .finish_non_exhaustive()
    }
}

/// What is handed to the thread.
enum Command {
    Open(u32, Box<Pending>),
    Cancel(u32),
    Close,
}

#[derive(Debug)]
struct Mailbox {
    commands: Mutex<Vec<Command>>,
    wake: Bell,
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(id, _) => write!(f, "Open({id})"),
            Self::Cancel(id) => write!(f, "Cancel({id})"),
            Self::Close => f.write_str("Close"),
        }
    }
}

impl Mailbox {
    fn send(&self, command: Command) {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).push(command);
        self.wake.ring();
    }

    fn take(&self) -> Vec<Command> {
        self.wake.hear();
        std::mem::take(&mut *self.commands.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A link over a pipe to a relay. Nobody is contacted before something is asked.
#[derive(Debug)]
pub struct RelayLink {
    options: LinkOptions,
    running: Mutex<Option<Arc<Mailbox>>>,
    next: AtomicU32,
}

impl RelayLink {
    /// A link that opens its pipe when it is first used.
    #[must_use]
    pub fn new(options: LinkOptions) -> Self {
        Self { options, running: Mutex::default(), next: AtomicU32::new(1) }
    }

    fn open(&self, pending: Pending) -> Result<Waiting, Failure> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let mailbox = match &*running {
            Some(mailbox) => Arc::clone(mailbox),
            None => Arc::clone(running.insert(start(self.options.clone())?)),
        };
        drop(running);
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        mailbox.send(Command::Open(id, Box::new(pending)));
        Ok(Waiting::new(move || mailbox.send(Command::Cancel(id))))
    }
}

impl Drop for RelayLink {
    fn drop(&mut self) {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(mailbox) = running.take() {
            mailbox.send(Command::Close);
        }
    }
}

impl Link for RelayLink {
    fn begin(&self, masked: bool, request: Request, answered: Answered) -> Result<Waiting, Failure> {
        self.begin_with(masked, request, Also::default(), answered)
    }

    fn begin_with(
        &self,
        masked: bool,
        request: Request,
        also: Also,
        answered: Answered,
    ) -> Result<Waiting, Failure> {
        self.open(Pending::request(masked, request, also, answered, self.options.patience))
    }

    fn subscribe(&self, masked: bool, to: Subscription, tell: Tell) -> Result<Waiting, Failure> {
        self.subscribe_with(masked, to, Also::default(), tell)
    }

    fn subscribe_with(
        &self,
        masked: bool,
        to: Subscription,
        also: Also,
        tell: Tell,
    ) -> Result<Waiting, Failure> {
        let (opened, is_open) = mpsc::sync_channel(1);
        let waiting = self.open(Pending::subscription(masked, to, also, tell, opened))?;
        let late = |_| Err(unreachable(&self.options.name, "no answer"));
        is_open.recv_timeout(self.options.patience).unwrap_or_else(late)?;
        Ok(waiting)
    }
}

/// Runs the command once; what its relay says of itself.
///
/// # Errors
/// [`Kind::Unreachable`], with what the command said.
pub fn probe(options: &LinkOptions) -> Result<Hello, Failure> {
    let mut connection = Connection::run(options)?;
    let mut asked = Asked::default();
    let until = Instant::now() + CONNECT_TIMEOUT;
    loop {
        let mut fds = Vec::new();
        connection.poll(&mut fds);
        let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 100_000_000 }));
        drop(fds);
        let ended = match connection.hear(&mut asked) {
            Heard::End(why) => Some(why),
            _ if Instant::now() > until => Some("no answer".into()),
            Heard::Nothing | Heard::Something | Heard::Hello => None,
        };
        if let Some(why) = ended {
            return Err(unreachable(&options.name, &connection.end(why)));
        }
        if let Some(hello) = connection.hello.take() {
            return Ok(hello);
        }
    }
}

fn start(options: LinkOptions) -> Result<Arc<Mailbox>, Failure> {
    let broken = |error: &dyn fmt::Display| Failure::system("cannot start the thread of a link", error);
    let wake = Bell::new().map_err(|error| broken(&error))?;
    let mailbox = Arc::new(Mailbox { commands: Mutex::default(), wake });
    let ours = Arc::clone(&mailbox);
    std::thread::Builder::new()
        .name("link".into())
        .spawn(move || Thread::new(options).run(&ours))
        .map_err(|error| broken(&error))?;
    Ok(mailbox)
}

/// What the thread of a link knows.
struct Thread {
    options: LinkOptions,
    asked: Asked,
    connection: Option<Connection>,
    /// A relay has answered before: then a cut is not a reason to give up.
    was_there: bool,
    /// Since when there is no connection, although one is needed.
    gone_since: Option<Instant>,
    retry_at: Instant,
    retry_after: Duration,
    noticed_at: Option<Instant>,
    idle_since: Instant,
    /// Why there is no connection.
    why: String,
}

impl Thread {
    fn new(options: LinkOptions) -> Self {
        let now = Instant::now();
        Self {
            options,
            asked: Asked::default(),
            connection: None,
            was_there: false,
            gone_since: None,
            retry_at: now,
            retry_after: FIRST_RETRY,
            noticed_at: None,
            idle_since: now,
            why: String::new(),
        }
    }

    fn run(mut self, mailbox: &Mailbox) {
        loop {
            for command in mailbox.take() {
                match command {
                    Command::Open(id, pending) => self.open(id, *pending),
                    Command::Cancel(id) => {
                        if let Some(pending) = self.asked.remove(id) {
                            if let Some(connection) = &mut self.connection {
                                connection.cancel(id);
                            }
                            pending.cancelled();
                        }
                    }
                    // Who is still waiting is told by the channel that goes away with it.
                    Command::Close => return,
                }
            }
            let now = Instant::now();
            self.keep_connected(now);
            self.give_up_late(now);
            self.notify(now);
            self.sleep(mailbox);
        }
    }

    fn open(&mut self, id: u32, mut pending: Pending) {
        let may_go_first = pending.may_go_first();
        let is_there = |connection: &&mut Connection| connection.is_greeted || may_go_first;
        if let Some(connection) = self.connection.as_mut().filter(is_there) {
            connection.ask(id, &mut pending);
        }
        self.asked.insert(id, pending);
    }

    fn keep_connected(&mut self, now: Instant) {
        if !self.asked.is_empty() {
            self.idle_since = now;
        }
        let Some(connection) = &mut self.connection else {
            if !self.asked.is_empty() && now >= self.retry_at {
                self.connect(now);
            }
            return;
        };
        let silent = now.duration_since(connection.heard_at);
        let quiet = now.duration_since(connection.said_at);
        let is_idle = self.asked.is_empty();
        if !connection.is_greeted {
            if silent > CONNECT_TIMEOUT {
                self.cut("no answer".into());
            }
        } else if is_idle && now.duration_since(self.idle_since) > IDLE_CLOSE {
            self.connection = None;
        } else if let Some(at) = connection.pinged_at {
            if now.duration_since(at) > PONG_TIMEOUT {
                self.cut("it does not answer".into());
            }
        } else if quiet > IDLE_PING || !is_idle && silent > PING_AFTER {
            connection.ping(now);
        }
    }

    fn connect(&mut self, now: Instant) {
        self.gone_since.get_or_insert(now);
        match Connection::run(&self.options) {
            Ok(mut connection) => {
                // What only looks need not wait for the greeting: that saves the time of a way there and back.
                for (id, pending) in self.asked.all().filter(|(_, pending)| pending.may_go_first()) {
                    connection.ask(id, pending);
                }
                self.connection = Some(connection);
            }
            Err(failure) => self.cut(failure.message),
        }
    }

    /// The connection is gone, or could not be made.
    fn cut(&mut self, why: String) {
        let now = Instant::now();
        let was_connected = self.connection.as_ref().is_some_and(|connection| connection.is_greeted);
        self.why = match self.connection.take() {
            Some(connection) => connection.end(why),
            None => why,
        };
        if !self.was_there {
            let failure = unreachable(&self.options.name, &self.why);
            self.asked.fail_all(&failure);
            self.gone_since = None;
        } else if !self.asked.is_empty() {
            self.gone_since.get_or_insert(now);
        }
        if was_connected {
            // Those who show the jobs of this host learn that it is gone.
            self.asked.look_again();
        }
        self.retry_at = now + self.retry_after;
        self.retry_after = (self.retry_after * 2).min(SLOWEST_RETRY);
    }

    /// A relay is there: now it is asked for what must not be done twice.
    fn greeted(&mut self) {
        let is_again = std::mem::replace(&mut self.was_there, true);
        if let Some(connection) = &mut self.connection {
            for (id, pending) in self.asked.all().filter(|(_, pending)| !pending.may_go_first()) {
                connection.ask(id, pending);
            }
            if is_again {
                self.asked.look_again();
            }
        }
        self.retry_after = FIRST_RETRY;
        if self.noticed_at.take().is_some()
            && let (Some(since), Some(notice)) = (self.gone_since, &self.options.notice)
        {
            notice(&format!("{} is back after {} s", self.options.name, since.elapsed().as_secs()));
        }
        self.gone_since = None;
    }

    fn give_up_late(&mut self, now: Instant) {
        let (name, why, since) = (&self.options.name, &self.why, self.gone_since);
        self.asked.give_up_late(now, since, || unreachable(name, why));
    }

    fn notify(&mut self, now: Instant) {
        let (Some(since), Some(notice)) = (self.gone_since, &self.options.notice) else { return };
        if self.asked.is_empty() || !self.was_there {
            return;
        }
        let due = self.noticed_at.map_or(since + NOTICE_AFTER, |at| at + NOTICE_EVERY);
        if now >= due {
            self.noticed_at = Some(now);
            let gone = now.duration_since(since).as_secs();
            let why = if self.why.is_empty() { String::new() } else { format!(" ({})", self.why) };
            notice(&format!("waiting for {}: no connection for {gone} s{why}", self.options.name));
        }
    }

    /// Sleeps until something has come or is due, and takes what has come.
    fn sleep(&mut self, mailbox: &Mailbox) {
        let mut fds = vec![PollFd::new(&mailbox.wake, PollFlags::IN)];
        if let Some(connection) = &self.connection {
            connection.poll(&mut fds);
        }
        let due = [
            self.connection.is_none().then_some(self.retry_at).filter(|_| !self.asked.is_empty()),
            self.connection.as_ref().map(|connection| connection.due(self.asked.is_empty())),
            self.asked.first_late(self.gone_since),
            self.gone_since.map(|since| self.noticed_at.map_or(since + NOTICE_AFTER, |at| at + NOTICE_EVERY)),
        ];
        let timeout = due.into_iter().flatten().min().map(|at| {
            let left = at.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
            Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            }
        });
        let _ = poll(&mut fds, timeout.as_ref());
        drop(fds);
        let Some(connection) = &mut self.connection else { return };
        loop {
            match connection.hear(&mut self.asked) {
                Heard::Nothing => return,
                Heard::Hello => break self.greeted(),
                Heard::Something => {}
                Heard::End(why) => return self.cut(why),
            }
        }
    }
}

fn unreachable(name: &str, why: &str) -> Failure {
    let said = if why.is_empty() { "cannot be reached".into() } else { format!("cannot be reached: {why}") };
    Failure::new(Kind::Unreachable, said)
        .hint(format!("its jobs go on; see what is wrong: outlast host test {name}"))
}

/// For polls.
fn as_fds<'a>(fds: impl IntoIterator<Item = (&'a OwnedFd, PollFlags)>) -> impl Iterator<Item = PollFd<'a>> {
    fds.into_iter().map(|(fd, flags)| PollFd::from_borrowed_fd(fd.as_fd(), flags))
}
