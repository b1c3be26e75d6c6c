//! A job that waits at its gate: queued, then let through, or refused.

use std::time::{Duration, Instant};

use outlast_protocol::Queued;
use rustix::process::{Pid, Signal};

use super::phase::{Phase, Running};
use super::{Core, Effect, Effects, Now};
use crate::lifecycle::StartError;
use crate::registry::replace::Durability;
use crate::wire::event::EventKind;

/// Longer than any wait: a job that does not run yet is not silent.
const NEVER: Duration = Duration::from_secs(100 * 365 * 86400);

impl Core {
    /// The command waits at its gate, or for something else than before.
    pub(super) fn on_queued(
        &mut self,
        command: Option<Pid>,
        queued: Box<Queued>,
        now: Now,
        effects: &mut Effects,
    ) {
        match (&mut self.phase, command) {
            (Phase::Starting, Some(command)) => {
                let running = Running { queued: Some(queued.clone()), ..Running::of(command, None) };
                self.phase = Phase::Running(running);
                effects.push(Effect::WriteRecord(Durability::Process));
                self.event(EventKind::Queued { queued }, now, effects);
            }
            (Phase::Running(running), _) if running.queued.as_ref().is_some_and(|old| *old != queued) => {
                running.queued = Some(queued);
                effects.push(Effect::WriteRecord(Durability::Process));
            }
            (_, _) => {}
        }
    }

    /// The gate is open. The job's own times begin now.
    pub(super) fn on_admitted(&mut self, now: Now, effects: &mut Effects) {
        let Phase::Running(running) = &mut self.phase else { return };
        if running.queued.take().is_none() {
            return;
        }
        let command = running.command;
        self.record.set_started_at(now.unix_ms);
        self.limits.started = now.at;
        self.last_output = now.at;
        self.last_input = now.at;
        effects.push(Effect::WriteRecord(Durability::Process));
        self.event(EventKind::Started { pid: command.as_raw_nonzero().get() }, now, effects);
        self.plan_probe(now.at);
    }

    /// The command never goes through its gate: its process ends, and the receipt says why.
    pub(super) fn on_refused(&mut self, error: StartError, effects: &mut Effects) {
        let Phase::Running(running) = &mut self.phase else { return };
        if running.queued.is_some() {
            running.refused = Some(error);
            effects.push(Effect::SignalAll { signals: &[Signal::KILL], counts: false });
        }
    }

    /// Since when the job has printed nothing, for those who wait for silence.
    pub(super) fn silent_since(&self) -> Instant {
        match self.phase.running() {
            Some(running) if running.queued.is_some() => {
                self.last_output.checked_add(NEVER).unwrap_or(self.last_output)
            }
            Some(_) | None => self.last_output,
        }
    }
}
