//! `outlast watch`.

use outlast_job::wire::watch::Watch;
use outlast_job::{Failure, Outlast};

use crate::cli::WatchArgs;
use crate::output::Output;

pub(super) fn watch(outlast: &Outlast, args: &WatchArgs, out: &mut Output) -> Result<i32, Failure> {
    let job = outlast.job(&args.job)?;
    let watch = Watch { id: args.id.clone().unwrap_or_default(), on: args.on.wait(), each: args.each };
    let watches = match &args.remove {
        Some(id) => job.unwatch(id)?,
        None if args.list => job.watches()?,
        None if watch.is_empty() => {
            return Err(Failure::usage("a watch needs something to watch for")
                .hint("for example --pattern REGEX, --quiet-for 30s, --stable, --port, --input or --exit"));
        }
        None => job.watch(watch)?,
    };
    if out.json {
        out.value(&serde_json::json!({ "handle": job.handle().0, "watches": watches }));
    } else {
        for watch in &watches {
            out.line(&describe(watch));
        }
    }
    Ok(0)
}

fn describe(watch: &Watch) -> String {
    let on = &watch.on;
    let mut what: Vec<String> = on.patterns.iter().map(|pattern| format!("pattern {pattern:?}")).collect();
    what.extend(on.quiet_ms.map(|ms| format!("quiet for {ms} ms")));
    what.extend(on.stable.as_ref().map(|s| format!("stable, {} checks of {} ms", s.checks, s.interval_ms)));
    what.extend(on.port.map(|port| if port == 0 { "any port".into() } else { format!("port {port}") }));
    what.extend(on.awaiting_input.then(|| "input".to_owned()));
    what.extend(on.exit.then(|| "exit".to_owned()));
    let how = if watch.each { "each time" } else { "once" };
    format!("{} {how}: {}", watch.id, what.join(", "))
}
