//! Conditions: what clients wait for and what watches tell. One evaluator decides for both whether something holds.
//!
//! A [subscription] is a listener with conditions: a client's wait ends once, a watch makes events, once
//! or each time. Each condition is a [check] with its own memory. Everything here is pure: facts and the time
//! come in as arguments, and what holds goes out as [`Met`]. Patterns say which bytes of the log they have not seen
//! ([`Conditions::unread`]) and are given them.

mod batch;
pub(super) mod check;
pub(crate) mod pattern_search;
mod subscription;
#[cfg(test)]
mod tests;
mod text_gone;

use std::time::{Duration, Instant};

use outlast_protocol::Condition;

use super::peers::PeerId;
use crate::clock::earliest;
use crate::failure::Failure;
use crate::spec::Streams;
use crate::wire::event::EventKind;
use crate::wire::watch::{Fired, Watch};
use crate::wire::{Awaiting, Reason, Wait, Waited};
use check::{Check, Fact, Hit, Mode, Start, Wanted};
use pattern_search::{PatternCache, Patterns};
use subscription::{Listener, Subscription};

/// More waits than this on one job are refused.
const MAX_WAITS: usize = 1024;
/// More watches than this on one job are refused.
const MAX_WATCHES: usize = 64;
/// How much of the log a wait's patterns are given at once.
const WAIT_PIECE: usize = 256 << 10;
/// How much a watch's patterns are given at once: many small matches must not take much memory.
const WATCH_PIECE: usize = 32 << 10;
/// How much a wait's patterns are given while the terminal makes the next piece of a flood ready.
const FLOOD_PIECE: usize = 8 << 10;

/// A client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) peer: PeerId,
    pub(super) request: u64,
}

/// A condition holds: who is told what.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Met {
    /// A wait is over.
    Wait(Client, Waited),
    /// A watch has something to tell.
    Watch(Fired),
}

/// What is true of the job whenever something happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) now: Instant,
    /// The end of the log.
    pub(super) end: u64,
    pub(super) last_output: Instant,
    /// Whether the command runs.
    pub(super) running: bool,
}

/// What a new subscription is held against.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts<'a> {
    pub(super) moment: Moment,
    pub(super) streams: Streams,
    /// The screen; only filled where [`looks_at_screen`](check::looks_at_screen) says so.
    pub(super) rows: &'a [String],
    pub(super) awaiting: Option<&'a Awaiting>,
    pub(super) ports: &'a [u16],
}

/// Bytes of the log that patterns have not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unread {
    pub(super) from: u64,
    pub(super) len: usize,
    /// Whether secrets must be hidden in them.
    pub(super) masked: bool,
    pace: Pace,
}

/// How much a pattern is given at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// After each round of the keeper's loop.
    Round,
    /// In between, while a flood comes in; watches are left for later.
    Flood,
}

/// All waits and watches on one job.
#[derive(Default)]
pub(super) struct Conditions {
    subscriptions: Vec<Subscription>,
    /// Conditions that have an event of their own, of which the session is told.
    own: Vec<Condition>,
    cache: PatternCache,
    had_patterns: bool,
    watches_changed: bool,
    /// Patterns came that nothing was made ready for.
    unready: bool,
}

impl Conditions {
    /// `notify` is what the session wants to be told from the start; `watches` are those of the job's start, or those
    /// that a dead keeper had.
    pub(super) fn new(notify: &[Condition], watches: Vec<Watch>, facts: &Facts<'_>) -> Self {
        let own = notify.iter().filter(|condition| condition.has_own_event()).cloned().collect();
        let mut conditions = Self { own, ..Self::default() };
        for watch in watches.into_iter().take(MAX_WATCHES) {
            // It was accepted before, perhaps by a keeper that knew more.
            if let Ok(subscription) = conditions.prepare_watch(watch, facts) {
                conditions.subscriptions.push(subscription);
            }
        }
        if !facts.moment.running {
            conditions.drop_what_ended();
        }
        conditions
    }

    /// A client waits. A wait that holds already is answered at once.
    ///
    /// # Errors
    /// A usage failure: a bad pattern, or too many waits.
    pub(super) fn wait(
        &mut self,
        (client, step): (Client, Option<(u64, bool)>),
        wait: &Wait,
        facts: &Facts<'_>,
    ) -> Result<Option<Met>, Failure> {
        let waits = self.subscriptions.iter().filter(|it| it.mode() == Mode::Wait).count();
        if waits >= MAX_WAITS {
            return Err(Failure::usage("too many waits on this job at once").hint("end some of them first"));
        }
        let now = facts.moment.now;
        let from = wait.from.unwrap_or(facts.moment.end);
        let subscription = Subscription {
            listener: Listener::Client(client),
            checks: self.checks(&wait.until, Mode::Wait, from, facts)?,
            began: now,
            deadline: wait.deadline_ms.and_then(|ms| now.checked_add(Duration::from_millis(ms))),
            known: facts.moment.end,
            masked: wait.masked,
            step: step.map(|(step, _)| step),
            over: step.is_some_and(|(_, over)| over),
        };
        Ok(self.begin(subscription, facts).pop())
    }

    /// A watch is set; it takes the place of one of the same name.
    ///
    /// # Errors
    /// A usage failure: a bad pattern, or too many watches.
    pub(super) fn watch(&mut self, mut watch: Watch, facts: &Facts<'_>) -> Result<Vec<Met>, Failure> {
        if watch.id.is_empty() {
            let used = |id: &String| self.watches().any(|watch| watch.id == *id);
            watch.id = (1..).map(|i| format!("w{i}")).find(|id| !used(id)).unwrap_or_default();
        }
        let id = watch.id.clone();
        let subscription = self.prepare_watch(watch, facts)?;
        self.unwatch(&id);
        if self.watches().count() >= MAX_WATCHES {
            return Err(Failure::usage("too many watches on this job"));
        }
        self.watches_changed = true;
        Ok(self.begin(subscription, facts))
    }

    fn prepare_watch(&mut self, mut watch: Watch, facts: &Facts<'_>) -> Result<Subscription, Failure> {
        let from = *watch.from.get_or_insert(facts.moment.end);
        let mode = if watch.each { Mode::Each } else { Mode::Once };
        Ok(Subscription {
            checks: self.checks(&watch.until, mode, from, facts)?,
            listener: Listener::Watch(watch),
            began: facts.moment.now,
            deadline: None,
            known: facts.moment.end,
            // What it finds goes to readers of events, agents among them.
            masked: true,
            step: None,
            over: false,
        })
    }

    fn checks(
        &mut self,
        until: &[Condition],
        mode: Mode,
        from: u64,
        facts: &Facts<'_>,
    ) -> Result<Vec<Check>, Failure> {
        let (streams, moment) = (facts.streams, &facts.moment);
        Check::all(until, Start { mode, from, streams, moment, cache: &mut self.cache })
    }

    /// Holds a new subscription against what is known, and keeps it unless that ends it.
    fn begin(&mut self, mut subscription: Subscription, facts: &Facts<'_>) -> Vec<Met> {
        let (mut met, mut hits) = (Vec::new(), Vec::new());
        let moment = &facts.moment;
        subscription.see(Fact::Output, moment, &mut hits);
        if let Some(awaiting) = facts.awaiting {
            subscription.see(Fact::Awaiting(awaiting), moment, &mut hits);
        }
        for port in facts.ports {
            subscription.see(Fact::Port(*port), moment, &mut hits);
        }
        if subscription.checks.iter().any(|check| check.wants_screen(moment.now)) {
            subscription.see(Fact::Screen(facts.rows), moment, &mut hits);
        }
        if (!moment.running || subscription.over) && !subscription.is_behind(moment.end) {
            subscription.see(Fact::Exit, moment, &mut hits);
        }
        hits.iter_mut().for_each(|hit| hit.already = true);
        if subscription.tell(&mut hits, moment, &self.own, &mut met) {
            self.had_patterns |= subscription.patterns().is_some();
            self.unready |= subscription.patterns().is_some();
            self.subscriptions.push(subscription);
        }
        met
    }

    /// Takes a watch away; false if there is none of that name.
    pub(super) fn unwatch(&mut self, id: &str) -> bool {
        let before = self.subscriptions.len();
        self.subscriptions.retain(|it| it.watch().is_none_or(|watch| watch.id != id));
        let taken = self.subscriptions.len() < before;
        self.watches_changed |= taken;
        taken
    }

    /// Clients have gone: so have their waits.
    pub(super) fn forget_clients(&mut self, gone: &[PeerId]) {
        if !gone.is_empty() {
            self.subscriptions.retain(|it| it.client().is_none_or(|client| !gone.contains(&client.peer)));
        }
    }

    /// How many waits and watches there are.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.subscriptions.len()
    }

    pub(super) fn watches(&self) -> impl Iterator<Item = &Watch> {
        self.subscriptions.iter().filter_map(Subscription::watch)
    }

    /// Whether watches came or went since this was last asked: then they must be written down.
    pub(super) fn take_watches_changed(&mut self) -> bool {
        std::mem::take(&mut self.watches_changed)
    }

    /// Whether the last patterns have gone since this was last asked.
    pub(super) fn take_emptied(&mut self) -> bool {
        let has_patterns = self.subscriptions.iter().any(|it| it.patterns().is_some());
        std::mem::replace(&mut self.had_patterns, has_patterns) && !has_patterns
    }

    /// Makes what the matches of new patterns need, while there is nothing else to do.
    pub(super) fn get_ready(&mut self) {
        if std::mem::take(&mut self.unready) {
            self.subscriptions.iter().filter_map(Subscription::patterns).for_each(Patterns::get_ready);
        }
    }

    /// Forgets compiled patterns that nobody uses.
    pub(super) fn forget_patterns(&mut self) {
        self.cache.clear();
    }

    /// Whether the session is told of an event of the job's own.
    pub(super) fn tells(&self, what: &EventKind) -> bool {
        let own = |reason: Reason| self.is_told(reason);
        match what {
            EventKind::Watch { .. } => true,
            EventKind::Exit { .. }
            | EventKind::ExecRefused { .. }
            | EventKind::LogFailing { .. }
            | EventKind::LogResumed { .. } => {
                let exit = |check: &Check| matches!(check, Check::Exit);
                own(Reason::Exit)
                    || self.subscriptions.iter().any(|it| it.watch().is_some() && it.checks.iter().any(exit))
            }
            // Somebody must agree, or the job stands still for nothing.
            EventKind::Asking { .. } | EventKind::HostRefused { .. } | EventKind::Answered { .. } => true,
            // The one who drives the job must know that it does not take their input.
            EventKind::Taken { .. } | EventKind::GivenBack { .. } => true,
            EventKind::AwaitingInput { .. } | EventKind::WentOn => own(Reason::AwaitingInput),
            EventKind::Port { .. } => own(Reason::Port),
            EventKind::Queued { .. }
            | EventKind::Started { .. }
            | EventKind::AllGone
            // Nobody has to do anything about it. Who wants to know asks for the condition.
            | EventKind::Listening { .. }
            | EventKind::Stopped
            | EventKind::Continued
            | EventKind::LogCapped { .. }
            | EventKind::TookOver { .. }
            | EventKind::HeirGone
            | EventKind::Agent { .. }
            | EventKind::StepStarted { .. }
            // Told by the core, if nobody waits for it.
            | EventKind::Step { .. }
            | EventKind::StepChanged { .. }
            | EventKind::Unknown => false,
            EventKind::StepForged { .. } => true,
        }
    }

    /// What must be found out for the subscriptions.
    pub(super) fn wanted(&self) -> Wanted {
        let mut wanted = Wanted { port_event: self.is_told(Reason::Port), ..Wanted::default() };
        for subscription in &self.subscriptions {
            let mode = subscription.mode();
            subscription.checks.iter().for_each(|check| check.add_wanted(mode, &mut wanted));
        }
        wanted
    }

    fn is_told(&self, reason: Reason) -> bool {
        self.own.iter().any(|condition| condition.reason() == reason)
    }

    /// The next moment at which time alone can make a condition hold.
    pub(super) fn next_deadline(&self, last_output: Instant) -> Option<Instant> {
        self.subscriptions.iter().fold(None, |next, it| earliest(next, it.next_deadline(last_output)))
    }

    /// Whether the screen must be looked at now.
    pub(super) fn wants_screen(&self, now: Instant) -> bool {
        self.subscriptions.iter().any(|it| it.checks.iter().any(|check| check.wants_screen(now)))
    }

    /// Whether some pattern has not seen all of the log.
    pub(super) fn is_behind(&self, end: u64) -> bool {
        self.subscriptions.iter().any(|it| it.is_behind(end))
    }

    /// The next piece of the log for each pattern that has not seen all of it. Patterns that are at the same place
    /// share one.
    pub(super) fn unread(&self, end: u64, pace: Pace) -> Vec<Unread> {
        let mut unread = Vec::new();
        for subscription in &self.subscriptions {
            let Some(piece) = subscription.unread(end, pace) else { continue };
            if !unread.contains(&piece) {
                unread.push(piece);
            }
        }
        unread
    }

    /// Gives patterns a piece of the log that they asked for.
    pub(super) fn on_bytes(&mut self, piece: &Unread, bytes: &[u8], moment: &Moment) -> Vec<Met> {
        self.each(moment, |subscription, hits| {
            if subscription.unread(moment.end, piece.pace).as_ref() != Some(piece) {
                return;
            }
            subscription.feed(bytes, piece.pace == Pace::Flood, moment, hits);
            // A wait that began after the end has now seen all that there is.
            let ended = !moment.running || subscription.over;
            if ended && hits.is_empty() && !subscription.is_behind(moment.end) {
                subscription.see(Fact::Exit, moment, hits);
            }
        })
    }

    /// Something was printed.
    pub(super) fn on_output(&mut self, moment: &Moment) -> Vec<Met> {
        self.on_fact(Fact::Output, moment)
    }

    /// The job waits for input.
    pub(super) fn on_awaiting(&mut self, awaiting: &Awaiting, moment: &Moment) -> Vec<Met> {
        self.on_fact(Fact::Awaiting(awaiting), moment)
    }

    /// The job listens on a port that it did not listen on before.
    pub(super) fn on_port(&mut self, port: u16, moment: &Moment) -> Vec<Met> {
        self.on_fact(Fact::Port(port), moment)
    }

    /// The screen, where it was [wanted](Self::wants_screen).
    pub(super) fn on_screen(&mut self, rows: &[String], moment: &Moment) -> Vec<Met> {
        self.on_fact(Fact::Screen(rows), moment)
    }

    /// What time alone decides: silence, batches that are due, deadlines.
    pub(super) fn on_time(&mut self, moment: &Moment) -> Vec<Met> {
        self.each(moment, |subscription, hits| {
            subscription.see(Fact::Time, moment, hits);
            hits.extend(subscription.deadline_passed(moment));
        })
    }

    /// The job has ended, and patterns have seen all that it printed.
    pub(super) fn on_drained(&mut self, moment: &Moment) -> Vec<Met> {
        self.on_fact(Fact::Drained, moment)
    }

    /// A step has ended, and patterns have seen all that it printed: for waits that are about it, that is the end.
    pub(super) fn on_step_end(&mut self, step: u64, moment: &Moment) -> Vec<Met> {
        self.each(moment, |subscription, hits| {
            if subscription.step != Some(step) {
                return;
            }
            subscription.over = true;
            subscription.see(Fact::Drained, moment, hits);
            if hits.is_empty() {
                subscription.see(Fact::Exit, moment, hits);
            }
        })
    }

    /// The end of the job is written down.
    pub(super) fn on_exit(&mut self, moment: &Moment) -> Vec<Met> {
        let met = self.on_fact(Fact::Exit, moment);
        self.drop_what_ended();
        met
    }

    /// Nothing more will come: waits that are left end with the job.
    pub(super) fn close(&mut self, moment: &Moment) -> Vec<Met> {
        let met = self.each(moment, |subscription, hits| {
            if subscription.mode() == Mode::Wait {
                hits.push(Hit::at(Reason::Exit, moment.end));
            }
        });
        self.subscriptions.clear();
        met
    }

    /// Watches of silence and the like mean nothing once the command has ended.
    fn drop_what_ended(&mut self) {
        self.subscriptions.retain_mut(|subscription| {
            if subscription.watch().is_some() {
                subscription.checks.retain(Check::outlives_the_command);
            }
            !subscription.checks.is_empty()
        });
    }

    /// Shows a fact to all subscriptions.
    pub(super) fn on_fact(&mut self, fact: Fact<'_>, moment: &Moment) -> Vec<Met> {
        self.each(moment, |subscription, hits| subscription.see(fact, moment, hits))
    }

    /// Goes through all subscriptions; those that are done go.
    fn each(&mut self, moment: &Moment, mut show: impl FnMut(&mut Subscription, &mut Vec<Hit>)) -> Vec<Met> {
        let Self { subscriptions, own, watches_changed, .. } = self;
        let (mut met, mut hits) = (Vec::new(), Vec::new());
        subscriptions.retain_mut(|subscription| {
            show(subscription, &mut hits);
            if hits.is_empty() {
                return true;
            }
            let goes_on = subscription.tell(&mut hits, moment, own, &mut met);
            *watches_changed |= !goes_on && subscription.watch().is_some();
            goes_on
        });
        met
    }
}
