//! The heir, a supervisor: leads the terminal's session and sleeps. If the keeper dies, the kernel gives it
//! the job's processes, it already holds the terminal, the log and the socket, and it becomes the keeper.

use std::os::unix::net::UnixStream;

use outlast_pty::reap::{self, Change, End, Peeked};
use outlast_pty::signals;
use rustix::process::{Pid, Signal};

use super::core::{Input, receipt_of};
use super::inherited::{Inherited, system_error};
use super::start::{answer, describe_command, not_started, this_process};
use super::{Keeper, outbox_writer};
use crate::lifecycle::State;
use crate::wire::StartReply;

/// What wakes an heir: a child's end, and the word that input has ended.
pub(super) const WAKES: &[Signal] = &[Signal::CHILD, Signal::USR1];

/// Sleeps until the keeper is gone; takes over if it was not done. `client` is whoever started the job: told
/// by us, should the keeper die before it could. Returns this process's exit code.
pub(super) fn supervise(mut inherited: Inherited, keeper: Pid, client: UnixStream) -> i32 {
    loop {
        if inherited.shared.stdin_closed() {
            inherited.close_stdin();
        }
        if let Peeked::Change(Change::Ended(_, end)) = reap::peek(Some(keeper)) {
            reap::reap(keeper);
            return if end == End::Code(0) { 0 } else { take_over(inherited, client, end) };
        }
        let _ = signals::sleep_until(WAKES);
    }
}

fn take_over(mut inherited: Inherited, client: UnixStream, end: End) -> i32 {
    signals::block(WAKES, false);
    if matches!(end, End::Signal { signal, .. } if signal == Signal::KILL.as_raw()) {
        inherited.shared.requests.forgive_current();
    }
    let Ok(mut info) = inherited.job.info() else { return 1 };
    if info.state.is_live()
        && let Some((end, ended_at)) = inherited.shared.end()
    {
        // The keeper saw the end, and could not write it down.
        info.state = State::ended(receipt_of(end, ended_at, &info.state));
    }
    let ended = !info.state.is_live();
    if ended && reap::peek(None) == Peeked::NoChildren && outbox_writer::is_all_told(&inherited, &info) {
        // It had written everything but left in a hurry.
        inherited.remove_socket();
        return 0;
    }
    let Some(command) = inherited.shared.command().or_else(first_child) else {
        let error = system_error("the keeper", "was killed before it could start the command");
        answer(&client, &not_started(&inherited.job, info, error));
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
        info.state = State::Running { ending: None };
    }
    info.keeper = this_process();
    info.heir = None;
    info.takeovers += 1;
    let input_lost = inherited.shared.queued_input();
    inherited.take_up_guard();
    let Ok(mut keeper) = Keeper::new(inherited, info, command, false) else { return 1 };
    let record = keeper.inherited.job.open_to_rewrite(crate::registry::layout::INFO).ok();
    keeper.hold_record(record);
    let is_end_untold = ended && !outbox_writer::is_end_noted(&keeper.inherited.job);
    let untold_end = is_end_untold.then(|| keeper.last_line_of_transcript());
    keeper.feed(Input::TookOver { input_lost, untold_end });
    if !keeper.inherited.shared.answered() {
        answer(&client, &StartReply::Started(Box::new(keeper.core.info())));
        keeper.inherited.shared.set_answered();
    }
    // Whoever still waits for an answer of the dead on this line learns that it will not come.
    drop(client);
    keeper.reap_children();
    keeper.run();
    0
}

/// The keeper may have died in the moment between starting the command and telling us its number.
fn first_child() -> Option<Pid> {
    outlast_pty::procfs::children(rustix::process::getpid()).into_iter().next()
}
