//! Waits: conditions of clients, looked at when something happens and never in between.
//!
//! A pattern has a [search](crate::search) of its own, begun where its wait begins, that sees each byte once:
//! first what the log already holds, a piece each round so that nobody else has to wait, then what comes.

use std::time::{Duration, Instant};

use outlast_stream::PatternSet;

use super::peers::{PeerId, Peers};
use super::standing::{Standing, Vanishing};
use crate::clock::{earliest, millis};
use crate::failure::Failure;
use crate::log::writer::LogWriter;
use crate::search::Search;
use crate::secrets::SharedMasks;
use crate::spec::Streams;
use crate::wire::{Answer, Awaiting, Found, Reason, Wait, Waited};

/// More waits than this at one job are refused.
const MOST: usize = 1024;
/// So many patterns are kept compiled for whoever waits for them next.
const MOST_COMPILED: usize = 2;
/// For how long a client with a token may be away.
const AWAY: Duration = Duration::from_secs(60);
/// How long after output a screen is looked at for what should vanish from it.
const VANISH_LOOK: Duration = Duration::from_millis(50);

struct Pending {
    /// Who waits; nobody while a client with a token is away.
    peer: Option<PeerId>,
    request: u64,
    wait: Wait,
    search: Option<Search>,
    standing: Option<Standing>,
    vanishing: Option<Vanishing>,
    from: u64,
    began: Instant,
    deadline: Option<Instant>,
    /// The end of the log when the wait began: what is found before was there already.
    known: u64,
    /// Its client has been away since then.
    left_at: Option<Instant>,
}

impl Pending {
    fn quiet_at(&self, last_output: Instant) -> Option<Instant> {
        let quiet = Duration::from_millis(self.wait.quiet_ms?);
        // Silence counts from the last output, but not from before the wait.
        last_output.max(self.began).checked_add(quiet)
    }

    fn tell_found(&self, (found, offset): (Found, u64), peers: &mut Peers, answered: &mut Vec<Answered>) {
        let already = offset <= self.known;
        self.tell(peers, answered, self.end(Reason::Pattern, offset, Some(found), already));
    }

    /// Tells how it ended: its client, or whoever asks again with its token.
    fn tell(&self, peers: &mut Peers, answered: &mut Vec<Answered>, answer: Answer) {
        match (self.peer, &self.wait.token) {
            (Some(peer), _) => peers.reply(peer, self.request, answer),
            (None, Some(token)) => {
                answered.push(Answered { token: token.clone(), answer, at: Instant::now() })
            }
            (None, None) => {}
        }
    }

    fn end(&self, reason: Reason, offset: u64, found: Option<Found>, already: bool) -> Answer {
        self.end_with(Waited { already, found, ..Waited::because(reason, offset) })
    }

    fn end_with(&self, waited: Waited) -> Answer {
        Answer::Waited(Waited { elapsed_ms: millis(self.began.elapsed()), ..waited })
    }

    /// Whether a wait for a port ends with these.
    fn port_among(&self, ports: &[u16]) -> Option<u16> {
        let wanted = self.wait.port?;
        ports.iter().copied().find(|port| wanted == 0 || *port == wanted)
    }
}

/// An answer that nobody was there to hear.
struct Answered {
    token: String,
    answer: Answer,
    at: Instant,
}

/// What a new wait is measured against.
pub(super) struct Now<'a> {
    pub(super) streams: Streams,
    pub(super) end: u64,
    pub(super) ended: bool,
    /// The screen; only filled for waits that look at it.
    pub(super) rows: &'a [String],
    pub(super) awaiting: Option<&'a Awaiting>,
    pub(super) ports: &'a [u16],
    pub(super) masks: &'a SharedMasks,
}

impl Pending {
    fn holds_already(&self, now: &Now<'_>) -> Option<Answer> {
        let already = |waited: Waited| Some(self.end_with(Waited { already: true, ..waited }));
        if self.wait.output && now.end > self.from {
            return already(Waited::because(Reason::Output, now.end));
        }
        if let (true, Some(awaiting)) = (self.wait.awaiting_input, now.awaiting) {
            let awaiting_input = Some(awaiting.clone());
            return already(Waited { awaiting_input, ..Waited::because(Reason::AwaitingInput, now.end) });
        }
        if let Some(port) = self.port_among(now.ports) {
            return already(Waited { port: Some(port), ..Waited::because(Reason::Port, now.end) });
        }
        if self.vanishing.as_ref().is_some_and(|vanishing| vanishing.is_gone(now.rows)) {
            return already(Waited::because(Reason::Gone, now.end));
        }
        let searched = self.search.as_ref().is_none_or(|search| !search.is_behind(now.end));
        if now.ended && self.wait.exit && searched {
            return already(Waited::because(Reason::Exit, now.end));
        }
        None
    }
}

/// What the waits that are pending need somebody to look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) awaiting_input: bool,
    pub(super) port: bool,
}

#[derive(Default)]
pub(super) struct Waits {
    pending: Vec<Pending>,
    answered: Vec<Answered>,
    searching: bool,
    behind: bool,
    /// When to look whether something has vanished from the screen.
    vanishing_at: Option<Instant>,
    /// The latest first.
    compiled: Vec<(Vec<String>, PatternSet)>,
}

impl Waits {
    /// Takes up a wait; one that holds already is answered at once.
    pub(super) fn begin(
        &mut self,
        (peer, request): (PeerId, u64),
        wait: Wait,
        now: &Now<'_>,
    ) -> Option<Answer> {
        if let Some(taken_up) = self.take_up((peer, request), &wait) {
            return taken_up;
        }
        match self.prepare((peer, request), wait, now) {
            Err(failure) => Some(Answer::Error(failure.into())),
            Ok(pending) => {
                if let Some(answer) = pending.holds_already(now) {
                    return Some(answer);
                }
                self.behind |= pending.search.as_ref().is_some_and(|search| search.is_behind(now.end));
                self.pending.push(pending);
                None
            }
        }
    }

    /// A client is back: its wait goes on, or has ended meanwhile.
    fn take_up(&mut self, (peer, request): (PeerId, u64), wait: &Wait) -> Option<Option<Answer>> {
        let token = wait.token.as_ref()?;
        if let Some(at) = self.answered.iter().position(|answered| answered.token == *token) {
            return Some(Some(self.answered.remove(at).answer));
        }
        let pending = self.pending.iter_mut().find(|pending| pending.wait.token.as_ref() == Some(token))?;
        pending.peer = Some(peer);
        pending.request = request;
        pending.left_at = None;
        pending.deadline =
            wait.deadline_ms.and_then(|ms| Instant::now().checked_add(Duration::from_millis(ms)));
        Some(None)
    }

    /// Patterns that were waited for a moment ago are waited for again, more often than not.
    fn compiled(&mut self, patterns: &[String]) -> Result<PatternSet, Failure> {
        if let Some((_, set)) = self.compiled.iter().find(|(known, _)| known == patterns) {
            return Ok(set.clone());
        }
        let set = crate::search::compile(patterns)?;
        self.compiled.truncate(MOST_COMPILED - 1);
        self.compiled.insert(0, (patterns.to_vec(), set.clone()));
        Ok(set)
    }

    /// Lets go of patterns that nobody waits for.
    pub(super) fn forget_patterns(&mut self) {
        self.compiled.clear();
    }

    fn prepare(
        &mut self,
        (peer, request): (PeerId, u64),
        wait: Wait,
        now: &Now<'_>,
    ) -> Result<Pending, Failure> {
        if self.pending.len() >= MOST {
            return Err(Failure::usage("too many waits on this job at once").hint("end some of them first"));
        }
        let from = wait.from.unwrap_or(now.end);
        let search = if wait.patterns.is_empty() {
            None
        } else {
            let masks = wait.masked.then(|| now.masks.clone());
            Some(Search::of(self.compiled(&wait.patterns)?, now.streams, from).masked(masks))
        };
        let began = Instant::now();
        let standing = match &wait.stable {
            Some(stable) => Some(Standing::new(stable, now.rows, began)?),
            None => None,
        };
        let vanishing = if wait.gone.is_empty() { None } else { Some(Vanishing::new(&wait.gone)?) };
        let deadline = wait.deadline_ms.and_then(|ms| began.checked_add(Duration::from_millis(ms)));
        let known = now.end;
        let peer = Some(peer);
        Ok(Pending {
            left_at: None,
            peer,
            request,
            search,
            standing,
            vanishing,
            from,
            began,
            deadline,
            known,
            wait,
        })
    }

    /// Drops a wait without an answer; false if there is none.
    pub(super) fn cancel(&mut self, peer: PeerId, request: u64) -> bool {
        let before = self.pending.len();
        self.pending.retain(|pending| (pending.peer, pending.request) != (Some(peer), request));
        self.pending.len() < before
    }

    pub(super) fn forget_peers(&mut self, gone: &[PeerId]) {
        if gone.is_empty() {
            return;
        }
        let now = Instant::now();
        self.pending.retain_mut(|pending| {
            if pending.peer.is_some_and(|peer| gone.contains(&peer)) {
                pending.peer = None;
                pending.left_at = Some(now);
            }
            pending.peer.is_some() || pending.wait.token.is_some()
        });
    }

    /// Whether the last wait with patterns has gone since this was last asked.
    pub(super) fn take_emptied(&mut self) -> bool {
        let searching = self.pending.iter().any(|pending| pending.search.is_some());
        std::mem::replace(&mut self.searching, searching) && !searching
    }

    /// Whether some pattern has not seen all of the log yet.
    pub(super) fn is_behind(&self) -> bool {
        self.behind
    }

    /// The next moment at which a wait could end by time alone.
    pub(super) fn next_deadline(&self, last_output: Instant) -> Option<Instant> {
        self.pending.iter().fold(self.vanishing_at, |next, pending| {
            let standing = pending.standing.as_ref().map(Standing::next);
            let by_time = earliest(pending.deadline, pending.quiet_at(last_output));
            earliest(next, earliest(standing, by_time))
        })
    }

    /// What somebody must look at for these waits.
    pub(super) fn wanted(&self) -> Wanted {
        Wanted {
            awaiting_input: self.pending.iter().any(|pending| pending.wait.awaiting_input),
            port: self.pending.iter().any(|pending| pending.wait.port.is_some()),
        }
    }

    /// Whether some wait looks at the screen now.
    pub(super) fn wants_screen(&self, now: Instant) -> bool {
        self.vanishing_at.is_some_and(|at| now >= at)
            || self.pending.iter().any(|p| p.standing.as_ref().is_some_and(|standing| now >= standing.next()))
    }

    /// Something was printed.
    pub(super) fn on_output(&mut self, channel: usize, now: Instant) {
        if channel == 0 {
            self.behind |= self.pending.iter().any(|pending| pending.search.is_some());
        }
        if self.vanishing_at.is_none() && self.pending.iter().any(|pending| pending.vanishing.is_some()) {
            // A flood is not looked at screen by screen.
            self.vanishing_at = Some(now + VANISH_LOOK);
        }
    }

    /// Looks at the screen for those who asked.
    pub(super) fn on_screen(&mut self, rows: &[String], now: Instant, end: u64, peers: &mut Peers) {
        self.vanishing_at = self.vanishing_at.filter(|at| now < *at);
        self.pending.retain_mut(|pending| {
            let stands = pending
                .standing
                .as_mut()
                .is_some_and(|standing| now >= standing.next() && standing.check(rows, now));
            let reason = if stands {
                Reason::Stable
            } else if pending.vanishing.as_ref().is_some_and(|vanishing| vanishing.is_gone(rows)) {
                Reason::Gone
            } else {
                return true;
            };
            pending.tell(peers, &mut self.answered, pending.end(reason, end, None, false));
            false
        });
    }

    /// The job waits for input.
    pub(super) fn on_awaiting(&mut self, awaiting: &Awaiting, end: u64, peers: &mut Peers) {
        self.pending.retain(|pending| {
            if !pending.wait.awaiting_input {
                return true;
            }
            let awaiting_input = Some(awaiting.clone());
            let waited = Waited { awaiting_input, ..Waited::because(Reason::AwaitingInput, end) };
            pending.tell(peers, &mut self.answered, pending.end_with(waited));
            false
        });
    }

    /// The job listens on these ports now.
    pub(super) fn on_ports(&mut self, ports: &[u16], end: u64, peers: &mut Peers) {
        self.pending.retain(|pending| {
            let Some(port) = pending.port_among(ports) else { return true };
            let waited = Waited { port: Some(port), ..Waited::because(Reason::Port, end) };
            pending.tell(peers, &mut self.answered, pending.end_with(waited));
            false
        });
    }

    /// Lets each search look at a little of the log, if any has not seen all of it; says whether one had not.
    pub(super) fn catch_up_a_little(&mut self, log: &LogWriter, peers: &mut Peers) -> bool {
        let (end, mut had_not) = (log.end(), false);
        self.pending.retain_mut(|pending| {
            let Some(search) = pending.search.as_mut().filter(|search| search.offset() < end) else {
                return true;
            };
            had_not = true;
            match search.read_little(log, end) {
                Some(found) => {
                    pending.tell_found(found, peers, &mut self.answered);
                    false
                }
                None => true,
            }
        });
        had_not
    }

    /// Lets each search look at the next piece of the log.
    pub(super) fn catch_up(&mut self, log: &LogWriter, peers: &mut Peers) {
        let end = log.end();
        let mut behind = false;
        self.pending.retain_mut(|pending| {
            if pending.wait.output && end > pending.from {
                let answer = pending.end(Reason::Output, end, None, false);
                pending.tell(peers, &mut self.answered, answer);
                return false;
            }
            let Some(search) = &mut pending.search else { return true };
            if !search.is_behind(end) {
                return true;
            }
            if let Some(found) = search.read(log, end) {
                pending.tell_found(found, peers, &mut self.answered);
                return false;
            }
            behind |= search.is_behind(end);
            true
        });
        self.behind = behind;
    }

    /// What ends by time alone.
    pub(super) fn on_time(&mut self, now: Instant, last_output: Instant, end: u64, peers: &mut Peers) {
        self.pending.retain(|pending| pending.left_at.is_none_or(|at| now < at + AWAY));
        self.answered.retain(|answered| now < answered.at + AWAY);
        self.pending.retain(|pending| {
            let searching = pending.search.as_ref().is_some_and(|search| search.is_behind(end));
            let reason = if pending.quiet_at(last_output).is_some_and(|at| now >= at) && !searching {
                Reason::Quiet
            } else if pending.deadline.is_some_and(|at| now >= at) {
                Reason::Deadline
            } else {
                return true;
            };
            pending.tell(peers, &mut self.answered, pending.end(reason, end, None, false));
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
            pending.tell(peers, &mut self.answered, pending.end(Reason::Exit, end, None, false));
            false
        });
    }

    /// Nothing more will come: waits that are left end with the job.
    pub(super) fn end_all(&mut self, end: u64, peers: &mut Peers) {
        for pending in self.pending.drain(..) {
            pending.tell(peers, &mut self.answered, pending.end(Reason::Exit, end, None, false));
        }
    }
}
