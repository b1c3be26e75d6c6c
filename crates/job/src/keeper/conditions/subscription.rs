//! A listener with its conditions: a client's wait, which ends once, or a watch, which tells once or each time.

use std::time::Instant;

use outlast_protocol::Condition;

use super::check::{Check, Context, Fact, Hit, Mode};
use super::pattern_search::Patterns;
use super::{Client, FLOOD_PIECE, Met, Moment, Pace, Unread, WAIT_PIECE, WATCH_PIECE};
use crate::clock::{earliest, millis};
use crate::wire::watch::{Fired, Watch};
use crate::wire::{Reason, Waited};

/// Who is told when a condition holds.
pub(super) enum Listener {
    /// A client, with the answer to its request.
    Client(Client),
    /// The session, with an event.
    Watch(Watch),
}

pub(super) struct Subscription {
    pub(super) listener: Listener,
    pub(super) checks: Vec<Check>,
    pub(super) began: Instant,
    pub(super) deadline: Option<Instant>,
    /// The end of the log when it began: what is found before was there already.
    pub(super) known: u64,
    /// Whether its patterns see no secrets.
    pub(super) masked: bool,
    /// The step of a shell that it is about, and whether that is over.
    pub(super) step: Option<u64>,
    pub(super) over: bool,
}

impl Subscription {
    pub(super) fn mode(&self) -> Mode {
        match &self.listener {
            Listener::Client(_) => Mode::Wait,
            Listener::Watch(watch) if watch.each => Mode::Each,
            Listener::Watch(_) => Mode::Once,
        }
    }

    pub(super) fn patterns(&self) -> Option<&Patterns> {
        self.checks
            .iter()
            .find_map(|check| if let Check::Patterns(patterns) = check { Some(&**patterns) } else { None })
    }

    pub(super) fn client(&self) -> Option<&Client> {
        match &self.listener {
            Listener::Client(client) => Some(client),
            Listener::Watch(_) => None,
        }
    }

    pub(super) fn watch(&self) -> Option<&Watch> {
        match &self.listener {
            Listener::Client(_) => None,
            Listener::Watch(watch) => Some(watch),
        }
    }

    fn patterns_mut(&mut self) -> Option<&mut Patterns> {
        self.checks.iter_mut().find_map(|check| {
            if let Check::Patterns(patterns) = check { Some(&mut **patterns) } else { None }
        })
    }

    /// Whether some pattern has not seen all of the log.
    pub(super) fn is_behind(&self, end: u64) -> bool {
        self.patterns().is_some_and(|patterns| patterns.is_behind(end))
    }

    /// The next piece of the log that its patterns have not seen.
    pub(super) fn unread(&self, end: u64, pace: Pace) -> Option<Unread> {
        let patterns = self.patterns().filter(|patterns| patterns.is_behind(end))?;
        let most = match (self.mode(), pace) {
            (Mode::Wait, Pace::Round) => WAIT_PIECE,
            (Mode::Wait, Pace::Flood) => FLOOD_PIECE,
            (Mode::Once | Mode::Each, Pace::Round) => WATCH_PIECE,
            (Mode::Once | Mode::Each, Pace::Flood) => return None,
        };
        let from = patterns.offset();
        let left = end.saturating_sub(from);
        if pace == Pace::Flood && left == 0 {
            return None;
        }
        let len = usize::try_from(left).unwrap_or(most).min(most);
        Some(Unread { from, len, masked: self.masked, pace })
    }

    /// Shows a fact to all conditions. What holds is told by [`tell`](Self::tell).
    pub(super) fn see(&mut self, fact: Fact<'_>, moment: &Moment, hits: &mut Vec<Hit>) {
        let behind = self.is_behind(moment.end);
        let context = Context { mode: self.mode(), began: self.began, behind };
        for check in &mut self.checks {
            check.see(fact, &context, moment, hits);
        }
    }

    /// Gives patterns the next bytes of the log.
    pub(super) fn feed(&mut self, bytes: &[u8], more_comes: bool, moment: &Moment, hits: &mut Vec<Hit>) {
        let mode = self.mode();
        if let Some(patterns) = self.patterns_mut() {
            patterns.feed(bytes, more_comes, (mode, moment), hits);
        }
    }

    /// Whether the time is up; the answer if it is.
    pub(super) fn deadline_passed(&self, moment: &Moment) -> Option<Hit> {
        let passed = self.deadline.is_some_and(|at| moment.now >= at);
        passed.then(|| Hit::at(Reason::Deadline, moment.end))
    }

    /// Makes answers and events of what holds; false when the subscription is done. `own` are conditions of whose
    /// own events the session is told anyway.
    pub(super) fn tell(
        &self,
        hits: &mut Vec<Hit>,
        moment: &Moment,
        own: &[Condition],
        met: &mut Vec<Met>,
    ) -> bool {
        let mut goes_on = true;
        for hit in hits.drain(..) {
            match &self.listener {
                Listener::Client(client) => {
                    if goes_on {
                        met.push(Met::Wait(*client, self.waited(hit, moment)));
                    }
                    goes_on = false;
                }
                // The end has an event of its own, and nothing comes after it.
                Listener::Watch(_) if hit.reason == Reason::Exit => {}
                Listener::Watch(watch) => {
                    let told_anyway = own.iter().any(|condition| condition.reason() == hit.reason);
                    if goes_on && !told_anyway {
                        met.push(Met::Watch(fired(watch, hit)));
                    }
                    goes_on = watch.each;
                }
            }
        }
        goes_on
    }

    fn waited(&self, hit: Hit, moment: &Moment) -> Waited {
        Waited {
            elapsed_ms: millis(moment.now.saturating_duration_since(self.began)),
            already: hit.already || hit.found.is_some() && hit.to <= self.known,
            found: hit.found,
            awaiting_input: hit.awaiting,
            port: hit.port,
            ..Waited::because(hit.reason, hit.to)
        }
    }

    /// The next moment at which time alone can make a condition hold.
    pub(super) fn next_deadline(&self, last_output: Instant) -> Option<Instant> {
        self.checks
            .iter()
            .fold(self.deadline, |next, check| earliest(next, check.next(self.began, last_output)))
    }
}

fn fired(watch: &Watch, hit: Hit) -> Fired {
    Fired {
        watch: watch.id.clone(),
        reason: hit.reason,
        count: hit.count,
        from: hit.from,
        to: hit.to,
        found: hit.found.map(crate::wire::Found::shortened),
        lines: hit.lines,
        port: hit.port,
    }
}
