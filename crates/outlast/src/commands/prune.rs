//! `outlast prune`.

use outlast_cli::PruneArgs;
use outlast_job::settings::{Retention, Section};
use outlast_job::{Failure, Outlast};
use outlast_policy::OrderKind;

use crate::ask::allowed;
use crate::output::Output;

pub(super) fn prune(outlast: &Outlast, args: &PruneArgs, out: &mut Output) -> Result<i32, Failure> {
    allowed(outlast.home(), OrderKind::Prune { dry_run: args.dry_run })?;
    let set = &outlast.settings().retention;
    let says_all = args.all || (args.age.is_some() && args.keep.is_some() && args.size.is_some());
    if !says_all {
        outlast.loaded_settings().section(Section::Retention)?;
    }
    let keep = if args.all {
        Retention::nothing()
    } else if args.age.is_none() && args.keep.is_none() && args.size.is_none() {
        set.clone()
    } else {
        let (age, jobs) = (args.age.unwrap_or(set.age), args.keep.unwrap_or(set.jobs));
        Retention::at_once(age, jobs, args.size.unwrap_or(set.bytes))
    };
    let swept = outlast.prune(&keep, args.dry_run)?;
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
