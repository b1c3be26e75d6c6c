//! One condition of a subscription, with what it remembers: [`Check::see`] decides whether it holds.

use std::time::{Duration, Instant};

use outlast_protocol::Condition;
use outlast_protocol::condition::Http;

use super::Moment;
use super::batch::Batch;
use super::pattern_search::{PatternCache, Patterns};
use super::text_gone::TextGone;
use crate::failure::Failure;
use crate::spec::Streams;
use crate::wire::watch::LineTold;
use crate::wire::{Awaiting, Found, Level, Reason, Stable};
use outlast_stream::StableScreen;

/// How long after output the screen is looked at for text that should go: a flood is not looked at screen by screen.
const GONE_DELAY: Duration = Duration::from_millis(50);

/// How soon a port that did not answer as wanted is asked again; the time doubles with each answer.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
/// The longest time between two requests to a port.
const LONGEST_BACKOFF: Duration = Duration::from_secs(5);
/// More ports of one job than this are not asked.
const MAX_HTTP_PORTS: usize = 16;

/// Something that happened, or that is looked at again.
#[derive(Clone, Copy, Debug)]
pub(in crate::keeper) enum Fact<'a> {
    /// Something was printed.
    Output,
    /// The job waits for input, or only takes it: its level says which.
    Awaiting(&'a Awaiting),
    /// The job listens on this port.
    Port(u16),
    /// A port of the job was asked for a path.
    Http(&'a HttpAnswer),
    /// What the screen shows.
    Screen(&'a [String]),
    /// Time has passed.
    Time,
    /// The job has ended and all that it printed was seen.
    Drained,
    /// The job has ended, and its event is written down.
    Exit,
}

/// What a port of the job is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::keeper) struct HttpTarget {
    pub(in crate::keeper) port: u16,
    pub(in crate::keeper) path: String,
}

/// How a port of the job answered: with a status, or not at all.
#[derive(Clone, Debug)]
pub(in crate::keeper) struct HttpAnswer {
    pub(in crate::keeper) target: HttpTarget,
    pub(in crate::keeper) status: Option<u16>,
}

/// A condition holds.
#[derive(Clone, Debug)]
pub(super) struct Hit {
    pub(super) reason: Reason,
    /// How often, and where in the log first and last.
    pub(super) count: u64,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) found: Option<Found>,
    pub(super) lines: Vec<LineTold>,
    pub(super) awaiting: Option<Awaiting>,
    pub(super) port: Option<u16>,
    /// Whether it held when the subscription began.
    pub(super) already: bool,
}

impl Hit {
    pub(super) fn at(reason: Reason, offset: u64) -> Self {
        Self {
            reason,
            count: 1,
            from: offset,
            to: offset,
            found: None,
            lines: Vec::new(),
            awaiting: None,
            port: None,
            already: false,
        }
    }
}

/// How a subscription is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// A client's wait: the first condition that holds ends it, also one that holds from the start.
    Wait,
    /// A watch that tells once.
    Once,
    /// A watch that tells each time.
    Each,
}

/// What a new check is made from.
pub(super) struct Start<'a> {
    pub(super) mode: Mode,
    pub(super) from: u64,
    pub(super) streams: Streams,
    pub(super) moment: &'a Moment,
    pub(super) cache: &'a mut PatternCache,
}

/// A condition, or several of one kind, and how far they have come.
pub(super) enum Check {
    Exit,
    /// At least this surely.
    AwaitingInput(Level),
    Port(Option<u16>),
    Http {
        wanted: Http,
        /// Ports of the job that have not answered as wanted yet.
        ports: Vec<u16>,
        ask_at: Instant,
        backoff: Duration,
    },
    Output {
        seen: u64,
        batch: Batch,
    },
    Quiet {
        after: Duration,
        /// The silence that was told: the one after the output of then.
        told: Option<Instant>,
    },
    Stable {
        wanted: Stable,
        /// Checks that are under way.
        screen: Option<StableScreen>,
        /// Whether something was printed since the screen was last found stable.
        changed: bool,
        /// The screen that was told.
        told: Option<u64>,
    },
    Gone {
        text: TextGone,
        /// Whether it counts when the text is not there. A watch that has told waits until the text is back.
        armed: bool,
        look_at: Option<Instant>,
    },
    Patterns(Box<Patterns>),
}

impl Check {
    /// The checks of some conditions. Patterns are one check, so that each byte is looked at once.
    ///
    /// # Errors
    /// A usage failure for a bad pattern.
    pub(super) fn all(until: &[Condition], start: Start<'_>) -> Result<Vec<Self>, Failure> {
        let (mut patterns, mut lines) = (Vec::new(), false);
        let mut checks = Vec::new();
        for condition in until {
            match condition {
                Condition::Exit => checks.push(Self::Exit),
                Condition::AwaitingInput => checks.push(Self::AwaitingInput(Level::Possible)),
                Condition::AwaitingAtLeast(least) => checks.push(Self::AwaitingInput(*least)),
                Condition::Port(port) => checks.push(Self::Port(*port)),
                Condition::Http(wanted) => {
                    let (wanted, ports, ask_at) = (wanted.clone(), Vec::new(), start.moment.now);
                    checks.push(Self::Http { wanted, ports, ask_at, backoff: FIRST_BACKOFF });
                }
                Condition::Output => checks.push(Self::Output { seen: start.from, batch: Batch::new() }),
                Condition::Quiet { ms } => {
                    checks.push(Self::Quiet { after: Duration::from_millis(*ms), told: None });
                }
                Condition::Stable(wanted) => {
                    // A bad pattern is refused now; the screen is looked at later.
                    StableScreen::new(wanted, &[], start.moment.now)?;
                    let wanted = wanted.clone();
                    checks.push(Self::Stable { wanted, screen: None, changed: true, told: None });
                }
                Condition::Gone(pattern) => {
                    let text = TextGone::new(pattern)?;
                    // Nothing can have gone from a screen on which nothing was printed; a wait takes it as it is.
                    let armed = start.mode == Mode::Wait || start.moment.end > 0;
                    checks.push(Self::Gone { text, armed, look_at: Some(start.moment.now) });
                }
                Condition::Pattern(pattern) => patterns.push(pattern.clone()),
                Condition::Lines => lines = true,
            }
        }
        if lines || !patterns.is_empty() {
            let (streams, from) = (start.streams, start.from);
            let patterns = Patterns::new(patterns, lines, (streams, from), start.cache)?;
            checks.push(Self::Patterns(Box::new(patterns)));
        }
        Ok(checks)
    }

    /// Looks whether the condition holds now that something happened.
    pub(super) fn see(&mut self, fact: Fact<'_>, context: &Context, moment: &Moment, hits: &mut Vec<Hit>) {
        let (now, end) = (moment.now, moment.end);
        match (self, fact) {
            (Self::Exit, Fact::Exit) => hits.push(Hit::at(Reason::Exit, end)),
            (Self::AwaitingInput(least), Fact::Awaiting(awaiting)) if awaiting.level.is_at_least(*least) => {
                hits.push(Hit { awaiting: Some(awaiting.clone()), ..Hit::at(Reason::AwaitingInput, end) });
            }
            (Self::Port(wanted), Fact::Port(port)) if wanted.is_none_or(|wanted| wanted == port) => {
                hits.push(Hit { port: Some(port), ..Hit::at(Reason::Port, end) });
            }
            (Self::Http { wanted, ports, ask_at, backoff }, Fact::Port(port)) => {
                let is_wanted = wanted.port.is_none_or(|wanted| wanted == port);
                if is_wanted && !ports.contains(&port) && ports.len() < MAX_HTTP_PORTS {
                    ports.push(port);
                    (*ask_at, *backoff) = (now, FIRST_BACKOFF);
                }
            }
            (Self::Http { wanted, ports, ask_at, backoff }, Fact::Http(answer)) => {
                let HttpTarget { port, path } = &answer.target;
                if *path != wanted.path || !ports.contains(port) {
                    return;
                }
                match answer.status.filter(|status| wanted.accepts(*status)) {
                    Some(status) => {
                        // A watch tells again once the port was closed and is open again.
                        ports.retain(|known| known != port);
                        let captures = vec![Some(status.to_string()), Some(path.clone())];
                        let found = Found { pattern: 0, text: format!("{status} {path}"), captures };
                        let port = Some(*port);
                        hits.push(Hit { port, found: Some(found), ..Hit::at(Reason::Http, end) });
                    }
                    None => {
                        *ask_at = now + *backoff;
                        *backoff = (*backoff * 2).min(LONGEST_BACKOFF);
                    }
                }
            }
            (Self::Output { seen, batch }, Fact::Output) if end > *seen => {
                let from = std::mem::replace(seen, end);
                match context.mode {
                    Mode::Each => batch.add_output(from, end, now),
                    Mode::Wait | Mode::Once => hits.push(Hit { from, ..Hit::at(Reason::Output, end) }),
                }
            }
            (Self::Output { batch, .. }, Fact::Time) => hits.extend(batch.take_due(now, false)),
            (Self::Output { batch, .. }, Fact::Drained) => hits.extend(batch.take()),
            (Self::Quiet { after, told }, Fact::Time) => {
                let due = quiet_at(*after, *told, context.began, moment.last_output);
                if !context.behind && due.is_some_and(|at| now >= at) {
                    *told = Some(moment.last_output);
                    hits.push(Hit::at(Reason::Quiet, end));
                }
            }
            (Self::Stable { changed, .. }, Fact::Output) => *changed = true,
            (Self::Stable { wanted, screen, changed, told }, Fact::Screen(rows)) => {
                if let Some(checks) = screen {
                    if now >= checks.next() && checks.check(rows, now) {
                        let fingerprint = Some(checks.fingerprint());
                        (*screen, *changed) = (None, false);
                        if std::mem::replace(told, fingerprint) != fingerprint {
                            hits.push(Hit::at(Reason::Stable, end));
                        }
                    }
                } else if std::mem::take(changed) {
                    *screen = StableScreen::new(wanted, rows, now).ok();
                }
            }
            (Self::Gone { look_at, .. }, Fact::Output) => {
                look_at.get_or_insert(now + GONE_DELAY);
            }
            (Self::Gone { text, armed, look_at }, Fact::Screen(rows)) => {
                *look_at = look_at.filter(|at| now < *at);
                let gone = text.is_gone(rows);
                if gone && *armed {
                    hits.push(Hit::at(Reason::Gone, end));
                }
                *armed = !gone;
            }
            (Self::Patterns(patterns), Fact::Time) => patterns.take_due(now, end, hits),
            (Self::Patterns(patterns), Fact::Drained) => patterns.drain(context.mode, now, hits),
            (
                Self::Exit
                | Self::AwaitingInput(_)
                | Self::Port(_)
                | Self::Http { .. }
                | Self::Output { .. }
                | Self::Quiet { .. }
                | Self::Stable { .. }
                | Self::Gone { .. }
                | Self::Patterns(_),
                Fact::Output
                | Fact::Awaiting(_)
                | Fact::Port(_)
                | Fact::Http(_)
                | Fact::Screen(_)
                | Fact::Time
                | Fact::Drained
                | Fact::Exit,
            ) => {}
        }
    }

    /// The next moment at which time alone may make it hold, or the screen must be looked at.
    pub(super) fn next(&self, began: Instant, last_output: Instant) -> Option<Instant> {
        match self {
            Self::Quiet { after, told } => quiet_at(*after, *told, began, last_output),
            Self::Stable { screen, .. } => screen.as_ref().map(StableScreen::next),
            Self::Gone { look_at, .. } => *look_at,
            Self::Output { batch, .. } => batch.due_at(),
            Self::Patterns(patterns) => patterns.due_at(),
            // Callers that look at ports ask for it as well.
            Self::Exit | Self::AwaitingInput(_) | Self::Port(_) | Self::Http { .. } => None,
        }
    }

    /// Whether the screen must be looked at for it now.
    pub(super) fn wants_screen(&self, now: Instant) -> bool {
        match self {
            Self::Stable { screen, changed, .. } => {
                screen.as_ref().map_or(*changed, |checks| now >= checks.next())
            }
            Self::Gone { look_at, .. } => look_at.is_some_and(|at| now >= at),
            Self::Exit
            | Self::AwaitingInput(_)
            | Self::Port(_)
            | Self::Http { .. }
            | Self::Output { .. }
            | Self::Quiet { .. }
            | Self::Patterns(_) => false,
        }
    }

    /// Adds what somebody must find out for it.
    pub(super) fn add_wanted(&self, mode: Mode, wanted: &mut Wanted) {
        let waits = mode == Mode::Wait;
        match self {
            Self::AwaitingInput(_) => wanted.awaiting_input |= waits,
            Self::Port(_) if waits => wanted.port = true,
            Self::Port(_) => wanted.port_event = true,
            Self::Http { wanted: http, ports, ask_at, .. } => {
                *(if waits { &mut wanted.port } else { &mut wanted.port_event }) = true;
                let target = |port: &u16| (*ask_at, HttpTarget { port: *port, path: http.path.clone() });
                wanted.http.extend(ports.iter().map(target));
            }
            Self::Exit
            | Self::Output { .. }
            | Self::Quiet { .. }
            | Self::Stable { .. }
            | Self::Gone { .. }
            | Self::Patterns(_) => {}
        }
    }

    /// Whether it can still hold once the job has ended: children that were left behind may print.
    pub(super) fn outlives_the_command(&self) -> bool {
        match self {
            Self::Exit | Self::Output { .. } | Self::Patterns(_) => true,
            Self::AwaitingInput(_)
            | Self::Port(_)
            | Self::Http { .. }
            | Self::Quiet { .. }
            | Self::Stable { .. }
            | Self::Gone { .. } => false,
        }
    }
}

/// What somebody must find out for the subscriptions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::keeper) struct Wanted {
    /// A client waits until the job waits for input.
    pub(in crate::keeper) awaiting_input: bool,
    /// A client waits for a port.
    pub(in crate::keeper) port: bool,
    /// A port is worth an event.
    pub(in crate::keeper) port_event: bool,
    /// What the job's ports are asked for over HTTP, and when.
    pub(in crate::keeper) http: Vec<(Instant, HttpTarget)>,
}

/// Whether conditions look at the screen.
pub(in crate::keeper) fn looks_at_screen(until: &[Condition]) -> bool {
    until.iter().any(Condition::needs_screen)
}

/// What a check must know of its subscription.
pub(super) struct Context {
    pub(super) mode: Mode,
    pub(super) began: Instant,
    /// Whether patterns of the same subscription have not seen all of the log yet.
    pub(super) behind: bool,
}

/// When a silence is long enough: it counts from the last output, but not from before the subscription.
fn quiet_at(after: Duration, told: Option<Instant>, began: Instant, last_output: Instant) -> Option<Instant> {
    if told == Some(last_output) {
        return None;
    }
    last_output.max(began).checked_add(after)
}
