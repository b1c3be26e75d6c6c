//! Which job is meant when none is named: the last of this session.

use outlast_job::request::{List, ListedJob};
use outlast_job::{Failure, Handle, Job, Kind, Outlast, session};

use crate::human::cut;
use crate::output::Output;

/// The named job, or the last of this session.
pub(crate) fn named_or_last(
    outlast: &Outlast,
    named: Option<&str>,
    out: &mut Output,
) -> Result<Job, Failure> {
    named.map_or_else(|| last(outlast, false, out), |name| outlast.job(name))
}

/// The named job, or the last of this session that runs.
pub(crate) fn named_or_last_running(
    outlast: &Outlast,
    named: Option<&str>,
    out: &mut Output,
) -> Result<Job, Failure> {
    named.map_or_else(|| last(outlast, true, out), |name| outlast.job(name))
}

/// The named jobs, or the last of this session.
pub(crate) fn all_named_or_last(
    outlast: &Outlast,
    named: &[String],
    out: &mut Output,
) -> Result<Vec<Job>, Failure> {
    if named.is_empty() {
        return Ok(vec![last(outlast, false, out)?]);
    }
    named.iter().map(|name| outlast.job(name)).collect()
}

/// What a job is called on the command line: by its name if it has one, and with its host where that is another.
pub(crate) fn reference(handle: Handle, name: Option<&str>) -> String {
    match (name, handle.host()) {
        (Some(name), Some(host)) => format!("{host}/{name}"),
        (Some(name), None) => name.to_owned(),
        (None, _) => handle.to_string(),
    }
}

/// The newest jobs that run, by name: whoever closed a terminal looks for them in another.
fn of_other_sessions(outlast: &Outlast) -> String {
    const NAMED: usize = 3;
    let running = outlast.list(List { running: true, ..List::default() });
    let name = |ListedJob { job, .. }: ListedJob| job.name.unwrap_or_else(|| job.handle.to_string());
    let names: Vec<String> = running.into_iter().rev().take(NAMED).map(name).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("name one of another session: {}   ", names.join(", "))
    }
}

fn last(outlast: &Outlast, running: bool, out: &mut Output) -> Result<Job, Failure> {
    let list = List { session: Some(session::current()), running, ..List::default() };
    let newest = outlast.list(list).pop();
    let Some(ListedJob { job, .. }) = newest else {
        let what = if running { "no job of this session runs" } else { "this session has no job yet" };
        return Err(Failure::new(Kind::NoSuchJob, format!("{what}, and none was named"))
            .hint(format!("{}all of them: outlast jobs --all", of_other_sessions(outlast))));
    };
    let name = job.name.map(|name| format!(" {name}")).unwrap_or_default();
    out.aside(&format!("[job {}{name}: {}]", job.handle, cut(&job.command, 60)));
    outlast.job(&job.handle.to_string())
}
