//! `outlast resize`.

use outlast_cli::ResizeArgs;
use outlast_job::{Failure, Outlast, Streams};
use outlast_policy::OrderKind;

use crate::ask::allowed;
use crate::output::Output;

pub(super) fn resize(outlast: &Outlast, args: &ResizeArgs, out: &mut Output) -> Result<i32, Failure> {
    let job = outlast.job(&args.job)?;
    allowed(outlast.home(), OrderKind::Resize { job: &job })?;
    job.resize(args.size)?;
    let now = match job.status()?.map(|status| status.info.streams) {
        Some(Streams::Terminal(size)) => size,
        _ => args.size,
    };
    let handle = job.handle();
    if out.json {
        out.value(&serde_json::json!({ "handle": handle, "size": now, "later": now != args.size }));
    } else if now != args.size {
        let (cols, rows) = (now.cols, now.rows);
        out.talk(&format!("job {handle} stays at {cols}x{rows} while people are attached to it"));
    }
    Ok(0)
}
