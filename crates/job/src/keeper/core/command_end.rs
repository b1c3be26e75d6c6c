//! The end of the command: who ended it, the receipt, and a record that is on the disk before the kernel
//! forgets the process. Then the keeper's own end: it leaves when nothing is left of the job and all is told.

use std::time::{Duration, Instant};

use outlast_pty::reap::End;
use outlast_pty::signal;
use rustix::process::Signal;

use super::phase::{CommandEnd, Ended, Phase, Retry, Running, Saving, outcome_of};
use super::typing::SignalKey;
use super::{Core, Effect, Effects, Heir, Now};
use crate::clock::millis;
use crate::lifecycle::{EndedBy, Outcome, Receipt, State, Used};
use crate::registry::replace::Durability;
use crate::wire::event::EventKind;

/// How long after a hangup we may be told that our heir died.
const HEIR_DIES_WITHIN: Duration = Duration::from_millis(50);
/// How soon a record of an end that could not be written is tried again; the pause doubles with each try.
const FIRST_SAVE_RETRY: Duration = Duration::from_millis(250);
const LONGEST_SAVE_RETRY: Duration = Duration::from_secs(30);
/// How long a keeper that is done tries to get its last entries into the outbox.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

impl Core {
    /// The command runs.
    pub(super) fn on_started(&mut self, command: rustix::process::Pid, now: Now, effects: &mut Effects) {
        if !matches!(self.phase, Phase::Starting) {
            return;
        }
        self.phase = Phase::Running(Running::of(command, None));
        effects.push(Effect::WriteRecord(Durability::Process));
        self.event(EventKind::Started { pid: command.as_raw_nonzero().get() }, now, effects);
        // A program may wait for input without ever printing anything.
        self.plan_probe(now.at);
    }

    /// The command was stopped, or goes on.
    pub(super) fn on_stopped(&mut self, now_stopped: bool, now: Now, effects: &mut Effects) {
        let Phase::Running(running) = &mut self.phase else { return };
        if std::mem::replace(&mut running.stopped, now_stopped) != now_stopped {
            let what = if now_stopped { EventKind::Stopped } else { EventKind::Continued };
            self.event(what, now, effects);
        }
    }

    /// The command's process has ended; the kernel still knows it.
    pub(super) fn on_command_end(&mut self, end: CommandEnd, now: Now, effects: &mut Effects) {
        let running = match std::mem::replace(&mut self.phase, Phase::Starting) {
            Phase::Running(running) => running,
            other @ (Phase::Starting
            | Phase::Judging { .. }
            | Phase::Ended(_)
            | Phase::Leaving { .. }
            | Phase::Left(_)
            | Phase::Closed(_)) => {
                self.phase = other;
                return;
            }
        };
        self.forget_hold();
        let hung_up = matches!(end.end, End::Signal { signal, .. } if signal == Signal::HUP.as_raw());
        let is_ours = running.by.is_some() || self.was_sent(end.end).is_some();
        let heir_may_be_dying = hung_up && !is_ours && !self.hung_up && matches!(self.heir, Heir::Alive(_));
        let until = now.at + HEIR_DIES_WITHIN;
        self.phase = Phase::Judging { running, end, until };
        if !heir_may_be_dying {
            self.judge(self.hung_up || matches!(self.heir, Heir::Gone), effects);
        }
    }

    /// It is known whether the heir died with the command: the end can be written down.
    pub(super) fn judge(&mut self, heir_died: bool, effects: &mut Effects) {
        let (running, end) = match std::mem::replace(&mut self.phase, Phase::Starting) {
            Phase::Judging { running, end, .. } => (running, end),
            other @ (Phase::Starting
            | Phase::Running(_)
            | Phase::Ended(_)
            | Phase::Leaving { .. }
            | Phase::Left(_)
            | Phase::Closed(_)) => {
                self.phase = other;
                return;
            }
        };
        let ended_by = match running.refused {
            Some(_) => EndedBy::Itself,
            None => self.who_ended_it(&running, &end, heir_died),
        };
        let nothing_can_follow = end.others.is_empty();
        let receipt = Receipt {
            outcome: match running.refused {
                Some(error) => Outcome::NotStarted { error },
                None => outcome_of(end.end),
            },
            ended_at: end.at_ms,
            ended_by,
            left_behind: if end.others_end_too { Vec::new() } else { end.others },
            used: end.used,
        };
        // Which of them are what it left running is looked for when somebody asks.
        self.ports.clear();
        self.phase = Phase::Ended(Ended {
            state: State::ended(receipt),
            unreaped: Some((end.command, end.end)),
            saving: Saving::First,
            ending: running.ending,
            released: false,
        });
        self.write_last_words(nothing_can_follow, effects);
        effects.push(Effect::WriteRecord(Durability::Process));
    }

    /// Who sent the signal that the command died of, if we were asked to send it.
    fn was_sent(&self, end: End) -> Option<EndedBy> {
        let End::Signal { signal: number, .. } = end else { return None };
        let (sent, session) = self.last_signal.as_ref()?;
        (sent.as_raw() == number)
            .then(|| EndedBy::Kill { session: session.clone(), signal: signal::name(number) })
    }

    fn who_ended_it(&self, running: &Running, end: &CommandEnd, heir_died: bool) -> EndedBy {
        if let Some(by) = &running.by {
            return by.clone();
        }
        let End::Signal { signal: number, .. } = end.end else { return EndedBy::Itself };
        if let Some(by) = self.was_sent(end.end) {
            return by;
        }
        if number == Signal::HUP.as_raw() && heir_died {
            EndedBy::Hangup
        } else if end.out_of_memory {
            EndedBy::OomKiller
        } else {
            self.cause_of(number, end.used.as_ref())
        }
    }

    /// What a signal that we did not send says about its cause.
    fn cause_of(&self, number: i32, used: Option<&Used>) -> EndedBy {
        let is = |signal: Signal| signal.as_raw() == number;
        let typed = self.last_key.as_ref().filter(|key| is(key.signal));
        if let Some(SignalKey { key, session, .. }) = typed {
            return EndedBy::Key { key: key.as_str().into(), session: session.as_deref().map(Into::into) };
        }
        if let Some(limit_ms) = self.record.cpu_limit().map(millis) {
            // One that goes on after SIGXCPU gets SIGKILL soon.
            let is_past = used.is_some_and(|used| used.user_ms + used.system_ms >= limit_ms);
            if is(Signal::XCPU) || (is(Signal::KILL) && is_past) {
                return EndedBy::CpuLimit { limit_ms };
            }
        }
        let faults = [Signal::SEGV, Signal::ABORT, Signal::BUS, Signal::FPE, Signal::ILL, Signal::SYS];
        if is(Signal::PIPE) {
            EndedBy::BrokenPipe
        } else if faults.into_iter().any(is) {
            EndedBy::Crash
        } else {
            EndedBy::Outside
        }
    }

    /// The record is on the disk, or could not be written.
    pub(super) fn on_record_written(&mut self, written: bool, now: Instant, effects: &mut Effects) {
        self.record_is_stale = !written;
        let Some(ended) = self.phase.ended_mut() else { return };
        let was = ended.saving;
        ended.saving = match (was, written) {
            (Saving::First, false) => {
                // A full disk: space for this one write was reserved.
                effects.push(Effect::GiveReserveBack);
                effects.push(Effect::WriteRecord(Durability::Process));
                Saving::Again
            }
            (_, true) => Saving::Saved,
            (Saving::Again | Saving::Saved, false) => {
                Saving::Unsaved(Retry { at: now + FIRST_SAVE_RETRY, pause: FIRST_SAVE_RETRY })
            }
            (Saving::Unsaved(retry), false) => Saving::Unsaved(retry),
        };
        let is_unsaved = matches!(ended.saving, Saving::Unsaved(_));
        if is_unsaved != matches!(was, Saving::Unsaved(_)) {
            effects.push(Effect::MarkEndUnsaved(is_unsaved));
        }
        let at_ms = ended.state.receipt().map_or(0, |receipt| receipt.ended_at);
        if matches!(ended.saving, Saving::Saved | Saving::Unsaved(_))
            && let Some((_, end)) = ended.unreaped
        {
            if is_unsaved {
                // Should we die before it can be written, our heir has it from here.
                effects.push(Effect::RememberEnd { end, at_ms });
            }
            effects.push(Effect::SearchAll);
        }
    }

    /// The end is on the disk, or with the heir: only now may the kernel forget it. Had we died before, our
    /// heir would have seen the same end.
    pub(super) fn reap_command(&mut self, effects: &mut Effects) {
        if let Some((command, _)) = self.phase.ended().and_then(|ended| ended.unreaped) {
            effects.push(Effect::Reap(command));
        }
    }

    /// The kernel has forgotten the command: everybody may know.
    pub(super) fn on_reaped(
        &mut self,
        used: Option<Used>,
        last_line: String,
        now: Now,
        effects: &mut Effects,
    ) {
        let Some(ended) = self.phase.ended_mut() else { return };
        if ended.unreaped.take().is_none() {
            return;
        }
        if let State::Completed(receipt) | State::Failed(receipt) | State::Killed(receipt) = &mut ended.state
            && receipt.used.is_none()
            && used.is_some()
        {
            receipt.used = used;
            self.record_is_stale = true;
        }
        self.end_steps(now, effects);
        self.note_end(last_line, now, effects);
        self.show_end(now, effects);
    }

    /// A record of an end that could not be written is tried again, ever more rarely.
    pub(super) fn save_if_due(&mut self, now: Instant, effects: &mut Effects) {
        if let Some(ended) = self.phase.ended_mut()
            && let Saving::Unsaved(retry) = &mut ended.saving
            && now >= retry.at
        {
            retry.pause = (retry.pause * 2).min(LONGEST_SAVE_RETRY);
            retry.at = now + retry.pause;
            effects.push(Effect::WriteRecord(Durability::Process));
            effects.push(Effect::CheckFolder);
        }
    }

    /// The job's folder was removed: nobody will ever ask how it ended.
    pub(super) fn on_folder_removed(&mut self) {
        if let Some(ended) = self.phase.ended_mut() {
            ended.released = true;
        }
    }

    /// Somebody ends us by name, or the machine goes down: the job goes first, with a receipt.
    pub(super) fn on_terminated(&mut self, now: Now, effects: &mut Effects) {
        if let Some(ended) = self.phase.ended_mut() {
            ended.released = true;
        } else if self.phase.ending().is_none() {
            self.begin_ending(EndedBy::Outside, super::ending::GRACE, None, now, effects);
        }
    }

    /// The heir died.
    pub(super) fn on_heir_died(&mut self, now: Now, effects: &mut Effects) {
        if matches!(self.heir, Heir::Gone) {
            return;
        }
        self.heir = Heir::Gone;
        self.record_is_stale = true;
        self.event(EventKind::HeirGone, now, effects);
        self.judge(true, effects);
    }

    /// Nothing is left of the job: leaves, unless somebody still waits for an answer about its end, or only
    /// we know it.
    pub(super) fn leave_if_done(&mut self, now: Now, effects: &mut Effects) {
        let ended = match std::mem::replace(&mut self.phase, Phase::Starting) {
            Phase::Ended(ended)
                if ended.ending.is_none() && ended.unreaped.is_none() && !ended.must_be_kept() =>
            {
                ended
            }
            other @ (Phase::Starting
            | Phase::Running(_)
            | Phase::Judging { .. }
            | Phase::Ended(_)
            | Phase::Leaving { .. }
            | Phase::Left(_)
            | Phase::Closed(_)) => {
                self.phase = other;
                return;
            }
        };
        let left_some = ended.state.receipt().is_some_and(|receipt| !receipt.left_behind.is_empty());
        self.phase = Phase::Leaving { ended, until: now.at + LEAVE_WITHIN, last_try: false };
        self.write_last_words(true, effects);
        if left_some {
            self.event(EventKind::AllGone, now, effects);
        }
        self.notifier.release(now.at, true);
        self.go_on_leaving(now, effects);
    }

    /// A helper that wakes has ended, or could not be started.
    pub(super) fn on_helper_ended(&mut self, ended: Result<End, String>, now: Now, effects: &mut Effects) {
        self.notifier.on_helper_ended(ended, now);
        if let Phase::Leaving { until, last_try, .. } = &mut self.phase {
            // What it could not do may be something to tell.
            (*until, *last_try) = (now.at + LEAVE_WITHIN, false);
            self.go_on_leaving(now, effects);
        }
    }

    /// Gets the last entries into the outbox, and delivers the wakes.
    pub(super) fn go_on_leaving(&mut self, now: Now, effects: &mut Effects) {
        let Phase::Leaving { until, last_try, .. } = &mut self.phase else { return };
        // A helper can be at work for minutes: what is due must not stay due all that time.
        self.notifier.sync_if_due(now.at, effects);
        self.notifier.restart_helper(now.at, effects);
        if self.notifier.is_appending() {
            return;
        }
        if self.notifier.holds_some() && !*last_try {
            if now.at >= *until {
                // The disk space that is reserved is enough for the end, if not for all that could not be
                // written.
                *last_try = true;
                self.notifier.keep_only_the_end();
            }
            if *last_try || self.notifier.may_append(now.at) {
                self.notifier.append(effects);
            }
            return;
        }
        // While a helper is at work there is time to try again.
        if self.notifier.holds_some() && self.notifier.is_waking() && self.notifier.may_append(now.at) {
            self.notifier.append(effects);
        }
        if self.notifier.wake(effects) {
            return;
        }
        // Until all wakes are final, unless somebody ends us: then the next process of the home goes on with them.
        let released = self.phase.ended().is_some_and(|ended| ended.released);
        if self.notifier.is_waking() && !released {
            return;
        }
        if let Phase::Leaving { ended, .. } = std::mem::replace(&mut self.phase, Phase::Starting) {
            self.phase = Phase::Left(ended);
        }
    }
}
