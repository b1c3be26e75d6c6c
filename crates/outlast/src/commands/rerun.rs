//! `outlast rerun`: the command of a job again, as a new job with the same name.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use outlast_cli::RerunArgs;
use outlast_job::registry::format::Info;
use outlast_job::{Failure, Input, Job, JobSpec, Outlast, Streams};
use outlast_policy::{OrderKind, Start};

use super::kill::default_grace;
use super::run::{self, Foreground};
use crate::answer;
use crate::ask::CliGate;
use crate::choices;
use crate::last_job::named_or_last;
use crate::output::Output;
use crate::terminal;

pub(super) fn rerun(outlast: &Outlast, args: &RerunArgs, out: &mut Output) -> Result<i32, Failure> {
    let job = named_or_last(&outlast.expecting([answer::RECORD]), args.job.as_deref(), out)?;
    let info = job.info()?;
    let mut spec = spec(&info, args);
    spec.check()?;
    let gate = CliGate::open(outlast.home())?;
    let set = args.env.iter().filter_map(|setting| setting.split_once('='));
    let env: BTreeMap<String, String> = set.map(|(name, value)| (name.into(), value.into())).collect();
    let start = Start {
        run: &spec.run,
        folder: Path::new(&info.cwd),
        env: &env,
        fed: spec.input == Input::Given && run::is_fed(),
    };
    spec.guard = gate.pass(OrderKind::Start(start))?.guard_request();
    if info.state.is_live() {
        end_first(outlast, &job, args, &gate, out)?;
    }
    // Its folder is one of the machine that it ran on.
    let outlast = outlast.beside(&job)?;
    let wakes = outlast.wakes_of(&spec)?;
    let front = Foreground {
        reads: spec.input != Input::Nothing,
        has_terminal: matches!(spec.streams, Streams::Terminal(_)),
        quiet: args.quiet,
        detach_key: choices::detach_key(&outlast, None, out),
        started: run::start_below_prompt(&mut spec, !args.background && !out.json),
    };
    let again = outlast.start(spec)?;
    if args.background {
        return run::started(&again, wakes, out);
    }
    if out.json {
        return run::answer_at_end(&again, out);
    }
    run::foreground(&again, &front, out)
}

/// A name belongs to one running job, and a server has one port: what still runs goes first.
fn end_first(
    outlast: &Outlast,
    job: &Job,
    args: &RerunArgs,
    gate: &CliGate,
    out: &mut Output,
) -> Result<(), Failure> {
    let handle = job.handle();
    if args.job.is_none() {
        return Err(Failure::usage(format!("job {handle} still runs, and it was not named"))
            .hint(format!("end it and start it again: outlast rerun {handle}")));
    }
    let _pass = gate.pass(OrderKind::Kill { job, force: false })?;
    let killed = job.kill(default_grace(outlast, out), gate.session())?;
    if let Some(left) = killed.survivors.first() {
        return Err(Failure::usage(format!(
            "job {handle} could not be ended: {} ({}) still runs",
            left.program, left.pid
        )));
    }
    out.aside(&format!("[job {handle} was ended]"));
    Ok(())
}

/// What the record says, in the caller's own environment: values of variables are never written down.
fn spec(info: &Info, args: &RerunArgs) -> JobSpec {
    let mut spec = JobSpec::new(info.run.clone());
    spec.cwd = Some(info.cwd.clone());
    spec.name.clone_from(&info.name);
    spec.description.clone_from(&info.description);
    spec.timeout = info.timeout_ms.map(Duration::from_millis);
    spec.inactivity_timeout = info.inactivity_timeout_ms.map(Duration::from_millis);
    spec.log_cap = Some(info.log_cap);
    spec.sandbox.clone_from(&info.sandbox);
    spec.limits.clone_from(&info.limits);
    for setting in &args.env {
        match setting.split_once('=') {
            Some((name, value)) => spec.set_env(name, value),
            None => spec.unset_env(setting),
        }
    }
    let in_front = !args.background;
    spec.streams = match info.streams {
        Streams::Pipes => Streams::Pipes,
        Streams::Terminal(size) => {
            let ours = terminal::size().filter(|_| in_front && std::io::stdout().is_terminal());
            Streams::Terminal(ours.unwrap_or(size))
        }
    };
    spec.input = match info.input {
        Input::Nothing => Input::Nothing,
        Input::Typed | Input::Given if in_front && !std::io::stdin().is_terminal() => Input::Given,
        Input::Typed | Input::Given => Input::Typed,
    };
    spec.notify = in_front.then(Vec::new);
    spec
}
