//! People in front of a job: who looks, who types, and which size suits them all.

use std::time::{Duration, Instant};

use super::Keeper;
use super::ground::Ends;
use super::peers::PeerId;
use crate::failure::{Failure, Kind};
use crate::spec::{Size, Streams};
use crate::wire::{Answer, Attach, Attached, base64};

/// For how long after a person's last key nobody else may type.
const LEASE: Duration = Duration::from_secs(5);

/// One person at a terminal.
#[derive(Clone, Debug)]
pub(super) struct Viewer {
    size: Size,
    types: bool,
    shared: bool,
}

/// What the keeper remembers of people.
#[derive(Debug, Default)]
pub(super) struct Viewers {
    all: Vec<(PeerId, Viewer)>,
    /// The size before the first of them came: the job gets it back when the last has gone.
    size_before: Option<Size>,
    typed_at: Option<Instant>,
}

impl Viewers {
    /// The largest size that fits on every screen of those who type.
    fn common_size(&self) -> Option<Size> {
        let sizes = self.all.iter().filter(|(_, viewer)| viewer.types).map(|(_, viewer)| viewer.size);
        sizes.reduce(|a, b| Size { cols: a.cols.min(b.cols), rows: a.rows.min(b.rows) })
    }
}

impl Keeper {
    /// A person sits down: the screen as it is, and the offset from which the log goes on.
    pub(super) fn on_attach(&mut self, peer: PeerId, attach: &Attach) -> Answer {
        let Streams::Terminal(size) = self.info.streams else {
            return Answer::Error(
                Failure::usage("this job runs on pipes and has no terminal to attach to")
                    .hint(format!("follow what it prints: outlast logs -f {}", self.info.handle))
                    .into(),
            );
        };
        self.viewers.size_before.get_or_insert(size);
        let viewer =
            Viewer { size: attach.size.unwrap_or(size), types: !attach.read_only, shared: attach.shared };
        self.viewers.all.retain(|(id, _)| *id != peer);
        self.viewers.all.push((peer, viewer));
        self.settle_size();
        self.peers.follow(peer);
        let offset = self.grown().offset;
        let Some(channel) = self.channels.first_mut() else { return Answer::Done {} };
        let repaint = base64::encode(&channel.fold.repaint());
        let Streams::Terminal(size) = self.info.streams else { return Answer::Done {} };
        Answer::Attached(Attached { repaint, offset, size, viewers: self.viewers.all.len() })
    }

    /// A viewer's own terminal has a new size.
    pub(super) fn on_viewer_size(&mut self, peer: PeerId, size: Size) -> Answer {
        for (_, viewer) in self.viewers.all.iter_mut().filter(|(id, _)| *id == peer) {
            viewer.size = size;
        }
        self.settle_size();
        Answer::Done {}
    }

    /// People who have left no longer count.
    pub(super) fn forget_viewers(&mut self, gone: &[PeerId]) {
        let before = self.viewers.all.len();
        self.viewers.all.retain(|(id, _)| !gone.contains(id));
        if self.viewers.all.len() == before {
            return;
        }
        if self.viewers.all.is_empty() {
            self.viewers.typed_at = None;
            if let Some(size) = self.viewers.size_before.take() {
                self.change_size(size);
            }
        } else {
            self.settle_size();
        }
    }

    fn settle_size(&mut self) {
        if let Some(size) = self.viewers.common_size().and_then(|size| size.checked().ok()) {
            self.change_size(size);
        }
    }

    fn change_size(&mut self, size: Size) {
        if self.info.streams != Streams::Terminal(size) && matches!(self.ground.ends, Ends::Terminal { .. }) {
            self.on_resize(size);
        }
    }

    /// Whether this client may type now. A person who types is not typed over by a machine, unless that person
    /// asked for it.
    pub(super) fn may_type(&mut self, peer: PeerId) -> Result<(), Failure> {
        let viewer = self.viewers.all.iter().find(|(id, _)| *id == peer).map(|(_, viewer)| viewer);
        match viewer {
            Some(viewer) if !viewer.types => Err(Failure::new(Kind::Denied, "attached to look, not to type")
                .hint("attach without --read-only")),
            Some(_) => {
                self.viewers.typed_at = Some(Instant::now());
                Ok(())
            }
            None => {
                let leased = self.viewers.typed_at.is_some_and(|at| at.elapsed() < LEASE);
                let exclusive = self.viewers.all.iter().any(|(_, viewer)| viewer.types && !viewer.shared);
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
