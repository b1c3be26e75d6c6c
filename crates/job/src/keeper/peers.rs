//! The clients at the socket: lines in, lines out, nothing unbounded. A slow client slows nobody.

use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use crate::failure::{Failure, Kind};
use crate::socket::{Doorkeeper, Who};
use crate::spec::Handle;
use crate::wiped::{Wiped, wipe};
use crate::wire::event::Event;
use crate::wire::{Answer, Grown, Hello, LONGEST_LINE, Line, PROTOCOL, Reply, line};

/// Which client.
pub(super) type PeerId = u64;

/// More clients than this at one job are turned away.
const MOST: usize = 256;
/// A client that leaves more than this unread is not spoken to any more: it can read the log.
const MOST_UNSENT: usize = 1 << 20;
/// How long a keeper that is done waits for its clients to take the last words.
const GOODBYE: Duration = Duration::from_secs(1);

pub(super) struct Peer {
    stream: UnixStream,
    /// What came so far; it may hold a secret.
    heard: Wiped,
    unsent: VecDeque<u8>,
    follows: bool,
    told: Option<Grown>,
    held: bool,
    gone: bool,
}

impl Peer {
    fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            heard: Wiped::default(),
            unsent: VecDeque::new(),
            follows: false,
            told: None,
            held: false,
            gone: false,
        }
    }

    /// Whether we want to hear more of it now.
    pub(super) fn may_speak(&self) -> bool {
        !self.held && self.unsent.len() < MOST_UNSENT / 2
    }

    pub(super) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    fn say(&mut self, what: &[u8]) {
        if self.unsent.len() + what.len() > MOST_UNSENT {
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
    fn hear(&mut self) -> Vec<Wiped> {
        let mut piece = [0; 16 << 10];
        match self.stream.read(&mut piece) {
            Ok(0) => self.gone = true,
            Ok(n) => {
                self.heard.extend(&piece[..n]);
                wipe(&mut piece[..n]);
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
        let rest = Wiped(self.heard[end + 1..].to_vec());
        let whole = std::mem::replace(&mut self.heard, rest);
        let lines = whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| Wiped(line.to_vec())).collect()
    }
}

impl AsFd for Peer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[derive(Default)]
pub(super) struct Peers {
    next: PeerId,
    all: BTreeMap<PeerId, Peer>,
    door: Doorkeeper,
    /// Whether a full-screen program has the terminal: whoever waited would ask that next.
    pub(super) full_screen: bool,
}

impl Peers {
    pub(super) fn all(&self) -> impl Iterator<Item = (PeerId, &Peer)> {
        self.all.iter().map(|(id, peer)| (*id, peer))
    }

    /// Lets in whoever knocks, if it is our own user, and says who that is: it may have said something already.
    pub(super) fn accept(&mut self, listener: &OwnedFd, handle: Handle) -> Vec<PeerId> {
        let mut new = Vec::new();
        let Ok(listener) = listener.try_clone().map(UnixListener::from) else { return new };
        while let Ok((stream, _)) = listener.accept() {
            let who = self.door.who(&stream);
            if who == Who::Stranger || self.all.len() >= MOST || stream.set_nonblocking(true).is_err() {
                continue;
            }
            let hello = Hello { outlast: PROTOCOL, version: env!("CARGO_PKG_VERSION").into(), handle };
            let mut peer = Peer::new(stream);
            peer.say(&line(&hello));
            if who == Who::Confined {
                let failure = Failure::new(Kind::Denied, "a process in a sandbox can't talk to keepers")
                    .hint("do it from outside the sandbox");
                let answer = Answer::Error(failure.into());
                peer.say(&line(&Line::Reply(Reply { id: 0, answer })));
                peer.flush();
                continue;
            }
            self.all.insert(self.next, peer);
            new.push(self.next);
            self.next += 1;
        }
        new
    }

    /// Listens to whoever has started the job, on the line over which it did.
    pub(super) fn adopt(&mut self, stream: UnixStream) {
        if stream.set_nonblocking(true).is_ok() {
            self.all.insert(self.next, Peer::new(stream));
            self.next += 1;
        }
    }

    /// The whole lines that a client has sent.
    pub(super) fn hear(&mut self, id: PeerId) -> Vec<Wiped> {
        self.all.get_mut(&id).map(Peer::hear).unwrap_or_default()
    }

    pub(super) fn reply(&mut self, id: PeerId, request: u64, mut answer: Answer) {
        if let Answer::Waited(waited) = &mut answer {
            waited.full_screen = Some(self.full_screen);
        }
        if let Some(peer) = self.all.get_mut(&id) {
            peer.say(&line(&Line::Reply(Reply { id: request, answer })));
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
                peer.say(&line(&Line::Grown(grown)));
            }
        }
    }

    pub(super) fn tell_event(&mut self, event: &Event) {
        for peer in self.all.values_mut().filter(|peer| peer.follows) {
            peer.say(&line(&Line::Event(event.clone())));
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
    pub(super) fn remove_gone(&mut self) -> Vec<PeerId> {
        let gone: Vec<PeerId> = self.all.iter().filter(|(_, peer)| peer.gone).map(|(id, _)| *id).collect();
        for id in &gone {
            self.all.remove(id);
        }
        gone
    }

    /// The last words: clients get a moment to take them.
    pub(super) fn say_goodbye(&mut self) {
        let until = Instant::now() + GOODBYE;
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
