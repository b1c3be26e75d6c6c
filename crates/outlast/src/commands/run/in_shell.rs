//! `outlast run --shell NAME`: a command as a step of a shell that remembers.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use outlast_cli::RunArgs;
use outlast_job::client::MAX_OUTPUT;
use outlast_job::client::signals::{Signal, Signals};
use outlast_job::clock::millis;
use outlast_job::request::ReadText;
use outlast_job::shell::{Shell, ShellKind, StepOrder};
use outlast_job::{Condition, Failure, JobSpec, Outlast, Reason, Run, StepBegun, Wait, Waited, check_wait};
use outlast_policy::{OrderKind, Start};
use outlast_protocol::JobReport;

use crate::answer;
use crate::ask::CliGate;
use crate::live::StepPrinter;
use crate::output::{DEADLINE, Output};

/// How often we look whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(100);
/// How long a step that Ctrl-C ends may take.
const GRACE: Duration = Duration::from_millis(500);

pub(super) fn run(outlast: &Outlast, args: &RunArgs, name: &str, out: &mut Output) -> Result<i32, Failure> {
    let mut until = super::conditions(args);
    let waits = super::goes_on(args);
    if !waits {
        until.push(Condition::AwaitingInput);
    }
    let wait = Wait::of(until);
    check_wait(&wait)?;
    let mut spec = super::spec(args)?;
    // What is said of folder and environment is for this step; the shell begins where we are.
    spec.cwd = None;
    spec.env.clear();
    spec.timeout = None;
    spec.shell = Some(Shell { rc: args.rc, scope: scope(), ..Shell::new(name, ShellKind::Bash) });
    spec.run = Run::Program(vec!["bash".into()]);
    spec.shown_as = Some(format!("shell {name}"));
    spec.notify = Some(vec![Condition::Exit]);
    let order = order(args)?;
    spec.guard = may_run(outlast, &spec, &order)?;
    let begun = outlast.step(&spec, &order)?;
    if begun.made && !args.quiet {
        out.aside(&format!("[shell {name} was made: job {}]", begun.job.handle()));
    }
    let wait = wait.of_step(begun.step.step);
    if args.background {
        let waited = Waited {
            step: Some(Box::new(begun.step.clone())),
            ..Waited::because(Reason::Started, begun.step.from)
        };
        return answered(&begun, name, &waited, out);
    }
    let deadline = waits.then(|| args.deadline.unwrap_or(super::DEADLINE_OF_RUN));
    let waited = stay(&begun, &wait, deadline, out)?;
    answered(&begun, name, &waited, out)
}

/// Whose shells are meant: those of a session that says so, else the user's own. A terminal is no session here: the next
/// call may come from another.
pub(crate) fn scope() -> String {
    std::env::var("OUTLAST_SESSION").unwrap_or_default()
}

fn order(args: &RunArgs) -> Result<StepOrder, Failure> {
    let command = match args.command.as_slice() {
        [one] => one.clone(),
        argv => Run::Program(argv.to_vec()).display(),
    };
    let folder = match &args.cwd {
        Some(cwd) => {
            let cwd = std::path::absolute(cwd).map_err(|error| Failure::usage(format!("--cwd: {error}")))?;
            Some(cwd.to_string_lossy().into_owned())
        }
        None => None,
    };
    let setting = |setting: &String| match setting.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (setting.clone(), None),
    };
    let order = StepOrder {
        command,
        folder,
        env: args.env.iter().map(setting).collect(),
        timeout_ms: args.timeout.map(millis),
        if_idle: args.if_idle,
        session: outlast_job::session::current(),
    };
    order.check()?;
    Ok(order)
}

/// Asks the policy about the step, as about any command.
fn may_run(
    outlast: &Outlast,
    spec: &JobSpec,
    order: &StepOrder,
) -> Result<Option<serde_json::Value>, Failure> {
    let run = Run::Shell(order.command.clone());
    let name = spec.shell.as_ref().map_or("", |shell| shell.name.as_str());
    let folder = match &order.folder {
        Some(folder) => folder.clone(),
        None => outlast.folder_of_shell(&scope(), name)?,
    };
    let env = order.env.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect();
    let folder = PathBuf::from(folder);
    let start = Start { run: &run, folder: &folder, env: &env, fed: false };
    Ok(CliGate::open(outlast.home())?.pass(OrderKind::Start(start))?.guard_request())
}

/// Shows what the step prints until what is waited for has come. Ctrl-C is for the step.
fn stay(begun: &StepBegun, wait: &Wait, deadline: Option<Duration>, out: &Output) -> Result<Waited, Failure> {
    let signals =
        Signals::catch(&[Signal::INT]).map_err(|error| Failure::system("signals can't be caught", error))?;
    let job = &begun.job;
    let until = deadline.and_then(|time| Instant::now().checked_add(time));
    let live = !out.json && std::io::stdout().is_terminal();
    let mut printer = live.then(|| StepPrinter::new(job)).transpose()?;
    let mut queued = true;
    loop {
        let left = until.map_or(LOOK, |at| at.saturating_duration_since(Instant::now()).min(LOOK));
        let waited = job.wait(wait, Some(left))?;
        if let (Some(printer), Some(step)) = (&mut printer, &waited.step) {
            queued &= step.state == outlast_job::shell::StepState::Queued;
            if !queued {
                printer.print(job, (step.from, step.to))?;
            }
        }
        let late = until.is_some_and(|at| Instant::now() >= at);
        if waited.reason != Reason::Deadline || late {
            if let Some(printer) = &mut printer {
                printer.finish();
            }
            return Ok(waited);
        }
        if !signals.take().is_empty() {
            job.end_step(Some(begun.step.step), GRACE, &outlast_job::session::current())?;
        }
    }
}

/// What every answer about a step says.
fn answered(begun: &StepBegun, name: &str, waited: &Waited, out: &mut Output) -> Result<i32, Failure> {
    let job = &begun.job;
    let step = waited.step.as_deref().unwrap_or(&begun.step);
    let number = step.step;
    let text = || job.read(ReadText { from: step.from, to: step.to, max: MAX_OUTPUT, ..ReadText::default() });
    if out.json {
        let info = job.info()?;
        let report = answer::report(job, &info).waited(waited.clone()).of_step(name, step);
        let report = if step.state == outlast_job::shell::StepState::Queued {
            JobReport { output: Some(String::new()), ..report }
        } else {
            answer::with_text(report, &text()?, &format!("{} --step {number}", job.handle()))
        };
        out.value(&report);
    } else if !std::io::stdout().is_terminal() && waited.reason != Reason::Started {
        let range = ReadText { from: step.from, to: step.to, max: usize::MAX, ..ReadText::default() };
        job.write_text(&range, |text| out.data(text))?;
    }
    if let Some(note) = &step.note {
        out.talk(&format!("outlast: step {number}: {note}"));
    }
    if step.exit_code == Some(127) && !job.info()?.shell.is_some_and(|shell| shell.rc) {
        out.aside("outlast: this shell has not read your startup files; one that has: --shell NAME --rc");
    }
    if step.is_over() {
        return Ok(step.exit_code.unwrap_or(1));
    }
    let handle = job.handle();
    match waited.reason {
        Reason::Started => out.line_or_nothing(&format!("{handle} {number}")),
        Reason::AwaitingInput => {
            let prompt = waited.awaiting_input.as_ref().map_or("", |asked| asked.prompt.as_str());
            out.talk(&format!(
                "outlast: shell {name}, step {number} waits for input at {prompt:?}; answer it: outlast send {handle} TEXT"
            ));
        }
        reason => out.talk(&format!(
            "{}: shell {name}, step {number} runs; read it: outlast read {handle} --step {number}   end it: outlast kill {handle} --step {number}",
            reason.name()
        )),
    }
    Ok(match waited.reason {
        Reason::Deadline | Reason::AwaitingInput if !matches!(waited.reason, Reason::Started) => DEADLINE,
        _ => 0,
    })
}
