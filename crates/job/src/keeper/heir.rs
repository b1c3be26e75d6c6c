//! The heir: leads the terminal's session and sleeps. If the keeper dies, the kernel gives it the job's
//! processes, it already holds the terminal, the log and the socket, and it becomes the keeper.

use std::os::unix::net::UnixStream;

use outlast_pty::reap::{self, Change, End, Peeked};
use outlast_pty::signals;
use rustix::process::{Pid, Signal};

use super::ground::Ground;
use super::ground::system_error;
use super::start::{answer, not_started, running, this_process};
use super::{Keeper, reaping, telling};
use crate::lifecycle::State;
use crate::registry::replace::Durability;
use crate::wire::StartReply;
use crate::wire::event::What;

/// What wakes an heir: a child's end, and the word that input has ended.
pub(super) const WAKES: &[Signal] = &[Signal::CHILD, Signal::USR1];

/// Sleeps until the keeper is gone; takes over if it was not done. `client` is whoever started the job: told by
/// us, should the keeper die before it could. Returns this process's exit code.
pub(super) fn sleep(mut ground: Ground, keeper: Pid, client: UnixStream) -> i32 {
    loop {
        if ground.shared.stdin_closed() {
            ground.close_stdin();
        }
        if let Peeked::Change(Change::Ended(_, end)) = reap::peek(Some(keeper)) {
            reap::reap(keeper);
            return if end == End::Code(0) { 0 } else { take_over(ground, client) };
        }
        let _ = signals::sleep_until(WAKES);
    }
}

fn take_over(mut ground: Ground, client: UnixStream) -> i32 {
    signals::block(WAKES, false);
    let Ok(mut info) = ground.job.info() else { return 1 };
    if info.state.is_live()
        && let Some((end, ended_at)) = ground.shared.end()
    {
        // The keeper saw the end, and could not write it down.
        info.state = State::ended(reaping::receipt_of(end, ended_at, &info.state));
    }
    let ended = !info.state.is_live();
    if ended && reap::peek(None) == Peeked::NoChildren && telling::is_all_told(&ground, &info) {
        // It had written everything but left in a hurry.
        ground.remove_socket();
        return 0;
    }
    let Some(command) = ground.shared.command().or_else(first_child) else {
        let error = system_error("the keeper", "was killed before it could start the command");
        answer(&client, &not_started(&ground.job, info, error));
        return 1;
    };
    if ground.shared.stdin_closed() {
        ground.close_stdin();
    }
    if let Ok(masks) = crate::secrets::read(&ground.job) {
        // What was typed as a secret since we fell asleep.
        ground.masks = crate::secrets::SharedMasks::new(masks.into());
    }
    if info.state == State::Starting {
        running(&ground, &mut info, command);
    }
    info.keeper = this_process();
    info.heir = None;
    info.takeovers += 1;
    let input_lost = ground.shared.queued_input();
    let Ok(mut keeper) = Keeper::new(ground, info, command) else { return 1 };
    let record = keeper.ground.job.open_to_rewrite(crate::registry::layout::INFO).ok();
    keeper.hold_record(record);
    keeper.heir_lives = false;
    keeper.forget_what_was_typed();
    // Whoever was attached comes again if they still can.
    keeper.settle_size(None);
    keeper.write_record(Durability::Process);
    keeper.event(What::TookOver { input_lost });
    if ended && !telling::is_end_noted(&keeper.ground.job) {
        // The receipt was on the disk, and its keeper was killed before it could tell of it.
        keeper.note_end();
    }
    if !keeper.ground.shared.answered() {
        answer(&client, &StartReply::Started(Box::new(keeper.info.clone())));
        keeper.ground.shared.set_answered();
    }
    // Whoever still waits for an answer of the dead on this line learns that it will not come.
    drop(client);
    keeper.look_at_children();
    keeper.run();
    0
}

/// The keeper may have died in the moment between starting the command and telling us its number.
fn first_child() -> Option<Pid> {
    outlast_pty::procfs::children(rustix::process::getpid()).into_iter().next()
}
