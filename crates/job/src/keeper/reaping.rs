//! Children that ended: the command's end is written down before the kernel is allowed to forget it.

use std::io::Read;

use outlast_pty::reap::{self, Change, End, Peeked};
use outlast_pty::signal;
use rustix::process::Pid;

use super::{Keeper, Life};
use crate::clock::now_ms;
use crate::lifecycle::{EndedBy, Outcome, Receipt, State, Used};
use crate::registry::replace::Durability;
use crate::wire::event::What;

impl Keeper {
    /// Looks at every child that changed.
    pub(super) fn look_at_children(&mut self) {
        loop {
            match reap::peek(None) {
                Peeked::Change(Change::Ended(pid, end)) => self.child_ended(pid, end),
                Peeked::Change(Change::Stopped(pid)) => self.child_stopped(pid, true),
                Peeked::Change(Change::Continued(pid)) => self.child_stopped(pid, false),
                Peeked::Nothing => break,
                Peeked::NoChildren => {
                    self.childless = true;
                    break;
                }
            }
        }
        if self.life == Life::Ended && !self.childless {
            // Left-behind children print on, and end one by one.
            self.drain();
        }
    }

    fn child_stopped(&mut self, pid: Pid, now_stopped: bool) {
        if let Life::Running { command, stopped } = &mut self.life
            && *command == pid
        {
            *stopped = now_stopped;
        }
    }

    fn child_ended(&mut self, pid: Pid, end: End) {
        let is_command = matches!(self.life, Life::Running { command, .. } if command == pid);
        if !is_command {
            reap::reap(pid);
            self.telling.helper_ended(pid, end);
            return;
        }
        self.drain();
        let by = self.who_ended_it(end);
        let pid_number = pid.as_raw_nonzero().get();
        let mut others = self.processes();
        others.retain(|process| process.pid != pid_number);
        let nothing_can_follow = others.is_empty();
        if self.ends_with_its_command() {
            others.clear();
        }
        let mut receipt = Receipt {
            outcome: outcome_of(end),
            ended_at: now_ms(),
            ended_by: by,
            left_behind: others,
            used: reap::usage(pid).map(Used::from),
        };
        self.write_last_words(nothing_can_follow);
        self.info.state = State::ended(receipt.clone());
        self.write_record(Durability::Process);
        if self.record_is_stale {
            // A full disk; room for this one write was held back.
            self.give_room_back();
            self.write_record(Durability::Process);
        }
        if self.record_is_stale {
            // Should we die before it can be written, our heir has it from here.
            self.ground.shared.set_end(end, receipt.ended_at);
        }
        // Only now may the kernel forget it: had we died before, our heir would have seen the same end.
        let used = reap::reap(pid).map(Used::from);
        if receipt.used.is_none() {
            receipt.used = used;
            self.info.state = State::ended(receipt);
            self.record_is_stale = true;
        }
        self.life = Life::Ended;
        self.watch_end();
        self.note_end();
        if let Some(channel) = self.channels.first() {
            self.waits.on_end(&channel.log, &mut self.peers);
        }
    }

    /// Makes an event of the end, as the record has it.
    pub(super) fn note_end(&mut self) {
        if matches!(self.info.state, State::Failed(_)) {
            self.telling.last_line = self.last_words();
        }
        self.event(What::Ended { state: self.info.state.clone() });
    }

    /// Whether our heir goes right now: its terminal hangs up a moment before we are told of its death.
    fn heir_is_dying(&self) -> bool {
        let heir = self.info.heir.as_ref().map(|heir| heir.pid);
        (0..50).any(|_| {
            let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
            parent != heir || {
                std::thread::sleep(std::time::Duration::from_millis(1));
                false
            }
        })
    }

    fn who_ended_it(&self, end: End) -> EndedBy {
        if let Some(by) = self.ending_by() {
            return by;
        }
        let End::Signal { signal: number, .. } = end else { return EndedBy::Itself };
        if let Some((signal, session)) = &self.last_signal
            && signal.as_raw() == number
        {
            return EndedBy::Kill { session: session.clone(), signal: signal::name(number) };
        }
        if number == rustix::process::Signal::HUP.as_raw() && (!self.heir_lives || self.heir_is_dying()) {
            return EndedBy::Hangup;
        }
        let killed = number == rustix::process::Signal::KILL.as_raw();
        if killed && (self.ran_out_of_memory() || oom_kills() > self.oom_kills_before) {
            return EndedBy::OomKiller;
        }
        EndedBy::Outside
    }
}

/// The receipt of an end that only a dead keeper saw, as far as it is known.
pub(super) fn receipt_of(end: End, ended_at: u64, before: &State) -> Receipt {
    let ended_by = match (before, end) {
        (State::Running { ending: Some(by) }, _) => by.clone(),
        (_, End::Code(_)) => EndedBy::Itself,
        (_, End::Signal { .. }) => EndedBy::Outside,
    };
    Receipt { outcome: outcome_of(end), ended_at, ended_by, left_behind: Vec::new(), used: None }
}

fn outcome_of(end: End) -> Outcome {
    match end {
        End::Code(code) => Outcome::Exited { code },
        End::Signal { signal: number, core } => {
            Outcome::Signalled { signal: signal::name(number), core_dumped: core }
        }
    }
}

/// How often the kernel has killed for memory since it was booted.
pub(super) fn oom_kills() -> u64 {
    let mut text = String::with_capacity(16 << 10);
    // The kernel adds up all of its counters for each read: one is enough.
    let _ = std::fs::File::open("/proc/vmstat").and_then(|mut file| file.read_to_string(&mut text));
    let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}
