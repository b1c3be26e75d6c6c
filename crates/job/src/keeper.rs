//! The keeper: the small process that owns one job, its terminal, log, waits and events.
//!
//! ```text
//! client ──exec──> starter ──fork──> heir (leads the terminal's session, sleeps)
//!                                     └─fork──> keeper ──fork+exec──> command
//! client ──exec──> starter ──fork──> nursery ──fork, fork──> heir, for each job
//! ```
//!
//! [`start`] makes what both share ([`ground`]) and forks, or a [`nursery`] does; [`heir`] sleeps and takes over. The keeper itself is
//! one thread in one loop: [`inputs`] are a closed set, and each is dealt with in turn. Bytes go
//! [`pump`] → log → fold → [`waits`] (helped by [`looking`] and [`standing`]) and followers ([`peers`]); requests are [`answer`]ed; children are
//! [`reaping`] work; a job is ended in [`ending`].

mod answer;
mod bounds;
mod ending;
mod events;
mod flood;
mod ground;
mod heir;
mod inputs;
mod lines;
mod looking;
mod masking;
pub(crate) mod nested;
mod nursery;
mod peers;
mod pump;
mod ready;
mod reaping;
mod record;
mod room;
mod shared;
mod secret;
pub(crate) mod standing;
mod telling;
mod start;
mod typing;
mod viewers;
mod waits;
mod watchdog;
mod watching;

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::clock::{earliest, millis, now_ms};
use crate::lifecycle::{EndedBy, State};
use crate::log::timing::TimingWriter;
use crate::registry::format::Info;
use crate::registry::replace::Durability;
use crate::wire::Grown;
use crate::wire::event::What;
use ending::Ending;
use events::EventLog;
use ground::Ground;
use looking::Looking;
use peers::Peers;
use pump::Channel;
use room::Room;
use telling::Telling;
use typing::Typing;
use viewers::Viewers;
use waits::Waits;
use watchdog::Watchdog;
use watching::Watching;

pub(crate) use start::keep;

/// How long after a burst of output its exact end time is written down.
const TIMING_FLUSH: Duration = Duration::from_millis(50);

/// How long after the last wait for a pattern its memory is given back.
const TIDY_AFTER: Duration = Duration::from_secs(1);

/// Whether the command still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Running { command: Pid, stopped: bool },
    Ended,
}

/// Everything one job's keeper owns.
struct Keeper {
    ground: Ground,
    info: Info,
    life: Life,
    /// Whether the kernel says that no child is left.
    childless: bool,
    heir_lives: bool,
    channels: Vec<Channel>,
    timing: TimingWriter,
    events: EventLog,
    typing: Typing,
    peers: Peers,
    waits: Waits,
    watching: Watching,
    telling: Telling,
    looking: Looking,
    watchdog: Watchdog,
    viewers: Viewers,
    ending: Option<Ending>,
    /// The last signal somebody asked us to send: who, if the command dies of it.
    last_signal: Option<(Signal, String)>,
    last_output: Instant,
    last_input: Instant,
    signals: outlast_pty::signals::Signals,
    oom_kills_before: u64,
    record_is_stale: bool,
    /// Set while the job has ended and no record says so.
    unsaved: Option<record::Unsaved>,
    /// Nobody wants to know how the job ended any more.
    released: bool,
    room: Room,
    spares: record::Spares,
    /// When memory that only waits for patterns need is given back.
    tidy_at: Option<Instant>,
    /// How far the log had grown when the last screen was written.
    screen_written_at: Option<u64>,
}

impl Keeper {
    /// The loop: sleeps until something happens, deals with it, until the job and all it left behind are gone.
    fn run(mut self) {
        while !self.is_over() {
            let deadline = self.next_deadline();
            let inputs = inputs::wait(&self, deadline);
            for input in inputs {
                self.note_full_screen();
                self.turn(input);
            }
            self.note_full_screen();
            self.on_time(Instant::now());
            self.settle();
        }
        self.hear_out();
        self.finish();
    }

    /// Whoever asked in the last moment is answered, before the disk is waited for.
    fn hear_out(&mut self) {
        self.peers.accept(&self.ground.listener, self.info.handle);
        let peers: Vec<peers::PeerId> = self.peers.all().map(|(id, _)| id).collect();
        for peer in peers {
            self.on_said(peer);
        }
        self.settle();
    }

    fn note_full_screen(&mut self) {
        self.peers.full_screen =
            self.channels.first().is_some_and(|channel| channel.fold.modes().alternate_screen);
    }

    /// Nothing of the job is left, nobody waits for an answer about its end, and the record says how it ended.
    fn is_over(&self) -> bool {
        self.life == Life::Ended && self.ending.is_none() && self.nothing_left() && !self.holds_the_end()
    }

    /// The next moment at which time itself is an input.
    fn next_deadline(&self) -> Option<Instant> {
        let mut next = self.waits.next_deadline(self.last_output);
        if let Some(ending) = &self.ending {
            next = earliest(next, Some(ending.next()));
        } else if matches!(self.life, Life::Running { .. }) {
            next = earliest(next, self.limit().map(|(at, _)| at));
        }
        next = earliest(next, self.looking.next());
        next = earliest(next, self.watching.next_deadline(self.last_output));
        next = earliest(next, self.telling.next_deadline());
        for channel in &self.channels {
            next = earliest(next, channel.held_until());
        }
        next = earliest(next, self.room.next());
        next = earliest(next, self.next_save());
        next = earliest(next, self.tidy_at);
        if self.timing.holds() {
            next = earliest(next, Some(self.last_output + TIMING_FLUSH));
        }
        next
    }

    /// The earlier of the job's own limits, and who ends it then.
    fn limit(&self) -> Option<(Instant, EndedBy)> {
        let spec = &self.ground.spec;
        let timeout = spec.timeout.and_then(|limit| {
            let at = self.ground.started.checked_add(limit)?;
            Some((at, EndedBy::Timeout { limit_ms: millis(limit) }))
        });
        let silence = spec.inactivity_timeout.and_then(|limit| {
            let at = self.last_output.checked_add(limit)?;
            Some((at, EndedBy::Inactivity { limit_ms: millis(limit) }))
        });
        [timeout, silence].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// What is due by now.
    fn on_time(&mut self, now: Instant) {
        if self.timing.holds() && now >= self.last_output + TIMING_FLUSH {
            self.timing.flush();
        }
        self.release_held(now);
        if self.ending.is_some() {
            self.go_on_ending(now);
        } else if matches!(self.life, Life::Running { .. })
            && let Some((at, by)) = self.limit()
            && now >= at
        {
            self.begin_ending(by, ending::GRACE, None);
        }
        self.hold_room_if_due(now);
        self.save_if_due(now);
        self.tidy_if_due(now);
        self.look_if_due(now);
        let grown = self.grown();
        if self.waits.wants_screen(now) {
            let rows = self.screen_rows();
            self.waits.on_screen(&rows, now, grown.offset, &mut self.peers);
        }
        self.waits.on_time(now, self.last_output, grown.offset, &mut self.peers);
        self.watch_on_time(now);
    }

    /// Automata are large, and a keeper that nobody asks anything may sleep for days; but whoever waits for a pattern
    /// mostly waits for it again.
    fn tidy_if_due(&mut self, now: Instant) {
        if self.tidy_at.is_some_and(|at| now >= at) {
            self.tidy_at = None;
            self.waits.forget_patterns();
            outlast_pty::memory::give_back();
        }
    }

    /// After each round: what changed goes to the disk and to whoever follows.
    fn settle(&mut self) {
        let grown = self.grown();
        if let Some(channel) = self.channels.first() {
            self.waits.catch_up(&channel.log, &mut self.peers);
        }
        self.watch_catch_up();
        self.note_log_changes();
        self.tell_outbox();
        self.peers.tell_growth(grown);
        self.peers.flush();
        let gone = self.peers.remove_gone();
        self.waits.forget_peers(&gone);
        if self.waits.take_emptied() {
            self.tidy_at = Some(Instant::now() + TIDY_AFTER);
        }
        self.forget_viewers(&gone);
    }

    /// How far the logs have grown.
    fn grown(&self) -> Grown {
        let end = |i: usize| self.channels.get(i).map_or(0, |channel| channel.log.end());
        Grown { offset: end(0), errors: end(1) }
    }

    /// Writes down an event, and tells followers.
    fn event(&mut self, what: What) {
        let event = self.events.add(now_ms(), self.grown().offset, what);
        self.peers.tell_event(&event);
        let chosen = self.chosen();
        self.telling.note(&event, chosen);
    }

    /// A log that fails, recovers or is capped is a visible state.
    fn note_log_changes(&mut self) {
        let mut happened = Vec::new();
        for (i, channel) in self.channels.iter_mut().enumerate() {
            if !channel.log.take_changed() {
                continue;
            }
            let gone = if i == 0 { &mut self.info.gone } else { &mut self.info.errors_gone };
            let news = pump::describe_change(gone, &channel.log, &mut channel.was_failing);
            happened.extend(news);
            gone.clone_from(channel.log.gone());
            self.record_is_stale = true;
        }
        for what in happened {
            self.event(what);
        }
        if self.record_is_stale && self.unsaved.is_none() {
            self.write_record(Durability::Process);
        }
    }

    /// The end: everything on the disk, everyone told, nothing left behind.
    fn finish(mut self) {
        self.timing.flush();
        self.write_last_words(true);
        if self.info.state.receipt().is_some_and(|receipt| !receipt.left_behind.is_empty()) {
            self.event(What::AllGone);
        }
        self.events.finish();
        self.tell_last();
        self.keep_record();
        self.spares.clear(&self.ground.job);
        self.give_room_back();
        self.clear_walls();
        self.ground.remove_socket();
        let grown = self.grown();
        self.waits.end_all(grown.offset, &mut self.peers);
        self.peers.tell_growth(grown);
        self.peers.say_goodbye();
        crate::registry::sweep::sweep_in_passing(
            &self.ground.home,
            &self.ground.settings.retention,
            now_ms(),
        );
    }

    /// Whether the state on the disk says that somebody is ending the job.
    fn ending_by(&self) -> Option<EndedBy> {
        match &self.info.state {
            State::Running { ending } => ending.clone(),
            _ => None,
        }
    }
}
