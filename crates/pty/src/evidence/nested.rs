//! Follows relays: programs that hold the master of another terminal and pass on what is typed.
//!
//! `sudo`, `script`, `rlwrap`, `expect` and `tmux` sit between the job's terminal and the one that the real
//! reader has. Whether the job waits is then decided at the inner one.

use rustix::process::Pid;

use super::fds::{Link, Outside, Source};
use super::modes::Modes;
use super::terminal::TtyIndex;
use super::threads::{Doing, Sample, Thread};
use super::verdict::{Assessment, Judge, Rank, Terminal};
use super::witness::Witness;

/// Relays inside relays are followed to this depth.
const MAX_RELAY_DEPTH: u32 = 4;

/// Whether a terminal is one that an editor made for a child of its own, such as a compiler: it passes nothing on.
pub(super) fn is_for_a_child(index: TtyIndex) -> bool {
    Modes::of_index(index).is_some_and(|modes| modes.for_a_child)
}

/// The terminals behind a Unix socket, if another process of the job is at its other end and holds their masters: `dtach`
/// and `abduco` are two processes, one at each end.
pub(super) fn behind_socket(
    judge: &mut Judge<'_>,
    samples: &[Sample],
    client: &Thread,
) -> Option<Vec<TtyIndex>> {
    let Doing::Watches { set, .. } = &client.doing else { return None };
    let sockets = set.iter().filter_map(|member| match member.source {
        Source::External(Outside::UnixSocket(Some(peer))) => Some(Link::Socket(peer)),
        Source::Terminal(_)
        | Source::Relay(_)
        | Source::Internal
        | Source::Timer(_)
        | Source::Soft
        | Source::External(_) => None,
    });
    let sockets: Vec<Link> = sockets.collect();
    for sample in samples {
        let inner = sample.threads.iter().filter_map(|thread| match thread.doing {
            Doing::WaitsOutside(Outside::Inner(index)) => Some(index),
            Doing::Running
            | Doing::Disk
            | Doing::Stopped
            | Doing::Watches { .. }
            | Doing::Reads { .. }
            | Doing::Writes { .. }
            | Doing::WaitsForChild
            | Doing::Parked(_)
            | Doing::Idles(_)
            | Doing::Sleeps(_)
            | Doing::WaitsOutside(_)
            | Doing::Other
            | Doing::Denied => None,
        });
        let inner: Vec<TtyIndex> = inner.collect();
        let holds = |judge: &mut Judge<'_>| {
            judge.scanner.links(sample.process.pid).iter().any(|(_, link)| sockets.contains(link))
        };
        if !sockets.is_empty() && !inner.is_empty() && holds(judge) {
            return Some(inner);
        }
    }
    None
}

/// Judges the terminals behind a relay. Which of several (a multiplexer's windows) has the cursor is not visible from
/// outside. If some of them work, it waits if the row of the cursor asks.
pub(super) fn judge_inner(
    judge: &mut Judge<'_>,
    samples: &[Sample],
    relay: Pid,
    inner: &[TtyIndex],
    outer: &Terminal,
) -> Assessment {
    let depth = outer.depth;
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
            found @ (Assessment::Listens(_)
            | Assessment::OutputBlocked
            | Assessment::Stopped(_)
            | Assessment::Busy
            | Assessment::Denied) => otherwise = Some(found),
        }
    }
    match (waits, otherwise) {
        (Some(Assessment::Waits(rank, finding)), Some(Assessment::Busy)) => {
            match judge.one_of_several(samples, outer) {
                Witness::Yes => Assessment::Waits(rank.min(Rank::Medium), finding),
                Witness::NotYet => Assessment::Unconfirmed,
                Witness::No => Assessment::Busy,
            }
        }
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
    let modes = Modes::of_index(index).unwrap_or(Modes::PLAIN);
    Some(Terminal { index, foreground: Some(resident.process.tpgid), modes, depth })
}
