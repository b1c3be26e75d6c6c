//! `outlast jobs`: what needs attention first.

use outlast_cli::JobsArgs;
use outlast_job::registry::sweep::Over;
use outlast_job::request::{AskKeepers, List as ListRequest, ListedJob};
use outlast_job::wire::Activity;
use outlast_job::wire::brief_status::BriefStatus;
use outlast_job::{Failure, Handle, Outlast, session};
use outlast_policy::OrderKind;
use outlast_protocol::JobIdentity;
use serde::Serialize;

use crate::answer;
use crate::ask::allowed;
use crate::output::Output;

#[derive(Serialize)]
struct Row {
    handle: Handle,
    name: Option<String>,
    status: &'static str,
    activity: Option<&'static str>,
    quiet_ms: Option<u64>,
    pid: Option<i32>,
    exit_code: Option<i32>,
    signal: Option<String>,
    ended_by: Option<String>,
    left_behind: Vec<outlast_job::lifecycle::Process>,
    command: String,
    description: Option<String>,
    cwd: String,
    session: String,
    mine: bool,
    age_ms: u64,
    log_bytes: u64,
    log_failing: Option<String>,
    last_line: String,
    ports: Vec<u16>,
    awaiting_input: Option<outlast_job::wire::Awaiting>,
    #[serde(skip)]
    ending: Option<String>,
}

#[derive(Serialize)]
struct List<'a> {
    jobs: &'a [Row],
    #[serde(skip_serializing_if = "Option::is_none")]
    over_budget: Option<Over>,
}

pub(super) fn jobs(outlast: &Outlast, args: &JobsArgs, out: &mut Output) -> Result<i32, Failure> {
    allowed(outlast.home(), OrderKind::List)?;
    let mine = session::current();
    let now = outlast_job::clock::now_ms();
    let mut jobs = outlast.list(ListRequest {
        running: args.running,
        keepers: AskKeepers::All,
        last_lines: true,
        left_behind: true,
        ..ListRequest::default()
    });
    jobs.retain(|job| args.all || job.is_live() || job.job.session == mine);
    let mut rows: Vec<Row> = jobs.into_iter().map(|job| row(job, (&mine, now))).collect();
    rows.sort_by_key(|row| (attention(row), std::cmp::Reverse(row.handle)));
    let over_budget = outlast.over_budget();
    if out.json {
        out.value(&List { jobs: &rows, over_budget });
        return Ok(0);
    }
    if let Some(over) = over_budget {
        out.talk(&over.words());
    }
    if rows.is_empty() {
        out.talk(if args.all {
            "no jobs"
        } else {
            "no jobs of this session; all of them: outlast jobs --all"
        });
        return Ok(0);
    }
    table(&rows, out);
    Ok(0)
}

/// Lower comes first: what asks or is broken, then what runs, then what went wrong, then the rest.
fn attention(row: &Row) -> u8 {
    match row.status {
        "running" if row.awaiting_input.is_some() || row.log_failing.is_some() => 0,
        "running" | "starting" => 1,
        "lost" => 2,
        "failed" | "killed" => 3,
        _ => 4,
    }
}

fn row(listed: ListedJob, (mine, now): (&str, u64)) -> Row {
    let ListedJob { job, log_end, now: glance, last_line, left_behind } = listed;
    let (activity, quiet_ms) = glance.as_deref().map_or((None, None), activity);
    let JobIdentity { handle, name, pid, status, exit_code, signal } = JobIdentity::from(&job);
    let state = &job.state;
    Row {
        handle,
        status,
        activity,
        quiet_ms,
        pid,
        exit_code,
        signal,
        ended_by: state.receipt().map(|receipt| receipt.ended_by.describe()),
        left_behind,
        ending: state.receipt().map(answer::ending),
        mine: job.session == mine,
        age_ms: now.saturating_sub(job.created_at),
        log_bytes: log_end,
        log_failing: glance.as_ref().and_then(|glance| glance.log_failing.clone()),
        last_line,
        ports: glance.as_ref().map(|glance| glance.ports.clone()).unwrap_or_default(),
        awaiting_input: glance.and_then(|glance| glance.awaiting_input),
        name,
        command: job.command,
        description: job.description,
        cwd: job.cwd,
        session: job.session,
    }
}

fn activity(glance: &BriefStatus) -> (Option<&'static str>, Option<u64>) {
    match glance.activity {
        Activity::Working => (Some("working"), None),
        Activity::Quiet { for_ms } => (Some("quiet"), Some(for_ms)),
        Activity::Stopped => (Some("stopped"), None),
        Activity::AwaitingInput => (Some("awaiting_input"), None),
        Activity::Ended => (None, None),
    }
}

fn table(rows: &[Row], out: &mut Output) {
    let mut lines = vec![["JOB", "STATUS", "AGE", "COMMAND", "LAST LINE"].map(String::from)];
    for row in rows {
        let name =
            row.name.as_ref().map_or_else(|| row.handle.to_string(), |name| format!("{} {name}", row.handle));
        lines.push([name, status(row), age(row.age_ms), cut(&row.command, 36), cut(&row.last_line, 48)]);
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..4).map(width).collect();
    for (i, line) in lines.iter().enumerate() {
        let mut text = String::new();
        for (cell, width) in line.iter().zip(&widths) {
            text.push_str(cell);
            text.extend(std::iter::repeat_n(' ', width + 2 - cell.chars().count()));
        }
        text.push_str(&line[4]);
        let style = match i.checked_sub(1).map(|i| rows[i].status) {
            None => "1",
            Some("running" | "starting") => "32",
            Some("failed" | "killed" | "lost") => "31",
            Some(_) => "0",
        };
        out.line(&out.styled(style, text.trim_end()));
    }
}

fn status(row: &Row) -> String {
    let ports: String = row.ports.iter().map(|port| format!(" :{port}")).collect();
    match (&row.ending, row.activity, row.quiet_ms) {
        (Some(ending), _, _) => cut(&format!("{}, {ending}", row.status), 60),
        (None, Some("quiet"), Some(ms)) => format!("running, quiet {}{ports}", age(ms)),
        (None, Some(activity), _) => format!("running, {activity}{ports}"),
        (None, None, _) if row.left_behind.is_empty() => row.status.to_owned(),
        (None, None, _) => format!("{}, {} processes left", row.status, row.left_behind.len()),
    }
}

/// A length of time in its largest fitting unit.
fn age(ms: u64) -> String {
    match ms / 1000 {
        s @ 0..60 => format!("{s}s"),
        s @ 60..3600 => format!("{}m", s / 60),
        s @ 3600..86400 => format!("{}h", s / 3600),
        s => format!("{}d", s / 86400),
    }
}

fn cut(text: &str, most: usize) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.chars().count() <= most {
        return line;
    }
    line.chars().take(most - 1).chain(std::iter::once('…')).collect()
}
