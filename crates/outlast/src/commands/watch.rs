//! `outlast watch`.

use outlast_cli::WatchArgs;
use outlast_job::wire::watch::Watch;
use outlast_job::{Failure, Outlast};
use outlast_policy::OrderKind;

use crate::ask::allowed;
use crate::output::Output;

pub(super) fn watch(outlast: &Outlast, args: &WatchArgs, out: &mut Output) -> Result<i32, Failure> {
    let job = outlast.expecting([crate::answer::RECORD]).job(&args.job)?;
    let kind = match &args.remove {
        Some(_) => OrderKind::Unwatch { job: &job },
        None if args.list => OrderKind::Watches,
        None => OrderKind::Watch { job: &job },
    };
    allowed(outlast.home(), kind)?;
    let watch = Watch {
        id: args.id.clone().unwrap_or_default(),
        until: args.on.conditions(),
        from: None,
        each: args.each,
    };
    let watches = match &args.remove {
        Some(id) => job.unwatch(id)?,
        None if args.list => job.watches()?,
        None if watch.is_empty() => {
            return Err(Failure::usage("a watch needs something to watch for").hint(
                "for example --pattern REGEX, --quiet-for 30s, --stable, --port, --awaiting-input or --exit",
            ));
        }
        None => job.watch(watch)?,
    };
    if out.json {
        out.value(&serde_json::json!({ "handle": job.handle(), "watches": watches }));
    } else {
        for watch in &watches {
            out.line(&describe(watch));
        }
    }
    Ok(0)
}

fn describe(watch: &Watch) -> String {
    let what: Vec<String> = watch.until.iter().map(ToString::to_string).collect();
    let how = if watch.each { "each time" } else { "once" };
    format!("{} {how}: {}", watch.id, what.join(", "))
}
