//! `outlast prune`.

use std::time::Duration;

use outlast_job::settings::Retention;
use outlast_job::{Failure, Outlast};

use crate::cli::PruneArgs;
use crate::output::Output;

pub(super) fn prune(outlast: &Outlast, args: &PruneArgs, out: &mut Output) -> Result<i32, Failure> {
    let set = &outlast.settings().retention;
    let keep = if args.all {
        Retention { age: Duration::ZERO, jobs: 0, bytes: 0 }
    } else {
        Retention {
            age: args.age.unwrap_or(set.age),
            jobs: args.keep.unwrap_or(set.jobs),
            bytes: args.size.unwrap_or(set.bytes),
        }
    };
    let swept = outlast.prune(&keep, args.dry_run)?;
    if out.json {
        let removed: Vec<u64> = swept.removed.iter().map(|handle| handle.0).collect();
        out.value(&serde_json::json!({
            "removed": removed, "freed_bytes": swept.freed, "kept": swept.kept, "dry_run": args.dry_run
        }));
    } else {
        let verb = if args.dry_run { "would be removed" } else { "removed" };
        let freed = swept.freed / 1024;
        out.line(&format!(
            "{} jobs {verb}, {freed} KiB; {} finished jobs are kept",
            swept.removed.len(),
            swept.kept
        ));
    }
    Ok(0)
}
