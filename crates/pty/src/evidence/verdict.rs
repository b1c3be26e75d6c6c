//! The rule: from what the threads of a job do to whether somebody has to type.
//!
//! In one sentence: a job waits when a thread sleeps on its terminal, has slept there through two looks, and
//! nothing that could wake it otherwise is in sight. What falls short of that needs the screen as a second
//! witness, and what falls short of both is called listening.

use std::time::Duration;

use rustix::process::Pid;

use super::alarms::Alarm;
use super::fds::Source;
use super::history::{Looks, ProcessorUse, Wakes};
use super::terminal::{Modes, TtyIndex};
use super::threads::{Doing, Looker, Seen, Thread};
use super::witness::Witness;
use super::{Hints, Row, nested, text};

/// No claim sooner than this after a byte in either direction: a program that was just sent a line may not have
/// woken up for it yet. In trials one stale claim was made without a gate, and none with 20 ms.
pub(super) const GATE: Duration = Duration::from_millis(40);
/// The same for a program that is back at a prompt it was seen to wait at before, whose owner knows that it has
/// run since the last byte was sent: what is left is to see it sleep twice.
const KNOWN_GATE: Duration = Duration::from_micros(150);
/// How long the screen must have been still before it counts when the kernel refuses evidence.
const QUIET_PASSWORD: Duration = Duration::from_millis(200);
const QUIET_REFUSED: Duration = Duration::from_millis(500);
/// A program that may not be looked into and uses more of a processor than this is at work.
const REFUSED_IDLE_SHARE: f64 = 0.01;

/// A terminal to judge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terminal {
    pub(super) index: TtyIndex,
    pub(super) foreground: Option<i32>,
    pub(super) modes: Modes,
    /// How many relays lie between it and the job's own terminal.
    pub(super) depth: u32,
}

/// How sure a claim is. Ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Refused, but the terminal and the text speak for it.
    Low,
    /// With the screen as second witness.
    Medium,
    /// Nothing else can wake it.
    High,
    /// It sits in a read, and nothing else of the job can go on by itself.
    Certain,
}

/// Who waits, and how that is known.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) pid: Pid,
    pub(super) call: &'static str,
    pub(super) fd: i32,
    pub(super) nested: bool,
    pub(super) modes: Modes,
    pub(super) why: &'static str,
}

/// What is found about one terminal.
#[derive(Clone, Debug)]
pub(super) enum Found {
    Waits(Rank, Finding),
    /// It looks like waiting, and must be seen a second time.
    Unconfirmed,
    Listens(Finding),
    OutputBlocked,
    Stopped(Pid),
    Busy,
    /// Refused, and the rest says nothing.
    Refused,
    /// Nobody is there.
    Nobody,
}

/// How a thread depends on the terminal, once its siblings are taken into account.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Class {
    Read,
    Poll,
    Relay(Vec<TtyIndex>),
    Timer,
    Mixed,
}

struct Candidate<'a> {
    seen: &'a Seen,
    thread: &'a Thread,
    class: Class,
    in_foreground: bool,
    finding: Finding,
    inferred: bool,
}

/// One look at a job, being judged.
pub(super) struct Judge<'a> {
    pub(super) looker: &'a mut Looker,
    pub(super) hints: &'a Hints<'a>,
    pub(super) looks: &'a mut Looks,
    pub(super) wakes: &'a mut Wakes,
    pub(super) processor: &'a mut ProcessorUse,
}

impl Judge<'_> {
    pub(super) fn quiet(&self) -> Duration {
        self.hints.since_output.min(self.hints.since_input)
    }

    /// The best that can be said of a terminal.
    pub(super) fn judge(&mut self, seen: &[Seen], terminal: &Terminal) -> Found {
        let candidates = candidates(seen, terminal);
        let mut best: Option<Found> = None;
        for candidate in &candidates {
            let found = self.rank(seen, terminal, candidate);
            if best.as_ref().is_none_or(|best| preference(&found) > preference(best)) {
                best = Some(found);
            }
        }
        if let Some(found @ (Found::Waits(..) | Found::Unconfirmed)) = best {
            return found;
        }
        if self.is_output_blocked(seen, terminal) {
            return Found::OutputBlocked;
        }
        best.unwrap_or_else(|| self.judge_without_reader(seen, terminal))
    }

    fn rank(&mut self, seen: &[Seen], terminal: &Terminal, candidate: &Candidate<'_>) -> Found {
        let pid = candidate.seen.process.pid;
        let sleep = self.looks.compare(self.looker, pid, candidate.thread.tid);
        let listens = Found::Listens(candidate.finding.clone());
        let claim = |rank, why| {
            let finding = Finding { why, ..candidate.finding.clone() };
            if candidate.seen.process.is_alive() { Found::Waits(rank, finding) } else { Found::Busy }
        };
        let gate = match candidate.class {
            Class::Read | Class::Poll if self.hints.row == Row::SamePrompt => KNOWN_GATE,
            _ => GATE,
        };
        if !sleep.seen_before || self.quiet() < gate {
            return Found::Unconfirmed;
        }
        match &candidate.class {
            Class::Read | Class::Poll if !sleep.unbroken => Found::Unconfirmed,
            Class::Read | Class::Poll if self.has_company(seen, terminal, pid) => listens,
            Class::Read
                if candidate.in_foreground
                    && terminal.depth == 0
                    && !candidate.inferred
                    && !self.something_goes_on(seen, candidate.thread.tid) =>
            {
                claim(Rank::Certain, "it sleeps in a read of its terminal and nothing else in it can go on")
            }
            Class::Read => claim(Rank::High, "it sleeps in a read of the terminal"),
            Class::Poll => claim(Rank::High, "the terminal is the only thing that can wake it"),
            Class::Timer => match self.beside_timer(seen, terminal, candidate.seen) {
                Witness::Yes => claim(
                    Rank::Medium,
                    "only the terminal and a timer can wake it, and the screen shows a prompt",
                ),
                Witness::NotYet => Found::Unconfirmed,
                Witness::No => listens,
            },
            Class::Mixed => match self.beside_others(seen, terminal, candidate.seen) {
                Witness::Yes => claim(
                    Rank::Medium,
                    "the terminal can wake it among other things, and the screen asks for input",
                ),
                Witness::NotYet => Found::Unconfirmed,
                Witness::No => listens,
            },
            Class::Relay(inner) => {
                let inner =
                    nested::judge_inner(self, seen, candidate.seen.process.pid, inner, terminal.depth);
                match inner {
                    Found::Waits(rank, finding) => Found::Waits(rank.min(Rank::High), finding),
                    Found::Unconfirmed | Found::Busy | Found::OutputBlocked | Found::Stopped(_) => inner,
                    Found::Listens(_) | Found::Refused | Found::Nobody => {
                        match self.beside_others(seen, terminal, candidate.seen) {
                            Witness::Yes => claim(
                                Rank::Medium,
                                "it passes the terminal on, and the screen asks for input",
                            ),
                            Witness::NotYet => Found::Unconfirmed,
                            Witness::No => listens,
                        }
                    }
                }
            }
        }
    }

    /// Whether anything of the job but this thread may go on by itself.
    fn something_goes_on(&mut self, seen: &[Seen], reader: Pid) -> bool {
        let mut alive = seen.iter().filter(|seen| seen.process.is_alive());
        alive.any(|seen| {
            let mut others = seen.threads.iter().filter(|thread| thread.tid != reader);
            seen.threads.is_empty()
                || others.any(|thread| thread.doing.may_go_on_by_itself())
                || self.looker.has_posix_timers(seen.process.pid)
        })
    }

    fn is_output_blocked(&mut self, seen: &[Seen], terminal: &Terminal) -> bool {
        in_foreground(seen, terminal).any(|seen| {
            seen.threads.iter().any(|thread| {
                thread.doing == Doing::Writes { terminal: terminal.index }
                    && self.looks.compare(self.looker, seen.process.pid, thread.tid).unbroken
            })
        })
    }

    /// Nobody was seen to read: at work, stopped, or refused.
    fn judge_without_reader(&mut self, seen: &[Seen], terminal: &Terminal) -> Found {
        let is = |seen: &Seen, doing: &Doing| seen.threads.iter().any(|thread| thread.doing == *doing);
        let mut foreground = in_foreground(seen, terminal).filter(|seen| seen.process.is_alive()).peekable();
        if foreground.peek().is_none() {
            // The group that owns the terminal is gone; who is left may be stopped for having read from it.
            let left = || seen.iter().filter(|seen| seen.process.is_alive());
            return match left().next() {
                None => Found::Nobody,
                Some(first) if left().all(|seen| is(seen, &Doing::Stopped)) => {
                    Found::Stopped(first.process.pid)
                }
                Some(_) => Found::Busy,
            };
        }
        let all: Vec<&Seen> = foreground.collect();
        if let Some(stopped) = stopped_for_all(seen, &all) {
            return Found::Stopped(stopped);
        }
        let Some(refused) = all.iter().find(|seen| is(seen, &Doing::Denied)) else { return Found::Busy };
        // Behind a relay the work is done elsewhere: on another terminal, or on none. What the job left in the
        // background of this one does not matter.
        let may_do_its_work = |seen: &Seen| {
            Some(seen.process.pgrp) == terminal.foreground
                || TtyIndex::of_tty_nr(seen.process.tty_nr) != Some(terminal.index)
        };
        let at_work =
            |thread: &Thread| matches!(thread.doing, Doing::Running | Doing::Disk | Doing::Sleeps(_));
        if seen.iter().any(|seen| may_do_its_work(seen) && seen.threads.iter().any(at_work)) {
            return Found::Busy;
        }
        self.judge_refused(seen, terminal, refused.process.pid)
    }

    /// A program that shows nothing of itself: its terminal's modes, its text and its idleness must do.
    fn judge_refused(&mut self, seen: &[Seen], terminal: &Terminal, pid: Pid) -> Found {
        let share = self.processor.share(self.looker, in_foreground(seen, terminal));
        let Some(share) = share else { return Found::Unconfirmed };
        if share > REFUSED_IDLE_SHARE {
            return Found::Busy;
        }
        let asks = text::is_prompt_like(self.hints.text_before_cursor);
        let takes_keys = !terminal.modes.canonical
            && (self.hints.alternate_screen || self.hints.bracketed_paste || self.hints.cursor_hidden);
        let (needed, why) = if asks && terminal.modes.hides_a_line() {
            (QUIET_PASSWORD, "it may not be looked into, but it hides what is typed and shows a prompt")
        } else if asks || takes_keys {
            (QUIET_REFUSED, "it may not be looked into, but the screen looks as if it waits")
        } else {
            return Found::Refused;
        };
        if self.quiet() < needed {
            return Found::Unconfirmed;
        }
        let nested = terminal.depth > 0;
        Found::Waits(Rank::Low, Finding { pid, call: "", fd: -1, nested, modes: terminal.modes, why })
    }
}

/// A process whose stop keeps the whole job from going on: everybody else is stopped too, or waits
/// for a child or a signal.
fn stopped_for_all(seen: &[Seen], foreground: &[&Seen]) -> Option<Pid> {
    let is_stopped = |seen: &Seen| seen.threads.iter().any(|thread| thread.doing == Doing::Stopped);
    let waits = |seen: &Seen| {
        seen.threads
            .iter()
            .all(|thread| matches!(thread.doing, Doing::WaitsForChild | Doing::Parked(_) | Doing::Idles(_)))
    };
    if foreground.iter().all(|seen| is_stopped(seen)) {
        return foreground.first().map(|seen| seen.process.pid);
    }
    let alive = || seen.iter().filter(|seen| seen.process.is_alive());
    let stuck = alive().all(|seen| is_stopped(seen) || waits(seen));
    alive().find(|seen| stuck && is_stopped(seen)).map(|seen| seen.process.pid)
}

/// Which of two findings about the same terminal to believe.
fn preference(found: &Found) -> u32 {
    match found {
        Found::Waits(rank, _) => 10 + *rank as u32,
        Found::Unconfirmed => 5,
        Found::OutputBlocked => 4,
        Found::Listens(_) => 3,
        Found::Stopped(_) => 2,
        Found::Busy | Found::Refused => 1,
        Found::Nobody => 0,
    }
}

pub(super) fn in_foreground<'s>(
    seen: &'s [Seen],
    terminal: &Terminal,
) -> impl Iterator<Item = &'s Seen> + use<'s> {
    let foreground = terminal.foreground;
    seen.iter().filter(move |seen| Some(seen.process.pgrp) == foreground)
}

/// Every thread that the terminal could wake.
fn candidates<'s>(seen: &'s [Seen], terminal: &Terminal) -> Vec<Candidate<'s>> {
    let mut found = Vec::new();
    for seen in seen {
        let in_foreground = Some(seen.process.pgrp) == terminal.foreground;
        let same_session = TtyIndex::of_tty_nr(seen.process.tty_nr) == Some(terminal.index);
        for thread in &seen.threads {
            let Some((class, call, fd, inferred)) = classify(&thread.doing, terminal) else { continue };
            // A background process of the same session would be stopped for reading, so watching the terminal
            // means nothing there. One of another session, or none, may read.
            if !in_foreground && same_session && class != Class::Read {
                continue;
            }
            let class = beside_siblings(class, seen, thread, terminal);
            let nested = terminal.depth > 0;
            let why = "it would take input, but other things can wake it too";
            let finding = Finding { pid: seen.process.pid, call, fd, nested, modes: terminal.modes, why };
            found.push(Candidate { seen, thread, class, in_foreground, finding, inferred });
        }
    }
    found
}

/// A thread's class by itself, the call it sits in, and the descriptor of the terminal.
fn classify(doing: &Doing, terminal: &Terminal) -> Option<(Class, &'static str, i32, bool)> {
    match doing {
        Doing::Reads { call, fd, terminal: index, inferred } if *index == terminal.index => {
            let class = if terminal.modes.reads_time_out { Class::Timer } else { Class::Read };
            Some((class, call, *fd, *inferred))
        }
        Doing::Watches { call, set, alarm, inferred } => {
            let ours = |source| source == Source::Terminal(terminal.index);
            let fd = set.iter().find(|member| member.reads && ours(member.source))?.fd;
            let relays: Vec<TtyIndex> = set
                .iter()
                .filter_map(|member| match member.source {
                    Source::Relay(inner) if inner != terminal.index => Some(inner),
                    _ => None,
                })
                .collect();
            let any = |wanted: fn(Source) -> bool| {
                set.iter().any(|member| !ours(member.source) && wanted(member.source))
            };
            let class = if !relays.is_empty() {
                Class::Relay(relays)
            } else if any(|source| {
                matches!(source, Source::External(_) | Source::Terminal(_) | Source::Relay(_))
            }) {
                Class::Mixed
            } else if alarm.is_near()
                || *alarm == Alarm::Unknown
                || any(|source| matches!(source, Source::Soft | Source::Timer(_)))
            {
                Class::Timer
            } else {
                Class::Poll
            };
            Some((class, call, fd, *inferred))
        }
        _ => None,
    }
}

/// What the other threads of the process make of a thread's class.
fn beside_siblings(class: Class, seen: &Seen, thread: &Thread, terminal: &Terminal) -> Class {
    if matches!(class, Class::Relay(_) | Class::Mixed) {
        return class;
    }
    let mut result = class;
    for sibling in seen.threads.iter().filter(|sibling| sibling.tid != thread.tid) {
        match &sibling.doing {
            // A lock that can't be looked into may have a timeout.
            Doing::Parked(Alarm::Unknown) => result = Class::Timer,
            Doing::Parked(alarm) | Doing::Idles(alarm) if !alarm.is_near() => {}
            Doing::Parked(_) | Doing::Idles(_) | Doing::Sleeps(_) => result = Class::Timer,
            doing => match classify(doing, terminal) {
                Some((Class::Timer, ..)) => result = Class::Timer,
                Some(_) => {}
                None => return Class::Mixed,
            },
        }
    }
    result
}

#[cfg(test)]
mod tests;
