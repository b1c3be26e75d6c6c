//! Starts a keeper: runs a program again, or has one forked that is ready, hands it the order, waits for its one answer.

use std::io::{BufRead, BufReader, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, sendmsg};

use super::connection::Connection;
use crate::failure::{Failure, Kind};
use crate::registry::format::Info;
use crate::settings::Settings;
use crate::spec::{Input, KeeperSpec};
use crate::wakes::deliver;
use crate::wire::{PROTOCOL, StartOrder, StartReply, line};
use outlast_protocol::{Call, Hint};

/// The hidden verb: `PROGRAM keep HOME` becomes a keeper.
pub(crate) const KEEP: &str = "keep";
/// Its last word for a job in a sandbox: so that every keeper can see whose descendants it must not listen to.
pub(crate) const CONFINED: &str = "confined";

/// How long a start may take: a slow disk or a program on a network share needs its time. Less than a call of an agent may.
const START_TIMEOUT: Duration = Duration::from_secs(45);

/// This very program. On Linux it can be run again even after an upgrade has replaced its file.
pub(crate) fn own_program() -> PathBuf {
    if cfg!(all(target_os = "linux", not(outlast_portable))) {
        PathBuf::from("/proc/self/exe")
    } else {
        std::env::current_exe().unwrap_or_else(|_| "outlast".into())
    }
}

/// Becomes a keeper if that is what this program was started for, and never returns then. Call it first in
/// `main`, while there is only one thread.
pub fn keep_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(verb), Some(home)) = (arguments.next(), arguments.next()) else { return };
    let rest: Vec<std::ffi::OsString> = arguments.take(2).collect();
    let home = Path::new(&home);
    let code = match &rest[..] {
        [] if verb == KEEP => crate::keeper::keep(home),
        [confined] if verb == KEEP && confined == CONFINED => crate::keeper::keep(home),
        [whose] if verb == deliver::DELIVER => {
            let Some(scope) = whose.to_str().and_then(deliver::Scope::parse) else { return };
            deliver::run(home, scope)
        }
        _ => return,
    };
    #[expect(clippy::exit, reason = "a keeper or helper is another program that happens to share this file")]
    std::process::exit(code);
}

/// A process that will keep the next job, detached, and our end of its only line. It ends by itself when we are gone.
#[derive(Debug)]
pub(crate) struct Starter {
    line: UnixStream,
}

impl Starter {
    /// Runs the program again for a single job, and gives it the order at once: it is read when it is detached.
    pub(crate) fn run(
        home: &Path,
        program: &Path,
        confined: bool,
        order: &StartOrder,
    ) -> Result<Self, Failure> {
        let (line, mut first) = run(home, program, confined)?;
        let mut starter = Self { line };
        // Should it be gone already, there is its last word to read, or none.
        match order.spec.input {
            Input::Given => drop(starter.order_with_input(order)),
            Input::Typed | Input::Nothing => drop(starter.order(order)),
        }
        let _ = first.wait();
        Ok(starter)
    }

    /// Gives the order; false when nobody is there to take it.
    pub(crate) fn order(&mut self, order: &StartOrder) -> bool {
        self.line.write_all(&line(order)).is_ok()
    }

    /// Gives the order, and our standard input along with it.
    fn order_with_input(&mut self, order: &StartOrder) -> std::io::Result<()> {
        let order = line(order);
        let sent = pass(&self.line, rustix::stdio::stdin(), &order)?;
        self.line.write_all(&order[sent..])
    }

    /// The job's record, once the command runs; and the line to its keeper, who listens on.
    pub(crate) fn started(self) -> Result<(Info, Connection), Failure> {
        let deadline = Instant::now() + START_TIMEOUT;
        let mut lines = BufReader::new((&self.line).take(64 << 20));
        let mut claimed = None;
        let mut gave_up = false;
        loop {
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            let _ = self.line.set_read_timeout(Some(left));
            let mut text = Vec::new();
            let read = lines.read_until(b'\n', &mut text);
            match (read, serde_json::from_slice::<StartReply>(&text)) {
                (_, Ok(StartReply::Started(info))) => return Ok((*info, Connection::of_start(self.line))),
                (_, Ok(StartReply::Failed { handle, failure })) => {
                    return Err(explained(handle, failure.into()));
                }
                (_, Ok(StartReply::Claimed { handle })) => claimed = Some(handle),
                (Err(error), _) if error.kind() == std::io::ErrorKind::Interrupted => {}
                (Err(_), _) if !gave_up => {
                    // From now on the keeper can't say any more that it is about to start the command, and then it
                    // does not. What it has said by now can still be read.
                    gave_up = true;
                    let _ = self.line.shutdown(std::net::Shutdown::Both);
                }
                (Err(_) | Ok(_), Err(_)) => {
                    let waited = START_TIMEOUT.as_secs();
                    return Err(match claimed {
                        Some(handle) if gave_up => unknown(handle),
                        Some(_) | None if gave_up => {
                            broken(&format!("nothing was heard of it for {waited} s"))
                        }
                        Some(_) | None => broken("it ended without a word"),
                    });
                }
            }
        }
    }
}

/// Keepers for a client that starts many jobs: the program run again once, which then forks a keeper for each. It ends by
/// itself when we are gone.
#[derive(Debug, Default)]
pub(crate) struct Nursery {
    /// The line to it, and whether its keepers are marked as those of jobs in a sandbox.
    line: Option<(UnixStream, bool)>,
    /// Who will keep the next job, if somebody is ready.
    next: Option<Starter>,
}

impl Nursery {
    pub(crate) fn is_open(&self) -> bool {
        self.line.is_some()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.next.is_some()
    }

    /// Runs the program again, and waits until it has detached itself.
    pub(crate) fn open(&mut self, home: &Path, program: &Path, confined: bool) -> Result<(), Failure> {
        let (line, mut first) = run(home, program, confined)?;
        let _ = first.wait();
        self.line = Some((line, confined));
        Ok(())
    }

    /// Has a keeper made for the next job.
    pub(crate) fn get_ready(&mut self) {
        if self.next.is_none() {
            self.next = self.fork();
        }
    }

    /// A keeper that has taken the order, if there is one.
    pub(crate) fn order(&mut self, confined: bool, order: &StartOrder) -> Option<Starter> {
        if self.line.as_ref().is_none_or(|line| line.1 != confined) {
            return None;
        }
        let ordered = |mut starter: Starter| starter.order(order).then_some(starter);
        self.next.take().and_then(ordered).or_else(|| self.fork().and_then(ordered))
    }

    fn fork(&mut self) -> Option<Starter> {
        let (to, _) = self.line.as_ref()?;
        let forked = UnixStream::pair().and_then(|(line, theirs)| {
            pass(to, theirs.as_fd(), b"\n")?;
            Ok(Starter { line })
        });
        if forked.is_err() {
            // Gone: another is opened when there is time.
            self.line = None;
        }
        forked.ok()
    }
}

/// Passes a descriptor on, with as much of a text as fits; says how much that was.
fn pass(to: &UnixStream, end: BorrowedFd<'_>, text: &[u8]) -> std::io::Result<usize> {
    let ends = [end];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut along = SendAncillaryBuffer::new(&mut space);
    along.push(SendAncillaryMessage::ScmRights(&ends));
    Ok(sendmsg(to, &[IoSlice::new(text)], &mut along, outlast_pty::system::NO_SIGNAL)?)
}

/// Runs the program again: our end of the line to it, and the process that was run. That forks and leaves; who is at the
/// other end of the line is not our child.
fn run(home: &Path, program: &Path, confined: bool) -> Result<(UnixStream, Child), Failure> {
    let (line, theirs) =
        UnixStream::pair().map_err(|error| Failure::system("cannot make a socket pair", error))?;
    let null = || {
        let null = outlast_pty::open::dev_null();
        null.map(Stdio::from).map_err(|error| Failure::system("cannot open /dev/null", error))
    };
    let first = Command::new(program)
        // What `ps` shows.
        .arg0("outlast")
        .arg(KEEP)
        .arg(home)
        .args(confined.then_some(CONFINED))
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(null()?)
        .stderr(null()?)
        .spawn()
        .map_err(|error| Failure::system(format!("the keeper {} can't be run", program.display()), error))?;
    Ok((line, first))
}

/// What a keeper is told.
pub(crate) fn order(home: &Path, settings: &Settings, mut spec: KeeperSpec) -> StartOrder {
    if spec.wakes.is_empty() && settings.wakes.is_empty() {
        // Nobody is woken: an order need not carry the environment twice.
        spec.wake_env.clear();
    }
    StartOrder { protocol: PROTOCOL, home: home.to_owned(), spec, settings: settings.clone() }
}

fn explained(handle: Option<crate::spec::Handle>, failure: Failure) -> Failure {
    let Some(handle) = handle else { return failure };
    Failure { message: format!("job {handle} could not start: {}", failure.message), ..failure }
}

/// The keeper was about to start the command, and nothing was heard of it since.
fn unknown(handle: crate::spec::Handle) -> Failure {
    let said = format!("job {handle} may have been started, or may yet be: its keeper said nothing more");
    Failure::new(Kind::OutcomeUnknown, said)
        .hint(Hint::call("look before you start it again: ", Call::AllJobs))
}

fn broken(why: &str) -> Failure {
    Failure::new(Kind::Keeper, format!("the keeper did not start: {why}"))
        .hint(Hint::call("see what is wrong: ", Call::Doctor))
}
