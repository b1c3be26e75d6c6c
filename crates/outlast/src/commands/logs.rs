//! `outlast logs`: of one job as it was printed, of several line by line.

pub(super) mod by_line;

use std::time::Duration;

use outlast_cli::LogsArgs;
use outlast_job::request::{Answer, Fact, FactKind, JobRequest, Lines, ReadBytes, Stream};
use outlast_job::{Failure, Job, Outlast};
use outlast_policy::OrderKind;

use crate::answer;
use crate::ask::allowed;
use crate::last_job::all_named_or_last;
use crate::live;
use crate::output::Output;

pub(super) fn logs(outlast: &Outlast, args: &LogsArgs, out: &mut Output) -> Result<i32, Failure> {
    allowed(outlast.home(), OrderKind::Follow)?;
    let jobs = all_named_or_last(&outlast.expecting(expected(args)), &args.jobs, out)?;
    if let ([job], false, false) = (jobs.as_slice(), args.timestamps, out.json) {
        let from = beginning(job, args, Stream::Output)?;
        live::show(job, &live::Show { from, follow: args.follow, raw: args.raw }, out)?;
        return Ok(0);
    }
    if args.raw {
        return Err(Failure::usage("the exact bytes of several jobs can't be told apart")
            .hint("name one job, or leave out --raw and --json"));
    }
    by_line::show(&jobs, args, out)?;
    Ok(0)
}

/// What is asked of each job first.
fn expected(args: &LogsArgs) -> Vec<JobRequest> {
    if let Some(lines) = args.tail {
        let read = ReadBytes { lines: Some(Lines::Last(lines)), ..ReadBytes::default() };
        return vec![JobRequest::ReadBytes(read), answer::RECORD];
    }
    match (args.since, args.follow) {
        (None, false) => vec![answer::RECORD, live::first_read(Stream::Output, 0), answer::SHOWN],
        (None, true) | (Some(_), _) => vec![answer::RECORD],
    }
}

/// The offset to begin at.
fn beginning(job: &Job, args: &LogsArgs, stream: Stream) -> Result<u64, Failure> {
    if let Some(lines) = args.tail {
        let read = ReadBytes { stream, lines: Some(Lines::Last(lines)), ..ReadBytes::default() };
        return Ok(job.borders(read)?.0);
    }
    let Some(since) = args.since else { return Ok(0) };
    let started = job.info()?.created_at;
    let then = outlast_job::clock::now_ms().saturating_sub(millis(since)).saturating_sub(started);
    let older = facts(job, stream)?.into_iter().take_while(|fact| fact.at_ms < then);
    Ok(older.last().map_or(0, |fact| fact.offset))
}

fn millis(time: Duration) -> u64 {
    outlast_job::clock::millis(time)
}

/// When a stream of a job had grown how far.
fn facts(job: &Job, stream: Stream) -> Result<Vec<Fact>, Failure> {
    let mut all = Vec::new();
    let mut from = Some(0);
    while let Some(at) = from {
        let Answer::Timing(timing) = job.ask(JobRequest::Timing { from: at })? else { break };
        all.extend(timing.facts);
        from = timing.next;
    }
    all.retain(|fact| match fact.kind {
        FactKind::Output => stream == Stream::Output,
        FactKind::Stderr => stream == Stream::Stderr,
        FactKind::Resized(_) => false,
    });
    Ok(all)
}
