//! Waits and watches: facts go to the [conditions](super::super::conditions), and what they say goes out as
//! answers and events.

use std::time::{Duration, Instant};

use super::{Client, Core, Effect, Effects, Now};
use crate::failure::Failure;
use crate::keeper::conditions::check::looks_at_screen;
use crate::keeper::conditions::{Facts, Met, Moment, Pace, Unread};
use crate::wire::event::EventKind;
use crate::wire::watch::Watch;
use crate::wire::{Answer, Wait};
use outlast_protocol::{Call, Hint};

/// How long after the last wait for a pattern its memory is given back: automata are large, and a keeper that
/// nobody asks anything may sleep for days. But a caller that waits for a pattern mostly waits for it again.
const TIDY_AFTER: Duration = Duration::from_secs(1);

impl Core {
    /// What is true of the job now.
    pub(super) fn moment(&self, now: Instant) -> Moment {
        Moment {
            now,
            end: self.grown().offset,
            last_output: self.silent_since(),
            running: self.phase.running().is_some(),
        }
    }

    /// A client waits.
    pub(super) fn on_wait(&mut self, client: Client, wait: Wait, now: Now, effects: &mut Effects) {
        match wait.step {
            Some(step) => self.on_step_wait(client, wait, step, now, effects),
            None => self.begin_wait(client, &wait, None, now, effects),
        }
    }

    /// Begins a wait; for one about a step, with its number and whether it is over.
    pub(super) fn begin_wait(
        &mut self,
        client: Client,
        wait: &Wait,
        step: Option<(u64, bool)>,
        now: Now,
        effects: &mut Effects,
    ) {
        let rows = if looks_at_screen(&wait.until) { self.screen_rows() } else { Vec::new() };
        let facts = Facts {
            moment: self.moment(now.at),
            streams: self.record.streams(),
            rows: &rows,
            awaiting: self.questions.awaiting().or(self.awaiting.as_ref()).or(self.listening.as_ref()),
            ports: &self.ports,
        };
        match self.conditions.wait((client, step), wait, &facts) {
            Ok(met) => self.deliver(met.into_iter().collect(), now, effects),
            Err(failure) => effects.reply(client, Answer::Error(failure.into())),
        }
        self.plan_probe(now.at);
    }

    /// Somebody sets a watch; the answer is all watches.
    pub(super) fn on_watch(&mut self, client: Client, watch: Watch, now: Now, effects: &mut Effects) {
        if watch.is_empty() {
            let failure = Failure::usage("a watch needs something to watch for");
            return effects.reply(client, Answer::Error(failure.into()));
        }
        let rows = if looks_at_screen(&watch.until) { self.screen_rows() } else { Vec::new() };
        let facts = Facts {
            moment: self.moment(now.at),
            streams: self.record.streams(),
            rows: &rows,
            awaiting: self.questions.awaiting().or(self.awaiting.as_ref()).or(self.listening.as_ref()),
            ports: &self.ports,
        };
        match self.conditions.watch(watch, &facts) {
            Ok(met) => self.deliver(met, now, effects),
            Err(failure) => return effects.reply(client, Answer::Error(failure.into())),
        }
        self.plan_probe(now.at);
        self.show_watches(client, effects);
    }

    /// Somebody takes a watch away; the answer is those that are left.
    pub(super) fn on_unwatch(&mut self, client: Client, id: &str, effects: &mut Effects) {
        if !self.conditions.unwatch(id) {
            let failure = Failure::usage(format!("there is no watch {id:?} on this job"))
                .hint(Hint::call("see them: ", Call::Watches(self.record.handle().to_string())));
            return effects.reply(client, Answer::Error(failure.into()));
        }
        self.save_watches(effects);
        self.show_watches(client, effects);
    }

    /// All watches.
    pub(super) fn show_watches(&self, client: Client, effects: &mut Effects) {
        effects.reply(client, Answer::Watches(self.conditions.watches().cloned().collect()));
    }

    /// Has watches written down for an heir, if they have changed.
    fn save_watches(&mut self, effects: &mut Effects) {
        if self.conditions.take_watches_changed() {
            effects.push(Effect::SaveWatches(self.conditions.watches().cloned().collect()));
        }
    }

    /// Makes answers and events of what holds.
    pub(super) fn deliver(&mut self, met: Vec<Met>, now: Now, effects: &mut Effects) {
        for met in met {
            match met {
                Met::Wait(client, mut waited) => {
                    // Whether a full-screen program has the terminal: a caller that waited would ask that next.
                    waited.full_screen = Some(self.modes().alternate_screen);
                    if waited.awaiting_input.is_none() {
                        waited.listening = self.listening.clone().map(Box::new);
                    }
                    waited.step = self.steps.waited_for(client);
                    effects.reply(client, Answer::Waited(waited));
                }
                Met::Watch(fired) => self.event(EventKind::Watch { fired: Box::new(fired) }, now, effects),
            }
        }
        self.save_watches(effects);
    }

    /// Whether some pattern has not seen all of the log.
    pub(crate) fn is_searching(&self) -> bool {
        self.conditions.is_behind(self.grown().offset)
    }

    /// What patterns have not seen of a log that ends there.
    pub(crate) fn unread(&self, end: u64, pace: Pace) -> Vec<Unread> {
        self.conditions.unread(end, pace)
    }

    /// Patterns see a piece of a log that ends there.
    pub(super) fn on_searched(
        &mut self,
        (piece, end): (&Unread, u64),
        bytes: &[u8],
        now: Now,
        effects: &mut Effects,
    ) {
        let moment = Moment { end, ..self.moment(now.at) };
        let met = self.conditions.on_bytes(piece, bytes, &moment);
        self.deliver(met, now, effects);
    }

    /// Something was printed.
    pub(super) fn show_output(&mut self, now: Now, effects: &mut Effects) {
        let met = self.conditions.on_output(&self.moment(now.at));
        self.deliver(met, now, effects);
    }

    /// The job waits for input.
    pub(super) fn show_awaiting(&mut self, now: Now, effects: &mut Effects) {
        if let Some(awaiting) = self.awaiting_now().cloned() {
            let awaiting = &awaiting;
            let met = self.conditions.on_awaiting(awaiting, &self.moment(now.at));
            self.deliver(met, now, effects);
        }
    }

    /// The job listens on a port that it did not listen on before.
    pub(super) fn show_port(&mut self, port: u16, now: Now, effects: &mut Effects) {
        let met = self.conditions.on_port(port, &self.moment(now.at));
        self.deliver(met, now, effects);
    }

    /// Patterns have seen all that the command printed: what they found is told before its end is.
    pub(super) fn on_searched_all(&mut self, now: Now, effects: &mut Effects) {
        let met = self.conditions.on_drained(&self.moment(now.at));
        self.deliver(met, now, effects);
        self.reap_command(effects);
    }

    /// A step of a shell has ended, and patterns have seen all that it printed.
    pub(super) fn show_step_end(&mut self, step: u64, now: Now, effects: &mut Effects) {
        let met = self.conditions.on_step_end(step, &self.moment(now.at));
        self.deliver(met, now, effects);
    }

    /// The end of the job is written down and told.
    pub(super) fn show_end(&mut self, now: Now, effects: &mut Effects) {
        let met = self.conditions.on_exit(&self.moment(now.at));
        self.deliver(met, now, effects);
    }

    /// What time alone decides, and what the screen does.
    pub(super) fn waits_on_time(&mut self, now: Now, effects: &mut Effects) {
        let moment = self.moment(now.at);
        if self.conditions.wants_screen(now.at) {
            let rows = self.screen_rows();
            let met = self.conditions.on_screen(&rows, &moment);
            self.deliver(met, now, effects);
        }
        let met = self.conditions.on_time(&moment);
        self.deliver(met, now, effects);
        if self.conditions.take_emptied() {
            self.tidy_at = Some(now.at + TIDY_AFTER);
        }
        if self.tidy_at.is_some_and(|at| now.at >= at) {
            self.tidy_at = None;
            self.conditions.forget_patterns();
            effects.push(Effect::GiveMemoryBack);
        }
    }

    /// Makes what the matches of new patterns need; called when there is nothing else to do.
    pub(crate) fn get_patterns_ready(&mut self) {
        self.conditions.get_ready();
    }

    /// Nothing more will come: waits that are left end with the job.
    pub(super) fn close_waits(&mut self, now: Now, effects: &mut Effects) {
        let met = self.conditions.close(&self.moment(now.at));
        self.deliver(met, now, effects);
    }
}
