//! People in front of a job: who looks, who types, and which size suits them all.

use std::time::{Duration, Instant};

use super::Keeper;
use super::peers::PeerId;
use crate::failure::{Failure, Kind};
use crate::spec::{Size, Streams};
use crate::wire::{Answer, Attach, Attached, base64};

/// For how long after a person's last key nobody else may type.
const LEASE: Duration = Duration::from_secs(5);

/// One person at a terminal.
#[derive(Clone, Debug)]
pub(super) struct Viewer {
    peer: PeerId,
    /// The request by which they sat down.
    request: u64,
    size: Size,
    types: bool,
    shared: bool,
}

/// What the keeper remembers of people. The size that the job has without them is in its record.
#[derive(Debug, Default)]
pub(super) struct Viewers {
    all: Vec<Viewer>,
    typed_at: Option<Instant>,
}

impl Viewers {
    /// The largest size that fits on every screen of those who type.
    fn common_size(&self) -> Option<Size> {
        let sizes = self.all.iter().filter(|viewer| viewer.types).map(|viewer| viewer.size);
        sizes.reduce(|a, b| Size { cols: a.cols.min(b.cols), rows: a.rows.min(b.rows) })
    }
}

impl Keeper {
    /// A person sits down: the screen as it is, and the offset from which the log goes on.
    pub(super) fn on_attach(&mut self, peer: PeerId, request: u64, attach: &Attach) -> Answer {
        let Streams::Terminal(size) = self.info.streams else {
            return Answer::Error(
                Failure::usage("this job runs on pipes and has no terminal to attach to")
                    .hint(format!("follow what it prints: outlast logs -f {}", self.info.handle))
                    .into(),
            );
        };
        let own = attach.size.unwrap_or(size);
        let viewer = Viewer { peer, request, size: own, types: !attach.read_only, shared: attach.shared };
        self.viewers.all.retain(|viewer| viewer.peer != peer);
        self.viewers.all.push(viewer);
        self.settle_size(Some(peer));
        self.peers.follow(peer);
        self.attached()
    }

    /// The screen for someone who looks at it.
    fn attached(&mut self) -> Answer {
        let (Some(channel), Streams::Terminal(size)) = (self.channels.first_mut(), self.info.streams) else {
            return Answer::Done {};
        };
        let repaint = base64::encode(&channel.fold.repaint());
        Answer::Attached(Attached {
            repaint,
            offset: channel.fold.offset(),
            size,
            viewers: self.viewers.all.len(),
        })
    }

    /// People who have left no longer count.
    pub(super) fn forget_viewers(&mut self, gone: &[PeerId]) {
        let before = self.viewers.all.len();
        self.viewers.all.retain(|viewer| !gone.contains(&viewer.peer));
        if self.viewers.all.len() == before {
            return;
        }
        if self.viewers.all.is_empty() {
            self.viewers.typed_at = None;
        }
        self.settle_size(None);
    }

    /// The size that suits those who type, or the job's own when there are none. Others than `but` see it anew.
    pub(super) fn settle_size(&mut self, but: Option<PeerId>) {
        let Streams::Terminal(now) = self.info.streams else { return };
        let size = match self.viewers.common_size().and_then(|size| size.checked().ok()) {
            Some(size) => {
                if size != now {
                    self.info.size_alone.get_or_insert(now);
                }
                size
            }
            None => self.info.size_alone.take().unwrap_or(now),
        };
        if size != now {
            self.change_size(size, but);
        }
    }

    /// Somebody asks for a size. While people are attached to type, theirs comes first: the job has the one asked
    /// for when they have left.
    pub(super) fn on_resize_request(&mut self, size: Size) -> Answer {
        match size.checked() {
            Ok(size) if self.viewers.common_size().is_some() && self.info.has_terminal() => {
                self.info.size_alone = Some(size);
                self.record_is_stale = true;
                Answer::Done {}
            }
            _ => self.change_size(size, None),
        }
    }

    fn change_size(&mut self, size: Size, but: Option<PeerId>) -> Answer {
        let answer = self.on_resize(size);
        let others: Vec<(PeerId, u64)> = self
            .viewers
            .all
            .iter()
            .filter(|viewer| Some(viewer.peer) != but)
            .map(|viewer| (viewer.peer, viewer.request))
            .collect();
        for (peer, request) in others {
            let attached = self.attached();
            self.peers.reply(peer, request, attached);
        }
        answer
    }

    /// Whether this client is a person in front of the job.
    pub(super) fn is_attached(&self, peer: PeerId) -> bool {
        self.viewers.all.iter().any(|viewer| viewer.peer == peer)
    }

    /// Whether this client may type now. A person who types is not typed over by a machine, unless that person
    /// asked for it.
    pub(super) fn may_type(&mut self, peer: PeerId) -> Result<(), Failure> {
        let viewer = self.viewers.all.iter().find(|viewer| viewer.peer == peer);
        match viewer {
            Some(viewer) if !viewer.types => Err(Failure::new(Kind::Denied, "attached to look, not to type")
                .hint("attach without --read-only")),
            Some(_) => {
                self.viewers.typed_at = Some(Instant::now());
                Ok(())
            }
            None => {
                let leased = self.viewers.typed_at.is_some_and(|at| at.elapsed() < LEASE);
                let exclusive = self.viewers.all.iter().any(|viewer| viewer.types && !viewer.shared);
                if !(leased && exclusive) {
                    return Ok(());
                }
                let handle = self.info.handle;
                Err(Failure::new(
                    Kind::Denied,
                    format!("a person is typing into job {handle}; nothing was typed"),
                )
                .hint(format!(
                    "look at its screen (outlast screen {handle}) and try again in a few seconds; \
                         they can share their keyboard with outlast attach --shared {handle}"
                )))
            }
        }
    }
}
