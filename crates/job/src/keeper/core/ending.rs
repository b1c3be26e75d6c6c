//! Ends everything a job has started, and proves it.
//!
//! First a signal and some grace, then `SIGSTOP` and `SIGKILL` for whatever is left, walk after walk, until
//! the kernel says that we have no child. We are a subreaper, so what called `setsid` or forked twice is ours
//! too.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::phase::{Phase, Retry, Saving};
use super::{Client, Core, Effect, Effects, Now};
use crate::clock::{earliest, millis};
use crate::failure::{Failure, Kind};
use crate::lifecycle::{EndedBy, Process, State};
use crate::registry::replace::Durability;
use crate::wire::event::EventKind;
use crate::wire::{Answer, Killed};

/// How long a job may take to end by itself, unless told otherwise.
pub(super) const GRACE: Duration = outlast_protocol::KILL_GRACE;
/// How long we go on before we name what can't be ended: a process in uninterruptible sleep, or another
/// user's.
const GIVE_UP_AFTER: Duration = Duration::from_secs(5);
/// How often we look again for what was forked meanwhile.
const FORCE_EVERY: Duration = Duration::from_millis(5);
/// What is said where another user's process is left that `/proc` hides.
const UNSEEN: &str =
    "a process of it is still there and can't be seen here: /proc hides those of other users";

/// A job on its way out.
#[derive(Debug)]
pub(crate) struct Ending {
    step: Step,
    /// How many processes got the first signal.
    signalled: usize,
    /// Whether the command had ended before anybody asked.
    command_had_ended: bool,
    /// Those who are answered when it is done.
    asked: Vec<Client>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Grace {
        until: Instant,
    },
    Force {
        next: Instant,
        until: Instant,
    },
    /// It went on for too long: what is still there is named.
    GiveUp,
}

/// What could not be ended.
#[derive(Debug, Default)]
pub(super) struct Left {
    processes: Vec<Process>,
    /// The kernel says that there is a child, and `/proc` does not show which.
    unseen: bool,
}

impl Ending {
    /// When something is done next.
    pub(super) fn next(&self) -> Option<Instant> {
        match self.step {
            Step::Grace { until } => Some(until),
            Step::Force { next, .. } => Some(next),
            Step::GiveUp => None,
        }
    }

    /// Somebody who asks again may shorten the grace, never make it longer.
    fn hurry(&mut self, sooner: Option<Instant>) {
        if let Step::Grace { until } = &mut self.step
            && let Some(sooner) = sooner
        {
            *until = sooner.min(*until);
        }
    }

    pub(super) fn forget_peer(&mut self, peer: super::PeerId) {
        self.asked.retain(|client| client.peer != peer);
    }

    #[cfg(test)]
    pub(super) fn pending(&self) -> usize {
        self.asked.len()
    }
}

impl Core {
    /// Begins to end the job; the caller is answered when it is done.
    pub(super) fn begin_ending(
        &mut self,
        by: EndedBy,
        grace: Duration,
        asked: Option<Client>,
        now: Now,
        effects: &mut Effects,
    ) {
        let Some(slot) = self.phase.ending_slot() else {
            let failure = Failure::new(Kind::NotRunning, "the command of this job was not started yet");
            asked.into_iter().for_each(|client| effects.reply(client, Answer::Error(failure.clone().into())));
            return;
        };
        let at = now.at;
        if let Some(ending) = slot {
            ending.hurry(at.checked_add(grace));
            ending.asked.extend(asked);
            return;
        }
        let step = if grace.is_zero() {
            Step::Force { next: at, until: at + GIVE_UP_AFTER }
        } else {
            Step::Grace { until: at.checked_add(grace).unwrap_or(at + GIVE_UP_AFTER) }
        };
        effects.push(Effect::RememberGrace(Some(at.checked_add(grace).unwrap_or(at + GIVE_UP_AFTER))));
        let mut ending =
            Ending { step, signalled: 0, command_had_ended: false, asked: asked.into_iter().collect() };
        match &mut self.phase {
            Phase::Running(running) | Phase::Judging { running, .. } => {
                running.by = Some(by);
                running.ending = Some(ending);
                // On the disk before the first signal: the receipt must name the right one, no matter who writes
                // it.
                effects.push(Effect::WriteRecord(Durability::Process));
            }
            Phase::Ended(ended)
            | Phase::Leaving { ended, .. }
            | Phase::Left(ended)
            | Phase::Closed(ended) => {
                ending.command_had_ended = true;
                ended.ending = Some(ending);
            }
            Phase::Starting => return,
        }
        // A stopped process can't end by itself before it goes on.
        effects.push(Effect::SignalAll { signals: &[Signal::TERM, Signal::CONT], counts: true });
    }

    /// A dead keeper was ending the job: it is ended all the same, and who asked for it stays the same.
    pub(super) fn go_on_with_ending(&mut self, until: Instant, now: Now, effects: &mut Effects) {
        let by = match &self.phase {
            Phase::Running(running) | Phase::Judging { running, .. } => running.by.clone(),
            Phase::Starting | Phase::Ended(_) | Phase::Leaving { .. } | Phase::Left(_) | Phase::Closed(_) => {
                None
            }
        };
        let grace = until.saturating_duration_since(now.at);
        self.begin_ending(by.unwrap_or(EndedBy::Outside), grace, None, now, effects);
    }

    /// How many processes the first signal of an ending was sent to.
    pub(super) fn on_signalled(&mut self, count: usize, effects: &mut Effects) {
        let Some(Some(ending)) = self.phase.ending_slot() else { return };
        ending.signalled += count;
        if self.phase.ended().is_some() {
            effects.push(Effect::Survey { lists: true });
        }
    }

    /// Goes further with an ending if it is time to, and looks whether everything is gone.
    pub(super) fn go_on_ending(&mut self, now: Instant, effects: &mut Effects) {
        let command_has_ended = self.phase.ended().is_some();
        let Some(Some(ending)) = self.phase.ending_slot() else { return };
        // Stops everything first, so that nothing can fork away from the walk, and then kills it.
        let force = Effect::SignalAll { signals: &[Signal::STOP, Signal::KILL], counts: false };
        match ending.step {
            Step::Grace { until } if now >= until => {
                effects.push(force);
                ending.step = Step::Force { next: now + FORCE_EVERY, until: now + GIVE_UP_AFTER };
            }
            Step::Force { until, .. } if now >= until => ending.step = Step::GiveUp,
            Step::Force { next, until } if now >= next => {
                effects.push(force);
                ending.step = Step::Force { next: now + FORCE_EVERY, until };
            }
            Step::Grace { .. } | Step::Force { .. } | Step::GiveUp => {}
        }
        if command_has_ended || matches!(ending.step, Step::GiveUp) {
            effects.push(Effect::Survey { lists: true });
        }
    }

    /// Somebody looked what is left of the job.
    pub(super) fn on_surveyed(
        &mut self,
        nothing_left: bool,
        processes: Vec<Process>,
        now: Now,
        effects: &mut Effects,
    ) {
        let command_has_ended = self.phase.ended().is_some();
        match self.phase.ending() {
            Some(ending) if matches!(ending.step, Step::GiveUp) || (command_has_ended && nothing_left) => {
                let left = Left { unseen: !nothing_left && processes.is_empty(), processes };
                self.end_of_ending(left, now, effects);
            }
            Some(_) | None => {}
        }
        if nothing_left {
            self.leave_if_done(now, effects);
        }
    }

    pub(super) fn end_of_ending(&mut self, left: Left, now: Now, effects: &mut Effects) {
        let Left { processes: survivors, unseen } = left;
        let Some(ending) = self.phase.ending_slot().and_then(Option::take) else { return };
        effects.push(Effect::RememberGrace(None));
        let already_ended =
            ending.command_had_ended && ending.signalled == 0 && survivors.is_empty() && !unseen;
        let mut all_gone = false;
        if let Some(ended) = self.phase.ended_mut() {
            // Asked to end what has ended: the caller lets go of a record that can't be written.
            ended.released |= already_ended;
            // What the receipt listed as left behind was on its way out: only what could not be ended was
            // left.
            if let State::Completed(receipt) | State::Failed(receipt) | State::Killed(receipt) =
                &mut ended.state
                && receipt.left_behind != survivors
            {
                receipt.left_behind.clone_from(&survivors);
                effects.push(Effect::WriteRecord(Durability::Process));
                all_gone = survivors.is_empty() && !unseen;
            }
        }
        if all_gone {
            self.event(EventKind::AllGone, now, effects);
        }
        for client in ending.asked {
            let killed = Killed {
                signalled: ending.signalled,
                survivors: survivors.clone(),
                already_ended,
                unseen,
                note: unseen.then(|| UNSEEN.into()),
            };
            effects.reply(client, Answer::Killed(killed));
        }
    }

    /// The earlier of the job's own limits, and who ends it then.
    pub(super) fn limit(&self) -> Option<(Instant, EndedBy)> {
        let timeout = self.limits.timeout.and_then(|limit| {
            let at = self.limits.started.checked_add(limit)?;
            Some((at, EndedBy::Timeout { limit_ms: millis(limit) }))
        });
        let silence = self.limits.inactivity.and_then(|limit| {
            let at = self.last_output.checked_add(limit)?;
            Some((at, EndedBy::Inactivity { limit_ms: millis(limit) }))
        });
        [timeout, silence].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// What time alone decides about the job's end.
    pub(super) fn end_on_time(&mut self, now: Now, effects: &mut Effects) {
        if let Phase::Judging { until, .. } = &self.phase
            && now.at >= *until
        {
            self.judge(false, effects);
        }
        if self.phase.ending().is_some() {
            self.go_on_ending(now.at, effects);
        } else if self.phase.at_work().is_some()
            && matches!(self.phase, Phase::Running(_))
            && let Some((at, by)) = self.limit()
            && now.at >= at
        {
            self.begin_ending(by, GRACE, None, now, effects);
        } else if matches!(self.phase, Phase::Ended(_)) {
            effects.push(Effect::Survey { lists: false });
        }
        self.save_if_due(now.at, effects);
    }

    /// When [`end_on_time`](Self::end_on_time) has something to do.
    pub(super) fn next_end(&self) -> Option<Instant> {
        let by_phase = match &self.phase {
            Phase::Judging { until, .. } => Some(*until),
            Phase::Leaving { until, last_try, .. } => {
                (!last_try && self.notifier.holds_some()).then_some(*until)
            }
            Phase::Running(running) if running.ending.is_none() && running.queued.is_none() => {
                self.limit().map(|(at, _)| at)
            }
            Phase::Starting | Phase::Running(_) | Phase::Ended(_) | Phase::Left(_) | Phase::Closed(_) => None,
        };
        let retry = self.phase.ended().and_then(|ended| match ended.saving {
            Saving::Unsaved(Retry { at, .. }) => Some(at),
            Saving::First | Saving::Again | Saving::Saved => None,
        });
        earliest(earliest(by_phase, retry), self.phase.ending().and_then(Ending::next))
    }
}
