//! Events: each gets its number here, goes to `events.jsonl`, to followers, and to the
//! [`notifier`](super::notifier).

use super::{Core, Effect, Effects, Now};
use crate::lifecycle::State;
use crate::wire::event::{Event, EventKind};

impl Core {
    /// Something happened.
    pub(crate) fn event(&mut self, what: EventKind, now: Now, effects: &mut Effects) {
        let event = Event { seq: self.next_event, at: now.unix_ms, offset: self.grown().offset, what };
        self.next_event += 1;
        if self.conditions.tells(&event.what) {
            self.notifier.note(&event, now.at);
        }
        effects.push(Effect::Event(Box::new(event)));
    }

    /// A step of a shell is over. The session is told of it if nobody has heard of it yet.
    pub(super) fn step_event(
        &mut self,
        step: Box<outlast_protocol::shell::Step>,
        heard: bool,
        now: Now,
        effects: &mut Effects,
    ) {
        let what = EventKind::Step { step };
        if !heard {
            let event = Event {
                seq: self.next_event,
                at: now.unix_ms,
                offset: self.grown().offset,
                what: what.clone(),
            };
            self.notifier.note(&event, now.at);
        }
        self.event(what, now, effects);
    }

    /// Makes an event of the end, as the record has it.
    pub(super) fn note_end(&mut self, last_line: String, now: Now, effects: &mut Effects) {
        let state = self.phase.state();
        if matches!(state, State::Failed(_)) {
            let line = self.last_line();
            self.notifier.last_line = if line.trim().is_empty() { last_line } else { line };
        }
        self.event(EventKind::Exit { state }, now, effects);
    }
}
