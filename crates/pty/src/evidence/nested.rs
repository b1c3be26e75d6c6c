//! Follows relays: programs that hold the master of another terminal and pass on what is typed.
//!
//! `sudo`, `script`, `rlwrap`, `expect` and `tmux` sit between the job's terminal and the one that the real
//! reader has. Whether the job waits is then decided at the inner one.

use rustix::process::Pid;

use super::terminal::{Modes, TtyIndex};
use super::threads::Sample;
use super::verdict::{Assessment, Judge, Terminal};

/// Relays inside relays are followed to this depth.
const MAX_RELAY_DEPTH: u32 = 4;

/// Judges the terminals behind a relay. With several of them (a multiplexer's windows) it waits only if none
/// of them is working: which one is in view is not visible from outside.
pub(super) fn judge_inner(
    judge: &mut Judge<'_>,
    samples: &[Sample],
    relay: Pid,
    inner: &[TtyIndex],
    depth: u32,
) -> Assessment {
    if depth >= MAX_RELAY_DEPTH {
        return Assessment::Nobody;
    }
    let elsewhere = not_yet_seen(judge, samples, relay);
    let all;
    let samples = if elsewhere.is_empty() {
        samples
    } else {
        all = [samples, &elsewhere].concat();
        &all
    };
    let mut waits = None;
    let mut otherwise = None;
    for index in inner {
        let Some(terminal) = inner_terminal(samples, *index, depth + 1) else { continue };
        match judge.judge(samples, &terminal) {
            found @ (Assessment::Waits(..) | Assessment::Unconfirmed) => waits = Some(found),
            Assessment::Nobody => {}
            found => otherwise = Some(found),
        }
    }
    match (waits, otherwise) {
        (_, Some(Assessment::Busy)) => Assessment::Busy,
        (Some(waits), None) => waits,
        (_, Some(otherwise)) => otherwise,
        (None, None) => Assessment::Nobody,
    }
}

/// The children of a relay that is not one of the job's processes: a multiplexer that was already running.
fn not_yet_seen(judge: &mut Judge<'_>, samples: &[Sample], relay: Pid) -> Vec<Sample> {
    let has_child = samples.iter().any(|sample| sample.process.ppid == Some(relay));
    if has_child {
        return Vec::new();
    }
    let mut processes = Vec::new();
    judge.scanner.reader.descendants(relay, &mut processes);
    processes.retain(|process| !samples.iter().any(|sample| sample.process.pid == process.pid));
    processes.into_iter().map(|process| judge.scanner.look(process)).collect()
}

/// A terminal as seen by the processes that have it as controlling terminal; `None` if there are none.
fn inner_terminal(samples: &[Sample], index: TtyIndex, depth: u32) -> Option<Terminal> {
    let resident = samples.iter().find(|sample| {
        sample.process.is_alive()
            && TtyIndex::of_tty_nr(sample.process.tty_nr) == Some(index)
            && sample.process.tpgid > 0
    })?;
    let modes =
        Modes::of_index(index).unwrap_or(Modes { canonical: true, echo: true, reads_time_out: false });
    Some(Terminal { index, foreground: Some(resident.process.tpgid), modes, depth })
}
