//! What the session's jobs had to tell while nobody asked: from its outbox, once.
//!
//! The session reads its outbox under a name of its own, so that nobody else who reads it misses anything. What an
//! answer has shown already is not news.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use outlast_job::clock::now_ms;
use outlast_job::outbox::tail::{Looked, Tail};
use outlast_job::outbox::{Entry, Outbox};
use outlast_job::outbox::{claims, reader};
use outlast_job::registry::Home;
use outlast_job::wire::event::EventKind;
use outlast_job::{EntryKind, Handle};
use serde::Serialize;

use super::{Caller, Engine};
use crate::answer::seconds;
use crate::call_handle::Receipt;
use crate::cursors::{Cursor, Cursors};

/// Under which name a session reads.
const READER: &str = "mcp";
/// More are counted and not shown.
const SHOWN: usize = 12;
/// So many are told with an answer about something else.
const WITH_AN_ANSWER: usize = 3;
/// How much of an event's text is shown.
const LINE: usize = 200;

/// One thing that a job had to tell.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Event {
    number: u64,
    handle: Handle,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    event: EntryKind,
    count: u64,
    text: String,
    offset: u64,
    age_seconds: u64,
    #[serde(skip)]
    age_ms: u64,
    /// A server that was killed meanwhile may have told it already.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    again: bool,
}

/// More sessions than this at one server are not remembered.
const MOST_SESSIONS: usize = 64;

/// How far each session's outbox was read, and what of it may be news: so that an answer costs what is new, and not what
/// has ever happened. Should it be forgotten, it is read again.
#[derive(Debug, Default)]
pub(crate) struct Heard(Mutex<HashMap<String, Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    tail: Tail,
    /// What the session was not told, as far as was known at the last look. What it has been told once it stays told.
    entries: Vec<Entry>,
}

impl Waiting {
    fn look(&mut self, outbox: &Outbox) {
        match self.tail.look(outbox) {
            Looked::More(more) => self.entries.extend(more),
            Looked::Anew(all) => self.entries = all,
        }
    }

    /// Forgets what is told, withdrawn, or shown by an answer.
    fn forget(&mut self, seen: u64, mut is_shown: impl FnMut(&Entry) -> bool) {
        let over: Vec<bool> = self.entries.iter().map(|entry| is_over(entry, &self.entries)).collect();
        let mut over = over.into_iter();
        self.entries.retain(|entry| !over.next().unwrap_or(false) && entry.n > seen && !is_shown(entry));
    }
}

/// What is new to a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct News {
    events: Vec<Event>,
    last: u64,
    /// How many more there are.
    more: usize,
}

impl Engine {
    /// What the session was not told yet, and what no answer to the reader has shown: who adopted a session reads for it.
    fn news(&self, caller: &Caller, reader: &str) -> News {
        let Some(outbox) = Outbox::existing(self.outlast.home(), &caller.session) else {
            return News::default();
        };
        let seen = reader::place(&outbox, READER).unwrap_or(0).max(outbox.acked());
        let mut heard = self.heard.0.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.len() >= MOST_SESSIONS && !heard.contains_key(&caller.session) {
            heard.clear();
        }
        let waiting = heard.entry(caller.session.clone()).or_default();
        waiting.look(&outbox);
        let sessions = [&*caller.session, reader];
        sessions.iter().for_each(|session| self.cursors.refresh(session));
        waiting.forget(seen, |entry| {
            sessions.iter().any(|session| is_known(entry, self.cursors.cached(session, entry.job)))
        });
        News {
            events: waiting.entries.iter().map(Event::from).collect(),
            last: waiting.tail.last().max(seen),
            more: 0,
        }
    }

    /// What the session was not told yet, at most this many: it is told now, by the answer of this call and by nobody else.
    pub(crate) fn claim_news(&self, caller: &Caller, most: usize) -> News {
        self.claim_news_for(caller, &caller.session, most)
    }

    /// The same of the sessions that the caller has adopted.
    pub(super) fn claim_adopted(&self, caller: &Caller) -> Vec<Event> {
        let claim = |session| {
            let earlier = Caller { session, ..caller.clone() };
            self.claim_news_for(&earlier, &caller.session, usize::MAX).events
        };
        self.adopted_by(caller).into_iter().flat_map(claim).collect()
    }

    fn claim_news_for(&self, caller: &Caller, reader: &str, most: usize) -> News {
        let mut news = self.news(caller, reader);
        if news.events.is_empty() || caller.call.is_cancelled() {
            return News::default();
        }
        let Some(outbox) = Outbox::existing(self.outlast.home(), &caller.session) else { return news };
        outbox.sync();
        let candidates: Vec<u64> = news.events.iter().map(|event| event.number).collect();
        // What can't be noted is told twice, which is better than not at all.
        let Ok(claimed) = claims::claim(&outbox, READER, &candidates, most, news.last) else {
            news.events.truncate(most);
            return news;
        };
        news.events.retain(|event| claimed.numbers.contains(&event.number));
        for event in &mut news.events {
            event.again = claimed.again.contains(&event.number);
        }
        news.more = claimed.more;
        if !claimed.numbers.is_empty() {
            let session = caller.session.clone();
            caller.call.add_receipt(Receipt::Told { session, numbers: claimed.numbers });
        }
        news
    }

    /// The answer with these events is out, or never will be.
    pub(super) fn settle_told(&self, session: &str, numbers: &[u64], is_out: bool) {
        let Some(outbox) = Outbox::existing(self.outlast.home(), session) else { return };
        let settle = if is_out { claims::confirm } else { claims::release };
        // What can't be noted is told again.
        let _ = settle(&outbox, READER, numbers);
    }

    /// The first of what the session was not told yet, a line each, and that there is more. It is told now.
    pub(crate) fn tell(&self, caller: &Caller) -> (Vec<String>, Vec<Event>) {
        let mut news = self.claim_news(caller, WITH_AN_ANSWER);
        let mut lines: Vec<String> = news.events.iter().map(|event| event.line().trim().to_owned()).collect();
        if news.more > 0 {
            lines.push(format!("{} more: jobs()", plural(news.more)));
        }
        let adopted = self.claim_adopted(caller);
        lines.extend(adopted.iter().map(|event| event.line().trim().to_owned()));
        news.events.extend(adopted);
        let far = self.take_far_news(caller);
        lines.extend(far.iter().map(|event| event.line().trim().to_owned()));
        news.events.extend(far);
        (lines, news.events)
    }
}

/// Those of a session's events that it does not know yet: no answer has shown them, and `jobs` has not told them.
#[must_use]
pub fn unseen(home: &Home, session: &str, mut events: Vec<Entry>) -> Vec<Entry> {
    let outbox = Outbox::existing(home, session);
    let told = outbox.and_then(|outbox| reader::place(&outbox, READER).ok()).unwrap_or(0);
    let kept = Cursors::of(home);
    kept.refresh(session);
    events.retain_mut(|entry| {
        let cursor = kept.cached(session, entry.job);
        if entry.n <= told || is_known(entry, cursor) {
            return false;
        }
        forget_lines(entry, cursor.read);
        true
    });
    events
}

/// Takes lines that an answer has shown out of an event that has others too.
fn forget_lines(entry: &mut Entry, read: u64) {
    if let Some(EventKind::Watch { fired }) = &mut entry.detail {
        let before = fired.lines.len();
        fired.lines.retain(|line| line.to > read);
        let known = (before - fired.lines.len()) as u64;
        fired.count = fired.count.saturating_sub(known).max(1);
        if known > 0 {
            entry.count = fired.count;
            if let Some(first) = fired.lines.first() {
                entry.text.clone_from(&first.text);
            }
        }
    }
}

/// Whether an answer has shown it.
pub(super) fn is_known(entry: &Entry, cursor: Cursor) -> bool {
    match entry.event {
        EntryKind::Exit => cursor.ended,
        // An agent knows how it is itself.
        EntryKind::Agent => true,
        // Text that was read is known, also where the event about it was written a moment later.
        EntryKind::Lines | EntryKind::Pattern => match &entry.detail {
            Some(EventKind::Watch { fired }) if fired.lines.len() as u64 == fired.count => {
                fired.lines.iter().all(|line| line.to <= cursor.read)
            }
            _ => entry.offset < cursor.read,
        },
        EntryKind::AwaitingInput
        | EntryKind::WentOn
        | EntryKind::Port
        | EntryKind::Quiet
        | EntryKind::Stable
        | EntryKind::Http
        | EntryKind::Output
        | EntryKind::Gone
        | EntryKind::LogTrouble
        | EntryKind::Step
        | EntryKind::WakeFailed
        | EntryKind::Dropped
        | EntryKind::Stream
        | EntryKind::ExecRefused
        | EntryKind::HostRefused
        | EntryKind::Asking
        | EntryKind::Answered
        | EntryKind::Taken
        | EntryKind::GivenBack
        | EntryKind::Unknown => entry.offset <= cursor.read && entry.at <= cursor.at,
    }
}

/// Whether a later entry has withdrawn it.
pub(super) fn is_over(entry: &Entry, all: &[Entry]) -> bool {
    let later = || all.iter().filter(|other| other.job == entry.job && other.n > entry.n);
    if matches!(entry.event, EntryKind::WentOn | EntryKind::Answered) {
        return true;
    }
    if entry.event == EntryKind::Asking {
        return later().any(|other| matches!(other.event, EntryKind::Answered | EntryKind::Exit));
    }
    entry.event == EntryKind::AwaitingInput && later().any(|other| other.event.withdraws_question())
}

impl From<&Entry> for Event {
    fn from(entry: &Entry) -> Self {
        let age_ms = now_ms().saturating_sub(entry.at);
        Self {
            number: entry.n,
            handle: entry.job,
            name: entry.name.clone(),
            event: entry.event,
            count: entry.count,
            text: entry.text.clone(),
            offset: entry.offset,
            age_seconds: age_ms / 1000,
            age_ms,
            again: false,
        }
    }
}

impl Event {
    pub(super) fn line(&self) -> String {
        let name = self.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        let times = if self.count > 1 { format!(", {} times", self.count) } else { String::new() };
        let Self { handle, event, age_ms, .. } = self;
        let mut text = crate::answer::one_line(&crate::printed::shown(&self.text));
        if text.len() > LINE {
            text.truncate(text.floor_char_boundary(LINE));
            text.push('…');
        }
        let again = if self.again { ", perhaps told before" } else { "" };
        format!("  job {handle}{name} {event}{times}: {text} [{} ago{again}]", seconds(*age_ms))
    }
}

impl News {
    /// With what adopted jobs, or jobs on other machines, had to tell.
    pub(super) fn with(mut self, more: Vec<Event>) -> Self {
        self.events.extend(more);
        self
    }

    pub(crate) fn count(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    /// All of it, newest last.
    pub(crate) fn text(&self) -> String {
        if self.events.is_empty() {
            return String::new();
        }
        let skipped = self.events.len().saturating_sub(SHOWN);
        let mut text = format!("{} new since you were last told:\n", plural(self.events.len()));
        if skipped > 0 {
            text.push_str(&format!("  {} older, not shown\n", plural(skipped)));
        }
        for event in &self.events[skipped..] {
            text.push_str(&event.line());
            text.push('\n');
        }
        text
    }
}

/// So many events, in words.
pub(crate) fn plural(count: usize) -> String {
    if count == 1 { "1 event".into() } else { format!("{count} events") }
}
