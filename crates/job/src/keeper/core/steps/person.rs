//! A person who sits down in a shell: it draws its prompt for them, what they type are steps of their own, and everybody
//! else's wait until they have left. A line that is only half typed then is dropped.

use std::time::{Duration, Instant};

use outlast_protocol::shell::StepState;

use super::super::{Core, Effect, Effects, Now, PeerId};
use super::Running;
use crate::wire::event::EventKind;

/// Who asked for a step that a person typed.
const PERSON: &str = "a person";

/// When a shell is called back again that still shows its prompt to nobody: the first call may have come before the prompt was
/// drawn.
const CALL_AGAIN: Duration = Duration::from_secs(1);

/// The place in front of a shell.
#[derive(Debug, Default)]
pub(super) struct Seat {
    sitting: Vec<PeerId>,
    /// The prompt is drawn, or will be: what is typed there will be this step.
    prompt: Option<u64>,
    /// When the shell is called back, should nobody sit there.
    call_at: Option<Instant>,
}

impl Seat {
    pub(super) fn at(prompt: Option<u64>) -> Self {
        Self { sitting: Vec::new(), prompt, call_at: None }
    }

    /// The next moment at which somebody has to look whether a prompt is shown to nobody.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.call_at
    }

    /// Whether a prompt is shown to nobody.
    fn is_deserted(&self) -> bool {
        self.prompt.is_some() && self.sitting.is_empty()
    }

    /// Whether the shell is a person's at the moment.
    pub(super) fn is_taken(&self) -> bool {
        !self.sitting.is_empty() || self.prompt.is_some()
    }

    /// The shell has come back from its prompt; false if that was not where it was.
    pub(super) fn leave_prompt(&mut self, step: u64) -> bool {
        self.prompt.take_if(|at| *at == step).is_some()
    }
}

impl Core {
    /// A person sits down.
    pub(in super::super) fn sit_down(&mut self, peer: PeerId, now: Now, effects: &mut Effects) {
        if self.steps.shell.is_none() || self.steps.seat.sitting.contains(&peer) {
            return;
        }
        self.steps.seat.sitting.push(peer);
        self.begin_next_step(now, effects);
    }

    /// A person has left: the shell is called back from its prompt, and goes on with what waited.
    pub(in super::super) fn stand_up(&mut self, peer: PeerId, now: Now, effects: &mut Effects) {
        let seat = &mut self.steps.seat;
        let before = seat.sitting.len();
        seat.sitting.retain(|sitting| *sitting != peer);
        if before > 0 && seat.is_deserted() {
            effects.push(Effect::LeavePrompt);
            seat.call_at = Some(now.at + CALL_AGAIN);
        }
    }

    /// After a take-over: the person at a prompt may not come back.
    pub(in super::super) fn watch_seat(&mut self, now: Now) {
        self.steps.seat.call_at = self.steps.seat.is_deserted().then(|| now.at + 10 * CALL_AGAIN);
    }

    /// Calls the shell back from a prompt that is shown to nobody.
    pub(super) fn call_back_on_time(&mut self, now: Now, effects: &mut Effects) {
        if self.steps.seat.call_at.is_none_or(|at| now.at < at) {
            return;
        }
        let is_needed = self.steps.seat.is_deserted() && self.phase.running().is_some();
        self.steps.seat.call_at = is_needed.then(|| now.at + CALL_AGAIN);
        if is_needed {
            effects.push(Effect::LeavePrompt);
        }
    }

    /// Draws the prompt if a person sits there; true if the shell is theirs.
    pub(super) fn keep_seat(&mut self, effects: &mut Effects) -> bool {
        if !self.steps.seat.sitting.is_empty() && self.steps.seat.prompt.is_none() {
            let step = self.steps.take_number();
            self.steps.seat.prompt = Some(step);
            self.steps.capture_at = None;
            effects.push(Effect::ShowPrompt(step));
        }
        self.steps.seat.prompt.is_some()
    }

    /// The person has typed a command, and it begins.
    pub(in super::super) fn on_step_began(&mut self, command: &str, now: Now, effects: &mut Effects) {
        let Some(number) = self.steps.seat.prompt.take() else { return };
        let mut step = self.new_step((number, command), PERSON.into(), now);
        step.state = StepState::Running;
        self.event(EventKind::StepStarted { step: Box::new(step.clone()) }, now, effects);
        self.steps.running = Some(Running { step, began: now.at, limit: None, ending: None });
        self.plan_probe(now.at);
    }
}
