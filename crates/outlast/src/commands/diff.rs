//! `outlast diff`: two runs, or two moments, compared line by line.

use std::time::Duration;

use outlast_cli::DiffArgs;
use outlast_job::client::{CompareLines, Difference, Hunk, Side, compare_lines};
use outlast_job::clock::{millis, now_ms};
use outlast_job::request::{List, Moment};
use outlast_job::{Failure, Job, Kind, Outlast};
use outlast_policy::OrderKind;

use crate::ask::allowed;
use crate::human;
use crate::last_job::named_or_last;
use crate::output::Output;

/// One side of a comparison.
struct Compared {
    job: Job,
    /// The screen at this moment.
    at: Option<Duration>,
    lines: Vec<String>,
    is_cut: bool,
}

/// What both differ in is the exit code of `diff` too.
const DIFFERS: i32 = 1;

/// And what could not be compared is never taken for a difference.
const TROUBLE: i32 = 2;

pub(super) fn diff(outlast: &Outlast, args: &DiffArgs, out: &mut Output) -> Result<i32, Failure> {
    compare(outlast, args, out).or_else(|failure| {
        let code = out.failure(&failure);
        Ok(if code == DIFFERS { TROUBLE } else { code })
    })
}

fn compare(outlast: &Outlast, args: &DiffArgs, out: &mut Output) -> Result<i32, Failure> {
    let screens = args.screen || !args.at.is_empty();
    allowed(outlast.home(), if screens { OrderKind::Replay } else { OrderKind::Read })?;
    let (first, second) = sides(outlast, args, out)?;
    let read = |(job, at): (Job, Option<Duration>)| -> Result<Compared, Failure> {
        let (lines, is_cut) = if screens {
            (job.rows_to_compare(at.map(|at| Moment::Time(millis(at))))?, false)
        } else {
            job.lines_to_compare()?
        };
        Ok(Compared { job, at, lines, is_cut })
    };
    let (first, second) = (read(first)?, read(second)?);
    let how = CompareLines { context: args.context, ignore_numbers: args.ignore_numbers };
    let found = compare_lines(&first.lines, &second.lines, how);
    let code = if found.same { 0 } else { DIFFERS };
    if out.json {
        let side = |side: &Compared| serde_json::json!({ "job": side.job.handle(), "at_ms": side.at.map(millis), "lines": side.lines.len(), "cut": side.is_cut });
        out.value(&serde_json::json!({
            "what": if screens { "screen" } else { "output" },
            "first": side(&first), "second": side(&second), "difference": found,
        }));
        return Ok(code);
    }
    for side in [&first, &second].into_iter().filter(|side| side.is_cut) {
        let job = side.job.handle();
        out.talk(&format!("[job {job} printed more than is compared: the middle is left out]"));
    }
    if found.same {
        out.talk("[no difference]");
        return Ok(code);
    }
    print(&first, &second, &found, out)?;
    Ok(code)
}

/// Which jobs are meant, and when.
type Meant = (Job, Option<Duration>);

fn sides(outlast: &Outlast, args: &DiffArgs, out: &mut Output) -> Result<(Meant, Meant), Failure> {
    let one = named_or_last(outlast, args.first.as_deref(), out)?;
    let other = args.second.as_deref().map(|name| outlast.job(name)).transpose()?;
    match (other, args.at.as_slice()) {
        (_, [_, _, _, ..]) => {
            Err(Failure::usage("--at can be given twice at most").hint("one moment for each side"))
        }
        (Some(other), []) => Ok(((one, None), (other, None))),
        (Some(other), [at]) => Ok(((one, Some(*at)), (other, Some(*at)))),
        (Some(other), [at, then, ..]) => Ok(((one, Some(*at)), (other, Some(*then)))),
        (None, [at, then, ..]) => Ok(((one.clone(), Some(*at)), (one, Some(*then)))),
        (None, [at]) => Ok(((one.clone(), Some(*at)), (one, None))),
        (None, []) => {
            let before = run_before(outlast, &one)?;
            Ok(((before, None), (one, None)))
        }
    }
}

/// The last run of the same command in the same folder before this one.
fn run_before(outlast: &Outlast, job: &Job) -> Result<Job, Failure> {
    let info = job.info()?;
    let there = outlast.beside(job)?;
    let is_earlier = |listed: &outlast_job::request::ListedJob| {
        let other = &listed.job;
        other.handle < job.handle() && other.command == info.command && other.cwd == info.cwd
    };
    let before = there.list(List::default()).into_iter().rev().find(is_earlier);
    let Some(before) = before else {
        let said = format!("there is no earlier run of job {} to compare it with", job.handle());
        return Err(Failure::new(Kind::NoSuchJob, said)
            .hint("name two jobs: outlast diff 3 7, or two moments: outlast diff 3 --at 5s --at 1m"));
    };
    outlast.job(&before.job.handle.to_string())
}

fn print(first: &Compared, second: &Compared, found: &Difference, out: &mut Output) -> Result<(), Failure> {
    let head = out.styled("1", &format!("--- {}", title(first)?));
    out.line(&head);
    let head = out.styled("1", &format!("+++ {}", title(second)?));
    out.line(&head);
    for hunk in &found.hunks {
        let head = out.styled("36", &places(hunk));
        out.line(&head);
        for line in &hunk.lines {
            let text = match line.on {
                Side::Both => format!(" {}", line.text),
                Side::First => out.styled("31", &format!("-{}", line.text)),
                Side::Second => out.styled("32", &format!("+{}", line.text)),
            };
            if !out.line(&text) {
                return Ok(());
            }
        }
    }
    let more = if found.cut { "; there is more than is shown" } else { "" };
    out.talk(&format!("[{} added, {} removed{more}]", lines(found.added), lines(found.removed)));
    Ok(())
}

fn lines(count: usize) -> String {
    format!("{count} {}", if count == 1 { "line" } else { "lines" })
}

/// As `diff -u` names the places.
fn places(hunk: &Hunk) -> String {
    let count = |without: Side| hunk.lines.iter().filter(|line| line.on != without).count();
    let (old, new) = (count(Side::Second), count(Side::First));
    // A side without a line is named by the line before.
    let from = |first: usize, count: usize| if count == 0 { first - 1 } else { first };
    format!("@@ -{},{old} +{},{new} @@", from(hunk.first, old), from(hunk.second, new))
}

/// Which job this is, how it went, and when.
fn title(side: &Compared) -> Result<String, Failure> {
    let info = side.job.info_to_show()?;
    let what = info.name.as_deref().unwrap_or(&info.command);
    let how = match info.state.receipt() {
        Some(receipt) => format!(
            "{}: {}",
            info.state.name(),
            receipt.words().unwrap_or_else(|error| error.message.clone())
        ),
        None => info.state.name().to_owned(),
    };
    let when = match side.at {
        Some(at) => format!("{} after its start", human::duration(millis(at))),
        None => format!("started {} ago", human::age(now_ms().saturating_sub(info.created_at))),
    };
    Ok(format!("{} {}  {how}, {when}", side.job.handle(), human::cut(what, 60)))
}
