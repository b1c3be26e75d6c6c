//! `outlast prune`.

use outlast_cli::PruneArgs;
use outlast_job::clock::millis;
use outlast_job::request::PruneLimits;
use outlast_job::{Failure, Outlast};
use outlast_policy::OrderKind;

use crate::ask::allowed;
use crate::output::Output;
use crate::progress::Busy;

pub(super) fn prune(outlast: &Outlast, args: &PruneArgs, out: &mut Output) -> Result<i32, Failure> {
    allowed(outlast.home(), OrderKind::Prune { dry_run: args.dry_run })?;
    let limits = PruneLimits {
        all: args.all,
        unread: args.unread,
        age_ms: args.age.map(millis),
        jobs: args.keep,
        bytes: args.size,
    };
    let busy = Busy::new("looking through finished jobs");
    let swept = outlast.prune(limits, args.dry_run);
    drop(busy);
    let swept = swept?;
    if out.json {
        let removed = &swept.removed;
        out.value(&serde_json::json!({
            "removed": removed, "freed_bytes": swept.freed, "kept": swept.kept, "dry_run": args.dry_run,
            "over_budget": swept.over,
        }));
    } else {
        let verb = if args.dry_run { "would be removed" } else { "removed" };
        let freed = swept.freed / 1024;
        out.line(&format!(
            "{} jobs {verb}, {freed} KiB; {} finished jobs are kept",
            swept.removed.len(),
            swept.kept
        ));
        if let Some(over) = swept.over {
            out.talk(&over.words());
        }
    }
    Ok(0)
}
