//! What of a job's events is worth telling its session: as entries of the outbox, of which some wake
//! somebody. Repeats are rate limited. Nothing here waits: entries that can't be written yet are held, up to
//! a bound, and retried.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use outlast_protocol::condition::ConditionWord;
use outlast_pty::reap::End;

use super::{Effect, Effects, Now};
use crate::clock::earliest;
use crate::lifecycle::State;
use crate::outbox::Entry;
use crate::spec::Handle;
use crate::wire::event::{EntryKind, Event, EventKind};
use crate::wire::{AwaitingKind, Reason};

/// Entries that could not be written yet: the disk is full, or somebody holds the lock.
const MAX_HELD: usize = 256;
/// How soon it is tried again; the pause doubles with each try that fails.
const FIRST_RETRY: Duration = Duration::from_millis(20);
/// The longest pause: a disk may be full for hours.
const LONGEST_RETRY: Duration = Duration::from_secs(5);
/// The rate limit: this many of one kind in a window are told one by one; the rest become one.
const BURST: u64 = 5;
const WINDOW: Duration = Duration::from_secs(10);
/// Helpers may die so often in a row; then what is in the spool is left to the next process of the home.
const MAX_HELPER_CRASHES: u32 = 10;
/// The pause before another helper is started; it doubles with each that dies.
const FIRST_HELPER_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_HELPER_PAUSE: Duration = Duration::from_secs(30);
/// How long after an entry was written it is synced to the disk, with all that came meanwhile.
const SYNC_AFTER: Duration = Duration::from_millis(300);

/// How many of one kind there were in this window.
#[derive(Debug)]
struct Limit {
    since: Instant,
    count: u64,
    gathered: Option<Entry>,
}

/// The helper that wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Helper {
    None,
    /// It is at work.
    Works,
    /// It died over orders that are in the spool: another is started then.
    Again(Instant),
}

/// Decides what is told, and when.
#[derive(Debug)]
pub(crate) struct Notifier {
    name: Option<String>,
    job: Handle,
    held: VecDeque<Entry>,
    /// Whether held entries are being written.
    appending: bool,
    dropped: u64,
    /// When held entries are written.
    retry: Option<Instant>,
    pause: Duration,
    limits: BTreeMap<EntryKind, Limit>,
    /// Whether anybody is to be woken.
    wakes: bool,
    to_wake: Vec<Entry>,
    helper: Helper,
    /// Helpers that died in a row.
    crashes: u32,
    /// When the first entry was written that may not be on the disk yet.
    unsynced: Option<Instant>,
    /// What the job said last: why it failed, more often than not.
    pub(super) last_line: String,
    /// Whether the outbox has the end.
    end_told: bool,
}

impl Notifier {
    /// `end_told`: whether the outbox has the job's end already.
    pub(crate) fn new(job: Handle, name: Option<String>, wakes: bool, end_told: bool) -> Self {
        Self {
            name,
            job,
            held: VecDeque::new(),
            appending: false,
            dropped: 0,
            retry: None,
            pause: FIRST_RETRY,
            limits: BTreeMap::new(),
            wakes,
            to_wake: Vec::new(),
            helper: Helper::None,
            crashes: 0,
            unsynced: None,
            last_line: String::new(),
            end_told,
        }
    }

    /// Whether there is nothing left to tell.
    pub(crate) fn is_quiet(&self) -> bool {
        self.held.is_empty() && self.limits.values().all(|limit| limit.gathered.is_none())
    }

    pub(super) fn holds_some(&self) -> bool {
        !self.held.is_empty()
    }

    pub(super) fn is_appending(&self) -> bool {
        self.appending
    }

    /// How many entries are kept in memory.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.held.len() + self.to_wake.len() + self.limits.len()
    }

    /// An event is to be told.
    pub(crate) fn note(&mut self, event: &Event, now: Instant) {
        let Some((kind, mut text)) = describe(&event.what) else { return };
        if kind == EntryKind::Exit && self.end_told {
            // It is in the outbox and was not in the log of events: a full disk, and then a dead keeper.
            return;
        }
        if matches!(event.what, EventKind::Exit { state: State::Failed(_) })
            && !self.last_line.trim().is_empty()
        {
            text = format!("{text}: {}", self.last_line.trim());
        }
        let mut entry = Entry::about_at(event.at, self.job, self.name.as_deref(), kind, text);
        entry.seq = event.seq;
        (entry.from, entry.offset) = (event.offset, event.offset);
        if let EventKind::Watch { fired } = &event.what {
            (entry.count, entry.from, entry.offset) = (fired.count, fired.from, fired.to);
        }
        entry.more = more(self.job, &event.what);
        entry.detail = Some(event.what.clone());
        if kind != EntryKind::Exit && !matches!(event.what, EventKind::Watch { .. }) {
            let limit =
                self.limits.entry(kind).or_insert_with(|| Limit { since: now, count: 0, gathered: None });
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
        self.hold(entry, now);
    }

    fn hold(&mut self, entry: Entry, now: Instant) {
        self.retry.get_or_insert(now);
        if self.held.len() >= MAX_HELD {
            self.held.pop_front();
            self.dropped += 1;
        }
        self.held.push_back(entry);
    }

    /// The end of each window: what was gathered in it becomes one entry.
    pub(super) fn release(&mut self, now: Instant, all: bool) {
        let mut out = Vec::new();
        self.limits.retain(|_, limit| {
            if !all && now < limit.since + WINDOW {
                return true;
            }
            out.extend(limit.gathered.take());
            false
        });
        out.into_iter().for_each(|entry| self.hold(entry, now));
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let gathered = self.limits.values().filter(|limit| limit.gathered.is_some());
        let sync = self.unsynced.map(|since| since + SYNC_AFTER);
        let helper = if let Helper::Again(at) = self.helper { Some(at) } else { None };
        gathered.fold(earliest(earliest(self.retry, helper), sync), |next, limit| {
            earliest(next, Some(limit.since + WINDOW))
        })
    }

    /// What is due: entries are written and synced, and wakes are delivered, by one helper at a
    /// time, so that notices come in order.
    pub(super) fn on_time(&mut self, now: Now, effects: &mut Effects) {
        self.release(now.at, false);
        if !self.held.is_empty() && self.may_append(now.at) {
            self.append(effects);
        }
        self.sync_if_due(now.at, effects);
        self.restart_helper(now.at, effects);
        self.wake_if_free(effects);
    }

    /// Brings what was written to the disk, when that is due.
    pub(super) fn sync_if_due(&mut self, now: Instant, effects: &mut Effects) {
        if self.unsynced.is_some_and(|since| now >= since + SYNC_AFTER) {
            self.unsynced = None;
            effects.push(Effect::SyncOutbox);
        }
    }

    /// Wakes, unless a helper is still at work.
    pub(super) fn wake_if_free(&mut self, effects: &mut Effects) {
        self.wake(effects);
    }

    /// Starts another helper for one that died, when that is due.
    pub(super) fn restart_helper(&mut self, now: Instant, effects: &mut Effects) {
        if let Helper::Again(at) = self.helper
            && now >= at
        {
            self.helper = Helper::Works;
            effects.push(Effect::Wake(std::mem::take(&mut self.to_wake)));
        }
    }

    /// Whether somebody is being woken, or will be.
    pub(super) fn is_waking(&self) -> bool {
        self.helper != Helper::None || !self.to_wake.is_empty()
    }

    /// Goes on where a dead keeper was: its helper may still be at work, or have left orders in the spool.
    pub(crate) fn take_up_wakes(&mut self, helper_works: bool, orders_left: bool, now: Instant) {
        if helper_works {
            self.helper = Helper::Works;
        } else if orders_left {
            self.helper = Helper::Again(now);
        }
    }

    pub(super) fn may_append(&self, now: Instant) -> bool {
        !self.appending && self.retry.is_none_or(|at| now >= at)
    }

    /// Has all that is held written.
    pub(super) fn append(&mut self, effects: &mut Effects) {
        if self.appending {
            return;
        }
        self.retry = None;
        let mut entries: Vec<Entry> = self.held.drain(..).collect();
        if self.dropped > 0 {
            let text = format!("{} earlier events of this job could not be written", self.dropped);
            let at = entries.first().map_or(0, |entry| entry.at);
            let mut word = Entry::about_at(at, self.job, self.name.as_deref(), EntryKind::Dropped, text);
            word.count = self.dropped;
            entries.insert(0, word);
            self.dropped = 0;
        }
        self.appending = true;
        effects.push(Effect::AppendOutbox(entries));
    }

    /// Entries were written, or were not and come back.
    pub(super) fn on_appended(&mut self, entries: Vec<Entry>, written: bool, now: Instant) {
        self.appending = false;
        if !written {
            self.retry = Some(now + self.pause);
            self.pause = (self.pause * 2).min(LONGEST_RETRY);
            let later = std::mem::take(&mut self.held);
            for entry in entries.into_iter().chain(later) {
                self.hold(entry, now);
            }
            return;
        }
        self.retry = (!self.held.is_empty()).then_some(now);
        self.pause = FIRST_RETRY;
        self.unsynced.get_or_insert(now);
        self.end_told |= entries.iter().any(|entry| entry.event == EntryKind::Exit);
        for entry in entries.into_iter().filter(|entry| self.wakes && is_pushed(entry)) {
            if self.to_wake.len() >= MAX_HELD {
                self.to_wake.remove(0);
            }
            self.to_wake.push(entry);
        }
    }

    /// A slow disk has not synced the last entries yet: once more when it has.
    pub(super) fn on_sync_busy(&mut self, now: Instant) {
        self.unsynced = Some(now);
    }

    /// Only what must be told is kept: the disk has no space for more.
    pub(super) fn keep_only_the_end(&mut self) {
        let before = self.held.len();
        self.held.retain(|entry| entry.event == EntryKind::Exit);
        self.dropped += (before - self.held.len()) as u64;
    }

    /// Starts a helper if somebody is to be woken and none is at work; false if there is nothing to do for it.
    pub(super) fn wake(&mut self, effects: &mut Effects) -> bool {
        if self.to_wake.is_empty() || self.helper != Helper::None {
            return false;
        }
        self.helper = Helper::Works;
        effects.push(Effect::Wake(std::mem::take(&mut self.to_wake)));
        true
    }

    /// A helper has ended, or could not be started. It tells itself what it could not deliver, unless it died: then
    /// another goes on with what is in the spool.
    pub(super) fn on_helper_ended(&mut self, ended: Result<End, String>, now: Now) {
        let died = match ended {
            Ok(End::Code(0 | 1)) => {
                (self.helper, self.crashes) = (Helper::None, 0);
                return;
            }
            Ok(End::Code(code)) => format!("the helper that wakes ended with code {code}"),
            Ok(End::Signal { signal, .. }) => {
                format!("the helper that wakes was ended by {}", outlast_pty::signal::name(signal))
            }
            Err(why) => why,
        };
        self.crashes += 1;
        if self.crashes < MAX_HELPER_CRASHES {
            let pause = FIRST_HELPER_PAUSE * (1 << (self.crashes - 1).min(16));
            self.helper = Helper::Again(now.at + pause.min(LONGEST_HELPER_PAUSE));
            return;
        }
        (self.helper, self.crashes) = (Helper::None, 0);
        self.wake_failed(&format!("{died}, {MAX_HELPER_CRASHES} times"), now);
    }

    pub(super) fn wake_failed(&mut self, why: &str, now: Now) {
        let text = format!("{why}: who was to be woken may not have been told");
        let mut word =
            Entry::about_at(now.unix_ms, self.job, self.name.as_deref(), EntryKind::WakeFailed, text);
        word.more = "outlast wakes list".into();
        self.hold(word, now.at);
    }
}

/// Whether somebody is woken for an entry. Not for a wake that failed: the next one might fail as well.
pub(crate) fn is_pushed(entry: &Entry) -> bool {
    use EntryKind::{Answered, GivenBack, Taken, WakeFailed, WentOn};
    !matches!(entry.event, WentOn | Answered | Taken | GivenBack | WakeFailed)
}

/// What kind of entry an event is, and its line; none for what is not worth one.
fn describe(what: &EventKind) -> Option<(EntryKind, String)> {
    let (kind, text) = match what {
        EventKind::Exit { state } => (EntryKind::Exit, ended(state)),
        EventKind::AwaitingInput { awaiting } => {
            (EntryKind::AwaitingInput, format!("it waits for input ({}): {}", awaiting.kind, awaiting.prompt))
        }
        EventKind::WentOn => (EntryKind::WentOn, "it no longer waits for input".into()),
        EventKind::Port { port } => (EntryKind::Port, format!("it listens on port {port}")),
        EventKind::ExecRefused { refused } => {
            (EntryKind::ExecRefused, format!("not executed: {} ({})", refused.command, refused.why))
        }
        EventKind::HostRefused { refused } => {
            let can = match refused.question {
                Some(question) => format!("; a person can allow it for this job: question {question}"),
                None => String::new(),
            };
            let (host, port, why) = (&refused.host, refused.port, &refused.why);
            (EntryKind::HostRefused, format!("not connected to {host}:{port}: {why}{can}"))
        }
        EventKind::Asking { question } => (
            EntryKind::Asking,
            format!("a person must agree before it executes: {} (rule {})", question.command, question.rule),
        ),
        EventKind::Answered { question, allowed, by } => {
            let said = if *allowed { "yes" } else { "no" };
            (EntryKind::Answered, format!("question {question} was answered with {said} by {by}"))
        }
        EventKind::Taken { by } => {
            (EntryKind::Taken, format!("a person has taken it over ({by}): nobody else can type into it"))
        }
        EventKind::GivenBack { by, why } => {
            (EntryKind::GivenBack, format!("others can type into it again ({by} had it): {why}"))
        }
        EventKind::LogFailing { error } => {
            (EntryKind::LogTrouble, format!("its log can't be written: {error}"))
        }
        EventKind::LogResumed { lost_from, lost_to } => (
            EntryKind::LogTrouble,
            format!("its log is written again; bytes {lost_from} to {lost_to} are lost"),
        ),
        EventKind::Watch { fired } => {
            let text = match (fired.reason, &fired.found, fired.port) {
                _ if !fired.lines.is_empty() => {
                    let lines: Vec<&str> = fired.lines.iter().map(|line| line.text.as_str()).collect();
                    format!("[{}] {}", fired.watch, lines.join(" ⏎ "))
                }
                (_, Some(found), _) => format!("[{}] {}", fired.watch, found.text),
                (_, _, Some(port)) => format!("[{}] it listens on port {port}", fired.watch),
                (reason, ..) => format!("[{}] {}", fired.watch, ConditionWord::told(reason)),
            };
            (fired.reason.into(), text)
        }
        EventKind::Step { step } => {
            let code = step.exit_code.map_or_else(|| "no code".to_owned(), |code| format!("code {code}"));
            (EntryKind::Step, format!("step {} ended with {code}: {}", step.step, step.command))
        }
        EventKind::StepForged { why } => {
            (EntryKind::Step, format!("the end of a step was refused, and the shell ended: {why}"))
        }
        EventKind::Stopped
        | EventKind::Listening { .. }
        | EventKind::StepStarted { .. }
        | EventKind::StepChanged { .. }
        | EventKind::Continued
        | EventKind::Queued { .. }
        | EventKind::Started { .. }
        | EventKind::AllGone
        | EventKind::LogCapped { .. }
        | EventKind::TookOver { .. }
        | EventKind::HeirGone
        | EventKind::Agent { .. }
        | EventKind::Unknown => return None,
    };
    Some((kind, text))
}

fn ended(state: &State) -> String {
    let Some(receipt) = state.receipt() else { return state.name().into() };
    let how = receipt.words().unwrap_or_else(|error| error.message.clone());
    format!("{}: {how}", state.name())
}

/// The call that tells more.
fn more(job: crate::spec::Handle, what: &EventKind) -> String {
    match what {
        EventKind::AwaitingInput { awaiting } if awaiting.kind == AwaitingKind::Password => {
            format!("outlast secret {job}")
        }
        EventKind::AwaitingInput { .. } => format!("outlast send {job} TEXT"),
        EventKind::Asking { question } => {
            format!("outlast policy answer {job} {} yes", question.question)
        }
        EventKind::Watch { fired }
            if matches!(fired.reason, Reason::Pattern | Reason::Lines | Reason::Output) =>
        {
            format!("outlast read {job} --since {}", fired.read_from())
        }
        EventKind::Watch { fired } if fired.reason == Reason::Stable => format!("outlast screen {job}"),
        _ => format!("outlast read {job} --tail 20"),
    }
}
