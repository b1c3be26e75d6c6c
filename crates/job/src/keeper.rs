//! The keeper: the small process that owns one job, its terminal, log, waits and events.
//!
//! ```text
//! client ──exec──> starter ──fork──> heir (leads the terminal's session, sleeps)
//!                                     └─fork──> keeper ──fork+exec──> command
//! client ──exec──> starter ──fork──> nursery ──fork, fork──> heir, for each job
//! ```
//!
//! What a keeper decides is in [`core`], without any process, file or clock; what is here is the shell around
//! it. The shell is one thread in one loop: [`poll`] says what is ready, bytes are [`pump`]ed into the log,
//! requests are read from [`peers`], children are [reaped](reap_children), and each of these is fed to the
//! core. What the core then decides is carried out in [`effects`].

mod start;
mod nursery;
mod queue;
mod shell_ends;
mod shell_line;
mod ready;
mod inherited;
mod confinement;
#[cfg_attr(
    any(not(target_os = "linux"), outlast_portable),
    expect(dead_code, reason = "only a sandbox of Linux has a network of its own")
)]
mod proxy;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
pub(crate) mod guard;
#[cfg(any(not(target_os = "linux"), outlast_portable))]
#[path = "keeper/guard_elsewhere.rs"]
pub(crate) mod guard;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
mod guarding;
#[cfg(any(not(target_os = "linux"), outlast_portable))]
#[path = "keeper/guarding_elsewhere.rs"]
mod guarding;
mod shared;
mod heir;
mod watched_command;
pub(crate) mod nested;
mod core;
mod effects;
mod poll;
mod channel;
mod pump;
mod flood;
mod peers;
mod request_notes;
mod probe;
pub(crate) mod conditions;
mod watches;
mod watchdog;
mod reap_children;
mod record;
mod log_sync;
mod disk_reserve;
mod scope;
mod events;
mod outbox_writer;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::clock::{earliest, now_ms};
use crate::log::timing::TimingWriter;
use crate::registry::format::Info;
use channel::Channel;
use core::{Beginning, Core, Effects, Input, TimeLimits};
use disk_reserve::DiskReserve;
use events::EventLog;
use guard::Guard;
use inherited::Inherited;
use peers::{PeerId, Peers};
use probe::ProbeThread;
use proxy::Proxy;
use record::PreparedFiles;
use request_notes::{NotedKey, RequestNotes};
use watched_command::WatchedCommand;
use watches::SearchBuffer;

pub(crate) use start::keep;

/// How long after a burst of output its exact end time is written down.
const TIMING_FLUSH: Duration = Duration::from_millis(50);

/// Who takes over should we die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Net {
    /// The heir that we were forked from: the kernel gives it our children.
    Parent,
    /// An heir that we have forked after a take-over.
    Child(Pid),
    /// Nobody.
    None,
}

/// The shell around one job's [`Core`]: everything that reaches outside.
struct Keeper {
    core: Core,
    /// What the core decided and is not done yet; empty between two inputs.
    effects: Effects,
    inherited: Inherited,
    channels: Vec<Channel>,
    timing: TimingWriter,
    events: EventLog,
    peers: Peers,
    /// What was begun, for an heir; with whose requests are not answered yet.
    request_notes: RequestNotes,
    noted: BTreeMap<(PeerId, u64), NotedKey>,
    /// For reading the log back.
    search_buffer: SearchBuffer,
    probe: Option<ProbeThread>,
    guard: Option<Guard>,
    proxy: Option<Proxy>,
    /// For a shell that remembers.
    shell_line: Option<shell_line::ShellLine>,
    signals: outlast_pty::signals::Signals,
    net: Net,
    /// The command, if it is not a child of ours.
    watched: Option<WatchedCommand>,
    /// Whether the kernel says that no child is left.
    childless: bool,
    /// Whether children changed that could not be looked at yet.
    children_changed: bool,
    /// The helper that wakes, while it is at work.
    helper: Option<Pid>,
    syncing: log_sync::Syncing,
    reserve: DiskReserve,
    prepared: PreparedFiles,
    /// What the job waits for before it runs.
    queue: Option<queue::Queue>,
    /// When the job leaves its starter's unit of systemd, if it does.
    scope_due: Option<Instant>,
}

impl Keeper {
    /// A keeper with what it has inherited; what a dead one left is taken up.
    fn new(mut inherited: Inherited, info: Info, command: Pid, net: Net) -> std::io::Result<Self> {
        let signals = outlast_pty::signals::Signals::catch(&[Signal::CHILD, Signal::TERM, Signal::USR1])?;
        outlast_pty::system::signal_when_parent_ends(Signal::USR1);
        let (channels, outputs): (Vec<Channel>, Vec<core::Output>) =
            channel::open_all(&inherited, &info)?.into_iter().unzip();
        let shell = info.shell.as_ref().map(|_| &inherited.job);
        let events = EventLog::new(inherited.events.try_clone()?, shell);
        let silent_since = Duration::from_millis(inherited.shared.last_output_ms());
        let end = channels.first().map_or(0, |channel| channel.log.end());
        let conditions = watches::conditions_of(&inherited, &info, end);
        // Looked at once: it may end at any moment, and is waited for if it was there.
        let helper = outbox_writer::helper_of(&inherited);
        let core = Core::new(Beginning {
            command,
            has_heir: net != Net::None,
            outputs,
            limits: TimeLimits {
                started: started_at(&inherited, &info),
                timeout: inherited.spec.timeout,
                inactivity: inherited.spec.inactivity_timeout,
            },
            last_output: inherited.started + silent_since,
            next_event: events.next_number(),
            notifier: outbox_writer::notifier(&inherited, &info, &conditions, helper),
            conditions,
            watchdog: watchdog::Watchdog::new(&inherited.settings.watchdog),
            masks: inherited.masks.clone(),
            steps: shell_line::known_steps(&inherited, &info),
            info,
        });
        let mut keeper = Self {
            core,
            effects: Effects::default(),
            channels,
            timing: TimingWriter::new(inherited.timing.try_clone()?),
            events,
            peers: Peers::of(inherited.home.path()),
            request_notes: RequestNotes::new(inherited.shared.requests),
            noted: BTreeMap::new(),
            search_buffer: SearchBuffer::default(),
            probe: None,
            guard: inherited.guard.take(),
            proxy: inherited.proxy.take(),
            shell_line: shell_line::ShellLine::of(&inherited)?,
            signals,
            net,
            watched: None,
            childless: outlast_pty::reap::peek(None) == outlast_pty::reap::Peeked::NoChildren,
            children_changed: false,
            helper,
            syncing: log_sync::Syncing::default(),
            reserve: DiskReserve::Held,
            prepared: PreparedFiles::default(),
            queue: None,
            scope_due: None,
            inherited,
        };
        for channel in &mut keeper.channels {
            channel.replay(&mut keeper.core, &mut keeper.effects);
        }
        keeper.perform_all();
        Ok(keeper)
    }

    /// The loop: sleeps until something happens, deals with it, until the job and all it left behind are
    /// gone.
    fn run(mut self) {
        // The looks at a program that may be back at its prompt are a tenth of a millisecond apart: half of that again, which
        // the kernel may add to every sleep, would be the caller's time. The command was started before, and has its own.
        outlast_pty::system::set_timer_slack(1);
        // What a dead keeper lost is named before the first output is taken.
        self.note_log_changes();
        if self.core.has_ended() {
            // Nothing may ever happen any more: whether all is done is looked at before the first sleep.
            self.settle();
        }
        while !self.core.is_over() {
            let deadline = self.next_deadline();
            let ready = poll::wait(&self, deadline);
            for ready in ready {
                self.on_ready(ready);
            }
            self.on_time(Instant::now());
            self.settle();
        }
        self.drain_requests();
        self.finish();
    }

    /// Answers requests that arrived while the job was ending, before the disk is waited for.
    fn drain_requests(&mut self) {
        self.peers.accept(&self.inherited.listener, self.core.handle());
        let peers: Vec<PeerId> = self.peers.all().map(|(id, _)| id).collect();
        for peer in peers {
            self.read_requests(peer);
        }
        self.settle();
    }

    /// The next moment at which time itself is an input.
    fn next_deadline(&self) -> Option<Instant> {
        let last_output = self.core.last_output();
        let mut next = self.core.next_deadline();
        for channel in &self.channels {
            next = earliest(next, channel.held_until());
        }
        next = earliest(next, self.reserve.next());
        next = earliest(next, self.syncing.next());
        next = earliest(next, self.queue.as_ref().and_then(queue::Queue::next));
        next = earliest(next, self.scope_due);
        next = earliest(next, self.watched.as_ref().and_then(WatchedCommand::next));
        if self.timing.holds() {
            next = earliest(next, Some(last_output + TIMING_FLUSH));
        }
        next
    }

    /// What is due by now.
    fn on_time(&mut self, now: Instant) {
        if self.timing.holds() && now >= self.core.last_output() + TIMING_FLUSH {
            self.timing.flush();
        }
        self.release_held(now);
        self.reserve_if_due(now);
        self.sync_if_due(now);
        self.move_into_scope_if_due(now);
        self.look_at_watched(now);
        self.advance_queue_if_due(now);
    }

    /// After each round: what changed goes to the disk and to followers.
    fn settle(&mut self) {
        self.search();
        self.perform_all();
        // Answer waits for a pattern before anything else is done.
        self.peers.flush();
        self.note_log_changes();
        self.feed(Input::Time);
        self.leave_slot_if_ended();
        if self.children_changed {
            self.reap_children();
        }
        self.peers.tell_growth(self.core.grown());
        self.peers.flush();
        for peer in self.peers.remove_left() {
            self.forget_notes_of(peer);
            self.feed(Input::PeerLeft(peer));
        }
        self.core.get_patterns_ready();
    }

    fn note_log_changes(&mut self) {
        for channel in 0..self.channels.len() {
            let log = &mut self.channels[channel].log;
            if !log.take_changed() {
                continue;
            }
            let failing = log.failing().map(|error| error.to_string());
            let lost = log.gone().clone();
            self.feed(Input::LogChanged { channel, failing, lost });
            if self.channels[channel].log.has_unnamed() {
                self.name_losses(channel);
            }
        }
    }

    /// The end: everything on the disk, everyone told, nothing left behind.
    fn finish(mut self) {
        self.timing.flush();
        self.events.finish();
        // On the disk in this order: who finds the record finds the log, who finds the entry finds the record.
        self.sync_logs();
        self.sync_record();
        self.sync_outbox_last();
        self.prepared.remove(&self.inherited.job);
        self.give_reserve_back();
        self.remove_confinement();
        self.inherited.remove_socket();
        self.feed(Input::Close);
        self.peers.tell_growth(self.core.grown());
        self.peers.close_all();
        crate::registry::numbers::reserve_ahead(&self.inherited.home);
        crate::registry::sweep::sweep_in_passing(
            &self.inherited.home,
            &self.inherited.settings.retention,
            now_ms(),
        );
        self.inherited.shared.set_done();
    }
}

/// When the command was started: later than the job, if that was queued.
fn started_at(inherited: &Inherited, info: &Info) -> Instant {
    let queued_ms = info.started_at.map_or(0, |at| at.saturating_sub(info.created_at));
    inherited.started + Duration::from_millis(queued_ms)
}
