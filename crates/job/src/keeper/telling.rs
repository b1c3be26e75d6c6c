//! Tells the session: what of a job's events is worth it goes to the outbox, and from there whoever is to be woken
//! is woken by a helper process. Nothing here waits: not for the lock, not for the disk, not for a helper.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outlast_pty::procfs::Proc;
use outlast_pty::reap::End;
use rustix::process::Pid;

use super::Keeper;
use super::ground::Ground;
use crate::clock::earliest;
use crate::lifecycle::State;
use crate::outbox::{ENDED, Entry, Outbox, WAKE_FAILED};
use crate::registry::JobDir;
use crate::registry::format::Info;
use crate::registry::layout;
use crate::wakes::{Wake, deliver};
use crate::wire::Reason;
use crate::wire::event::{Event, What};

/// Entries that could not be written yet: the disk is full, or somebody holds the lock.
const MOST_HELD: usize = 256;
/// How soon it is tried again; the pause doubles with each try that fails.
const RETRY: Duration = Duration::from_millis(20);
/// The longest pause: a disk may be full for hours.
const LONGEST_RETRY: Duration = Duration::from_secs(5);
/// So many of one kind in a window are told one by one; the rest become one.
const BURST: u64 = 5;
const WINDOW: Duration = Duration::from_secs(10);
/// So long after an entry was written it is brought to the disk, with all that came meanwhile.
const SYNC: Duration = Duration::from_millis(300);
/// How long a keeper that is done tries to get its last words into the outbox.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What was chosen to be told, besides what watches find.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chosen {
    pub(super) exit: bool,
    pub(super) input: bool,
    pub(super) port: bool,
}

/// How many of one kind there were lately.
struct Limit {
    since: Instant,
    count: u64,
    gathered: Option<Entry>,
}

pub(super) struct Telling {
    session: String,
    name: Option<String>,
    job: crate::spec::Handle,
    held: VecDeque<Entry>,
    dropped: u64,
    retry: Option<Instant>,
    pause: Duration,
    limits: BTreeMap<String, Limit>,
    wakes: Vec<Wake>,
    to_wake: Vec<Entry>,
    helper: Option<Pid>,
    /// When the first entry was written that may not be on the disk yet.
    unsynced: Option<Instant>,
    /// Whether somebody is bringing entries to the disk.
    syncing: Arc<AtomicBool>,
    /// What the job said last: why it failed, more often than not.
    pub(super) last_line: String,
    /// Whether the outbox has the end.
    end_told: bool,
}

/// Whether a job's log of events has its end.
pub(super) fn is_end_noted(job: &JobDir) -> bool {
    job.events().iter().any(|event| matches!(event.what, What::Ended { .. }))
}

/// Whether a dead keeper has told all that there was to tell about a job that has ended.
pub(super) fn is_all_told(ground: &Ground, info: &Info) -> bool {
    is_end_noted(&ground.job) && Telling::new(ground, info).is_quiet()
}

impl Telling {
    /// Takes up where a dead keeper was: events that are written down and were not told are told now.
    pub(super) fn new(ground: &Ground, info: &Info) -> Self {
        let mut wakes = ground.spec.wakes.clone();
        wakes.extend(ground.settings.wakes.iter().cloned());
        let mut telling = Self {
            session: info.session.clone(),
            name: info.name.clone(),
            job: info.handle,
            held: VecDeque::new(),
            dropped: 0,
            retry: None,
            pause: RETRY,
            limits: BTreeMap::new(),
            wakes,
            to_wake: Vec::new(),
            helper: None,
            unsynced: None,
            syncing: Arc::default(),
            last_line: String::new(),
            end_told: ground.shared.end_told(),
        };
        let past = ground.job.events();
        if !past.is_empty() {
            let mut told = ground.shared.told();
            if let Ok(outbox) = Outbox::open(&ground.home, &info.session) {
                // It may have died between telling and noting that it has.
                for entry in outbox.entries(0).into_iter().filter(|entry| entry.job == info.handle) {
                    told = told.max(entry.seq);
                    telling.end_told |= entry.event == ENDED;
                }
            }
            let notify = &ground.spec.notify;
            let chosen = Chosen { exit: notify.exit, input: notify.input, port: notify.port };
            past.iter().filter(|event| event.seq > told).for_each(|event| telling.note(event, chosen));
        }
        telling
    }

    /// Whether there is nothing left to tell.
    fn is_quiet(&self) -> bool {
        self.held.is_empty() && self.limits.values().all(|limit| limit.gathered.is_none())
    }

    /// An event happened: is it worth telling?
    pub(super) fn note(&mut self, event: &Event, chosen: Chosen) {
        let Some((kind, mut text)) = describe(&event.what, chosen) else { return };
        if kind == ENDED && self.end_told {
            // It is in the outbox and was not in the log of events: a full disk, and then a dead keeper.
            return;
        }
        if matches!(event.what, What::Ended { state: State::Failed(_) }) && !self.last_line.trim().is_empty()
        {
            text = format!("{text}: {}", self.last_line.trim());
        }
        let mut entry = Entry::about(self.job, self.name.as_deref(), &kind, text);
        entry.seq = event.seq;
        entry.at = event.at;
        (entry.from, entry.offset) = (event.offset, event.offset);
        if let What::Watch { fired } = &event.what {
            (entry.count, entry.from, entry.offset) = (fired.count, fired.from, fired.to);
        }
        entry.more = more(self.job, &event.what);
        entry.detail = Some(event.what.clone());
        if kind != ENDED && !matches!(event.what, What::Watch { .. }) {
            let limit = self.limits.entry(kind).or_insert_with(|| Limit {
                since: Instant::now(),
                count: 0,
                gathered: None,
            });
            limit.count += 1;
            if limit.count > BURST {
                if let Some(known) = limit.gathered.take() {
                    entry.count += known.count;
                    entry.from = known.from;
                }
                limit.gathered = Some(entry);
                return;
            }
        }
        self.hold(entry);
    }

    fn hold(&mut self, entry: Entry) {
        if self.held.len() >= MOST_HELD {
            self.held.pop_front();
            self.dropped += 1;
        }
        self.held.push_back(entry);
    }

    /// The end of each window: what was gathered in it becomes one entry.
    fn release(&mut self, now: Instant, all: bool) {
        let mut out = Vec::new();
        self.limits.retain(|_, limit| {
            if !all && now < limit.since + WINDOW {
                return true;
            }
            out.extend(limit.gathered.take());
            false
        });
        out.into_iter().for_each(|entry| self.hold(entry));
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let gathered = self.limits.values().filter(|limit| limit.gathered.is_some());
        let sync = self.unsynced.map(|since| since + SYNC);
        gathered.fold(earliest(self.retry, sync), |next, limit| earliest(next, Some(limit.since + WINDOW)))
    }

    /// Brings what was written to the disk: in a thread of its own, for a disk may take its time.
    fn sync_if_due(&mut self, now: Instant, ground: &Ground) {
        if self.unsynced.is_none_or(|since| now < since + SYNC) {
            return;
        }
        if self.syncing.swap(true, Ordering::AcqRel) {
            // A slow disk: once more when it is done.
            self.unsynced = Some(now);
            return;
        }
        self.unsynced = None;
        let (syncing, outbox) = (Arc::clone(&self.syncing), Outbox::open(&ground.home, &self.session));
        let thread = std::thread::Builder::new().stack_size(64 << 10).spawn(move || {
            if let Ok(outbox) = outbox {
                outbox.sync();
            }
            syncing.store(false, Ordering::Release);
        });
        if thread.is_err() {
            self.syncing.store(false, Ordering::Release);
        }
    }

    /// A child has ended that is not the job's. A helper tells itself what it could not deliver, unless it died.
    pub(super) fn helper_ended(&mut self, pid: Pid, end: End) {
        if self.helper != Some(pid) {
            return;
        }
        self.helper = None;
        match end {
            End::Code(0 | 1) => {}
            End::Code(code) => self.wake_failed(&format!("the helper that wakes ended with code {code}")),
            End::Signal { signal, .. } => {
                let signal = outlast_pty::signal::name(signal);
                self.wake_failed(&format!("the helper that wakes was ended by {signal}"));
            }
        }
    }

    fn wake_failed(&mut self, why: &str) {
        let text = format!("{why}: who was to be woken may not have been told");
        let mut word = Entry::about(self.job, self.name.as_deref(), WAKE_FAILED, text);
        word.more = "outlast events".into();
        self.hold(word);
    }

    /// Leaves out the helper, and all below it: it is ours and no part of the job.
    pub(super) fn without_helpers(&self, mut processes: Vec<Proc>) -> Vec<Proc> {
        let Some(helper) = self.helper else { return processes };
        let mut ours = HashSet::from([helper]);
        loop {
            let before = ours.len();
            let below = |p: &&Proc| p.ppid.is_some_and(|parent| ours.contains(&parent));
            let more: Vec<Pid> = processes.iter().filter(below).map(|p| p.pid).collect();
            ours.extend(more);
            if ours.len() == before {
                break;
            }
        }
        processes.retain(|process| !ours.contains(&process.pid));
        processes
    }
}

impl Keeper {
    /// Holds room on the disk for what will be told.
    pub(super) fn hold_room_to_tell(&self) {
        if !self.ground.spec.notify.is_nothing()
            && let Ok(outbox) = Outbox::open(&self.ground.home, &self.telling.session)
        {
            outbox.hold_room();
        }
    }

    /// Writes what is held into the outbox, and wakes whoever is to be woken.
    pub(super) fn tell_outbox(&mut self) {
        let now = Instant::now();
        self.telling.release(now, false);
        if !self.telling.held.is_empty() && self.telling.retry.is_none_or(|at| now >= at) {
            let written = self.write_held();
            self.telling.retry = (!written).then_some(now + self.telling.pause);
            self.telling.pause = if written { RETRY } else { (self.telling.pause * 2).min(LONGEST_RETRY) };
        }
        self.telling.sync_if_due(now, &self.ground);
        if self.telling.helper.is_none() {
            self.wake();
        }
    }

    fn write_held(&mut self) -> bool {
        let Ok(outbox) = Outbox::open(&self.ground.home, &self.telling.session) else { return false };
        let telling = &mut self.telling;
        if telling.dropped > 0 {
            let text = format!("{} earlier events of this job could not be written", telling.dropped);
            let mut word = Entry::about(telling.job, telling.name.as_deref(), "dropped", text);
            word.count = telling.dropped;
            telling.held.push_front(word);
            telling.dropped = 0;
        }
        if outbox.try_append(telling.held.make_contiguous()).is_err() {
            return false;
        }
        telling.unsynced.get_or_insert_with(Instant::now);
        if let Some(seq) = telling.held.iter().map(|entry| entry.seq).max() {
            self.ground.shared.set_told(seq.max(self.ground.shared.told()));
        }
        if telling.held.iter().any(|entry| entry.event == ENDED) {
            telling.end_told = true;
            self.ground.shared.set_end_told();
        }
        let wakes = !telling.wakes.is_empty();
        for entry in telling.held.drain(..).filter(|entry| wakes && is_pushed(entry)) {
            if telling.to_wake.len() >= MOST_HELD {
                telling.to_wake.remove(0);
            }
            telling.to_wake.push(entry);
        }
        true
    }

    /// Starts the helper with all that is there to tell: one at a time, so that notices come in order.
    fn wake(&mut self) {
        if self.telling.to_wake.is_empty() {
            return;
        }
        let events = std::mem::take(&mut self.telling.to_wake);
        let order = deliver::Order {
            session: self.telling.session.clone(),
            wakes: self.telling.wakes.clone(),
            events,
        };
        let begun = deliver::begin(&order, &self.ground.home, &self.ground.spec.wake_env);
        match begun {
            Ok(helper) => self.telling.helper = Some(helper),
            Err(error) => {
                self.telling.wake_failed(&format!("the helper that wakes could not be started: {error}"));
            }
        }
    }

    /// The last line that the job printed.
    pub(super) fn last_words(&self) -> String {
        let line = self.last_line();
        if !line.trim().is_empty() {
            return line;
        }
        let Ok(file) = self.ground.job.open(layout::TRANSCRIPT) else { return String::new() };
        let size = rustix::fs::fstat(&file).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        let mut tail = vec![0; 1024];
        let got = crate::log::writer::read_exact_at(&file, &mut tail, size.saturating_sub(1024));
        let text = String::from_utf8_lossy(&tail[..got]).into_owned();
        text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned()
    }

    /// The keeper is done: its last words go out now, and a helper may outlive it.
    pub(super) fn tell_last(&mut self) {
        self.telling.release(Instant::now(), true);
        let until = Instant::now() + LAST_WORDS;
        while !self.telling.held.is_empty() && !self.write_held() && Instant::now() < until {
            std::thread::sleep(RETRY);
        }
        if !self.telling.held.is_empty() {
            // The room that is held is enough for the end, if not for all that could not be written.
            let before = self.telling.held.len();
            self.telling.held.retain(|entry| entry.event == ENDED);
            self.telling.dropped += (before - self.telling.held.len()) as u64;
            self.write_held();
        }
        if let Ok(outbox) = Outbox::open(&self.ground.home, &self.telling.session)
            && self.ground.shared.told() > 0
        {
            outbox.sync();
        }
        self.wake();
        if !self.telling.held.is_empty() {
            self.write_held();
        }
    }
}

/// Whether somebody is woken for an entry. Not for a wake that failed: the next one might fail as well.
fn is_pushed(entry: &Entry) -> bool {
    entry.event != "went_on" && entry.event != WAKE_FAILED
}

/// What kind of entry an event is, and its line; none for what is not worth one.
fn describe(what: &What, chosen: Chosen) -> Option<(String, String)> {
    let (kind, text) = match what {
        What::Ended { state } if chosen.exit => (ENDED, ended(state)),
        What::AwaitingInput { awaiting } if chosen.input => {
            ("awaiting_input", format!("it waits for input ({}): {}", awaiting.kind, awaiting.prompt))
        }
        What::WentOn if chosen.input => ("went_on", "it no longer waits for input".into()),
        What::PortOpen { port } if chosen.port => ("port_open", format!("it listens on port {port}")),
        What::LogFailing { error } if chosen.exit => {
            ("log_trouble", format!("its log can't be written: {error}"))
        }
        What::LogResumed { lost_from, lost_to } if chosen.exit => {
            ("log_trouble", format!("its log is written again; bytes {lost_from} to {lost_to} are lost"))
        }
        What::Watch { fired } => {
            let text = match (fired.reason, &fired.found, fired.port) {
                _ if !fired.lines.is_empty() => {
                    let lines: Vec<&str> = fired.lines.iter().map(|line| line.text.as_str()).collect();
                    format!("[{}] {}", fired.watch, lines.join(" ⏎ "))
                }
                (_, Some(found), _) => format!("[{}] {}", fired.watch, found.text),
                (_, _, Some(port)) => format!("[{}] it listens on port {port}", fired.watch),
                (Reason::Quiet, ..) => format!("[{}] it prints nothing any more", fired.watch),
                (Reason::Stable, ..) => format!("[{}] its screen stands still", fired.watch),
                (reason, ..) => format!("[{}] {}", fired.watch, reason.name()),
            };
            let kind = if fired.reason == Reason::Port { "port_open" } else { fired.reason.name() };
            (kind, text)
        }
        _ => return None,
    };
    Some((kind.into(), text))
}

fn ended(state: &State) -> String {
    let Some(receipt) = state.receipt() else { return state.name().into() };
    let how = receipt.words().unwrap_or_else(|error| error.message.clone());
    format!("{}: {how}", state.name())
}

/// The call that tells more.
fn more(job: crate::spec::Handle, what: &What) -> String {
    match what {
        What::AwaitingInput { .. } => format!("outlast send {job} TEXT"),
        What::Watch { fired } if fired.reason == Reason::Pattern => {
            format!("outlast read {job} --since {}", fired.read_from())
        }
        What::Watch { fired } if fired.reason == Reason::Stable => format!("outlast screen {job}"),
        _ => format!("outlast read {job} --tail 20"),
    }
}
