//! The rule: from what the threads of a job do to whether someone has to type.
//!
//! In one sentence: a job waits if a thread sleeps on its terminal, has slept there through two samples, and
//! nothing else in sight could wake it. If that is not quite met, the screen must support it; if it does not
//! either, the job is listening.

use std::time::Duration;

use rustix::process::Pid;

use super::alarms::{Alarm, MAX_REDRAW_PERIOD};
use super::certainty::NothingElse;
use super::fds::Source;
use super::history::{ProcessorUse, SampleHistory, Wakeups};
use super::modes::Modes;
use super::terminal::TtyIndex;
use super::threads::{Doing, Sample, Thread, ThreadScanner};
use super::witness::Witness;
use super::{Hints, Row, SETTLE_TIME_AT_PROMPT, nested, text};

/// No claim is made sooner than this after a byte in either direction: a program that was just sent a line
/// may not have woken for it yet. In trials, one stale claim was made without a settle time, and none with 20
/// ms.
pub(super) const SETTLE_TIME: Duration = Duration::from_millis(40);
/// If evidence is denied: how long the screen must be unchanged before a password prompt counts.
const QUIET_PASSWORD: Duration = Duration::from_millis(200);
/// If evidence is denied: how long the screen must be unchanged before any other prompt counts.
const QUIET_DENIED: Duration = Duration::from_millis(500);
/// If evidence is denied: a program that uses a larger share of a processor is working.
const DENIED_IDLE_SHARE: f64 = 0.01;

/// A terminal to judge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terminal {
    pub(super) index: TtyIndex,
    pub(super) foreground: Option<i32>,
    pub(super) modes: Modes,
    /// How many relays are between it and the job's own terminal.
    pub(super) depth: u32,
}

/// How certain a claim is. Ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Evidence was denied, but the terminal and the text support it.
    Low,
    /// The screen supports it.
    Medium,
    /// Nothing else can wake it.
    High,
    /// It is in a read, and nothing else in the job can continue by itself.
    Certain(NothingElse),
}

/// Which process waits, and the evidence.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) pid: Pid,
    pub(super) call: &'static str,
    pub(super) fd: i32,
    pub(super) nested: bool,
    pub(super) modes: Modes,
    pub(super) why: &'static str,
}

/// What was found about one terminal.
#[derive(Clone, Debug)]
pub(super) enum Assessment {
    Waits(Rank, Finding),
    /// It looks like waiting, and must be seen a second time.
    Unconfirmed,
    Listens(Finding),
    OutputBlocked,
    Stopped(Pid),
    Busy,
    /// Evidence was denied, and the rest suggests nothing.
    Denied,
    /// No process is there.
    Nobody,
}

/// How a thread depends on the terminal, together with the other threads of its process.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Class {
    Read,
    Poll,
    Relay(Vec<TtyIndex>),
    Timer,
    Mixed,
}

struct Candidate<'a> {
    sample: &'a Sample,
    thread: &'a Thread,
    class: Class,
    in_foreground: bool,
    finding: Finding,
    inferred: bool,
}

/// Judges one sample of a job.
pub(super) struct Judge<'a> {
    pub(super) scanner: &'a mut ThreadScanner,
    pub(super) hints: &'a Hints<'a>,
    pub(super) history: &'a mut SampleHistory,
    pub(super) wakeups: &'a mut Wakeups,
    pub(super) processor: &'a mut ProcessorUse,
}

impl Judge<'_> {
    pub(super) fn quiet(&self) -> Duration {
        self.hints.since_output.min(self.hints.since_input)
    }

    /// The best claim that can be made about a terminal.
    pub(super) fn judge(&mut self, samples: &[Sample], terminal: &Terminal) -> Assessment {
        let candidates = candidates(samples, terminal);
        let mut best: Option<Assessment> = None;
        for candidate in &candidates {
            let found = self.rank(samples, terminal, candidate);
            if best.as_ref().is_none_or(|best| preference(&found) > preference(best)) {
                best = Some(found);
            }
        }
        if let Some(found @ (Assessment::Waits(..) | Assessment::Unconfirmed)) = best {
            return found;
        }
        if self.is_output_blocked(samples, terminal) {
            return Assessment::OutputBlocked;
        }
        best.unwrap_or_else(|| self.judge_without_reader(samples, terminal))
    }

    fn rank(&mut self, samples: &[Sample], terminal: &Terminal, candidate: &Candidate<'_>) -> Assessment {
        let pid = candidate.sample.process.pid;
        let sleep = self.history.compare(self.scanner, pid, candidate.thread.tid);
        let listens = Assessment::Listens(candidate.finding.clone());
        let claim = |rank, why| {
            let finding = Finding { why, ..candidate.finding.clone() };
            if candidate.sample.process.is_alive() {
                Assessment::Waits(rank, finding)
            } else {
                Assessment::Busy
            }
        };
        let gate = match candidate.class {
            Class::Read | Class::Poll if self.hints.row == Row::SamePrompt => SETTLE_TIME_AT_PROMPT,
            Class::Read | Class::Poll | Class::Relay(_) | Class::Timer | Class::Mixed => SETTLE_TIME,
        };
        match candidate.class {
            Class::Read | Class::Poll => {}
            // How busy it is will be asked at a later look, and be said of the time from here on.
            Class::Timer | Class::Mixed | Class::Relay(_) => {
                self.processor.share(self.scanner, in_foreground(samples, terminal));
            }
        }
        if !sleep.seen_before || self.quiet() < gate {
            return Assessment::Unconfirmed;
        }
        let behind_socket = match candidate.class {
            Class::Mixed => nested::behind_socket(self, samples, candidate.thread).map(Class::Relay),
            Class::Read | Class::Poll | Class::Timer | Class::Relay(_) => None,
        };
        match behind_socket.as_ref().unwrap_or(&candidate.class) {
            Class::Read | Class::Poll if !sleep.unbroken && self.quiet() < MAX_REDRAW_PERIOD => {
                Assessment::Unconfirmed
            }
            // Signals wake it again and again, as those of an interval timer do.
            Class::Read | Class::Poll if !sleep.unbroken => {
                match self.beside_timer(samples, terminal, candidate.sample) {
                    Witness::Yes => claim(
                        Rank::Medium,
                        "signals interrupt its read of the terminal, and the screen shows a prompt",
                    ),
                    Witness::NotYet => Assessment::Unconfirmed,
                    Witness::No => listens,
                }
            }
            Class::Read | Class::Poll if self.others_are_working(samples, terminal, pid) => listens,
            Class::Read | Class::Poll | Class::Timer | Class::Mixed
                if self.works_behind_the_screen(samples, terminal, candidate.sample, candidate.thread) =>
            {
                listens
            }
            Class::Read => {
                let may_be_certain = candidate.in_foreground && terminal.depth == 0 && !candidate.inferred;
                let proof = may_be_certain
                    .then(|| NothingElse::prove(self.scanner, samples, candidate.thread.tid))
                    .flatten();
                match proof {
                    Some(proof) => claim(
                        Rank::Certain(proof),
                        "it sleeps in a read of its terminal and nothing else in it can go on",
                    ),
                    None => claim(Rank::High, "it sleeps in a read of the terminal"),
                }
            }
            Class::Poll => claim(Rank::High, "the terminal is the only thing that can wake it"),
            Class::Timer => match self.beside_timer(samples, terminal, candidate.sample) {
                Witness::Yes => claim(
                    Rank::Medium,
                    "only the terminal and a timer can wake it, and the screen shows a prompt",
                ),
                Witness::NotYet => Assessment::Unconfirmed,
                Witness::No => listens,
            },
            Class::Mixed => match self.beside_others(samples, terminal, candidate.sample) {
                Witness::Yes => claim(
                    Rank::Medium,
                    "the terminal can wake it among other things, and the screen asks for input",
                ),
                Witness::NotYet => Assessment::Unconfirmed,
                Witness::No => listens,
            },
            Class::Relay(inner) => {
                let inner = nested::judge_inner(self, samples, candidate.sample.process.pid, inner, terminal);
                match inner {
                    Assessment::Waits(rank, finding) => Assessment::Waits(rank.min(Rank::High), finding),
                    Assessment::Unconfirmed
                    | Assessment::Busy
                    | Assessment::OutputBlocked
                    | Assessment::Stopped(_) => inner,
                    Assessment::Listens(_) | Assessment::Denied | Assessment::Nobody => {
                        match self.beside_others(samples, terminal, candidate.sample) {
                            Witness::Yes => claim(
                                Rank::Medium,
                                "it passes the terminal on, and the screen asks for input",
                            ),
                            Witness::NotYet => Assessment::Unconfirmed,
                            Witness::No => listens,
                        }
                    }
                }
            }
        }
    }

    fn is_output_blocked(&mut self, samples: &[Sample], terminal: &Terminal) -> bool {
        in_foreground(samples, terminal).any(|sample| {
            sample.threads.iter().any(|thread| {
                thread.doing == Doing::Writes { terminal: terminal.index }
                    && self.history.compare(self.scanner, sample.process.pid, thread.tid).unbroken
            })
        })
    }

    /// No reader was found: working, stopped, or denied.
    fn judge_without_reader(&mut self, samples: &[Sample], terminal: &Terminal) -> Assessment {
        if let Some(found) = self.told_by_signal(samples, terminal) {
            return found;
        }
        let is = |sample: &Sample, doing: &Doing| sample.threads.iter().any(|thread| thread.doing == *doing);
        let mut foreground =
            in_foreground(samples, terminal).filter(|sample| sample.process.is_alive()).peekable();
        if foreground.peek().is_none() {
            // The group that owns the terminal has ended; the remaining processes may be stopped for having
            // read from it.
            let left = || samples.iter().filter(|sample| sample.process.is_alive());
            if let Some(hidden) = hidden_group(terminal) {
                return self.judge_denied(samples, terminal, hidden);
            }
            return match left().next() {
                None => Assessment::Nobody,
                Some(first) if left().all(|sample| is(sample, &Doing::Stopped)) => {
                    Assessment::Stopped(first.process.pid)
                }
                Some(_) => Assessment::Busy,
            };
        }
        let all: Vec<&Sample> = foreground.collect();
        if let Some(stopped) = stopped_for_all(samples, &all) {
            return Assessment::Stopped(stopped);
        }
        let Some(denied) = all.iter().find(|sample| is(sample, &Doing::Denied)) else {
            return Assessment::Busy;
        };
        // Behind a relay, the work is done elsewhere: on another terminal, or on none. What the job left in
        // the background of this one does not matter.
        let may_do_its_work = |sample: &Sample| {
            Some(sample.process.pgrp) == terminal.foreground
                || TtyIndex::of_tty_nr(sample.process.tty_nr) != Some(terminal.index)
        };
        let at_work =
            |thread: &Thread| matches!(thread.doing, Doing::Running | Doing::Disk | Doing::Sleeps(_));
        if samples.iter().any(|sample| may_do_its_work(sample) && sample.threads.iter().any(at_work)) {
            return Assessment::Busy;
        }
        self.judge_denied(samples, terminal, denied.process.pid)
    }

    /// A program that cannot be inspected: its terminal's modes, its text and its idleness must do.
    fn judge_denied(&mut self, samples: &[Sample], terminal: &Terminal, pid: Pid) -> Assessment {
        let share = self.processor.share(self.scanner, in_foreground(samples, terminal));
        let Some(share) = share else { return Assessment::Unconfirmed };
        if share > DENIED_IDLE_SHARE {
            return Assessment::Busy;
        }
        let asks = text::is_prompt_like(self.hints.text_before_cursor);
        let takes_keys = !terminal.modes.canonical
            && (self.hints.alternate_screen || self.hints.bracketed_paste || self.hints.cursor_hidden);
        let (needed, why) = if asks && terminal.modes.hides_a_line() {
            (QUIET_PASSWORD, "it can't be inspected, but it hides what is typed and shows a prompt")
        } else if asks || takes_keys {
            (QUIET_DENIED, "it can't be inspected, but the screen looks as if it waits")
        } else {
            return Assessment::Denied;
        };
        if self.quiet() < needed {
            return Assessment::Unconfirmed;
        }
        let nested = terminal.depth > 0;
        Assessment::Waits(Rank::Low, Finding { pid, call: "", fd: -1, nested, modes: terminal.modes, why })
    }
}

/// The foreground group, if the kernel hides it from us: it exists, and belongs to somebody else. A setuid program is like
/// that where `/proc` is mounted with `hidepid`.
fn hidden_group(terminal: &Terminal) -> Option<Pid> {
    let group = Pid::from_raw(terminal.foreground?)?;
    let asked = rustix::process::test_kill_process_group(group);
    (terminal.depth == 0 && asked == Err(rustix::io::Errno::PERM)).then_some(group)
}

/// A process whose stop blocks the whole job: all others are stopped too, or wait for a child or a signal.
fn stopped_for_all(samples: &[Sample], foreground: &[&Sample]) -> Option<Pid> {
    let is_stopped = |sample: &Sample| sample.threads.iter().any(|thread| thread.doing == Doing::Stopped);
    let waits = |sample: &Sample| {
        sample
            .threads
            .iter()
            .all(|thread| matches!(thread.doing, Doing::WaitsForChild | Doing::Parked(_) | Doing::Idles(_)))
    };
    if foreground.iter().all(|sample| is_stopped(sample)) {
        return foreground.first().map(|sample| sample.process.pid);
    }
    let alive = || samples.iter().filter(|sample| sample.process.is_alive());
    let stuck = alive().all(|sample| is_stopped(sample) || waits(sample));
    alive().find(|sample| stuck && is_stopped(sample)).map(|sample| sample.process.pid)
}

/// Which of two findings about the same terminal is preferred.
fn preference(found: &Assessment) -> u32 {
    match found {
        Assessment::Waits(rank, _) => match rank {
            Rank::Low => 10,
            Rank::Medium => 11,
            Rank::High => 12,
            Rank::Certain(_) => 13,
        },
        Assessment::Unconfirmed => 5,
        Assessment::OutputBlocked => 4,
        Assessment::Listens(_) => 3,
        Assessment::Stopped(_) => 2,
        Assessment::Busy | Assessment::Denied => 1,
        Assessment::Nobody => 0,
    }
}

pub(super) fn in_foreground<'s>(
    samples: &'s [Sample],
    terminal: &Terminal,
) -> impl Iterator<Item = &'s Sample> + use<'s> {
    let foreground = terminal.foreground;
    samples.iter().filter(move |sample| Some(sample.process.pgrp) == foreground)
}

/// Every thread that the terminal could wake.
fn candidates<'s>(samples: &'s [Sample], terminal: &Terminal) -> Vec<Candidate<'s>> {
    let mut found = Vec::new();
    for sample in samples {
        let in_foreground = Some(sample.process.pgrp) == terminal.foreground;
        let same_session = TtyIndex::of_tty_nr(sample.process.tty_nr) == Some(terminal.index);
        for thread in &sample.threads {
            let Some((class, call, fd, inferred)) = classify(&thread.doing, terminal) else { continue };
            // A background process of the same session would be stopped for reading, so polling the terminal
            // means nothing there. One of another session, or without a terminal, may read.
            if !in_foreground && same_session && class != Class::Read {
                continue;
            }
            let class = beside_siblings(class, sample, thread, terminal);
            let nested = terminal.depth > 0;
            let why = "it would take input, but other things can wake it too";
            let finding = Finding { pid: sample.process.pid, call, fd, nested, modes: terminal.modes, why };
            found.push(Candidate { sample, thread, class, in_foreground, finding, inferred });
        }
    }
    found
}

/// The class of a thread by itself, the call it is in, and its descriptor of the terminal.
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
                    Source::Relay(inner) if inner != terminal.index && !nested::is_for_a_child(inner) => {
                        Some(inner)
                    }
                    Source::Terminal(_)
                    | Source::Relay(_)
                    | Source::Internal
                    | Source::Timer(_)
                    | Source::Soft
                    | Source::External(_) => None,
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
        Doing::Running
        | Doing::Disk
        | Doing::Stopped
        | Doing::Reads { .. }
        | Doing::Writes { .. }
        | Doing::WaitsForChild
        | Doing::Parked(_)
        | Doing::Idles(_)
        | Doing::Sleeps(_)
        | Doing::WaitsOutside(_)
        | Doing::Other
        | Doing::Denied => None,
    }
}

/// The class of a thread, given the other threads of its process.
fn beside_siblings(class: Class, sample: &Sample, thread: &Thread, terminal: &Terminal) -> Class {
    if matches!(class, Class::Relay(_) | Class::Mixed) {
        return class;
    }
    let mut result = class;
    for sibling in sample.threads.iter().filter(|sibling| sibling.tid != thread.tid) {
        match &sibling.doing {
            // A lock that cannot be inspected may have a timeout.
            Doing::Parked(Alarm::Unknown) => result = Class::Timer,
            Doing::Parked(alarm) | Doing::Idles(alarm) if !alarm.is_near() => {}
            Doing::Parked(_) | Doing::Idles(_) | Doing::Sleeps(_) => result = Class::Timer,
            doing @ (Doing::Running
            | Doing::Disk
            | Doing::Stopped
            | Doing::Watches { .. }
            | Doing::Reads { .. }
            | Doing::Writes { .. }
            | Doing::WaitsForChild
            | Doing::WaitsOutside(_)
            | Doing::Other
            | Doing::Denied) => match classify(doing, terminal) {
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
