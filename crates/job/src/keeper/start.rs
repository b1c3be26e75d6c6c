//! How a keeper comes to be: a fork, an order on standard input, another fork, a command, and one answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use outlast_pty::detach::{Forked, become_subreaper, close_inherited, fork};
use outlast_pty::signals;
use outlast_pty::spawn::above_stdio;
use outlast_stream::Masks;
use rustix::process::{Signal, setsid};

use super::core::Input as CoreInput;
use super::guarding::GuardEnds;
use super::inherited::{Ends, Files, Inherited, system_error};
use super::nursery::{self, FirstWord};
use super::queue::{Queue, QueueEnds, Verdict};
use super::ready::{Made, Ready};
use super::shared::Shared;
use super::shell_ends::ShellEnds;
use super::{Keeper, Net, heir, outbox_writer};
use crate::clock::now_ms;
use crate::failure::{Failure, Kind};
use crate::lifecycle::{self, EndedBy, Outcome, Process, Receipt, StartError, State};
use crate::registry::format::Info;
use crate::registry::replace::Durability;
use crate::registry::{JobDir, layout, names, orders};
use crate::secrets::{self, SharedMasks};
use crate::settings::Settings;
use crate::spec::{Input, KeeperSpec, Run, Streams};
use crate::wire::{PROTOCOL, StartOrder, StartReply, WireFailure, line};

/// Signals that a terminal or a shell sends to whole groups; a keeper is not meant by any of them.
const NOT_FOR_US: &[Signal] = &[
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::PIPE,
    Signal::TSTP,
    Signal::TTIN,
    Signal::TTOU,
    Signal::XFSZ,
    Signal::TERM,
    Signal::USR2,
];

/// The kernel's limit for one argument, with the byte that ends it.
const MAX_ARGUMENT_BYTES: usize = 128 << 10;
/// What a keeper has open for a job, and as much again for clients and looks.
const DESCRIPTORS: u64 = 48;

/// Becomes a keeper, or the [nursery] of many: detaches, and hears on standard input which of the two.
/// Returns the exit code of whichever process this then is.
pub(crate) fn keep(home: &Path) -> i32 {
    close_inherited();
    // An heir is told of its keeper's end by SIGCHLD, which the process that started us may ignore.
    signals::reset_inherited();
    // Nor do its limits end us; the command gets them back.
    outlast_pty::heritage::set_aside();
    // Run by way of `/proc`, it would be called `exe` in every list of processes.
    outlast_pty::system::set_thread_name(c"outlast");
    signals::ignore(NOT_FOR_US);
    let Some(client) = take_client() else { return 2 };
    match fork() {
        Ok(Forked::Parent { .. }) => 0,
        Ok(Forked::Child) => {
            detach();
            match nursery::first_word(&client) {
                FirstWord::Nothing => 0,
                FirstWord::Order(begun, input) => keep_one(home, client, begun, input),
                FirstWord::Connection(line) => nursery::serve_forks(home, client, line),
            }
        }
        Err(error) => {
            answer(&client, &refused(None, Failure::system("cannot fork", error)));
            1
        }
    }
}

/// Makes what every job needs, and keeps the one that is ordered; `begun` is what was heard of the order
/// already. The order may come much later.
pub(super) fn keep_one(home: &Path, client: UnixStream, begun: Vec<u8>, input: Option<OwnedFd>) -> i32 {
    let _ = become_subreaper();
    // What is wrong with the home is told to the caller of an order.
    let ready = Ready::make(home).ok();
    match take_order(&client, begun) {
        Some(order) => become_heir(order, client, ready, input),
        None => {
            discard(ready);
            0
        }
    }
}

/// The client's end, off the three standard streams, which are freed for what programs expect there: nothing.
fn take_client() -> Option<UnixStream> {
    let client = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).ok()?;
    let null = outlast_pty::open::dev_null().ok()?;
    rustix::stdio::dup2_stdin(&null).ok()?;
    rustix::stdio::dup2_stdout(&null).ok()?;
    rustix::stdio::dup2_stderr(&null).ok()?;
    Some(UnixStream::from(client))
}

pub(super) fn detach() {
    let _ = setsid();
    // Environment and typed secrets are in our memory: no core file, and no other program looks into it.
    let _ = outlast_pty::detach::keep_memory_private();
    let _ = rustix::process::chdir("/");
}

/// Reads the order. None when the client is gone without giving one, or gave none that we understand.
fn take_order(client: &UnixStream, begun: Vec<u8>) -> Option<StartOrder> {
    let mut text = begun;
    if !text.ends_with(b"\n") {
        BufReader::new(client.take(64 << 20)).read_until(b'\n', &mut text).ok()?;
    }
    let order: StartOrder = serde_json::from_slice(&text).ok()?;
    if order.protocol != PROTOCOL {
        let said = format!("the client speaks protocol {}, this keeper {PROTOCOL}", order.protocol);
        answer(client, &refused(None, Failure::new(Kind::Keeper, said)));
        return None;
    }
    Some(order)
}

fn refused(job: Option<&JobDir>, failure: Failure) -> StartReply {
    StartReply::Failed { handle: job.map(JobDir::handle), failure: WireFailure::from(failure) }
}

/// Answers; false if the client is gone. Once its command runs, a job goes on all the same.
pub(super) fn answer(mut client: &UnixStream, reply: &StartReply) -> bool {
    client.write_all(&line(reply)).is_ok()
}

fn become_heir(order: StartOrder, client: UnixStream, ready: Option<Ready>, input: Option<OwnedFd>) -> i32 {
    let (mut inherited, info) = match prepare(order, ready, input) {
        Ok(prepared) => prepared,
        Err(reply) => {
            answer(&client, &reply);
            return 1;
        }
    };
    // Held back until somebody sleeps for them: none is lost between two looks.
    signals::block(heir::WAKES, true);
    match fork() {
        Ok(Forked::Child) => {
            signals::block(heir::WAKES, false);
            become_keeper(inherited, info, client)
        }
        Ok(Forked::Parent { child }) => {
            inherited.let_go_of_given();
            heir::supervise(inherited, child, client)
        }
        Err(error) => {
            let error = system_error("cannot fork", error);
            answer(&client, &not_started(&inherited.job, info, error));
            1
        }
    }
}

fn discard(ready: Option<Ready>) {
    if let Some(ready) = ready {
        ready.discard();
    }
}

/// Claims the job and opens all that it needs.
fn prepare(
    order: StartOrder,
    ready: Option<Ready>,
    input: Option<OwnedFd>,
) -> Result<(Inherited, Info), StartReply> {
    let StartOrder { home, spec, settings, .. } = order;
    let ready = match ready {
        Some(ready) if ready.home.path() == home => ready,
        other => {
            discard(other);
            Ready::make(&home).map_err(|failure| refused(None, failure))?
        }
    };
    let checked = check(&ready, &spec, &settings);
    let masks = match checked {
        Ok(masks) => masks,
        Err(failure) => {
            ready.discard();
            return Err(refused(None, failure));
        }
    };
    let Ready { home, fresh, made, terminal, heir } = ready;
    let (job, mut info, lock) =
        fresh.claim(&home, &spec, now_ms()).map_err(|failure| refused(None, failure))?;
    info.heir = heir;
    let shell = spec.shell.as_ref().map(|shell| names::of_shell(&shell.scope, &shell.name));
    if let Some(name) = spec.name.as_ref().or(shell.as_ref())
        && let Err(failure) = names::take(&home, name, job.handle())
    {
        return Err(not_started(&job, info, failure.into()));
    }
    if let Some(order) = &spec.order
        && let Err(error) = orders::note_job(&home, order, job.handle())
    {
        return Err(not_started(&job, info, system_error("cannot note the order", error)));
    }
    // Times are counted from the moment that the record names, however long the disk took since.
    let since = Duration::from_millis(now_ms().saturating_sub(info.created_at));
    let started = Instant::now().checked_sub(since).unwrap_or_else(Instant::now);
    match open_rest(&job, &spec, &settings, terminal).and_then(|rest| Ok((rest, to_read(&spec, input)?))) {
        Ok((Rest { mut ends, stderr, shared }, mut input)) => {
            ends.read_instead(&mut input);
            if let Ends::Terminal { slave, .. } = &ends
                && let Err(error) = rustix::process::ioctl_tiocsctty(slave)
            {
                return Err(not_started(&job, info, system_error("cannot lead the terminal", error)));
            }
            let Made { output, timing, events, listener } = made;
            let masks = SharedMasks::new(masks.into());
            let asks = spec.guard.is_some() || spec.reaches_hosts();
            let guard_ends = match asks.then(GuardEnds::open).transpose() {
                Ok(ends) => ends,
                Err(error) => {
                    return Err(not_started(&job, info, system_error("cannot open a socket", error)));
                }
            };
            let shell = match spec.shell.as_ref().map(ShellEnds::open).transpose() {
                Ok(shell) => shell,
                Err(error) => {
                    return Err(not_started(&job, info, system_error("cannot open a socket", error)));
                }
            };
            let queue = match QueueEnds::open(&home, job.handle(), &spec) {
                Ok(queue) => queue,
                Err(error) => {
                    return Err(not_started(&job, info, system_error("cannot use the slot", error)));
                }
            };
            let inherited = Inherited {
                home,
                job,
                settings,
                spec,
                started,
                ends,
                input,
                output,
                stderr,
                timing,
                events,
                listener,
                shared,
                masks,
                guard_ends,
                guard: None,
                proxy: None,
                shell,
                queue,
                _lock: lock,
            };
            Ok((inherited, info))
        }
        Err(error) => Err(not_started(&job, info, error)),
    }
}

/// Whether the order can be carried out at all; and what must be hidden, which is written down before anybody
/// can look.
fn check(ready: &Ready, spec: &KeeperSpec, settings: &Settings) -> Result<Masks, Failure> {
    check_descriptors()?;
    check_length(&spec.run)?;
    if let Some(name) = &spec.name {
        names::check_free(&ready.home, name)?;
    }
    let mut masks = secrets::of_job(&spec.env, &settings.secrets);
    secrets::write_first(&ready.fresh.job, &masks)
        .map_err(|error| Failure::system("cannot make the job's files", error))?;
    secrets::share(ready.home.path(), &spec.env, &settings.secrets);
    secrets::add_those_of_home(ready.home.path(), &mut masks);
    Ok(masks)
}

/// A keeper that could still start its command, but no longer write down how it ended, must not start it.
fn check_descriptors() -> Result<(), Failure> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    match limit.filter(|limit| *limit < DESCRIPTORS) {
        None => Ok(()),
        Some(limit) => {
            let said =
                format!("only {limit} files may be open at once here, and a keeper needs {DESCRIPTORS}");
            Err(Failure::new(Kind::CannotStart, said).hint("raise the limit first: ulimit -n 1024"))
        }
    }
}

/// What is too long to be executed is refused before there is a record that holds it.
fn check_length(run: &Run) -> Result<(), Failure> {
    let longest = match run {
        Run::Shell(line) => line.len(),
        Run::Program(words) => words.iter().map(String::len).max().unwrap_or(0),
    };
    if longest < MAX_ARGUMENT_BYTES {
        return Ok(());
    }
    let said =
        format!("a word of the command is {longest} bytes long, and this system takes {MAX_ARGUMENT_BYTES}");
    Err(Failure::new(Kind::CannotStart, said)
        .hint("write the data to a file, and give the command that file's name"))
}

/// What only the order tells how to open.
struct Rest {
    ends: Ends,
    stderr: Option<Files>,
    shared: Shared,
}

fn open_rest(
    job: &JobDir,
    spec: &KeeperSpec,
    settings: &Settings,
    terminal: Option<Ends>,
) -> Result<Rest, StartError> {
    let files = |error| system_error("cannot make the job's files", error);
    let stderr = match spec.streams {
        Streams::Terminal(_) => None,
        Streams::Pipes => Some(Files::open(job, layout::ERRORS, layout::ERROR_TRANSCRIPT).map_err(files)?),
    };
    Ok(Rest {
        stderr,
        shared: Shared::new().map_err(|error| system_error("cannot map shared memory", error))?,
        ends: match (spec.streams, terminal) {
            (Streams::Terminal(size), Some(terminal)) if terminal.is_terminal_of(size) => terminal,
            (streams, _) => Ends::open(streams, settings.secrets.redact_log)?,
        },
    })
}

/// What the job reads, where that is not what is typed.
fn to_read(spec: &KeeperSpec, input: Option<OwnedFd>) -> Result<Option<OwnedFd>, StartError> {
    match spec.input {
        Input::Typed => Ok(None),
        Input::Given | Input::Nothing => {
            let unusable = "cannot open its input";
            let input = match input {
                Some(input) => input,
                None => outlast_pty::open::dev_null().map_err(|error| system_error(unusable, error))?,
            };
            above_stdio(input).map(Some).map_err(|error| system_error(unusable, error))
        }
    }
}

/// Writes the receipt of a job that never ran.
pub(super) fn not_started(job: &JobDir, mut info: Info, error: StartError) -> StartReply {
    let failure = Failure::new(Kind::CannotStart, error.message.clone()).hint(error.hint.clone());
    info.state = State::ended(Receipt {
        outcome: Outcome::NotStarted { error },
        ended_at: now_ms(),
        ended_by: EndedBy::Itself,
        left_behind: Vec::new(),
        used: None,
    });
    let _ = job.write_info(&info, Durability::Process);
    let _ = rustix::fs::unlinkat(job.as_fd(), layout::SOCKET, rustix::fs::AtFlags::empty());
    refused(Some(job), failure)
}

fn become_keeper(mut inherited: Inherited, mut info: Info, client: UnixStream) -> i32 {
    let _ = become_subreaper();
    // Before the command can close its own folder.
    let record = inherited.job.open_to_rewrite(layout::INFO).ok();
    // A caller that gave up waiting was told that nothing was started. That must stay true.
    if !answer(&client, &StartReply::Claimed { handle: info.handle }) {
        inherited.let_go();
        not_started(&inherited.job, info, system_error("nothing was started", crate::spec::CALLER_GONE));
        return 0;
    }
    outbox_writer::save_wakes(&inherited);
    let queue = match first_look(&inherited) {
        Ok(queue) => queue,
        Err(failure) => {
            let kind = failure.kind;
            inherited.let_go();
            let mut reply = not_started(&inherited.job, info, failure.into());
            if let StartReply::Failed { failure, .. } = &mut reply {
                failure.kind = kind.name().into();
            }
            answer(&client, &reply);
            return 0;
        }
    };
    let pid = match inherited.spawn(&mut info, queue.is_some()) {
        Ok(pid) => pid,
        Err(error) => {
            inherited.let_go();
            answer(&client, &not_started(&inherited.job, info, error));
            return 0;
        }
    };
    // Looks at a prompt are microseconds apart. Only now: the command's own timers are as they were.
    outlast_pty::system::set_timer_slack(1_000);
    info.keeper = this_process();
    describe_command(&inherited, &mut info, pid);
    match Keeper::new(inherited, info, pid, Net::Parent) {
        Ok(mut keeper) => {
            keeper.hold_record(record);
            keeper.plan_reserve();
            keeper.introduce_shell();
            match queue {
                None => keeper.feed(CoreInput::Started { command: pid }),
                Some(queue) => {
                    let queued = Box::new(queue.described(&keeper.inherited));
                    keeper.queue = Some(queue);
                    keeper.feed(CoreInput::Queued { command: Some(pid), queued });
                }
            }
            answer(&client, &StartReply::Started(Box::new(keeper.core.info())));
            keeper.inherited.shared.set_answered();
            // Who starts a job mostly has more to say about it.
            keeper.peers.adopt(client);
            keeper.prepare_files();
            keeper.plan_scope();
            // A command that ended before we listened for it has already sent its only signal.
            keeper.reap_children();
            keeper.run();
            0
        }
        // The heir finds the command among its children, and goes on.
        Err(_) => 1,
    }
}

/// Looks whether the job may run at once; if not, what it waits for.
///
/// # Errors
/// It never may, or was not to be queued.
fn first_look(inherited: &Inherited) -> Result<Option<Queue>, Failure> {
    if inherited.queue.is_none() {
        return Ok(None);
    }
    let mut queue = Queue::of(inherited);
    match queue.look(inherited, Instant::now()) {
        Verdict::Admitted => Ok(None),
        Verdict::Refused(error) => Err(Failure::new(Kind::CannotStart, error.message).hint(error.hint)),
        Verdict::Waits if inherited.spec.slot.as_ref().is_some_and(|slot| slot.or_refuse) => {
            Err(busy(&queue.described(inherited)))
        }
        Verdict::Waits => Ok(Some(queue)),
    }
}

/// There is no place now, and the job was not to be queued.
pub(crate) fn busy(queued: &outlast_protocol::Queued) -> Failure {
    let slot = queued.slot.as_deref().unwrap_or_default();
    let why = queued.pressure.clone().unwrap_or_else(|| "all its places are taken".into());
    Failure::new(Kind::Busy, format!("there is no place in slot {slot}: {why}"))
        .hint("try later, on another host, or let it be queued")
}

/// The command runs: what the record says of it from now on.
pub(super) fn describe_command(inherited: &Inherited, info: &mut Info, command: rustix::process::Pid) {
    info.endpoints = inherited.endpoints();
    info.process = outlast_pty::procfs::stat(command).map(lifecycle::process);
}

pub(super) fn this_process() -> Option<Process> {
    process_of(rustix::process::getpid())
}

pub(super) fn process_of(pid: rustix::process::Pid) -> Option<Process> {
    outlast_pty::procfs::stat(pid).map(lifecycle::process)
}
