//! People in front of a job: who looks, who types, and which size suits them all.

use std::time::{Duration, Instant};

use super::{Client, Core, Effect, Effects, Now, PeerId};
use crate::failure::{Failure, Kind};
use crate::spec::{Size, Streams};
use crate::wire::{Answer, Attach, Attached, base64};
use outlast_protocol::{Call, Hint};

/// For how long after a person's last key nobody else may type.
const LEASE: Duration = Duration::from_secs(5);

/// One person at a terminal.
#[derive(Clone, Debug)]
struct Viewer {
    /// The request by which they sat down.
    client: Client,
    size: Size,
    types: bool,
    shared: bool,
    /// The name under which they hold the job, or may.
    holder: Option<String>,
}

/// What the keeper remembers of people. The size that the job has without them is in its record.
#[derive(Debug, Default)]
pub(crate) struct Viewers {
    all: Vec<Viewer>,
    typed_at: Option<Instant>,
}

impl Viewers {
    /// The largest size that fits on every screen of those who type.
    fn common_size(&self) -> Option<Size> {
        let sizes = self.all.iter().filter(|viewer| viewer.types).map(|viewer| viewer.size);
        sizes.reduce(|a, b| Size { cols: a.cols.min(b.cols), rows: a.rows.min(b.rows) })
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }
}

impl Core {
    /// A person attaches: the screen as it is, and the offset from which the log goes on.
    pub(super) fn on_attach(&mut self, client: Client, attach: &Attach, now: Now, effects: &mut Effects) {
        let Streams::Terminal(size) = self.record.streams() else {
            let failure = Failure::usage("this job runs on pipes and has no terminal to attach to")
                .hint(Hint::call("follow what it prints: ", Call::Follow(self.record.handle().to_string())));
            effects.reply(client, Answer::Error(failure.into()));
            return;
        };
        let own = attach.size.unwrap_or(size);
        let viewer = Viewer {
            client,
            size: own,
            types: !attach.read_only,
            shared: attach.shared,
            holder: attach.holder.clone(),
        };
        self.viewers.all.retain(|viewer| viewer.client.peer != client.peer);
        self.viewers.all.push(viewer);
        self.settle_hold(now.at);
        self.settle_size(Some(client.peer), effects);
        effects.push(Effect::Follow(client.peer));
        let attached = self.attached();
        effects.reply(client, attached);
        if attach.sits && !attach.read_only {
            self.sit_down(client.peer, now, effects);
        }
    }

    /// The screen for someone who looks at it.
    fn attached(&mut self) -> Answer {
        let (Some((repaint, offset)), Streams::Terminal(size)) = (self.repaint(), self.record.streams())
        else {
            return Answer::Done {};
        };
        let repaint = base64::encode(&repaint);
        Answer::Attached(Attached { repaint, offset, size, viewers: self.viewers.all.len() })
    }

    /// People who have left no longer count.
    pub(super) fn forget_viewer(&mut self, peer: PeerId, effects: &mut Effects) {
        let before = self.viewers.all.len();
        self.viewers.all.retain(|viewer| viewer.client.peer != peer);
        if self.viewers.all.len() == before {
            return;
        }
        if self.viewers.all.is_empty() {
            self.viewers.typed_at = None;
        }
        self.settle_size(None, effects);
    }

    /// The size that suits those who type, or the job's own when there are none. Others than `but` see it
    /// anew.
    pub(super) fn settle_size(&mut self, but: Option<PeerId>, effects: &mut Effects) {
        let Streams::Terminal(now) = self.record.streams() else { return };
        let size_alone = self.record.size_alone_mut();
        let size = match self.viewers.common_size().and_then(|size| size.checked().ok()) {
            Some(size) => {
                if size != now {
                    size_alone.get_or_insert(now);
                }
                size
            }
            None => size_alone.take().unwrap_or(now),
        };
        if size != now {
            self.change_size(size, None, but, effects);
        }
    }

    /// Somebody asks for a size. While people are attached to type, theirs comes first: the job has the one
    /// asked for when they have left.
    pub(super) fn on_resize(&mut self, client: Client, size: Size, effects: &mut Effects) {
        let size = match size.checked() {
            Ok(size) => size,
            Err(failure) => return effects.reply(client, Answer::Error(failure.into())),
        };
        if !self.record.has_terminal() {
            let failure = Failure::usage("this job runs on pipes and has no size");
            effects.reply(client, Answer::Error(failure.into()));
        } else if self.viewers.common_size().is_some() {
            *self.record.size_alone_mut() = Some(size);
            self.record_is_stale = true;
            effects.reply(client, Answer::Done {});
        } else {
            self.change_size(size, Some(client), None, effects);
        }
    }

    fn change_size(
        &mut self,
        size: Size,
        client: Option<Client>,
        but: Option<PeerId>,
        effects: &mut Effects,
    ) {
        let Streams::Terminal(before) = self.record.streams() else { return };
        // The fold first: what the program prints in its new size must meet a screen of that size.
        self.resize_fold(size, effects);
        self.record.set_size(size);
        self.record_is_stale = true;
        effects.push(Effect::SetSize { size, before, client });
        let others: Vec<Client> = self.viewers.all.iter().map(|viewer| viewer.client).collect();
        for other in others.into_iter().filter(|other| Some(other.peer) != but) {
            let attached = self.attached();
            effects.push(Effect::Repaint { client: other, answer: attached });
        }
    }

    /// The terminal has its new size, or could not get it.
    pub(super) fn on_size_set(
        &mut self,
        before: Size,
        client: Option<Client>,
        failed: Option<String>,
        effects: &mut Effects,
    ) {
        let answer = match failed {
            None => Answer::Done {},
            Some(error) => {
                self.record.set_size(before);
                Answer::Error(Failure::system("cannot resize the terminal", error).into())
            }
        };
        if let Some(client) = client {
            effects.reply(client, answer);
        }
    }

    /// Whether somebody of that name looks at the job.
    pub(super) fn is_shown_to(&self, holder: &str) -> bool {
        self.viewers.all.iter().any(|viewer| viewer.holder.as_deref() == Some(holder))
    }

    /// Whether this client is a person in front of the job.
    pub(super) fn is_attached(&self, peer: PeerId) -> bool {
        self.viewers.all.iter().any(|viewer| viewer.client.peer == peer)
    }

    /// Whether this client may type now. A person who types is not typed over by a machine, unless that
    /// person asked for it.
    pub(super) fn may_type(&mut self, peer: PeerId, now: Instant) -> Result<(), Failure> {
        let viewer = self.viewers.all.iter().find(|viewer| viewer.client.peer == peer);
        match viewer {
            Some(viewer) if !viewer.types => Err(Failure::new(Kind::Denied, "attached to look, not to type")
                .hint("attach without --read-only")),
            Some(_) => {
                self.viewers.typed_at = Some(now);
                Ok(())
            }
            None => {
                let leased =
                    self.viewers.typed_at.is_some_and(|at| now.saturating_duration_since(at) < LEASE);
                let exclusive = self.viewers.all.iter().any(|viewer| viewer.types && !viewer.shared);
                if !(leased && exclusive) {
                    return Ok(());
                }
                let handle = self.record.handle();
                Err(Failure::new(
                    Kind::Denied,
                    format!("a person is typing into job {handle}; nothing was typed"),
                )
                .hint(
                    Hint::call("look at its screen (", Call::Screen(handle.to_string()))
                        .and(") and try again in a few seconds; they can share their keyboard: ")
                        .then(Call::AttachShared(handle.to_string())),
                ))
            }
        }
    }
}
