//! Children that ended: the command's end is written down before the kernel is allowed to forget it.

use outlast_pty::procfs::{self, Proc};
use outlast_pty::reap::{self, Change, End, Peeked};
use rustix::process::{Pid, Signal, getpid};

use super::core::{CommandEnd, Input};
use super::{Keeper, Net};
use crate::clock::now_ms;
use crate::lifecycle::{self, Process};

impl Keeper {
    /// Looks at every child that changed.
    pub(super) fn reap_children(&mut self) {
        // What was refused before an end is told before it.
        self.on_guard();
        loop {
            if self.core.is_judging() {
                // The command is left alone until it is known who ended it, and it would be seen first again
                // and again.
                self.children_changed = true;
                return;
            }
            match reap::peek(None) {
                Peeked::Change(Change::Ended(pid, end)) => self.on_child_end(pid, end),
                Peeked::Change(Change::Stopped(pid)) => self.on_child_stopped(pid, true),
                Peeked::Change(Change::Continued(pid)) => self.on_child_stopped(pid, false),
                Peeked::Nothing => break,
                Peeked::NoChildren => {
                    self.childless = true;
                    break;
                }
            }
        }
        self.children_changed = false;
        if self.core.has_ended() && !self.childless {
            // Left-behind children print on, and end one by one.
            self.drain();
        }
    }

    fn on_child_stopped(&mut self, pid: Pid, stopped: bool) {
        if self.core.command() == Some(pid) {
            self.feed(Input::Stopped(stopped));
        }
    }

    pub(super) fn on_child_end(&mut self, pid: Pid, end: End) {
        if self.core.command() != Some(pid) {
            reap::reap(pid);
            if self.net == Net::Child(pid) {
                self.net = Net::None;
                self.feed(Input::HeirDied);
            }
            if self.helper == Some(pid) {
                self.helper = None;
                self.feed(Input::HelperEnded(end));
            }
            return;
        }
        self.drain();
        let command = pid.as_raw_nonzero().get();
        let mut others = self.processes();
        others.retain(|process| process.pid != command);
        let killed = matches!(end, End::Signal { signal, .. } if signal == Signal::KILL.as_raw());
        // Only the job's own counter: somebody else may have run out of memory at the same time.
        let out_of_memory = killed && self.ran_out_of_memory();
        self.feed(Input::CommandEnded(Box::new(CommandEnd {
            command: pid,
            end,
            at_ms: now_ms(),
            others,
            others_end_too: self.ends_with_its_command(),
            used: reap::usage(pid).map(lifecycle::used),
            out_of_memory,
        })));
    }

    /// All living processes of the job, without those of jobs that were started from inside it.
    pub(super) fn processes(&self) -> Vec<Process> {
        self.members().into_iter().map(lifecycle::process).collect()
    }

    /// As [`processes`](Self::processes), as the kernel tells them.
    pub(super) fn members(&self) -> Vec<Proc> {
        super::nested::without_nested_jobs(self.without_our_own(self.walk()))
    }

    /// Every process that may be of the job: below us, or by what it carries where we are not its parent.
    pub(super) fn walk(&self) -> Vec<Proc> {
        match &self.watched {
            None => procfs::descendants(getpid()),
            Some(_) => crate::local::leftover::living(&self.core.info()),
        }
    }
}
