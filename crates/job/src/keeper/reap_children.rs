//! Children that ended: the command's end is written down before the kernel is allowed to forget it.

use std::io::Read;

use outlast_pty::procfs::{self, Proc};
use outlast_pty::reap::{self, Change, End, Peeked};
use rustix::process::{Pid, Signal, getpid};

use super::Keeper;
use super::core::{CommandEnd, Input};
use crate::clock::now_ms;
use crate::lifecycle::{self, Process};

impl Keeper {
    /// Looks at every child that changed.
    pub(super) fn reap_children(&mut self) {
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

    fn on_child_end(&mut self, pid: Pid, end: End) {
        if self.core.command() != Some(pid) {
            reap::reap(pid);
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
        let out_of_memory = killed && (self.ran_out_of_memory() || oom_kills() > self.oom_kills_before);
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
        let processes = self.without_helper(procfs::descendants(getpid()));
        super::nested::without_nested_jobs(processes)
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
