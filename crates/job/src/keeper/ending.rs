//! Ends everything a job has started, and proves it.
//!
//! First a signal and some grace, then `SIGSTOP` and `SIGKILL` for whatever is left, walk after walk, until the
//! kernel says that we have no child. We are a subreaper, so what called `setsid` or forked twice is ours too.

use std::time::{Duration, Instant};

use outlast_pty::signal;
use rustix::process::Signal;

use super::peers::PeerId;
use super::{Keeper, Life};
use crate::lifecycle::{EndedBy, State};
use crate::registry::replace::Durability;
use crate::wire::event::What;
use crate::wire::{Answer, Killed};

/// How long a job may take to end by itself, unless told otherwise.
pub(super) const GRACE: Duration = Duration::from_millis(200);
/// How long we go on before we name what can't be ended: a process in uninterruptible sleep, or another user's.
const GIVE_UP: Duration = Duration::from_secs(5);
/// How often we look again for what was forked meanwhile.
const ROUND: Duration = Duration::from_millis(5);

/// A job on its way out.
#[derive(Debug)]
pub(super) struct Ending {
    phase: Phase,
    signalled: usize,
    asked: Vec<(PeerId, u64)>,
}

#[derive(Debug)]
enum Phase {
    Grace { until: Instant },
    Force { next: Instant, until: Instant },
}

impl Ending {
    pub(super) fn next(&self) -> Instant {
        match self.phase {
            Phase::Grace { until } => until,
            Phase::Force { next, .. } => next,
        }
    }
}

impl Keeper {
    /// Begins to end the job; whoever asked is answered when it is done.
    pub(super) fn begin_ending(&mut self, by: EndedBy, grace: Duration, asked: Option<(PeerId, u64)>) {
        if let Some(ending) = &mut self.ending {
            ending.asked.extend(asked);
            return;
        }
        if let State::Running { ending } = &mut self.info.state {
            // On the disk before the first signal: the receipt must name the right one, whoever writes it.
            *ending = Some(by);
            self.write_record(Durability::Process);
        }
        let already = self.life == Life::Ended && self.nothing_left();
        let signalled = if already { 0 } else { self.signal_all(Signal::TERM) };
        // A stopped process can't end by itself before it goes on.
        self.signal_all(Signal::CONT);
        let now = Instant::now();
        let phase = if grace.is_zero() {
            Phase::Force { next: now, until: now + GIVE_UP }
        } else {
            Phase::Grace { until: now.checked_add(grace).unwrap_or(now + GIVE_UP) }
        };
        self.ending = Some(Ending { phase, signalled, asked: asked.into_iter().collect() });
        if already {
            // Asked to end what has ended: whoever asks lets go of a record that can't be written.
            self.released = true;
            self.end_of_ending(true);
        }
    }

    /// Looks whether everything is gone, and goes further if it is time to.
    pub(super) fn go_on_ending(&mut self, now: Instant) {
        let Some(ending) = &self.ending else { return };
        let all_gone = self.life == Life::Ended && self.nothing_left();
        match ending.phase {
            _ if all_gone => self.end_of_ending(false),
            Phase::Grace { until } if now >= until => {
                self.force();
                self.set_phase(Phase::Force { next: now + ROUND, until: now + GIVE_UP });
            }
            Phase::Grace { .. } => {}
            Phase::Force { until, .. } if now >= until => self.end_of_ending(false),
            Phase::Force { next, until } if now >= next => {
                self.force();
                self.set_phase(Phase::Force { next: now + ROUND, until });
            }
            Phase::Force { .. } => {}
        }
    }

    fn set_phase(&mut self, phase: Phase) {
        if let Some(ending) = &mut self.ending {
            ending.phase = phase;
        }
    }

    /// Stops everything first, so that nothing can fork away from the walk, and then kills it.
    fn force(&mut self) {
        self.signal_all(Signal::STOP);
        self.signal_all(Signal::KILL);
    }

    /// Signals every process of the job, and says how many got it.
    fn signal_all(&self, signal: Signal) -> usize {
        self.members().iter().filter(|process| signal::send(process, signal).is_ok()).count()
    }

    fn end_of_ending(&mut self, already_ended: bool) {
        let Some(ending) = self.ending.take() else { return };
        let survivors = self.processes();
        // What the receipt listed as left behind was on its way out: only what could not be ended was left.
        if let State::Completed(receipt) | State::Failed(receipt) | State::Killed(receipt) =
            &mut self.info.state
            && receipt.left_behind != survivors
        {
            receipt.left_behind.clone_from(&survivors);
            self.write_record(Durability::Process);
            if survivors.is_empty() {
                self.event(What::AllGone);
            }
        }
        for (peer, id) in ending.asked {
            let survivors = survivors.clone();
            let killed = Killed { signalled: ending.signalled, survivors, already_ended, note: None };
            self.peers.reply(peer, id, Answer::Killed(killed));
        }
    }

    /// One signal by name to the whole job; nothing follows it.
    pub(super) fn on_signal_request(&mut self, name: &str, session: String) -> Answer {
        let signal = match crate::client::kill::signal_named(name) {
            Ok(signal) => signal,
            Err(failure) => return Answer::Error(failure.into()),
        };
        self.last_signal = Some((signal, session));
        let signalled = self.signal_all(signal);
        let already_ended = self.life == Life::Ended && signalled == 0;
        Answer::Killed(Killed { signalled, already_ended, ..Killed::default() })
    }
}
