//! Waits: conditions of clients, looked at when something happens and never in between.
//!
//! A pattern has a [search](crate::search) of its own, begun where its wait begins, that sees each byte once:
//! first what the log already holds, a piece each round so that nobody else has to wait, then what comes.

use std::time::{Duration, Instant};

use super::peers::{PeerId, Peers};
use crate::clock::{earliest, millis};
use crate::failure::Failure;
use crate::log::writer::LogWriter;
use crate::search::Search;
use crate::spec::Streams;
use crate::wire::{Answer, Found, Reason, Wait, Waited};

/// More waits than this at one job are refused.
const MOST: usize = 1024;

struct Pending {
    peer: PeerId,
    request: u64,
    wait: Wait,
    search: Option<Search>,
    from: u64,
    began: Instant,
    deadline: Option<Instant>,
    /// The end of the log when the wait began: what is found before was there already.
    known: u64,
}

impl Pending {
    fn quiet_at(&self, last_output: Instant) -> Option<Instant> {
        let quiet = Duration::from_millis(self.wait.quiet_ms?);
        // Silence counts from the last output, but not from before the wait.
        last_output.max(self.began).checked_add(quiet)
    }

    fn end(&self, reason: Reason, offset: u64, found: Option<Found>, already: bool) -> Answer {
        let elapsed_ms = millis(self.began.elapsed());
        Answer::Waited(Waited { elapsed_ms, already, found, ..Waited::because(reason, offset) })
    }
}

#[derive(Default)]
pub(super) struct Waits {
    pending: Vec<Pending>,
    behind: bool,
}

impl Waits {
    /// Takes up a wait; one that holds already is answered at once.
    pub(super) fn begin(
        &mut self,
        (peer, request): (PeerId, u64),
        wait: Wait,
        (streams, end, ended): (Streams, u64, bool),
    ) -> Option<Answer> {
        let from = wait.from.unwrap_or(end);
        let refuse = |failure: Failure| Some(Answer::Error(failure.into()));
        if self.pending.len() >= MOST {
            return refuse(Failure::usage("too many waits on this job at once").hint("end some of them first"));
        }
        let search = if wait.patterns.is_empty() {
            None
        } else {
            match Search::new(&wait.patterns, streams, from) {
                Ok(search) => Some(search),
                Err(failure) => return refuse(failure),
            }
        };
        let began = Instant::now();
        let deadline = wait.deadline_ms.and_then(|ms| began.checked_add(Duration::from_millis(ms)));
        let pending = Pending { peer, request, search, from, began, deadline, known: end, wait };
        let nothing_to_search = pending.search.as_ref().is_none_or(|search| !search.is_behind(end));
        if pending.wait.output && end > from {
            return Some(pending.end(Reason::Output, end, None, true));
        }
        if ended && pending.wait.exit && nothing_to_search {
            return Some(pending.end(Reason::Exit, end, None, true));
        }
        self.behind |= !nothing_to_search;
        self.pending.push(pending);
        None
    }

    pub(super) fn cancel(&mut self, peer: PeerId, request: u64) {
        self.pending.retain(|pending| (pending.peer, pending.request) != (peer, request));
    }

    pub(super) fn forget_peers(&mut self, gone: &[PeerId]) {
        if !gone.is_empty() {
            self.pending.retain(|pending| !gone.contains(&pending.peer));
        }
    }

    /// Whether some pattern has not seen all of the log yet.
    pub(super) fn is_behind(&self) -> bool {
        self.behind
    }

    /// The next moment at which a wait could end by time alone.
    pub(super) fn next_deadline(&self, last_output: Instant) -> Option<Instant> {
        self.pending
            .iter()
            .fold(None, |next, pending| {
                earliest(next, earliest(pending.deadline, pending.quiet_at(last_output)))
            })
    }

    /// Something was printed.
    pub(super) fn on_output(&mut self, channel: usize, peers: &mut Peers) {
        if channel == 0 {
            self.behind |= self.pending.iter().any(|pending| pending.search.is_some());
        }
        let _ = peers;
    }

    /// Lets each search look at the next piece of the log.
    pub(super) fn catch_up(&mut self, log: &LogWriter, peers: &mut Peers) {
        let end = log.end();
        let mut behind = false;
        self.pending.retain_mut(|pending| {
            if pending.wait.output && end > pending.from {
                let answer = pending.end(Reason::Output, end, None, false);
                peers.reply(pending.peer, pending.request, answer);
                return false;
            }
            let Some(search) = &mut pending.search else { return true };
            if !search.is_behind(end) {
                return true;
            }
            if let Some((found, offset)) = search.read(log, end) {
                let already = offset <= pending.known;
                let answer = pending.end(Reason::Pattern, offset, Some(found), already);
                peers.reply(pending.peer, pending.request, answer);
                return false;
            }
            behind |= search.is_behind(end);
            true
        });
        self.behind = behind;
    }

    /// What ends by time alone.
    pub(super) fn on_time(&mut self, now: Instant, last_output: Instant, end: u64, peers: &mut Peers) {
        self.pending.retain(|pending| {
            let searching = pending.search.as_ref().is_some_and(|search| search.is_behind(end));
            let reason = if pending.quiet_at(last_output).is_some_and(|at| now >= at) && !searching {
                Reason::Quiet
            } else if pending.deadline.is_some_and(|at| now >= at) {
                Reason::Deadline
            } else {
                return true;
            };
            peers.reply(pending.peer, pending.request, pending.end(reason, end, None, false));
            false
        });
    }

    /// The job has ended and its output is drained: a pattern in its last words counts before its end does.
    pub(super) fn on_end(&mut self, log: &LogWriter, peers: &mut Peers) {
        let end = log.end();
        while {
            self.catch_up(log, peers);
            self.behind
        } {}
        self.pending.retain(|pending| {
            if !pending.wait.exit {
                return true;
            }
            peers.reply(pending.peer, pending.request, pending.end(Reason::Exit, end, None, false));
            false
        });
    }

    /// Nothing more will come: waits that are left end with the job.
    pub(super) fn end_all(&mut self, end: u64, peers: &mut Peers) {
        for pending in self.pending.drain(..) {
            peers.reply(pending.peer, pending.request, pending.end(Reason::Exit, end, None, false));
        }
    }
}
