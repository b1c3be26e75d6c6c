//! Lists jobs: what needs attention first.

use outlast_job::clock::now_ms;
use outlast_job::lifecycle::{Process, State};
use outlast_job::request::{
    AskKeepers, JobRequest, Lines, List as ListRequest, ListedJob, ReadText, Summary,
};
use outlast_job::wire::brief_status::BriefStatus;
use outlast_job::wire::{Activity, Awaiting};
use outlast_job::{Failure, Handle};
use outlast_protocol::{JobIdentity, Queued, ToolOutcome};
use serde::Serialize;

use super::news::Event;
use super::{Caller, Engine};
use crate::answer::{ending, seconds, title, without_nulls};
use crate::cursors::Cursor;
use crate::printed::shown;

/// How many finished jobs of a list are shown.
const FINISHED: usize = 20;
/// How much of a command or of a line is shown.
const LINE: usize = 120;

/// Which jobs to list.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ListOrder {
    /// Also those of other sessions.
    pub(crate) all: bool,
    /// Only those that run.
    pub(crate) running: bool,
    /// Only those with a smaller handle.
    pub(crate) before: Option<u64>,
    /// Take over what earlier conversations left.
    pub(crate) adopt: bool,
}

/// One job of a list.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Entry {
    #[serde(flatten, serialize_with = "without_nulls")]
    pub(crate) job: JobIdentity,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) activity: Option<String>,
    /// What it waits for before it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queued: Option<Queued>,
    pub(crate) command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    pub(crate) session: String,
    pub(crate) this_session: bool,
    pub(crate) age_seconds: u64,
    pub(crate) last_line: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ports: Vec<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) awaiting_input: Option<Awaiting>,
    /// How many bytes the session has not been shown yet.
    pub(crate) unread_bytes: u64,
    /// How long it has run, or ran, in milliseconds.
    pub(crate) ran_ms: u64,
    /// How long ago it ended, in milliseconds.
    #[serde(skip)]
    ended_ago_ms: u64,
    #[serde(skip)]
    note: Option<String>,
    #[serde(skip)]
    how: Option<String>,
}

/// A list of jobs: the `structuredContent` of `jobs`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct List {
    pub(crate) jobs: Vec<Entry>,
    /// What the session was not told yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<Event>,
    #[serde(skip)]
    news: String,
    #[serde(skip)]
    not_shown: Vec<u64>,
    #[serde(skip)]
    of_others: usize,
}

impl Engine {
    pub(crate) fn jobs(&self, caller: &Caller, order: ListOrder) -> Result<List, Failure> {
        let ListOrder { all, running, before, adopt } = order;
        if adopt {
            let listed = self.outlast.list(ListRequest::default());
            self.adopt(caller, listed.iter().map(|one| one.job.session.as_str()))?;
        }
        let adopted = self.adopted_by(caller);
        let is_own = |session: &str| session == caller.session || adopted.iter().any(|one| one == session);
        let wanted = |job: &Summary| all || is_own(&job.session);
        let asked = |one: &ListedJob| {
            (!running || one.is_live()) && before.is_none_or(|before| one.job.handle.number() < before)
        };
        let keepers = if all || !adopted.is_empty() {
            AskKeepers::All
        } else {
            AskKeepers::OfSession(caller.session.clone())
        };
        // First what happened, then how it is: an event is never newer than the list that it comes with.
        let news = self.claim_news(caller, usize::MAX);
        let news = news.with(self.claim_adopted(caller)).with(self.take_far_news(caller));
        let request = ListRequest { keepers, ..ListRequest::default() };
        let mut listed = self.outlast.list(request.clone());
        // What is asked of each job of another machine by itself takes long.
        let away = self.add_far(&mut listed, &ListRequest { last_lines: true, ..request });
        let left = self.left_behind(caller, &listed, &adopted);
        let everybody = listed.len();
        listed.retain(|one| wanted(&one.job));
        let of_others = everybody - listed.len();
        listed.retain(asked);
        let cursors = self.cursors.all_of(&caller.session);
        let cursor = |one: &ListedJob| cursors.get(&one.job.handle).copied().unwrap_or_default();
        let place = |one: &ListedJob| {
            let own = is_own(&one.job.session);
            (!own, urgency(one, || unread(one, cursor(one))), std::cmp::Reverse(one.job.handle))
        };
        listed.sort_by_cached_key(place);
        let mut finished = 0;
        let is_shown = |one: &ListedJob| {
            finished += usize::from(!one.is_live());
            one.is_live() || finished <= FINISHED
        };
        let (listed, rest): (Vec<_>, Vec<_>) = listed.into_iter().partition(is_shown);
        let not_shown: Vec<u64> = rest.iter().map(|one| one.job.handle.number()).collect();
        // Only now what is dear: it is read for those that are shown.
        let entry = |one: ListedJob| {
            let cursor = cursor(&one);
            let own = is_own(&one.job.session);
            self.entry((caller, own), one, cursor)
        };
        let jobs = listed.into_iter().map(entry).collect();
        Ok(List {
            jobs,
            events: news.events().to_vec(),
            news: news.text() + &left + &away,
            not_shown,
            of_others,
        })
    }

    fn entry(&self, (caller, own): (&Caller, bool), one: ListedJob, cursor: Cursor) -> Entry {
        let unread_bytes = unread(&one, cursor);
        let ListedJob { job, log_end, now, last_line, .. } = one;
        let last_line = now.as_ref().map_or(last_line, |now| now.last_line.clone());
        let last_line = Some(last_line).filter(|line| !line.is_empty());
        let last_line = last_line.or_else(|| self.last_line(job.handle, log_end)).unwrap_or_default();
        let mut note = self.take_note(caller, job.handle, cursor);
        if !job.state.is_live() && !cursor.ended && own && !caller.call.is_cancelled() {
            note = note.or_else(|| self.reported(job.handle));
            // The list says that it ended: it is not told again.
            let cursor = Cursor { cancelled: false, ended: true, ..cursor };
            self.note_seen(caller, job.handle, cursor);
        }
        let left = self.left_running(&job);
        let ended_at = job.state.receipt().map_or_else(now_ms, |receipt| receipt.ended_at);
        Entry {
            job: JobIdentity::from(&job),
            activity: now.as_deref().map(activity),
            queued: job.state.queued().cloned(),
            command: one_line(&job.command),
            this_session: own,
            age_seconds: now_ms().saturating_sub(job.created_at) / 1000,
            last_line: one_line(&last_line),
            ports: now.as_ref().map_or_else(
                || left.iter().flat_map(|process| process.ports.iter().copied()).collect(),
                |now| now.ports.clone(),
            ),
            awaiting_input: now.and_then(|now| now.awaiting_input),
            unread_bytes,
            ran_ms: ended_at.saturating_sub(job.created_at),
            ended_ago_ms: now_ms().saturating_sub(ended_at),
            note,
            how: ending((&job.state, &left), &job.session, self.words),
            description: job.description,
            session: job.session,
        }
    }

    /// What a finished command left running and what runs still.
    pub(super) fn left_running(&self, job: &Summary) -> Vec<Process> {
        if job.state.receipt().is_none_or(|receipt| receipt.left_behind.is_empty()) {
            return Vec::new();
        }
        let job = self.outlast.job(&job.handle.to_string());
        job.and_then(|job| Ok(job.left_behind(&job.info()?))).unwrap_or_default()
    }

    /// What its tools counted, in a line.
    fn reported(&self, handle: Handle) -> Option<String> {
        let outlast = self.outlast.expecting([JobRequest::Outcome]);
        let outcome = outlast.job(&handle.to_string()).ok()?.outcome().ok()??;
        let counts: Vec<String> = outcome.tools.iter().map(ToolOutcome::headline).collect();
        (!counts.is_empty()).then(|| counts.join("; "))
    }

    fn last_line(&self, handle: Handle, log_end: u64) -> Option<String> {
        if log_end == 0 {
            return None;
        }
        let job = self.outlast.job(&handle.to_string()).ok()?;
        let read = ReadText { lines: Some(Lines::Last(1)), max: 512, ..ReadText::default() };
        let text = crate::printed::text(&job, read).ok()?.text;
        // Of a line that is too long the middle is left out, and a screen is rows of blanks.
        text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    }

    /// What happened to the session's last call about the job; told once.
    fn take_note(&self, caller: &Caller, handle: Handle, cursor: Cursor) -> Option<String> {
        if !cursor.cancelled {
            return None;
        }
        if !caller.call.is_cancelled() {
            self.note_seen(caller, handle, Cursor { cancelled: false, ..cursor });
        }
        Some("your call was cancelled, the job went on".into())
    }
}

/// How many bytes the session has not been shown yet.
fn unread(one: &ListedJob, cursor: Cursor) -> u64 {
    one.log_end.saturating_sub(cursor.read)
}

/// Lower comes first: it waits for someone, it failed unseen, it runs, it is over.
fn urgency(one: &ListedJob, unread: impl Fn() -> u64) -> u8 {
    let asks = one.now.as_ref().is_some_and(|now| now.awaiting_input.is_some());
    let is_news = || one.log_end > 0 && unread() > 0;
    match one.job.state {
        _ if asks => 0,
        State::Failed(_) | State::Killed(_) | State::Lost { .. } if is_news() => 1,
        State::Queued(_) | State::Starting | State::Running { .. } => 2,
        State::Completed(_) | State::Failed(_) | State::Killed(_) | State::Lost { .. } => 3,
    }
}

fn activity(now: &BriefStatus) -> String {
    match now.activity {
        Activity::Listening { for_ms } => format!("listening, quiet for {}", seconds(for_ms)),
        Activity::AwaitingInput => "awaiting_input".into(),
        Activity::Asking => "asking".into(),
        Activity::Queued => "queued".into(),
        Activity::Working => "working".into(),
        Activity::Quiet { for_ms } => format!("quiet for {}", seconds(for_ms)),
        Activity::Stopped => "stopped".into(),
        Activity::Ended => "ended".into(),
    }
}

fn one_line(text: &str) -> String {
    let text = shown(text.trim());
    let line = text.lines().collect::<Vec<_>>().join("; ");
    if line.len() <= LINE {
        return line;
    }
    format!("{}...", &line[..line.floor_char_boundary(LINE)])
}

impl Entry {
    fn text(&self) -> String {
        let mut text = title(&self.job);
        let ran = seconds(self.ran_ms);
        match &self.how {
            Some(how) => {
                text.push_str(&format!(" · {how} · ran {ran}, {} ago", seconds(self.ended_ago_ms)));
            }
            None => {
                let activity = self.activity.as_deref().unwrap_or(self.job.status).replace('_', " ");
                match &self.queued {
                    Some(queued) => text.push_str(&format!(" · queued: {}", queued.words())),
                    None => text.push_str(&format!(" · {activity} · running for {ran}")),
                }
                text.extend(self.job.pid.map(|pid| format!(", pid {pid}")));
            }
        }
        // Those of what an ended command left running are named there.
        if !self.ports.is_empty() && self.how.is_none() {
            let ports: Vec<String> = self.ports.iter().map(ToString::to_string).collect();
            text.push_str(&format!(", listens on {}", ports.join(", ")));
        }
        if self.unread_bytes > 0 {
            text.push_str(&format!(", {} bytes unread", self.unread_bytes));
        }
        if !self.this_session {
            text.push_str(&format!(", of session {}", one_line(&self.session)));
        }
        text.push_str(&format!("\n  $ {}", self.command));
        if let Some(description) = &self.description {
            text.push_str(&format!("\n  for: {}", one_line(description)));
        }
        if let Some(awaiting) = self.awaiting_input.as_ref().filter(|awaiting| !awaiting.prompt.is_empty()) {
            text.push_str(&format!("\n  asks: {}", one_line(&awaiting.prompt)));
        } else if !self.last_line.is_empty() {
            text.push_str(&format!("\n  last line: {}", self.last_line));
        }
        if let Some(note) = &self.note {
            text.push_str(&format!("\n  note: {note}"));
        }
        text
    }
}

impl List {
    pub(crate) fn text(&self, budget: usize) -> String {
        let mut text = self.news.clone();
        let mut left_out = self.not_shown.clone();
        for entry in &self.jobs {
            let (handle, entry) = (entry.job.handle, entry.text());
            if text.len() + entry.len() > budget {
                left_out.push(handle.number());
                continue;
            }
            text.push_str(&entry);
            text.push('\n');
        }
        if self.jobs.is_empty() {
            text.push_str("no jobs in this session\n");
        }
        if let Some(newest) = left_out.iter().max() {
            text.push_str(&format!("{} more are not shown: jobs(before={})\n", left_out.len(), newest + 1));
        }
        if self.of_others > 0 {
            let jobs = if self.of_others == 1 { "1 job".into() } else { format!("{} jobs", self.of_others) };
            text.push_str(&format!("{jobs} of other sessions: jobs(all=true)\n"));
        }
        text.truncate(text.trim_end().len());
        text
    }
}
