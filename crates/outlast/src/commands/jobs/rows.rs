//! A job as a row of a list: which are taken, and how they are shown.

use std::path::PathBuf;

use outlast_cli::{JobsArgs, StatusFilter};
use outlast_job::lifecycle::{Outcome, Receipt, State};
use outlast_job::request::ListedJob;
use outlast_job::wire::Activity;
use outlast_job::wire::brief_status::BriefStatus;
use outlast_job::{Failure, Handle};
use outlast_protocol::JobIdentity;
use serde::Serialize;

use crate::human;
use crate::output::Output;
use crate::table::{Column, fit, line};

const UNREACHABLE: &str = "unreachable";

/// One job, as JSON has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(in crate::commands) struct Row {
    pub(in crate::commands) handle: Handle,
    pub(in crate::commands) name: Option<String>,
    status: &'static str,
    activity: Option<&'static str>,
    quiet_ms: Option<u64>,
    pid: Option<i32>,
    exit_code: Option<i32>,
    signal: Option<String>,
    /// What it waits for before it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    queued: Option<outlast_protocol::Queued>,
    ended_by: Option<String>,
    left_behind: Vec<outlast_job::lifecycle::Process>,
    pub(in crate::commands) command: String,
    pub(in crate::commands) description: Option<String>,
    pub(in crate::commands) cwd: String,
    pub(in crate::commands) session: String,
    pub(in crate::commands) mine: bool,
    pub(in crate::commands) pinned: bool,
    pub(in crate::commands) age_ms: u64,
    started_at: u64,
    pub(in crate::commands) ended_at: Option<u64>,
    pub(in crate::commands) duration_ms: u64,
    log_bytes: u64,
    pub(in crate::commands) log_failing: Option<String>,
    last_line: String,
    /// The step that it runs, if it is a shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<outlast_job::shell::RunningStep>,
    pub(in crate::commands) ports: Vec<u16>,
    pub(in crate::commands) awaiting_input: Option<outlast_job::wire::Awaiting>,
    /// Its machine cannot be reached: this was known so long ago.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_known_ms: Option<u64>,
    #[serde(skip)]
    pub(in crate::commands) state: State,
}

impl Row {
    pub(in crate::commands) fn new(listed: ListedJob, mine: &str, now: u64) -> Self {
        let ListedJob { job, log_end, now: glance, last_line, left_behind, pinned } = listed;
        let (activity, quiet_ms) = glance.as_deref().map_or((None, None), activity);
        let JobIdentity { handle, name, pid, status, exit_code, signal } = JobIdentity::from(&job);
        let ended_at = match &job.state {
            State::Queued(_) | State::Starting | State::Running { .. } => None,
            State::Lost { found_at, .. } => Some(*found_at),
            ended @ (State::Completed(_) | State::Failed(_) | State::Killed(_)) => {
                ended.receipt().map(|receipt| receipt.ended_at)
            }
        };
        Self {
            handle,
            status,
            activity,
            quiet_ms,
            pid,
            exit_code,
            signal,
            queued: job.state.queued().cloned(),
            ended_by: job.state.receipt().map(|receipt| receipt.ended_by.describe()),
            left_behind,
            mine: job.session == mine,
            pinned,
            age_ms: now.saturating_sub(job.created_at),
            started_at: job.created_at,
            ended_at,
            duration_ms: ended_at.unwrap_or(now).saturating_sub(job.created_at),
            log_bytes: log_end,
            log_failing: glance.as_ref().and_then(|glance| glance.log_failing.clone()),
            last_line,
            step: glance.as_ref().and_then(|glance| glance.step.clone()),
            ports: glance.as_ref().map(|glance| glance.ports.clone()).unwrap_or_default(),
            awaiting_input: glance.and_then(|glance| glance.awaiting_input),
            name,
            command: job.command,
            description: job.description,
            cwd: job.cwd,
            session: job.session,
            last_known_ms: None,
            state: job.state,
        }
    }

    /// The same of a machine that cannot be reached: what ended has ended, and of the rest nothing is known.
    pub(super) fn unreachable(mut self, age_ms: u64) -> Self {
        if self.is_live() {
            (self.status, self.activity, self.quiet_ms) = (UNREACHABLE, None, None);
            self.last_known_ms = Some(age_ms);
        }
        self
    }

    pub(in crate::commands) fn is_live(&self) -> bool {
        self.state.is_live()
    }

    /// Whether somebody is asked something: a shell at its prompt or an editor waits, but asks nothing.
    pub(in crate::commands) fn needs_answer(&self) -> bool {
        match &self.awaiting_input {
            Some(awaiting) => awaiting.kind.is_question(),
            None => self.activity == Some(ASKING),
        }
    }

    /// Whether it waits for input.
    pub(in crate::commands) fn is_asking(&self) -> bool {
        self.awaiting_input.is_some() || self.activity == Some(ASKING)
    }

    /// All of it that somebody may look for.
    pub(in crate::commands) fn searchable(&self) -> String {
        let name = self.name.as_deref().unwrap_or_default();
        let description = self.description.as_deref().unwrap_or_default();
        let (handle, status) = (self.handle, self.status());
        format!("{handle} {name} {status} {} {description} {} {}", self.command, self.cwd, self.session)
    }

    /// Lower comes first: what asks or is broken, then what runs, then what went wrong, then the rest.
    pub(super) fn attention(&self) -> u8 {
        match &self.state {
            State::Running { .. } if self.awaiting_input.is_some() || self.log_failing.is_some() => 0,
            State::Queued(_) | State::Running { .. } | State::Starting => 1,
            State::Lost { .. } => 2,
            State::Failed(_) | State::Killed(_) => 3,
            State::Completed(_) => 4,
        }
    }

    /// The same a while later, as far as that is known without asking.
    pub(in crate::commands) fn later(&self, ms: u64) -> Self {
        let mut row = self.clone();
        row.age_ms += ms;
        if row.is_live() {
            row.duration_ms += ms;
            row.quiet_ms = row.quiet_ms.map(|quiet| quiet + ms);
        }
        row
    }

    /// Without what changes by itself.
    pub(super) fn without_times(&self) -> Self {
        let quiet_ms = self.quiet_ms.map(|_| 0);
        Self {
            age_ms: 0,
            duration_ms: if self.is_live() { 0 } else { self.duration_ms },
            quiet_ms,
            ..self.clone()
        }
    }

    pub(in crate::commands) fn status(&self) -> String {
        let left = match self.left_behind.len() {
            0 => String::new(),
            1 => ", 1 process left".into(),
            count => format!(", {count} processes left"),
        };
        let said = match (&self.state, self.state.receipt().map(ending)) {
            _ if self.last_known_ms.is_some() => {
                format!("{UNREACHABLE}, last known {} ago", human::age(self.last_known_ms.unwrap_or(0)))
            }
            (State::Lost { .. }, _) => "lost".into(),
            (State::Queued(queued), _) => match queued.position {
                Some(position) => format!("queued ({position})"),
                None => "queued".into(),
            },
            (_, Some(ending)) => ending,
            (state, None) => match (self.activity, self.quiet_ms) {
                (Some(AWAITING), _) => "asks for input".into(),
                (Some(ASKING), _) => "asks for approval".into(),
                (Some(STOPPED), _) => "stopped".into(),
                (Some(LISTENING), Some(ms)) => format!("listening {}", human::age(ms)),
                (Some(QUIET), Some(ms)) => format!("quiet {}", human::age(ms)),
                _ => state.name().into(),
            },
        };
        let failing = if self.log_failing.is_some() { ", its log can't be written" } else { "" };
        format!("{said}{left}{failing}")
    }

    /// The question, else why it did not start, else the last line.
    fn says(&self) -> String {
        if let Some(awaiting) = &self.awaiting_input
            && !awaiting.prompt.is_empty()
        {
            return format!("? {}", awaiting.prompt);
        }
        if let Some(queued) = self.state.queued() {
            return queued.words();
        }
        match self.state.receipt().map(Receipt::words) {
            Some(Err(error)) => error.message.clone(),
            Some(Ok(_)) | None => self.last_line.clone(),
        }
    }

    fn cells(&self) -> Vec<String> {
        let ports: Vec<String> = self.ports.iter().map(|port| format!(":{port}")).collect();
        let pin = if self.pinned { "*" } else { "" };
        let ago = self.ended_at.map(|_| human::age(self.age_ms.saturating_sub(self.duration_ms)) + " ago");
        vec![
            format!("{}{pin}", self.handle),
            self.name.clone().unwrap_or_default(),
            self.status(),
            human::duration(self.duration_ms),
            ago.unwrap_or_default(),
            ports.join(" "),
            self.description.clone().unwrap_or_else(|| self.command.clone()),
            self.says(),
        ]
    }

    fn colour(&self) -> &'static str {
        match &self.state {
            State::Running { .. } if self.awaiting_input.is_some() || self.activity == Some(STOPPED) => "33",
            State::Queued(_) => "36",
            State::Running { .. } | State::Starting => "32",
            State::Failed(_) | State::Killed(_) | State::Lost { .. } => "31",
            State::Completed(_) => "0",
        }
    }
}

/// How a job ended, in as few words as can be.
fn ending(receipt: &Receipt) -> String {
    match &receipt.outcome {
        Outcome::Exited { code: 0 } => "completed".into(),
        Outcome::Exited { code } => format!("failed ({code})"),
        Outcome::Signalled { signal, .. } => format!("killed ({signal})"),
        Outcome::NotStarted { .. } => "did not start".into(),
    }
}

const AWAITING: &str = "awaiting_input";
const LISTENING: &str = "listening";
const STOPPED: &str = "stopped";
const QUIET: &str = "quiet";
const ASKING: &str = "asking";

fn activity(glance: &BriefStatus) -> (Option<&'static str>, Option<u64>) {
    match glance.activity {
        Activity::Working => (Some("working"), None),
        Activity::Quiet { for_ms } => (Some(QUIET), Some(for_ms)),
        Activity::Stopped => (Some(STOPPED), None),
        Activity::Listening { for_ms } => (Some(LISTENING), Some(for_ms)),
        Activity::AwaitingInput => (Some(AWAITING), None),
        Activity::Asking => (Some(ASKING), None),
        Activity::Queued | Activity::Ended => (None, None),
    }
}

const COLUMNS: &[Column] = &[
    Column { title: "JOB", min: 20, leave_out: 0 },
    Column { title: "NAME", min: 6, leave_out: 0 },
    Column { title: "STATUS", min: 16, leave_out: 0 },
    Column { title: "TIME", min: 8, leave_out: 2 },
    Column { title: "ENDED", min: 8, leave_out: 4 },
    Column { title: "PORT", min: 6, leave_out: 1 },
    Column { title: "COMMAND", min: 12, leave_out: 0 },
    Column { title: "LAST LINE", min: 12, leave_out: 3 },
];
const STATUS: usize = 2;

/// The lines of a table that fits into a width.
pub(super) fn table(rows: &[Row], width: Option<usize>, out: &Output) -> Vec<String> {
    if rows.is_empty() {
        return Vec::new();
    }
    let cells: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
    let widths = fit(COLUMNS, &cells, width);
    let titles: Vec<String> = COLUMNS.iter().map(|column| column.title.to_owned()).collect();
    let mut lines = vec![out.styled("1", &line(&titles, &widths, |_, title| title.to_owned()))];
    for (row, cells) in rows.iter().zip(&cells) {
        let style = |at: usize, cell: &str| match at {
            STATUS => out.styled(row.colour(), cell),
            _ => cell.to_owned(),
        };
        lines.push(line(cells, &widths, style));
    }
    lines
}

/// Which jobs are taken into a list.
#[derive(Debug)]
pub(super) struct Filter {
    name: Option<String>,
    folder: Option<PathBuf>,
    states: Vec<StatusFilter>,
}

impl Filter {
    pub(super) fn new(args: &JobsArgs) -> Result<Self, Failure> {
        let folder = args.cwd.as_ref().map(|folder| {
            // Jobs know the folder's real path; one that is gone can still be asked for.
            folder.canonicalize().or_else(|_| std::path::absolute(folder))
        });
        let folder = folder.transpose().map_err(|error| Failure::usage(format!("--cwd: {error}")))?;
        Ok(Self { name: args.name.clone(), folder, states: args.status.clone() })
    }

    pub(super) fn takes(&self, row: &Row) -> bool {
        let name =
            self.name.as_deref().is_none_or(|wanted| is_like(row.name.as_deref().unwrap_or(""), wanted));
        let folder =
            self.folder.as_ref().is_none_or(|folder| std::path::Path::new(&row.cwd).starts_with(folder));
        name && folder && (self.states.is_empty() || self.states.iter().any(|state| is_in(row, *state)))
    }
}

fn is_in(row: &Row, state: StatusFilter) -> bool {
    match state {
        StatusFilter::Running => row.is_live(),
        StatusFilter::Queued => row.state.queued().is_some(),
        StatusFilter::Asking => row.awaiting_input.is_some(),
        StatusFilter::Stopped => row.activity == Some(STOPPED),
        StatusFilter::Completed => matches!(row.state, State::Completed(_)),
        StatusFilter::Failed => matches!(row.state, State::Failed(_)),
        StatusFilter::Killed => matches!(row.state, State::Killed(_)),
        StatusFilter::Lost => matches!(row.state, State::Lost { .. }),
    }
}

/// Whether a name is like a pattern in which * stands for any letters.
fn is_like(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            ends.into_iter().any(|at| is_like(&rest[at..], after))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn a_star_stands_for_any_letters() {
        let like = ["web", "w*", "*", "*b", "w*b", "*e*"].map(|pattern| is_like("web", pattern));
        assert_eq!(like, [true; 6]);
        let unlike = ["we", "b*", "*w", "x*b", ""].map(|pattern| is_like("web", pattern));
        assert_eq!(unlike, [false; 5]);
    }
}
