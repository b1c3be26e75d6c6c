//! Sleeps until something happens, and says what.

use std::os::fd::AsFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use super::core::Input;
use super::guard::{Guard, Told};
use super::peers::PeerId;
use super::probe::ProbeThread;
use super::proxy::Proxy;
use super::watched_command::WatchedCommand;
use super::{Keeper, Net};

/// What is ready. Time is not among them: deadlines are looked at after every round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ready {
    /// Signals came.
    Signals,
    /// A channel has bytes.
    Output(usize),
    /// The program can take more input.
    InputRoom,
    /// A client connects.
    Connection,
    /// A client said something, or has left.
    Peer(PeerId),
    /// A client can be told more.
    PeerRoom(PeerId),
    /// A probe is done.
    Probe,
    /// The guard has something to tell.
    Guard,
    /// The proxy has refused something.
    Proxy,
    /// A command that is not our child has ended.
    Command,
    /// Something else of the job that is not our child has ended.
    OtherWatched,
    /// The shell says something over its line.
    Shell,
    /// The shell can be told more.
    ShellRoom,
    /// What a queued job waits for may be there.
    Queue,
}

/// Sleeps until something happens or the deadline comes.
pub(super) fn wait(keeper: &Keeper, deadline: Option<Instant>) -> Vec<Ready> {
    let mut sources = vec![
        (Ready::Signals, PollFd::new(&keeper.signals, PollFlags::IN)),
        (Ready::Connection, PollFd::new(&keeper.inherited.listener, PollFlags::IN)),
    ];
    for (i, channel) in keeper.channels.iter().enumerate() {
        // What is on its way from the terminal counts too: a turn may end before all of it is in the log, and
        // the terminal may have nothing more to say.
        for source in channel.sources() {
            sources.push((Ready::Output(i), PollFd::from_borrowed_fd(source, PollFlags::IN)));
        }
    }
    if keeper.core.has_input()
        && let Some(sink) = keeper.inherited.ends.input()
    {
        sources.push((Ready::InputRoom, PollFd::from_borrowed_fd(sink, PollFlags::OUT)));
    }
    if let Some(probe) = &keeper.probe {
        sources.push((Ready::Probe, PollFd::from_borrowed_fd(probe.wake(), PollFlags::IN)));
    }
    if let Some(guard) = &keeper.guard {
        sources.push((Ready::Guard, PollFd::from_borrowed_fd(guard.wake(), PollFlags::IN)));
    }
    if let Some(proxy) = &keeper.proxy {
        sources.push((Ready::Proxy, PollFd::from_borrowed_fd(proxy.wake(), PollFlags::IN)));
    }
    if let Some(command) = keeper.watched.as_ref().and_then(WatchedCommand::source) {
        sources.push((Ready::Command, PollFd::from_borrowed_fd(command, PollFlags::IN)));
    }
    for other in keeper.watched.iter().flat_map(WatchedCommand::others) {
        sources.push((Ready::OtherWatched, PollFd::from_borrowed_fd(other, PollFlags::IN)));
    }
    if let Some(line) = &keeper.shell_line
        && let Some(source) = line.source()
    {
        sources.push((Ready::Shell, PollFd::from_borrowed_fd(source, PollFlags::IN)));
        if let Some(sink) = line.sink() {
            sources.push((Ready::ShellRoom, PollFd::from_borrowed_fd(sink, PollFlags::OUT)));
        }
    }
    for source in keeper.queue.iter().flat_map(super::queue::Queue::sources) {
        sources.push((Ready::Queue, PollFd::from_borrowed_fd(source, PollFlags::IN)));
    }
    for (id, peer) in keeper.peers.all() {
        if peer.may_ask() {
            sources.push((Ready::Peer(id), PollFd::from_borrowed_fd(peer.as_fd(), PollFlags::IN)));
        }
        if peer.has_unsent() {
            sources.push((Ready::PeerRoom(id), PollFd::from_borrowed_fd(peer.as_fd(), PollFlags::OUT)));
        }
    }
    let timeout = if keeper.core.is_searching() {
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
    let (all, mut fds): (Vec<Ready>, Vec<PollFd<'_>>) = sources.into_iter().unzip();
    match poll(&mut fds, timeout.as_ref()) {
        Ok(1..) => {
            let is_ready = |(ready, fd): (Ready, &PollFd<'_>)| (!fd.revents().is_empty()).then_some(ready);
            let mut ready: Vec<Ready> = all.into_iter().zip(&fds).filter_map(is_ready).collect();
            ready.dedup();
            ready
        }
        // Nothing but the deadline, or a signal, which the next round sees.
        Ok(0) | Err(_) => Vec::new(),
    }
}

impl Keeper {
    /// Deals with what is ready.
    pub(super) fn on_ready(&mut self, ready: Ready) {
        match ready {
            Ready::Signals => self.on_signals(),
            Ready::Output(channel) => self.on_output(channel),
            Ready::InputRoom => self.feed(Input::SinkReady),
            Ready::Connection => {
                // Most ask while they connect: their answer goes out with our greeting, and we wake once
                // less.
                for peer in self.peers.accept(&self.inherited.listener, self.core.handle()) {
                    self.read_requests(peer);
                }
            }
            Ready::Peer(peer) => self.read_requests(peer),
            Ready::PeerRoom(peer) => self.peers.flush_one(peer),
            Ready::Probe => {
                if let Some(result) = self.probe.as_ref().and_then(ProbeThread::take) {
                    self.feed(Input::Probed(Box::new(result)));
                }
            }
            Ready::Guard => self.on_guard(),
            Ready::Command => self.on_watched_ready(),
            Ready::OtherWatched => self.on_other_watched_ready(),
            Ready::Proxy => {
                for refused in self.proxy.as_ref().map(Proxy::take).unwrap_or_default() {
                    self.feed(Input::HostRefused(refused));
                }
            }
            Ready::Shell => self.on_shell(),
            Ready::ShellRoom => self.on_shell_room(),
            Ready::Queue => self.advance_queue(),
        }
    }

    pub(super) fn on_guard(&mut self) {
        for told in self.guard.as_ref().map(Guard::take).unwrap_or_default() {
            match told {
                Told::Refused(refused) => self.feed(Input::ExecRefused(refused)),
                Told::Asked(question) => self.feed(Input::ExecAsked(question)),
                Told::Withdrawn(question) => self.feed(Input::ExecWithdrawn(question)),
            }
        }
    }

    fn on_signals(&mut self) {
        let signals = self.signals.take();
        if signals.contains(&Signal::USR1) && self.net == Net::Parent {
            self.feed(Input::HeirDied);
        }
        if signals.contains(&Signal::CHILD) {
            self.reap_children();
        }
        if signals.contains(&Signal::TERM) {
            self.feed(Input::Terminated);
        }
    }
}
