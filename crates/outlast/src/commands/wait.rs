//! `outlast wait`.

use outlast_cli::WaitArgs;
use outlast_job::client::MAX_OUTPUT;
use outlast_job::request::JobRequest;
use outlast_job::{Condition, Failure, Job, Outlast, Reason, Wait, wait_any};
use outlast_policy::OrderKind;
use outlast_protocol::{JobOutcome, JobReport};

use crate::answer;
use crate::ask::allowed;
use crate::last_job::all_named_or_last;
use crate::output::{DEADLINE, Output};

pub(super) fn wait(outlast: &Outlast, args: &WaitArgs, out: &mut Output) -> Result<i32, Failure> {
    allowed(outlast.home(), OrderKind::Wait)?;
    let jobs = all_named_or_last(outlast, &args.jobs, out)?;
    let mut until = args.until.conditions();
    let from = match args.since.as_deref() {
        Some("now") => None,
        Some(offset) => Some(offset.parse().map_err(|_| {
            Failure::usage(format!("{offset:?} is not an offset")).hint("give a number of bytes, or `now`")
        })?),
        // What was already printed counts for a pattern; "anything new" begins now.
        None if until.contains(&Condition::Output) => None,
        None => Some(0),
    };
    if until.is_empty() {
        until.push(Condition::Exit);
    }
    let wait = Wait { from, ..Wait::of(until) };
    let begins: Vec<u64> = jobs.iter().map(|job| from.unwrap_or_else(|| job.log_end())).collect();
    let waits: Vec<(&Job, Wait)> =
        jobs.iter().zip(&begins).map(|(job, begin)| (job, wait.clone().from(*begin))).collect();
    for (job, begin) in jobs.iter().zip(&begins) {
        job.expect(if out.json {
            answer::waited_asks(*begin, MAX_OUTPUT)
        } else {
            vec![answer::SHOWN, JobRequest::Outcome]
        });
    }
    let (which, waited) = wait_any(&waits, args.deadline, None)?;
    let (job, begin) = (&jobs[which], begins[which]);
    let info = job.info_to_show()?;
    // Otherwise the time was up, or the end came before what was waited for.
    let ended_first = waited.reason == Reason::Exit && !wait.has(Reason::Exit);
    let met = waited.reason != Reason::Deadline && !ended_first;
    if out.json {
        let answer = answer::waited((job, &info), &waited, (begin, MAX_OUTPUT))?;
        out.value(
            &serde_json::json!({ "already": waited.already, "at_offset": waited.offset, "met": met })
                .merged(&answer),
        );
    } else {
        let found = waited.found.as_ref().map(|found| found.text.clone());
        let asked = waited.awaiting_input.as_ref().map(|asked| {
            format!("{} ({}, {})", asked.prompt, asked.kind, asked.level).trim_start().to_owned()
        });
        let port = waited.port.map(|port| port.to_string());
        let found = found.or(asked).or(port).map(|what| format!(": {what}")).unwrap_or_default();
        let handle = job.handle();
        let line = format!("{handle} {}{found}", waited.reason.name());
        // The others are told in a sentence below.
        if matches!(waited.reason, Reason::Exit | Reason::Deadline) {
            out.line_for_scripts(&line);
        } else {
            out.line(&line);
        }
        if waited.reason == Reason::Exit {
            job.outcome()?.iter().flat_map(JobOutcome::lines).for_each(|line| out.talk(&line));
        }
        match (waited.reason, info.state.receipt()) {
            (Reason::Exit, Some(receipt)) if !met => out.talk(&format!(
                "job {handle} has ended before what was waited for came: {}",
                answer::ending(receipt)
            )),
            (_, Some(receipt)) => {
                out.talk(&format!("job {handle} has ended: {}", answer::ending(receipt)));
            }
            (Reason::Deadline, None) => out.talk(&format!("the time is up; job {handle} runs on")),
            (Reason::Exit, None) => out.talk(&answer::unseen_end(&info)),
            (_, None) => {}
        }
    }
    Ok(match (waited.reason, met) {
        (Reason::Deadline, _) => DEADLINE,
        (Reason::Exit, true) => super::run::exit_code(&info.state),
        (_, true) => 0,
        (_, false) => 1,
    })
}

trait Merged {
    fn merged(self, answer: &JobReport) -> serde_json::Value;
}

impl Merged for serde_json::Value {
    fn merged(self, answer: &JobReport) -> serde_json::Value {
        let mut whole = serde_json::to_value(answer).unwrap_or_default();
        if let (Some(into), serde_json::Value::Object(more)) = (whole.as_object_mut(), self) {
            into.extend(more);
        }
        whole
    }
}
