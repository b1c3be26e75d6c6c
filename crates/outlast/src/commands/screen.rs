//! `outlast screen`.

use outlast_cli::ScreenArgs;
use outlast_job::request::{JobRequest, Moment, Screen};
use outlast_job::{Failure, Job, Kind, Outlast};
use outlast_policy::OrderKind;

use crate::ask::allowed;
use crate::last_job::named_or_last;
use crate::output::Output;
use crate::svg;

pub(super) fn screen(outlast: &Outlast, args: &ScreenArgs, out: &mut Output) -> Result<i32, Failure> {
    allowed(outlast.home(), OrderKind::Screen)?;
    let styled = args.svg || out.colour && !args.plain && !out.json;
    let scrollback = if args.svg { 0 } else { args.scrollback };
    let asks = [JobRequest::Screen(Screen { at: None, styled, scrollback })];
    let job = named_or_last(&outlast.expecting(asks), args.job.as_deref(), out)?;
    if args.svg {
        return picture(&job, out);
    }
    let shot = match job.screen(styled, args.scrollback) {
        Err(failure) if failure.kind == Kind::NotRunning => return last_screen(&job, out, failure),
        shot => shot?,
    };
    if out.json {
        out.value(&shot);
        return Ok(0);
    }
    let mut rows = shot.rows;
    while rows.last().is_some_and(|row| row.trim().is_empty()) {
        rows.pop();
    }
    for row in shot.scrollback.iter().chain(&rows) {
        out.line(row);
    }
    let what = if shot.alternate { "full screen" } else { "screen" };
    let title = if shot.title.is_empty() { String::new() } else { format!(", title {:?}", shot.title) };
    let (row, col) = (shot.cursor.row + 1, shot.cursor.col + 1);
    out.talk(&format!(
        "[{what} {}x{}, cursor at row {row}, column {col}{title}]",
        shot.size.cols, shot.size.rows
    ));
    Ok(0)
}

/// The screen as a picture: as it is, or as it was at the end.
fn picture(job: &Job, out: &mut Output) -> Result<i32, Failure> {
    let shot = match job.screen(true, 0) {
        Err(failure) if failure.kind == Kind::NotRunning => job.screen_at(Moment::Time(u64::MAX), true)?,
        shot => shot?,
    };
    let picture = svg::still(&shot);
    if out.json {
        out.value(&serde_json::json!({ "svg": picture }));
    } else {
        out.data(picture.as_bytes());
    }
    Ok(0)
}

/// A job that has ended shows what it showed last.
fn last_screen(job: &Job, out: &mut Output, failure: Failure) -> Result<i32, Failure> {
    let Some(text) = job.last_screen()? else { return Err(failure) };
    let _ = job.info_to_show();
    if out.json {
        let rows: Vec<&str> = text.lines().collect();
        out.value(&serde_json::json!({ "rows": rows, "ended": true }));
    } else {
        out.data(text.as_bytes());
        out.talk("[the job has ended; this is its last screen]");
    }
    Ok(0)
}
