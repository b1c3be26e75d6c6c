//! `outlast jobs`: what needs attention first.

use outlast_job::client::survey;
use outlast_job::registry::format::Info;
use outlast_job::wire::{Activity, Status};
use outlast_job::{Failure, Job, Outlast, session};
use serde::Serialize;

use crate::answer;
use crate::cli::JobsArgs;
use crate::output::Output;

#[derive(Serialize)]
struct Row {
    handle: u64,
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

pub(super) fn jobs(outlast: &Outlast, args: &JobsArgs, out: &mut Output) -> Result<i32, Failure> {
    let mine = session::current();
    let now = outlast_job::clock::now_ms();
    let jobs: Vec<(Job, Info)> = outlast
        .jobs()
        .into_iter()
        .filter(|info| args.all || info.state.is_live() || (info.session == mine && !args.running))
        .filter(|info| !args.running || info.state.is_live())
        .filter_map(|info| Some((outlast.job(&info.handle.to_string()).ok()?, info)))
        .collect();
    let live: Vec<&Job> = jobs.iter().filter(|(_, info)| info.state.is_live()).map(|(job, _)| job).collect();
    let mut statuses = survey::statuses(&live, survey::PATIENCE).into_iter();
    let row = |(job, info): (Job, Info)| {
        let status = if info.state.is_live() { statuses.next().flatten() } else { None };
        row(&job, info, status, (&mine, now))
    };
    let mut rows: Vec<Row> = jobs.into_iter().map(row).collect();
    rows.sort_by_key(|row| (attention(row), std::cmp::Reverse(row.handle)));
    if out.json {
        out.value(&serde_json::json!({ "jobs": rows }));
        return Ok(0);
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

fn row(job: &Job, info: Info, status: Option<Status>, (mine, now): (&str, u64)) -> Row {
    let state = &info.state;
    let (activity, quiet_ms) = status.as_ref().map_or((None, None), |status| activity(status));
    Row {
        handle: info.handle.0,
        status: state.name(),
        activity,
        quiet_ms,
        pid: info.process.as_ref().map(|process| process.pid),
        exit_code: state.exit_code(),
        signal: state.signal().map(ToOwned::to_owned),
        ended_by: state.receipt().map(|receipt| receipt.ended_by.describe()),
        left_behind: outlast_job::client::leftover::find(&info),
        ending: state.receipt().map(answer::ending),
        mine: info.session == mine,
        age_ms: now.saturating_sub(info.created_at),
        log_bytes: job.log_end(),
        log_failing: status.as_ref().and_then(|status| status.log_failing.clone()),
        last_line: last_line(job),
        ports: status.as_ref().map(|status| status.ports.clone()).unwrap_or_default(),
        awaiting_input: status.and_then(|status| status.awaiting_input),
        name: info.name,
        command: info.command,
        description: info.description,
        cwd: info.cwd,
        session: info.session,
    }
}

fn activity(status: &Status) -> (Option<&'static str>, Option<u64>) {
    match status.activity {
        Activity::Working => (Some("working"), None),
        Activity::Quiet { for_ms } => (Some("quiet"), Some(for_ms)),
        Activity::Stopped => (Some("stopped"), None),
        Activity::AwaitingInput => (Some("awaiting_input"), None),
        Activity::Ended => (None, None),
    }
}

fn last_line(job: &Job) -> String {
    let Ok(range) = job.range(outlast_job::client::read::Stream::Output, 0, None) else {
        return String::new();
    };
    let text = range.last_lines(3).text(2048, "");
    text.text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim_end().to_owned()
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
