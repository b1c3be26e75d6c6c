//! The facts of an answer, in the same words everywhere.

use outlast_job::lifecycle::Receipt;
use outlast_job::registry::format::Info;
use outlast_job::request::{JobRequest, ReadText, Stream, Text};
use outlast_job::{Failure, Job, Waited};
use outlast_protocol::JobReport;

/// What is known of a job, without its output.
pub(crate) fn report(job: &Job, info: &Info) -> JobReport {
    JobReport {
        ended_by: info.state.receipt().map(|receipt| receipt.ended_by.describe()),
        left_behind: job.left_behind(info),
        gone_bytes: Some(0),
        ..JobReport::new(info, job.files(), job.log_end())
    }
}

/// What [`report`] asks of a job: for [`Job::expect`].
pub(crate) fn report_asks() -> Vec<JobRequest> {
    vec![JobRequest::LeftBehind, JobRequest::Files, JobRequest::End { stream: Stream::Output }]
}

/// What [`waited`] asks of a job, after its record.
pub(crate) fn waited_asks(from: u64, max: usize) -> Vec<JobRequest> {
    let text = |stream, from| JobRequest::ReadText(ReadText { stream, from, max, ..ReadText::default() });
    let mut asks = vec![SHOWN, text(Stream::Stderr, 0), JobRequest::Outcome];
    asks.extend(report_asks());
    asks.push(text(Stream::Output, from));
    asks
}

/// Its record, for somebody.
pub(crate) const SHOWN: JobRequest = JobRequest::Info { shown: true };
/// Its record, for ourselves.
pub(crate) const RECORD: JobRequest = JobRequest::Info { shown: false };

/// Adds what was printed.
pub(crate) fn with_text(report: JobReport, text: &Text, reference: &str) -> JobReport {
    JobReport {
        output: Some(joined(text, reference)),
        offset: text.offset,
        omitted_bytes: text.omitted_bytes(),
        gone_bytes: Some(text.lost_bytes),
        ..report
    }
}

/// How a wait ended, and what was printed from an offset on; in pipe mode stderr too.
pub(crate) fn waited(
    (job, info): (&Job, &Info),
    waited: &Waited,
    (from, max): (u64, usize),
) -> Result<JobReport, Failure> {
    let handle = job.handle();
    let stderr = job.read(ReadText { stream: Stream::Stderr, max, ..ReadText::default() })?;
    let stderr = joined(&stderr, &format!("{handle} --stderr"));
    let report = JobReport {
        outcome: job.outcome()?,
        stderr: Some(stderr).filter(|text| !text.is_empty()),
        ..report(job, info).waited(waited.clone())
    };
    Ok(with_text(report, &job.read_text(from, max)?, &handle.to_string()))
}

/// Text, and in it the call that reads what is left out.
pub(crate) fn joined(text: &Text, reference: &str) -> String {
    text.joined(|from, to| format!("outlast read {reference} --since {from} --until {to}"))
}

/// Where a job waits for input: many programs ask without a word.
pub(crate) fn at_prompt(prompt: &str) -> String {
    if prompt.is_empty() { String::new() } else { format!(" at {prompt:?}") }
}

/// What can be said of a job that is over and has no receipt.
pub(crate) fn unseen_end(info: &Info) -> String {
    let Info { handle, state, .. } = info;
    let (status, why) = (state.name(), state.why_lost().unwrap_or("it has no receipt"));
    format!("job {handle} is {status}: {why}; what it printed: outlast read {handle}")
}

/// How a job ended, in a line.
pub(crate) fn ending(receipt: &Receipt) -> String {
    let how = match receipt.words() {
        Ok(how) => how,
        Err(error) => return format!("could not start: {}", error.message),
    };
    // "SIGTERM, ended by kill (SIGTERM)" says it twice.
    let by = receipt.ended_by.describe();
    let how = match how.split_once(", ended ") {
        Some((signal, _)) if by.contains(&format!("({signal})")) => format!("ended {by}"),
        _ => how,
    };
    let left = match receipt.left_behind.as_slice() {
        [] => String::new(),
        some => {
            let names: Vec<String> = some.iter().map(|p| format!("{} ({})", p.program, p.pid)).collect();
            format!(", left behind: {}", names.join(", "))
        }
    };
    format!("{}{left}", of_this_session(how))
}

/// Who ended a job, for whoever reads it here.
pub(crate) fn ended_by(receipt: &Receipt) -> String {
    of_this_session(receipt.ended_by.describe())
}

/// The name of one's own session tells nobody anything.
fn of_this_session(words: String) -> String {
    match words.strip_suffix(&format!("session {}", outlast_job::session::current())) {
        Some(before) => format!("{before}this session"),
        None => words,
    }
}
