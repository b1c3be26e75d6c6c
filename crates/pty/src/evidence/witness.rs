//! The screen as second witness, for programs that something besides the terminal can wake.

use std::time::Duration;

use rustix::process::Pid;

use super::alarms::{Alarm, MAX_REDRAW_PERIOD};
use super::fds::Outside;
use super::terminal::TtyIndex;
use super::threads::{Doing, Sample, Thread};
use super::verdict::{Judge, SETTLE_TIME, Terminal, in_foreground};
use super::{Row, text};

/// How long the screen must be unchanged to count beside a timer.
const QUIET_WITH_TIMER: Duration = Duration::from_millis(100);
/// How long the screen must be unchanged to count beside other sources.
const QUIET_WITH_OTHERS: Duration = Duration::from_millis(150);
/// How long the screen of a full-screen program must be unchanged: it may still be drawing.
const QUIET_FULL_SCREEN: Duration = Duration::from_millis(300);
/// A program that uses a larger share of a processor is working, whatever it polls.
const IDLE_SHARE: f64 = 0.05;
/// Timers may fire this much late.
const TIMER_SLACK: Duration = Duration::from_millis(20);

/// What the screen says about a claim that needs support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Witness {
    Yes,
    NotYet,
    No,
}

impl Witness {
    /// The same, but not yet a yes while the screen changes.
    fn once(self, still: bool) -> Self {
        if self == Self::Yes && !still { Self::NotYet } else { self }
    }
}

impl Judge<'_> {
    /// Whether another foreground process is working, and nothing on the screen says that this does not
    /// matter: in `cat | sleep 30` nobody is asked for anything.
    pub(super) fn others_are_working(&self, samples: &[Sample], terminal: &Terminal, pid: Pid) -> bool {
        let asks = text::is_prompt_like(self.hints.text_before_cursor)
            || !terminal.modes.echo
            || self.hints.alternate_screen;
        let at_work = |thread: &Thread| match &thread.doing {
            Doing::Running | Doing::Disk | Doing::Sleeps(_) => true,
            Doing::WaitsOutside(outside) => *outside == Outside::Network,
            Doing::Parked(alarm) | Doing::Idles(alarm) => alarm.is_near() && alarm.may_move_the_screen(),
            Doing::Stopped
            | Doing::Watches { .. }
            | Doing::Reads { .. }
            | Doing::Writes { .. }
            | Doing::WaitsForChild
            | Doing::Other
            | Doing::Denied => false,
        };
        !asks
            && in_foreground(samples, terminal)
                .any(|other| other.process.pid != pid && other.threads.iter().any(at_work))
    }

    /// Whether a full-screen program takes keys while it works: a child of it, or another of its threads, runs, waits for
    /// the network, or sleeps for longer than anything that only draws.
    ///
    /// A child on another terminal does not count: an editor shows that in a window, and goes on taking keys.
    pub(super) fn works_behind_the_screen(
        &self,
        samples: &[Sample],
        terminal: &Terminal,
        reader: &Sample,
        thread: &Thread,
    ) -> bool {
        if !self.hints.alternate_screen || terminal.modes.canonical || terminal.depth > 0 {
            return false;
        }
        let at_work = |doing: &Doing| match doing {
            Doing::Running | Doing::Disk | Doing::WaitsOutside(Outside::Network) => true,
            Doing::Sleeps(Alarm::Unknown) => self.scanner.hardened,
            Doing::Sleeps(alarm) => alarm.is_near() && !alarm.may_move_the_screen(),
            Doing::Stopped
            | Doing::Watches { .. }
            | Doing::Reads { .. }
            | Doing::Writes { .. }
            | Doing::WaitsForChild
            | Doing::Parked(_)
            | Doing::Idles(_)
            | Doing::WaitsOutside(_)
            | Doing::Other
            | Doing::Denied => false,
        };
        let mut siblings = reader.threads.iter().filter(|sibling| sibling.tid != thread.tid);
        if siblings.any(|sibling| at_work(&sibling.doing)) {
            return true;
        }
        // Parents come before their children.
        let mut below = vec![reader.process.pid];
        for sample in samples {
            let is_child = sample.process.ppid.is_some_and(|parent| below.contains(&parent));
            let elsewhere = sample.process.tty_nr != 0
                && TtyIndex::of_tty_nr(sample.process.tty_nr) != Some(terminal.index);
            if !is_child || elsewhere {
                continue;
            }
            below.push(sample.process.pid);
            if sample.threads.iter().any(|child| at_work(&child.doing)) {
                return true;
            }
        }
        false
    }

    /// The second witness for a program that also has a timer running.
    ///
    /// Text beside the cursor is not enough: spinners and progress bars have that, too. It must end like a
    /// prompt, or be where the program was seen to wait before. And it must have been there for as long as
    /// the timer takes, so that anything animated had a chance to move. If the cursor is hidden, the rest of
    /// the screen must ask or offer a choice instead.
    pub(super) fn beside_timer(
        &mut self,
        samples: &[Sample],
        terminal: &Terminal,
        reader: &Sample,
    ) -> Witness {
        let hints = self.hints;
        let known = matches!(hints.row, Row::SamePrompt | Row::LikePrompt);
        let prompt = known || hints.asks();
        // Until something is printed after the input, it is unknown what became of it.
        let choice = hints.cursor_hidden
            && !terminal.modes.canonical
            && hints.offers_choice
            && hints.since_output < hints.since_input;
        let full_screen = hints.alternate_screen || (hints.is_full_screen() && !terminal.modes.canonical);
        if (!prompt && !choice && !full_screen)
            || text::is_false_friend(hints.text_before_cursor)
            || self.others_are_working(samples, terminal, reader.process.pid)
        {
            return Witness::No;
        }
        let still = known || hints.alternate_screen || self.timers_have_fired(terminal, reader);
        self.witness(samples, terminal, true, QUIET_WITH_TIMER).once(still)
    }

    /// Whether the screen was unchanged for one period of every timer that could animate it.
    fn timers_have_fired(&mut self, terminal: &Terminal, reader: &Sample) -> bool {
        let quiet = self.quiet();
        if quiet >= MAX_REDRAW_PERIOD + TIMER_SLACK {
            return true;
        }
        let mut all = true;
        for thread in &reader.threads {
            let alarm = match &thread.doing {
                Doing::Watches { alarm, .. } | Doing::Sleeps(alarm) | Doing::Parked(alarm) => *alarm,
                Doing::Idles(alarm) if alarm.is_near() => *alarm,
                Doing::Reads { .. } if terminal.modes.reads_time_out => Alarm::Unknown,
                Doing::Idles(_)
                | Doing::Reads { .. }
                | Doing::Running
                | Doing::Disk
                | Doing::Stopped
                | Doing::Writes { .. }
                | Doing::WaitsForChild
                | Doing::WaitsOutside(_)
                | Doing::Other
                | Doing::Denied => Alarm::Never,
            };
            if !alarm.may_move_the_screen() {
                continue;
            }
            // Ask for every thread: each call also records how often it has run.
            let has_run = self.wakeups.has_run(self.scanner, reader.process.pid, thread.tid);
            all &= match alarm {
                Alarm::After(period) => quiet >= period + TIMER_SLACK,
                Alarm::Never | Alarm::Unknown | Alarm::Housekeeping | Alarm::In(_) => has_run,
            };
        }
        all
    }

    /// The second witness for a multiplexer in which one program waits and another works: the cursor is where somebody
    /// types, and its row asks.
    pub(super) fn one_of_several(&mut self, samples: &[Sample], outer: &Terminal) -> Witness {
        self.witness(samples, outer, self.hints.asks(), QUIET_WITH_OTHERS)
    }

    /// The second witness for a program that others can wake too.
    pub(super) fn beside_others(
        &mut self,
        samples: &[Sample],
        terminal: &Terminal,
        reader: &Sample,
    ) -> Witness {
        let hints = self.hints;
        let hides = terminal.modes.hides_a_line();
        if hints.asks() || hides {
            let known = matches!(hints.row, Row::SamePrompt | Row::LikePrompt);
            let still = known || hides || self.timers_have_fired(terminal, reader);
            return self.witness(samples, terminal, true, QUIET_WITH_OTHERS).once(still);
        }
        let full_screen = hints.is_full_screen() && !terminal.modes.canonical;
        self.witness(samples, terminal, full_screen, QUIET_FULL_SCREEN)
    }

    /// Whether a thread of the foreground runs or is about to, other than those of a runtime.
    fn is_running(&self, samples: &[Sample], terminal: &Terminal) -> bool {
        in_foreground(samples, terminal).any(|sample| {
            let runs = |thread: &&Thread| thread.doing == Doing::Running;
            sample
                .threads
                .iter()
                .filter(runs)
                .any(|thread| !self.scanner.is_known_runtime_thread(&sample.process, thread.tid))
        })
    }

    fn witness(&mut self, samples: &[Sample], terminal: &Terminal, asks: bool, quiet: Duration) -> Witness {
        if !asks {
            return Witness::No;
        }
        // Input passing through a line editor, which may highlight the bracket that matches one just typed.
        if self.hints.row == Row::Echo && self.quiet() < MAX_REDRAW_PERIOD {
            return Witness::NotYet;
        }
        // A prompt that it was seen to wait at before needs no long silence to count again.
        let known = matches!(self.hints.row, Row::SamePrompt | Row::LikePrompt);
        let quiet = if known { SETTLE_TIME } else { quiet };
        let share = self.processor.share(self.scanner, in_foreground(samples, terminal));
        // Some go on for a moment after their prompt: the Erlang machine spins before it sleeps.
        let share = if known { self.processor.share_lately() } else { share };
        let Some(share) = share else { return Witness::NotYet };
        // On a crowded machine, what works all the time still gets little of a processor.
        let settles = self.quiet() < MAX_REDRAW_PERIOD && (known || share <= IDLE_SHARE);
        let busy = share > IDLE_SHARE || self.is_running(samples, terminal);
        match busy {
            true if settles => Witness::NotYet,
            true => Witness::No,
            false if self.quiet() >= quiet => Witness::Yes,
            false => Witness::NotYet,
        }
    }
}
