//! The screen as second witness, for programs that something besides the terminal can wake.

use std::time::Duration;

use rustix::process::Pid;

use super::alarms::{Alarm, SLOWEST_PERIOD};
use super::fds::Outside;
use super::threads::{Doing, Seen, Thread};
use super::verdict::{GATE, Judge, Terminal, in_foreground};
use super::{Row, text};

/// How long the screen must have been still before it counts as a witness: beside a timer, beside other
/// sources, and for a full-screen program, which may still be drawing.
const QUIET_WITH_TIMER: Duration = Duration::from_millis(100);
const QUIET_WITH_OTHERS: Duration = Duration::from_millis(150);
const QUIET_FULL_SCREEN: Duration = Duration::from_millis(300);
/// A program that uses more of a processor than this is at work, whatever it polls.
const IDLE_SHARE: f64 = 0.05;
/// A timer comes a little late.
const LATE: Duration = Duration::from_millis(20);

/// What the screen says to a claim that can't stand on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Witness {
    Yes,
    NotYet,
    No,
}

impl Witness {
    /// The same, but no yes before the screen has stood still.
    fn once(self, still: bool) -> Self {
        if self == Self::Yes && !still { Self::NotYet } else { self }
    }
}

impl Judge<'_> {
    /// Whether another process of the foreground is at work, and nothing on the screen says that this does not
    /// matter: in `cat | sleep 30` nobody asks for anything.
    pub(super) fn has_company(&self, seen: &[Seen], terminal: &Terminal, pid: Pid) -> bool {
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
            && in_foreground(seen, terminal)
                .any(|other| other.process.pid != pid && other.threads.iter().any(at_work))
    }

    /// The second witness for a program that also has a timer running.
    ///
    /// Text beside the cursor is not enough: a spinner and a progress bar are that, too. It must end as prompts
    /// do, or stand where the program was seen to wait before, and must have been there for as long as the timer
    /// takes, so that whatever moves had its chance to move. Where the cursor is hidden, the rest of the screen
    /// must ask or offer a choice instead.
    pub(super) fn beside_timer(&mut self, seen: &[Seen], terminal: &Terminal, reader: &Seen) -> Witness {
        let hints = self.hints;
        let known = matches!(hints.row, Row::SamePrompt | Row::LikePrompt);
        let prompt = known || text::is_prompt_like(hints.text_before_cursor);
        // Nobody knows what became of the input until something was printed after it.
        let choice = hints.cursor_hidden
            && !terminal.modes.canonical
            && hints.offers_choice
            && hints.since_output < hints.since_input;
        if (!prompt && !choice && !hints.alternate_screen)
            || text::is_false_friend(hints.text_before_cursor)
            || self.has_company(seen, terminal, reader.process.pid)
        {
            return Witness::No;
        }
        let still = known || hints.alternate_screen || self.timers_had_their_turn(terminal, reader);
        self.witness(seen, terminal, true, QUIET_WITH_TIMER).once(still)
    }

    /// Whether the screen has stood still for one round of every timer that could move it.
    fn timers_had_their_turn(&mut self, terminal: &Terminal, reader: &Seen) -> bool {
        let quiet = self.quiet();
        if quiet >= SLOWEST_PERIOD + LATE {
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
            // Every one is asked: what it did until now must be noted.
            let has_run = self.wakes.has_run(self.looker, reader.process.pid, thread.tid);
            all &= match alarm {
                Alarm::After(period) => quiet >= period + LATE,
                Alarm::Never | Alarm::Unknown | Alarm::Housekeeping | Alarm::In(_) => has_run,
            };
        }
        all
    }

    /// The second witness for a program that others can wake too.
    pub(super) fn beside_others(&mut self, seen: &[Seen], terminal: &Terminal, reader: &Seen) -> Witness {
        let hints = self.hints;
        let hides = terminal.modes.hides_a_line();
        if text::is_prompt_like(hints.text_before_cursor) || hides {
            let known = matches!(hints.row, Row::SamePrompt | Row::LikePrompt);
            let still = known || hides || self.timers_had_their_turn(terminal, reader);
            return self.witness(seen, terminal, true, QUIET_WITH_OTHERS).once(still);
        }
        let full_screen = hints.alternate_screen && !terminal.modes.canonical;
        self.witness(seen, terminal, full_screen, QUIET_FULL_SCREEN)
    }

    fn witness(&mut self, seen: &[Seen], terminal: &Terminal, asks: bool, quiet: Duration) -> Witness {
        if !asks {
            return Witness::No;
        }
        // Input on its way through an editor of lines, which may show the bracket that belongs to one just typed.
        if self.hints.row == Row::Echo && self.quiet() < SLOWEST_PERIOD {
            return Witness::NotYet;
        }
        // A prompt that it was seen to wait at before needs no long silence to be believed again.
        let quiet = if self.hints.row == Row::SamePrompt { GATE } else { quiet };
        let share = self.processor.share(self.looker, in_foreground(seen, terminal));
        match share {
            Some(share) if share > IDLE_SHARE => Witness::No,
            Some(_) if self.quiet() >= quiet => Witness::Yes,
            _ => Witness::NotYet,
        }
    }
}
