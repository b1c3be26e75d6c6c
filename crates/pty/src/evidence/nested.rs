//! Follows relays: programs that hold the master of a terminal of their own and pass on what is typed.
//!
//! `sudo`, `script`, `rlwrap`, `expect` and `tmux` sit between the job's terminal and the one that the real
//! reader has. Whether the job waits is then decided at the inner one.

use rustix::process::Pid;

use super::terminal::{Modes, TtyIndex};
use super::threads::Seen;
use super::verdict::{Found, Judge, Terminal};

/// Relays inside relays are followed this deep.
const DEEPEST: u32 = 4;

/// Judges the terminals behind a relay. With several of them (a multiplexer's windows) it waits only when none of
/// them is at work: which one is in view is not to be known from outside.
pub(super) fn judge_inner(
    judge: &mut Judge<'_>,
    seen: &[Seen],
    relay: Pid,
    inner: &[TtyIndex],
    depth: u32,
) -> Found {
    if depth >= DEEPEST {
        return Found::Nobody;
    }
    let elsewhere = not_yet_seen(judge, seen, relay);
    let all;
    let seen = if elsewhere.is_empty() {
        seen
    } else {
        all = [seen, &elsewhere].concat();
        &all
    };
    let mut waits = None;
    let mut otherwise = None;
    for index in inner {
        let Some(terminal) = inner_terminal(seen, *index, depth + 1) else { continue };
        match judge.judge(seen, &terminal) {
            found @ (Found::Waits(..) | Found::Unconfirmed) => waits = Some(found),
            Found::Nobody => {}
            found => otherwise = Some(found),
        }
    }
    match (waits, otherwise) {
        (_, Some(Found::Busy)) => Found::Busy,
        (Some(waits), None) => waits,
        (_, Some(otherwise)) => otherwise,
        (None, None) => Found::Nobody,
    }
}

/// The children of a relay that is none of the job's own processes: a multiplexer that ran before.
fn not_yet_seen(judge: &mut Judge<'_>, seen: &[Seen], relay: Pid) -> Vec<Seen> {
    let has_child = seen.iter().any(|seen| seen.process.ppid == Some(relay));
    if has_child {
        return Vec::new();
    }
    let mut processes = Vec::new();
    judge.looker.reader.descendants(relay, &mut processes);
    processes.retain(|process| !seen.iter().any(|seen| seen.process.pid == process.pid));
    processes.into_iter().map(|process| judge.looker.look(process)).collect()
}

/// A terminal as seen by those who have it for their own; `None` when nobody has.
fn inner_terminal(seen: &[Seen], index: TtyIndex, depth: u32) -> Option<Terminal> {
    let resident = seen.iter().find(|seen| {
        seen.process.is_alive()
            && TtyIndex::of_tty_nr(seen.process.tty_nr) == Some(index)
            && seen.process.tpgid > 0
    })?;
    let modes =
        Modes::of_index(index).unwrap_or(Modes { canonical: true, echo: true, reads_time_out: false });
    Some(Terminal { index, foreground: Some(resident.process.tpgid), modes, depth })
}
