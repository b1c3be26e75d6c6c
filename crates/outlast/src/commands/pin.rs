//! `outlast pin`.

use outlast_cli::PinArgs;
use outlast_job::{Failure, Outlast};
use outlast_policy::OrderKind;

use crate::ask::CliGate;
use crate::output::Output;

pub(super) fn pin(outlast: &Outlast, args: &PinArgs, out: &mut Output) -> Result<i32, Failure> {
    let jobs: Vec<_> = args
        .jobs
        .iter()
        .map(|job| outlast.expecting([crate::answer::RECORD]).job(job))
        .collect::<Result<_, _>>()?;
    let gate = CliGate::open(outlast.home())?;
    let pinned = !args.remove;
    for job in &jobs {
        let _pass = gate.pass(OrderKind::Pin { job, pinned })?;
    }
    for job in jobs {
        job.pin(pinned)?;
        let handle = job.handle();
        if out.json {
            out.value(&serde_json::json!({ "handle": handle, "pinned": pinned }));
        } else if pinned {
            out.line(&format!("job {handle} is kept; let it go: outlast pin --remove {handle}"));
        } else {
            out.line(&format!("job {handle} is no longer pinned"));
        }
    }
    Ok(0)
}
