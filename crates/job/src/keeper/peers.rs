//! The clients at the socket: lines in, lines out, nothing unbounded. A slow client slows nobody.

use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use zeroize::Zeroize;

use super::Keeper;
use super::core::{Client, Input};
use super::request_notes::NotedKey;
use crate::failure::{Failure, Kind};
use crate::local::start::KEEP;
use crate::socket::{PeerCheck, PeerTrust};
use crate::spec::Handle;
use crate::wiped::Wiped;
use crate::wire::event::Event;
use crate::wire::{
    Answer, Grown, Hello, LONGEST_LINE, Line, OLDEST_PROTOCOL, PROTOCOL, Reply, Request, Verb, line,
};
use outlast_protocol::v1;
use outlast_protocol::{Call, Hint};

/// Whether a client runs in a job of any home. One that cannot be looked at may.
fn is_in_a_job(stream: &UnixStream) -> bool {
    let Some(pid) = outlast_pty::procfs::peer_of(stream) else { return true };
    let mut inside = false;
    let whole = outlast_pty::procfs::walk_up(pid, |process, arguments| {
        inside = process.pid != pid && arguments.read().get(1).is_some_and(|verb| *verb == KEEP.as_bytes());
        !inside
    });
    inside || !whole
}

/// Which client.
pub(super) type PeerId = u64;

/// More clients than this at one job are turned away.
const MAX_CLIENTS: usize = 256;
/// Connections beyond [`MAX_CLIENTS`], for requests to end or signal the job: those always get through.
const RESERVE: usize = 16;
/// When all places are taken, a client that has asked for nothing for so long loses its place.
const IDLE_LIMIT: Duration = Duration::from_secs(10);
/// Descriptors that the keeper needs for itself; clients get what is left of the limit.
const OWN_DESCRIPTORS: usize = 96;
/// A client that leaves more than this unread is not spoken to any more: it can read the log.
const MAX_UNSENT: usize = 1 << 20;
/// How long a keeper that is done waits for its clients to take the last words.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) struct Peer {
    stream: UnixStream,
    /// What came so far; it may hold a secret.
    heard: Wiped,
    unsent: VecDeque<u8>,
    /// The version of the protocol that it speaks, as far as it has said so.
    version: u32,
    follows: bool,
    told: Option<Grown>,
    held: bool,
    /// Whether it has a place of the reserve: one request, and only to end or signal the job.
    reserve: bool,
    /// How many requests are not answered yet.
    owed: usize,
    /// When it was last heard or answered.
    active_at: Instant,
    /// Whether the connection is closed once everything is said.
    closing: bool,
    gone: bool,
}

impl Peer {
    fn new(stream: UnixStream, reserve: bool) -> Self {
        Self {
            reserve,
            owed: 0,
            active_at: Instant::now(),
            closing: false,
            stream,
            heard: Wiped::default(),
            unsent: VecDeque::new(),
            version: OLDEST_PROTOCOL,
            follows: false,
            told: None,
            held: false,
            gone: false,
        }
    }

    /// Whether we want to hear more of it now.
    pub(super) fn may_ask(&self) -> bool {
        !self.held && !self.closing && self.unsent.len() < MAX_UNSENT / 2
    }

    /// Whether nobody would miss the connection: nothing is asked, followed or half said.
    fn is_idle(&self) -> bool {
        !self.gone
            && !self.closing
            && self.owed == 0
            && !self.follows
            && !self.held
            && self.heard.is_empty()
            && self.unsent.is_empty()
    }

    pub(super) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    fn is_over(&self) -> bool {
        self.gone || self.closing && self.unsent.is_empty()
    }

    fn queue(&mut self, what: &[u8]) {
        if self.unsent.len() + what.len() > MAX_UNSENT {
            self.gone = true;
            return;
        }
        self.unsent.extend(what);
    }

    fn flush(&mut self) {
        while !self.unsent.is_empty() {
            let (front, _) = self.unsent.as_slices();
            match self.stream.write(front) {
                Ok(n) => drop(self.unsent.drain(..n)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.gone = true;
                    return;
                }
            }
        }
    }

    /// Reads what is there and returns the whole lines of it.
    fn read_lines(&mut self) -> Vec<Wiped> {
        let mut piece = [0; 16 << 10];
        match self.stream.read(&mut piece) {
            Ok(0) => self.gone = true,
            Ok(n) => {
                self.active_at = Instant::now();
                self.heard.extend(&piece[..n]);
                piece[..n].zeroize();
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.gone = true,
        }
        let Some(end) = self.heard.iter().rposition(|byte| *byte == b'\n') else {
            if self.heard.len() > LONGEST_LINE {
                self.gone = true;
            }
            return Vec::new();
        };
        let rest = Wiped::from(self.heard[end + 1..].to_vec());
        let whole = std::mem::replace(&mut self.heard, rest);
        let lines = whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| Wiped::from(line.to_vec())).collect()
    }
}

impl AsFd for Peer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Which place a new client gets.
enum Place {
    Regular,
    Reserve,
    None,
}

#[derive(Default)]
pub(super) struct Peers {
    next: PeerId,
    all: BTreeMap<PeerId, Peer>,
    /// How many clients there may be, once that is known.
    limit: Option<usize>,
    door: PeerCheck,
}

impl Peers {
    /// The clients of a keeper in this home.
    pub(super) fn of(home: &std::path::Path) -> Self {
        Self { door: PeerCheck::of(home), ..Self::default() }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (PeerId, &Peer)> {
        self.all.iter().map(|(id, peer)| (*id, peer))
    }

    /// Accepts a connection, if it comes from our own user, and says who that is: it may have asked something
    /// already.
    pub(super) fn accept(&mut self, listener: &OwnedFd, handle: Handle) -> Vec<PeerId> {
        let mut new = Vec::new();
        let Ok(listener) = listener.try_clone().map(UnixListener::from) else { return new };
        while let Ok((stream, _)) = listener.accept() {
            let who = self.door.who(&stream);
            if who == PeerTrust::Stranger || stream.set_nonblocking(true).is_err() {
                continue;
            }
            let denied = match who {
                PeerTrust::Confined => Some(
                    Failure::new(Kind::Denied, "a process in a sandbox can't talk to keepers")
                        .hint("do it from outside the sandbox"),
                ),
                PeerTrust::Unseen => Some(
                    Failure::new(Kind::Denied, "the keeper of this job runs where it can't see who asks")
                        .hint("it was started from inside another job, or a container: ask from there; outlast kill works from here too"),
                ),
                PeerTrust::Ours | PeerTrust::Stranger => None,
            };
            let place = if denied.is_some() { Place::None } else { self.find_place() };
            let hello = Hello {
                outlast: OLDEST_PROTOCOL,
                newest: PROTOCOL,
                version: env!("CARGO_PKG_VERSION").into(),
                handle,
            };
            let mut peer = Peer::new(stream, matches!(place, Place::Reserve));
            peer.queue(&line(&hello));
            if matches!(place, Place::None) {
                let failure = denied.unwrap_or_else(|| self.busy(handle));
                let answer = Answer::Error(failure.into());
                peer.queue(&line(&Line::Reply(Reply { id: 0, answer })));
                peer.flush();
                continue;
            }
            if peer.reserve {
                // So that it can make room for the next one, should it say nothing.
                peer.flush();
            }
            self.all.insert(self.next, peer);
            new.push(self.next);
            self.next += 1;
        }
        new
    }

    /// The place for one more client. Room is made by closing what nobody would miss.
    fn find_place(&mut self) -> Place {
        let limit = self.limit();
        let taken = |reserve: bool| {
            self.all.values().filter(|peer| peer.reserve == reserve && !peer.gone && !peer.closing).count()
        };
        let (regular, reserve) = (taken(false), taken(true));
        if regular < limit || self.close_idle(false, IDLE_LIMIT) {
            Place::Regular
        } else if reserve < RESERVE || self.close_idle(true, Duration::ZERO) {
            Place::Reserve
        } else {
            Place::None
        }
    }

    /// Closes the connection that has been idle for longest, if that is at least so long; false if there is
    /// none.
    fn close_idle(&mut self, reserve: bool, at_least: Duration) -> bool {
        let idle = self.all.values_mut().filter(|peer| peer.reserve == reserve && peer.is_idle());
        match idle.min_by_key(|peer| peer.active_at) {
            Some(peer) if peer.active_at.elapsed() >= at_least => {
                peer.gone = true;
                true
            }
            Some(_) | None => false,
        }
    }

    fn limit(&mut self) -> usize {
        *self.limit.get_or_insert_with(|| {
            let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
            let descriptors = descriptors.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
            descriptors.saturating_sub(OWN_DESCRIPTORS + RESERVE).clamp(RESERVE, MAX_CLIENTS)
        })
    }

    /// What a client is told that gets no place, or asks for too much in a place of the reserve.
    fn busy(&mut self, handle: Handle) -> Failure {
        let limit = self.limit();
        let what = format!("job {handle} has {limit} clients, and takes no more");
        Failure::new(Kind::Keeper, what).hint(Hint::call(
            "try again when some of them are done; you can still end the job: ",
            Call::Kill(handle.to_string()),
        ))
    }

    /// Notes which version of the protocol a client speaks.
    fn note_version(&mut self, id: PeerId, version: u32) {
        if let Some(peer) = self.all.get_mut(&id) {
            peer.version = version;
        }
    }

    /// Takes note of a request. One that can't be answered because all places are taken is refused here.
    pub(super) fn admit(&mut self, id: PeerId, verb: &Verb, handle: Handle) -> Result<(), Failure> {
        let Some(peer) = self.all.get_mut(&id) else { return Ok(()) };
        peer.owed += 1;
        if matches!(verb, Verb::AnswerQuestion { .. } | Verb::Hold(_)) && is_in_a_job(&peer.stream) {
            let said = "a process inside a job can't answer what its user is asked, or take a job over";
            return Err(Failure::new(Kind::Denied, said).hint("do it in a terminal of your own"));
        }
        let urgent = matches!(verb, Verb::Kill { .. } | Verb::Signal { .. });
        if peer.reserve && (!urgent || peer.owed > 1) { Err(self.busy(handle)) } else { Ok(()) }
    }

    /// Listens to the process that started the job, on the line over which it did.
    pub(super) fn adopt(&mut self, stream: UnixStream) {
        if stream.set_nonblocking(true).is_ok() {
            self.all.insert(self.next, Peer::new(stream, false));
            self.next += 1;
        }
    }

    /// The whole lines that a client has sent.
    pub(super) fn read_lines(&mut self, id: PeerId) -> Vec<Wiped> {
        self.all.get_mut(&id).map(Peer::read_lines).unwrap_or_default()
    }

    pub(super) fn reply(&mut self, id: PeerId, request: u64, answer: Answer) {
        if let Some(peer) = self.all.get_mut(&id) {
            let reply = Line::Reply(Reply { id: request, answer });
            let bytes = if peer.version < 2 {
                v1::line(&reply).unwrap_or_else(|_| line(&reply))
            } else {
                line(&reply)
            };
            peer.queue(&bytes);
            peer.owed = peer.owed.saturating_sub(1);
            peer.active_at = Instant::now();
            peer.closing |= peer.reserve;
        }
    }

    /// Answers a request once more.
    pub(super) fn reply_again(&mut self, id: PeerId, request: u64, answer: Answer) {
        if let Some(peer) = self.all.get_mut(&id) {
            peer.queue(&line(&Line::Reply(Reply { id: request, answer })));
        }
    }

    /// From now on this client is told of growth and events.
    pub(super) fn follow(&mut self, id: PeerId) {
        if let Some(peer) = self.all.get_mut(&id) {
            peer.follows = true;
        }
    }

    /// Stops listening to a client, or listens again.
    pub(super) fn hold(&mut self, id: PeerId, held: bool) {
        if let Some(peer) = self.all.get_mut(&id) {
            peer.held = held;
        }
    }

    /// Tells followers how far the logs have grown; one that has not taken the last word yet hears it later.
    pub(super) fn tell_growth(&mut self, grown: Grown) {
        for peer in self.all.values_mut() {
            if peer.follows && peer.unsent.is_empty() && peer.told != Some(grown) {
                peer.told = Some(grown);
                peer.queue(&line(&Line::Grown(grown)));
            }
        }
    }

    pub(super) fn tell_event(&mut self, event: &Event) {
        for peer in self.all.values_mut().filter(|peer| peer.follows) {
            let told = Line::Event(event.clone());
            match peer.version {
                1 => peer.queue(&v1::line(&told).unwrap_or_default()),
                _ => peer.queue(&line(&told)),
            }
        }
    }

    pub(super) fn flush(&mut self) {
        for peer in self.all.values_mut() {
            peer.flush();
        }
    }

    pub(super) fn flush_one(&mut self, id: PeerId) {
        if let Some(peer) = self.all.get_mut(&id) {
            peer.flush();
        }
    }

    /// Forgets clients that are gone, and says which.
    pub(super) fn remove_left(&mut self) -> Vec<PeerId> {
        let gone: Vec<PeerId> =
            self.all.iter().filter(|(_, peer)| peer.is_over()).map(|(id, _)| *id).collect();
        for id in &gone {
            self.all.remove(id);
        }
        gone
    }

    /// The last words: clients get a moment to take them.
    pub(super) fn close_all(&mut self) {
        let until = Instant::now() + CLOSE_TIMEOUT;
        for peer in self.all.values_mut() {
            let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            let _ = peer.stream.set_nonblocking(false);
            let _ = peer.stream.set_write_timeout(Some(left));
            peer.flush();
            // Also where the heir still holds the line.
            let _ = peer.stream.shutdown(Shutdown::Write);
        }
    }
}

impl Keeper {
    /// Reads what a client has sent, and has its requests answered.
    pub(super) fn read_requests(&mut self, peer: PeerId) {
        for line in self.peers.read_lines(peer) {
            let key = NotedKey::of_line(&line);
            if key.is_some_and(|key| self.request_notes.has_killed_a_keeper(key)) {
                // Not even looked at again: whatever it was, a keeper died of it.
                self.peers.reply(peer, id_of_line(&line), Answer::Error(self.outcome_unknown().into()));
                continue;
            }
            if let Some(key) = key {
                self.request_notes.set_current(key);
            }
            super::core::planted_panic(&line);
            match serde_json::from_slice::<Request>(&line) {
                Ok(request) => self.on_request(peer, key, request),
                Err(error) => {
                    let failure = Failure::usage(format!("invalid request: {error}"))
                        .hint(r#"for example: {"id":1,"verb":"status"}"#);
                    self.peers.reply(peer, id_of_line(&line), Answer::Error(failure.into()));
                }
            }
            if key.is_some() {
                self.request_notes.clear_current();
            }
        }
    }

    fn on_request(&mut self, peer: PeerId, key: Option<NotedKey>, request: Request) {
        let Request { id, outlast, verb, .. } = request;
        self.peers.note_version(peer, outlast);
        let handle = self.core.handle();
        let admitted =
            self.peers.admit(peer, &verb, handle).and_then(|()| self.note_begun((peer, id), key, &verb));
        if let Err(failure) = admitted {
            self.peers.reply(peer, id, Answer::Error(failure.into()));
            return;
        }
        let types = matches!(verb, Verb::Send(_) | Verb::Secret(_));
        let modes = if types { self.line_modes() } else { None };
        self.feed(Input::Request { client: Client { peer, request: id }, verb, modes });
    }

    /// Notes what must not be done twice, before it is done; refuses what was begun before.
    fn note_begun(
        &mut self,
        request: (PeerId, u64),
        key: Option<NotedKey>,
        verb: &Verb,
    ) -> Result<(), Failure> {
        let Some(key) = key.filter(|_| verb.done_again_if_repeated().is_some()) else { return Ok(()) };
        if self.request_notes.was_begun(key) {
            return Err(self.outcome_unknown());
        }
        if !self.request_notes.begin(key) {
            return Err(Failure::new(Kind::Keeper, "too many requests are waiting for their answers")
                .hint("try again when some of them are done"));
        }
        self.noted.insert(request, key);
        Ok(())
    }

    fn outcome_unknown(&self) -> Failure {
        let handle = self.core.handle();
        Failure::new(
            Kind::OutcomeUnknown,
            format!(
                "the keeper of job {handle} had begun this when it died: it is not known whether it was done"
            ),
        )
        .hint(Hint::call("the job goes on; look before you try again: ", Call::Read(handle.to_string())))
    }

    /// A client has left: nobody will ask again for what it had begun.
    pub(super) fn forget_notes_of(&mut self, peer: PeerId) {
        let request_notes = &self.request_notes;
        self.noted.retain(|(of, _), key| {
            if *of == peer {
                request_notes.finish(*key);
            }
            *of != peer
        });
    }
}

/// The number of a request that can't be parsed, as far as it can be found: the caller waits for an answer to it.
fn id_of_line(line: &[u8]) -> u64 {
    const ID: &[u8] = br#""id":"#;
    let after = line.windows(ID.len()).position(|part| part == ID).map(|at| &line[at + ID.len()..]);
    let digits = after
        .unwrap_or_default()
        .iter()
        .skip_while(|byte| **byte == b' ')
        .take_while(|byte| byte.is_ascii_digit());
    digits.take(19).fold(0, |id, digit| id * 10 + u64::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::id_of_line;

    #[test]
    fn a_request_that_can_not_be_parsed_has_its_number_all_the_same() {
        assert_eq!(id_of_line(br#"{"id": 17, "verb": "\ud800"}"#), 17);
        assert_eq!(id_of_line(br#"{"key":"x","id":4,"verb":["#), 4);
        for without in [&b"garbage"[..], br#"{"id":"x"}"#, b"", br#"{"id":"#] {
            assert_eq!(id_of_line(without), 0);
        }
    }
}
