//! `outlast kill`.

use outlast_cli::KillArgs;
use outlast_job::request::List;
use outlast_job::{Failure, Job, Outlast};
use outlast_policy::OrderKind;

use crate::answer;
use crate::ask::CliGate;
use crate::output::Output;

pub(super) fn kill(outlast: &Outlast, args: &KillArgs, out: &mut Output) -> Result<i32, Failure> {
    let gate = CliGate::open(outlast.home())?;
    let jobs = if args.all { all_that_run(outlast, gate.session())? } else { named(outlast, args)? };
    if jobs.is_empty() {
        out.talk("no job of this session runs; those of others: outlast jobs --all");
        return Ok(0);
    }
    let force = args.force;
    // All or none: the first that may not be ended stops it.
    for job in &jobs {
        let _pass = gate.pass(match args.signal {
            Some(_) => OrderKind::Signal { job, force },
            None => OrderKind::Kill { job, force },
        })?;
    }
    let session = gate.session();
    let mut code = 0;
    for job in jobs {
        let killed = match &args.signal {
            Some(signal) => job.signal(signal, session)?,
            None => job.kill(args.grace, session)?,
        };
        let info = job.info_to_show()?;
        if !killed.survivors.is_empty() {
            code = 1;
        }
        if out.json {
            let mut value = serde_json::to_value(answer::report(&job, &info)).unwrap_or_default();
            value["signalled"] = killed.signalled.into();
            value["already_ended"] = killed.already_ended.into();
            value["survivors"] = serde_json::to_value(&killed.survivors).unwrap_or_default();
            if let Some(note) = &killed.note {
                value["note"] = note.as_str().into();
            }
            out.value(&value);
            continue;
        }
        let handle = job.handle();
        let names: Vec<String> =
            killed.survivors.iter().map(|process| format!("{} ({})", process.program, process.pid)).collect();
        let said = match (&args.signal, killed.already_ended, info.state.receipt()) {
            (_, true, _) => format!("job {handle} had already ended"),
            (Some(signal), _, _) => {
                format!("{signal} sent to {} processes of job {handle}", killed.signalled)
            }
            (None, _, _) if !names.is_empty() => format!("job {handle}: still there: {}", names.join(", ")),
            (None, _, Some(receipt)) => {
                format!("job {handle}: {}; nothing is left of it", answer::ending(receipt))
            }
            (None, _, None) => format!("job {handle}: nothing is left of it"),
        };
        out.line(&said);
        if let Some(note) = &killed.note {
            out.talk(&format!("outlast: job {handle}: {note}"));
        }
    }
    Ok(code)
}

fn named(outlast: &Outlast, args: &KillArgs) -> Result<Vec<Job>, Failure> {
    args.jobs.iter().map(|job| outlast.job(job)).collect()
}

/// Every job of a session that runs.
fn all_that_run(outlast: &Outlast, session: &str) -> Result<Vec<Job>, Failure> {
    let list = List { session: Some(session.to_owned()), running: true, ..List::default() };
    outlast.list(list).iter().map(|listed| outlast.job(&listed.job.handle.to_string())).collect()
}
