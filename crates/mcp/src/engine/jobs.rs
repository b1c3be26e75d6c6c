//! Lists jobs: what needs attention first.

use outlast_job::Job;
use outlast_job::client::survey;
use outlast_job::clock::now_ms;
use outlast_job::registry::format::Info;
use outlast_job::wire::{Activity, Awaiting, Status};
use serde::Serialize;

use super::news::Event;
use super::{Caller, Engine};
use crate::answer::{Identity, ending, seconds};
use crate::cursors::Cursor;
use crate::printed::shown;

/// How many finished jobs of a list are shown.
const FINISHED: usize = 20;
/// How much of a command or of a line is shown.
const LINE: usize = 120;

/// One job of a list.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Entry {
    #[serde(flatten)]
    pub(crate) job: Identity,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) activity: Option<String>,
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
    not_shown: usize,
    #[serde(skip)]
    of_others: usize,
}

impl Engine {
    pub(crate) fn jobs(&self, caller: &Caller, all: bool) -> List {
        let infos = self.outlast.jobs();
        let (own, others): (Vec<Info>, Vec<Info>) =
            infos.into_iter().partition(|info| info.session == caller.session);
        let of_others = if all { 0 } else { others.len() };
        let wanted = own.into_iter().chain(if all { others } else { Vec::new() });
        let wanted: Vec<(Option<Job>, Info)> =
            wanted.map(|info| (self.job(&info.handle.to_string()).ok(), info)).collect();
        let live = |(job, info): &(Option<Job>, Info)| job.is_some() && info.state.is_live();
        let asked: Vec<&Job> =
            wanted.iter().filter(|one| live(one)).filter_map(|(job, _)| job.as_ref()).collect();
        let mut statuses = survey::statuses(&asked, survey::PATIENCE).into_iter();
        let entry = |one: (Option<Job>, Info)| {
            let status = if live(&one) { statuses.next().flatten() } else { None };
            self.entry(caller, one, status)
        };
        let mut jobs: Vec<Entry> = wanted.into_iter().map(entry).collect();
        jobs.sort_by_key(|entry| (!entry.this_session, entry.urgency(), std::cmp::Reverse(entry.job.handle)));
        let mut finished = 0;
        let before = jobs.len();
        jobs.retain(|entry| {
            finished += usize::from(entry.how.is_some());
            entry.how.is_none() || finished <= FINISHED
        });
        let not_shown = before - jobs.len();
        let news = self.news(caller);
        self.was_told(caller, &news);
        List { jobs, events: news.events().to_vec(), news: news.text(), not_shown, of_others }
    }

    fn entry(&self, caller: &Caller, (job, info): (Option<Job>, Info), status: Option<Status>) -> Entry {
        // It may have ended while we looked.
        let info = status.as_ref().map_or(info, |status| status.info.clone());
        let cursor = self.cursors.get(&caller.session, info.handle);
        let end = job.as_ref().map_or(0, Job::log_end);
        let last_line =
            status.as_ref().map(|status| status.last_line.clone()).filter(|line| !line.is_empty());
        let last_line = last_line.or_else(|| job.as_ref().and_then(last_line_of)).unwrap_or_default();
        let note = self.take_note(caller, &info, cursor);
        Entry {
            job: Identity::from(&info),
            activity: status.as_ref().map(activity),
            command: one_line(&info.command),
            this_session: info.session == caller.session,
            age_seconds: now_ms().saturating_sub(info.created_at) / 1000,
            last_line: one_line(&last_line),
            ports: status.as_ref().map(|status| status.ports.clone()).unwrap_or_default(),
            awaiting_input: status.and_then(|status| status.awaiting_input),
            unread_bytes: end.saturating_sub(cursor.read),
            note,
            how: ending(&info.state),
            description: info.description,
            session: info.session,
        }
    }

    /// What happened to the session's last call about the job; told once.
    fn take_note(&self, caller: &Caller, info: &Info, cursor: Cursor) -> Option<String> {
        if !cursor.cancelled {
            return None;
        }
        if !caller.watch.is_cancelled() {
            self.cursors.set(&caller.session, info.handle, Cursor { cancelled: false, ..cursor });
        }
        Some("your call was cancelled, the job went on".into())
    }
}

fn last_line_of(job: &Job) -> Option<String> {
    let range = job.range(outlast_job::client::read::Stream::Output, 0, None).ok()?.last_lines(1);
    Some(crate::printed::of(job, &range, 512).text)
}

fn activity(status: &Status) -> String {
    match status.activity {
        Activity::AwaitingInput => "awaiting_input".into(),
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
    /// Lower comes first: it waits for someone, it failed unseen, it runs, it is over.
    fn urgency(&self) -> u8 {
        match (&self.awaiting_input, self.job.status) {
            (Some(_), _) => 0,
            (None, "failed" | "killed" | "lost") if self.unread_bytes > 0 => 1,
            (None, "starting" | "running") => 2,
            _ => 3,
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{} {}", self.job.words(), self.job.status);
        for detail in [&self.how, &self.activity].into_iter().flatten() {
            text.push_str(&format!(", {detail}"));
        }
        text.push_str(&format!(", {} old", seconds(self.age_seconds * 1000)));
        if let Some(pid) = self.job.pid.filter(|_| self.how.is_none()) {
            text.push_str(&format!(", pid {pid}"));
        }
        if !self.ports.is_empty() {
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
        if let Some(awaiting) = &self.awaiting_input {
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
        let mut left_out = self.not_shown;
        for entry in &self.jobs {
            let entry = entry.text();
            if text.len() + entry.len() > budget {
                left_out += 1;
                continue;
            }
            text.push_str(&entry);
            text.push('\n');
        }
        if self.jobs.is_empty() {
            text.push_str("no jobs in this session\n");
        }
        if left_out > 0 {
            text.push_str(&format!("{left_out} more are not shown\n"));
        }
        if self.of_others > 0 {
            text.push_str(&format!("{} jobs of other sessions: jobs(all=true)\n", self.of_others));
        }
        text.truncate(text.trim_end().len());
        text
    }
}
