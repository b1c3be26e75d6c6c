//! The closed set of things that can happen to a keeper, and how each is dealt with.

use std::os::fd::AsFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use super::peers::PeerId;
use super::{Keeper, Life};
use crate::lifecycle::EndedBy;
use crate::wire::event::What;

/// Something that happened. Time is not among them: deadlines are looked at after every round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// Signals came.
    Signals,
    /// A channel has bytes.
    Output(usize),
    /// The program can take more input.
    RoomToType,
    /// A client knocks.
    Knock,
    /// A client said something, or is gone.
    Said(PeerId),
    /// A client can be told more.
    RoomToTell(PeerId),
    /// A look at the job is done.
    Seen,
}

/// Sleeps until something happens or the deadline comes.
pub(super) fn wait(keeper: &Keeper, deadline: Option<Instant>) -> Vec<Input> {
    let mut sources = vec![
        (Input::Signals, PollFd::new(&keeper.signals, PollFlags::IN)),
        (Input::Knock, PollFd::new(&keeper.ground.listener, PollFlags::IN)),
    ];
    for (i, channel) in keeper.channels.iter().enumerate() {
        // What is on its way from the terminal counts too: a turn may end before all of it is in the log, and the
        // terminal may have nothing more to say.
        for source in channel.sources() {
            sources.push((Input::Output(i), PollFd::from_borrowed_fd(source, PollFlags::IN)));
        }
    }
    if keeper.typing.has_more()
        && let Some(sink) = keeper.sink()
    {
        sources.push((Input::RoomToType, PollFd::from_borrowed_fd(sink, PollFlags::OUT)));
    }
    if let Some(wake) = keeper.looking.wake() {
        sources.push((Input::Seen, PollFd::from_borrowed_fd(wake, PollFlags::IN)));
    }
    for (id, peer) in keeper.peers.all() {
        if peer.may_speak() {
            sources.push((Input::Said(id), PollFd::from_borrowed_fd(peer.as_fd(), PollFlags::IN)));
        }
        if peer.has_unsent() {
            sources.push((Input::RoomToTell(id), PollFd::from_borrowed_fd(peer.as_fd(), PollFlags::OUT)));
        }
    }
    let timeout = if keeper.waits.is_behind() || keeper.watching.is_behind() {
        Some(Timespec::default())
    } else {
        deadline.map(|at| {
            let left = at.saturating_duration_since(Instant::now());
            // Rounded up to the kernel's grain: waking a moment early would mean spinning until it is time.
            Timespec {
                tv_sec: left.as_secs().min(1 << 30).cast_signed(),
                tv_nsec: i64::from(left.subsec_nanos()),
            }
        })
    };
    let (inputs, mut fds): (Vec<Input>, Vec<PollFd<'_>>) = sources.into_iter().unzip();
    match poll(&mut fds, timeout.as_ref()) {
        Ok(1..) => {
            let happened = |(input, fd): (Input, &PollFd<'_>)| (!fd.revents().is_empty()).then_some(input);
            let mut happened: Vec<Input> = inputs.into_iter().zip(&fds).filter_map(happened).collect();
            happened.dedup();
            happened
        }
        // Nothing but the deadline, or a signal, which the next round sees.
        Ok(0) | Err(_) => Vec::new(),
    }
}

impl Keeper {
    /// Deals with one input.
    pub(super) fn turn(&mut self, input: Input) {
        match input {
            Input::Signals => self.on_signals(),
            Input::Output(channel) => self.on_output(channel),
            Input::RoomToType => self.type_more(),
            Input::Knock => {
                // Most ask while they knock: their answer goes out with our greeting, and we wake once less.
                for peer in self.peers.accept(&self.ground.listener, self.info.handle) {
                    self.on_said(peer);
                }
            }
            Input::Said(peer) => self.on_said(peer),
            Input::RoomToTell(peer) => self.peers.flush_one(peer),
            Input::Seen => self.on_seen(),
        }
    }

    fn on_signals(&mut self) {
        let signals = self.signals.take();
        if signals.contains(&Signal::USR1) && self.heir_lives {
            self.heir_lives = false;
            self.info.heir = None;
            self.record_is_stale = true;
            self.event(What::HeirGone);
        }
        if signals.contains(&Signal::CHILD) {
            self.look_at_children();
        }
        self.released |= signals.contains(&Signal::TERM) && self.life == Life::Ended;
        if signals.contains(&Signal::TERM)
            && matches!(self.life, Life::Running { .. })
            && self.ending.is_none()
        {
            // The machine goes down, or somebody ends us by name: the job goes first, with a receipt.
            self.begin_ending(EndedBy::Outside, super::ending::GRACE, None);
        }
    }
}
