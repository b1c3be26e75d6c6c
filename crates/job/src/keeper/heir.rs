//! The heir, a supervisor: leads the terminal's session and sleeps. If the keeper dies, the kernel gives it
//! the job's processes, it already holds the terminal, the log and the socket, and it becomes the keeper.
//!
//! Before it does, it makes an heir of its own: a child that holds the same, and a descriptor of the command. That one is no
//! ancestor of the job's processes, so should it have to take over, the kernel does not make it their parent; but it is told when
//! the command ends and how, knows the others by their mark, and goes on. What it can't keep is a terminal: that is hung up when
//! the leader of its session dies, no matter who else has it open.

use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use outlast_pty::detach::{ADOPTS_ORPHANS, Forked, become_subreaper, fork, leave};
use outlast_pty::reap::{self, Change, End, Peeked};
use outlast_pty::signals;
use outlast_pty::watched::{Watched, can_tell_ends};
use rustix::process::{Pid, Signal, getpid, getppid};

use super::core::{Input, receipt_of};
use super::inherited::{Inherited, system_error};
use super::queue::Queue;
use super::start::{answer, describe_command, not_started, process_of, this_process};
use super::{Keeper, Net, outbox_writer};
use crate::lifecycle::State;
use crate::registry::format::Info;
use crate::wire::StartReply;

/// What wakes an heir: a child's or a parent's end, and the word that input has ended.
pub(super) const WAKES: &[Signal] = &[Signal::CHILD, Signal::USR1];
/// How long it may take until a dead process is reaped, and the kernel says how it ended.
const REAPED_WITHIN: Duration = Duration::from_millis(200);

/// Sleeps until the keeper is gone; takes over if it was not done. `client` is the process that started the job: told
/// by us, should the keeper die before it could. Returns this process's exit code.
pub(super) fn supervise(mut inherited: Inherited, keeper: Pid, client: UnixStream) -> i32 {
    loop {
        if inherited.shared.stdin_closed() {
            inherited.close_stdin();
        }
        if let Peeked::Change(Change::Ended(_, end)) = reap::peek(Some(keeper)) {
            reap::reap(keeper);
            return if end == End::Code(0) { 0 } else { take_over(inherited, end, Role::Parent(client)) };
        }
        let _ = signals::sleep_until(WAKES);
    }
}

/// What we are to the command when its keeper has died.
enum Role {
    /// The kernel makes us its parent. The process that started the job may still wait for a word.
    Parent(UnixStream),
    /// We only see when it ends and how.
    Watcher(Watched),
}

fn take_over(mut inherited: Inherited, end: End, role: Role) -> i32 {
    let Ok(mut info) = inherited.job.info() else { return 1 };
    let mut unreadable = None;
    if matches!(end, End::Signal { signal, .. } if signal == Signal::KILL.as_raw()) {
        inherited.shared.requests.forgive_current();
    } else if let Some((channel, from, to)) = inherited.shared.interpreted() {
        // It was not killed: it died of something, and we would too.
        let of = if channel == 0 { &mut info.unreadable } else { &mut info.errors_unreadable };
        of.add(from, to);
        unreadable = Some((from, to));
    }
    inherited.shared.clear_interpreted();
    if info.state.is_live()
        && let Some((end, ended_at)) = inherited.shared.end()
    {
        // The keeper saw the end, and could not write it down.
        info.state = State::ended(receipt_of(end, ended_at, &info.state));
    }
    let ended = !info.state.is_live();
    if ended && has_left_nothing(&info, &role) && outbox_writer::is_all_told(&inherited, &info) {
        // It had written everything but left in a hurry.
        inherited.remove_socket();
        return 0;
    }
    // Where orphans are init's, nobody here would learn how the command ends: the job is lost, and says so.
    let command = inherited.shared.command().or_else(first_child).filter(|_| ended || ADOPTS_ORPHANS);
    let Some(command) = command else {
        inherited.let_go();
        if let Role::Parent(client) = role {
            let error = system_error("the keeper", "was killed before it could start the command");
            answer(&client, &not_started(&inherited.job, info, error));
        }
        return 1;
    };
    if inherited.shared.stdin_closed() {
        inherited.close_stdin();
    }
    if let Ok(masks) = crate::secrets::read(&inherited.job) {
        // What was typed as a secret since we fell asleep.
        inherited.masks = crate::secrets::SharedMasks::new(masks.into());
    }
    if info.state == State::Starting {
        describe_command(&inherited, &mut info, command);
        info.state = if inherited.queue.is_some() {
            // If it has its place already, it is let go on at once.
            State::Queued(Box::new(Queue::of(&inherited).described(&inherited)))
        } else {
            State::Running { ending: None }
        };
    }
    let (mut inherited, role, net) = make_heir(inherited, command, role);
    let (client, watched) = match role {
        Role::Parent(client) => (Some(client), None),
        Role::Watcher(watched) => (None, Some(watched)),
    };
    signals::block(WAKES, false);
    info.keeper = this_process();
    info.heir = net.and_then(process_of);
    info.takeovers += 1;
    let input_lost = inherited.shared.queued_input();
    let hung_up = watched.is_some() && info.has_terminal();
    inherited.take_up_guard();
    inherited.take_up_proxy(&info.allowed_hosts);
    let Ok(mut keeper) = Keeper::new(inherited, info, command, net.map_or(Net::None, Net::Child)) else {
        return 1;
    };
    if let Some(watched) = watched {
        keeper.watch_command(watched);
    }
    let record = keeper.inherited.job.open_to_rewrite(crate::registry::layout::INFO).ok();
    keeper.hold_record(record);
    let is_end_untold = ended && !outbox_writer::is_end_noted(&keeper.inherited.job);
    let untold_end = is_end_untold.then(|| keeper.last_line_of_transcript());
    let grace_end = keeper.inherited.shared.grace_end().map(|since| keeper.inherited.started + since);
    keeper.feed(Input::TookOver { input_lost, unreadable, untold_end, grace_end, hung_up });
    if let Some(client) = client
        && !keeper.inherited.shared.answered()
    {
        answer(&client, &StartReply::Started(Box::new(keeper.core.info())));
        keeper.inherited.shared.set_answered();
    }
    let left = keeper.core.state().queued().map(|queued| queued.after.clone());
    if let Some(left) = left {
        keeper.queue = Some(Queue::of(&keeper.inherited).only(&left));
        keeper.advance_queue();
    }
    keeper.plan_scope();
    // A caller that still waits for an answer of the dead on that line has learnt by now that it will not come.
    keeper.reap_children();
    keeper.run();
    0
}

/// Whether no process of a job that has ended is there any more.
fn has_left_nothing(info: &Info, role: &Role) -> bool {
    match role {
        Role::Parent(_) => reap::peek(None) == Peeked::NoChildren,
        Role::Watcher(_) => crate::local::leftover::living(info).is_empty(),
    }
}

/// Makes an heir for the process that we are about to be, if that could be told how the command ends.
fn make_heir(inherited: Inherited, command: Pid, role: Role) -> (Inherited, Role, Option<Pid>) {
    if !can_tell_ends() {
        return (inherited, role, None);
    }
    let watched = match &role {
        Role::Parent(_) => Watched::open(command),
        Role::Watcher(watched) => watched.try_clone(),
    };
    let Ok(watched) = watched else { return (inherited, role, None) };
    let parent = getpid();
    match fork() {
        Ok(Forked::Child) => {
            // The line to the process that started the job ends with the process that answers on it.
            drop(role);
            stand_by(inherited, watched, parent);
            leave()
        }
        Ok(Forked::Parent { child }) => (inherited, role, Some(child)),
        Err(_) => (inherited, role, None),
    }
}

/// Sleeps until our parent, the acting keeper, is gone; takes over if it was not done.
fn stand_by(mut inherited: Inherited, command: Watched, keeper: Pid) {
    outlast_pty::system::signal_when_parent_ends(Signal::CHILD);
    let watched = Watched::open(keeper);
    while getppid() == Some(keeper) {
        if inherited.shared.stdin_closed() {
            inherited.close_stdin();
        }
        let _ = signals::sleep_until(WAKES);
    }
    if inherited.shared.is_done() {
        return;
    }
    let _ = become_subreaper();
    let killed = End::Signal { signal: Signal::KILL.as_raw(), core: false };
    let end = watched.ok().and_then(|watched| end_of(&watched)).unwrap_or(killed);
    take_over(inherited, end, Role::Watcher(command));
}

/// How a process ended that is reaped by another.
fn end_of(watched: &Watched) -> Option<End> {
    let until = Instant::now() + REAPED_WITHIN;
    loop {
        let end = watched.end();
        if end.is_some() || Instant::now() >= until {
            return end;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The keeper may have died in the moment between starting the command and telling us its number.
fn first_child() -> Option<Pid> {
    let is_init = |pid: Pid| {
        outlast_pty::procfs::stat(pid).is_some_and(|process| outlast_pty::procfs::is_init(&process))
    };
    outlast_pty::procfs::children(getpid()).into_iter().find(|pid| !is_init(*pid))
}
