//! How a step is ended while its shell stays: an interrupt, then SIGTERM and SIGKILL to what it started. Only a shell that
//! does not listen is ended with it.

use std::time::{Duration, Instant};

use outlast_protocol::shell::StepState;
use rustix::process::Signal;

use super::super::{Client, Core, Effect, Effects, Now};
use super::{Queued, Running};
use crate::clock::millis;
use crate::lifecycle::EndedBy;
use crate::wire::{Answer, Killed};

/// How long a step that was killed may take to be over, before its shell is ended.
const LAST_GRACE: Duration = Duration::from_secs(2);

/// A step on its way out.
#[derive(Debug)]
pub(super) struct StepEnding {
    stage: Stage,
    pub(super) next: Instant,
    grace: Duration,
    pub(super) by: EndedBy,
    pub(super) signalled: usize,
    pub(super) asked: Vec<Client>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Interrupted,
    Terminated,
    Killed,
}

impl Core {
    /// Somebody wants a step ended, and the shell to stay.
    pub(in super::super) fn on_end_step(
        &mut self,
        client: Client,
        step: Option<u64>,
        (grace, session): (Duration, String),
        now: Now,
        effects: &mut Effects,
    ) {
        if let Some(at) = self.steps.queue.iter().position(|queued| Some(queued.step.step) == step)
            && let Some(Queued { mut step, .. }) = self.steps.queue.remove(at)
        {
            step.state = StepState::NotRun;
            step.note = Some("it never ran: it was taken back".into());
            let number = step.step;
            self.steps.remember(step);
            self.begin_held_waits(number, now, effects);
            let note = Some(format!("step {number} had not begun, and will not"));
            return effects.reply(client, Answer::Killed(Killed { note, ..Killed::default() }));
        }
        let is_meant = |running: &Running| step.is_none_or(|step| step == running.step.step);
        if !self.steps.running.as_ref().is_some_and(is_meant) {
            let killed = Killed { already_ended: true, ..Killed::default() };
            return effects.reply(client, Answer::Killed(killed));
        }
        let by = EndedBy::Kill { session, signal: "SIGINT".into() };
        self.begin_step_ending(by, grace, Some(client), now, effects);
    }

    fn begin_step_ending(
        &mut self,
        by: EndedBy,
        grace: Duration,
        asked: Option<Client>,
        now: Now,
        effects: &mut Effects,
    ) {
        let Some(running) = &mut self.steps.running else { return };
        if let Some(ending) = &mut running.ending {
            ending.asked.extend(asked);
            return;
        }
        let asked = asked.into_iter().collect();
        running.ending = Some(StepEnding {
            stage: Stage::Interrupted,
            next: now.at + grace,
            grace,
            by,
            signalled: 0,
            asked,
        });
        effects.push(Effect::InterruptForeground);
    }

    /// So many processes of a step got a signal.
    pub(in super::super) fn on_step_signalled(&mut self, count: usize) {
        if let Some(Running { ending: Some(ending), .. }) = &mut self.steps.running {
            ending.signalled = ending.signalled.max(count);
        }
    }

    pub(super) fn end_step_on_time(&mut self, now: Now, effects: &mut Effects) {
        let Some(running) = &mut self.steps.running else { return };
        let Some(ending) = &mut running.ending else {
            if let Some(limit) = running.limit
                && now.at >= running.began + limit
            {
                let by = EndedBy::Timeout { limit_ms: millis(limit) };
                self.begin_step_ending(by, super::super::ending::GRACE, None, now, effects);
            }
            return;
        };
        if now.at < ending.next {
            return;
        }
        let since = running.step.started_at;
        match ending.stage {
            Stage::Interrupted => {
                ending.stage = Stage::Terminated;
                // The first one may have come while the shell was about to start something.
                effects.push(Effect::InterruptForeground);
                ending.next = now.at + ending.grace;
                effects.push(Effect::SignalStep { signals: &[Signal::TERM, Signal::CONT], since });
            }
            Stage::Terminated => {
                ending.stage = Stage::Killed;
                ending.next = now.at + LAST_GRACE;
                effects.push(Effect::SignalStep { signals: &[Signal::KILL], since });
            }
            Stage::Killed => {
                // The shell itself does not listen: a loop of its own that ignores the interrupt.
                let (by, grace) = (ending.by.clone(), ending.grace);
                running.step.note =
                    Some(format!("ended {}; the shell did not listen and was ended too", by.describe()));
                ending.next = now.at + LAST_GRACE * 1000;
                self.begin_ending(by, grace, None, now, effects);
            }
        }
    }
}
