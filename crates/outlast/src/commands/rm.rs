//! `outlast rm`.

use outlast_cli::RmArgs;
use outlast_job::request::JobRequest;
use outlast_job::{Failure, Job, Outlast};
use outlast_policy::OrderKind;
use outlast_protocol::{Call, Hint};

use super::kill::default_grace;
use crate::answer;
use crate::ask::CliGate;
use crate::human;
use crate::output::Output;

pub(super) fn rm(outlast: &Outlast, args: &RmArgs, out: &mut Output) -> Result<i32, Failure> {
    let asks = [answer::RECORD, answer::RECORD, JobRequest::LeftBehind];
    let outlast = &outlast.expecting(asks);
    let jobs: Vec<_> = args.jobs.iter().map(|job| outlast.job(job)).collect::<Result<_, _>>()?;
    let gate = CliGate::open(outlast.home())?;
    // All or none: the first that may not be removed stops it.
    for job in &jobs {
        let _pass = gate.pass(OrderKind::Remove { job })?;
        if has_something_to_end(job)? {
            if !args.force {
                return Err(still_runs(job));
            }
            let _pass = gate.pass(OrderKind::Kill { job, force: false })?;
        }
    }
    for job in jobs {
        if args.force {
            job.pin(false)?;
            // Also releases a keeper that has not been able to save how the job ended.
            job.kill(default_grace(outlast, out), gate.session())?;
        }
        let freed = outlast.remove(&job)?;
        let handle = job.handle();
        if out.json {
            out.value(&serde_json::json!({ "handle": handle, "removed": true, "freed_bytes": freed }));
        } else {
            out.line(&format!("job {handle} is removed, {}", human::bytes(freed)));
        }
    }
    Ok(0)
}

fn has_something_to_end(job: &Job) -> Result<bool, Failure> {
    let info = job.info()?;
    Ok(info.state.is_live() || !job.left_behind(&info).is_empty())
}

fn still_runs(job: &Job) -> Failure {
    let handle = job.handle();
    Failure::usage(format!("job {handle} still runs, and nothing was removed")).hint(
        Hint::call("end it first: ", Call::Kill(handle.to_string()))
            .and(format!("   or both at once: outlast rm --force {handle}")),
    )
}
