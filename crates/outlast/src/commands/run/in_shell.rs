//! `outlast run --shell NAME`: a command as a step of a shell that remembers.

use std::io::IsTerminal;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use outlast_cli::RunArgs;
use outlast_job::client::MAX_OUTPUT;
use outlast_job::client::signals::{Signal, Signals};
use outlast_job::clock::millis;
use outlast_job::request::ReadText;
use outlast_job::shell::{Shell, ShellKind, StepOrder};
use outlast_job::{
    Condition, Failure, Input, JobSpec, Outlast, Reason, Run, ShellPlace, StepBegun, Wait, Waited, check_wait,
};
use outlast_policy::{OrderKind, StepCommand};
use outlast_protocol::JobReport;
use rustix::event::{PollFd, PollFlags, poll};

use crate::answer;
use crate::ask::CliGate;
use crate::live::StepFollower;
use crate::output::{DEADLINE, Output};

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
    // What is said of folder and environment is for this step; the shell begins where we are, or where it was.
    spec.env.clear();
    spec.timeout = None;
    let order = order(args)?;
    let place = outlast.place_of_shell(&scope(), name)?;
    spec.cwd.clone_from(&place.begins_in);
    let asked: Option<ShellKind> = args.with.as_deref().map(str::parse).transpose()?;
    let kind = place.kind_for(asked.or(default_kind(outlast, &place)), name)?;
    of_shell(&mut spec, Shell { rc: args.rc, scope: scope(), ..Shell::new(name, kind) });
    let step = StepCommand::of(kind, &order, &place.folder);
    spec.guard = CliGate::open(outlast.home())?.pass(OrderKind::Start(step.start()))?.guard_request();
    let begun = outlast.step(&spec, &order)?;
    if begun.made && !args.quiet {
        out.aside(&format!("[shell {name} was made: job {}]", begun.job.handle()));
    }
    if begun.made
        && let Some(restored) = begun.job.info()?.shell.and_then(|shell| shell.restored)
    {
        out.talk(&format!("outlast: {restored}"));
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

/// Whose shells are meant: those of a session that says so, else the user's own. A terminal is not a session here: the next
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

/// Which one a new shell is, where nothing is said.
pub(crate) fn default_kind(outlast: &Outlast, place: &ShellPlace) -> Option<ShellKind> {
    place.kind.is_none().then(|| outlast.settings().shells.with)
}

/// Makes a shell of a job that is to be started.
pub(crate) fn of_shell(spec: &mut JobSpec, shell: Shell) {
    // It lives longer than whatever we read from.
    spec.input = Input::Typed;
    spec.run = Run::Program(vec![shell.kind.name().into()]);
    spec.shown_as = Some(format!("shell {}", shell.name));
    spec.notify = Some(vec![Condition::Exit]);
    spec.shell = Some(shell);
}

/// Shows what the step prints until what is waited for has come. Ctrl-C is for the step.
fn stay(begun: &StepBegun, wait: &Wait, deadline: Option<Duration>, out: &Output) -> Result<Waited, Failure> {
    let broken = |error| Failure::system("signals can't be caught", error);
    let signals = Signals::catch(&[Signal::INT]).map_err(broken)?;
    let (job, number) = (&begun.job, begun.step.step);
    let live = !out.json && std::io::stdout().is_terminal();
    let mut shown = live.then(|| StepFollower::new(job, number)).transpose()?;
    let (waits, done) = UnixStream::pair().map_err(broken)?;
    let (waiting, wait) = (job.clone(), wait.clone());
    let waiter = std::thread::spawn(move || {
        let waited = waiting.wait(&wait, deadline);
        drop(done);
        waited
    });
    while !waiter.is_finished() {
        let mut fds = vec![PollFd::new(&waits, PollFlags::IN), PollFd::new(&signals, PollFlags::IN)];
        if let Some(fd) = shown.as_ref().and_then(StepFollower::fd) {
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
        }
        let _ = poll(&mut fds, None);
        let is_done = !fds[0].revents().is_empty();
        if let Some(shown) = &mut shown {
            shown.show(job)?;
        }
        if is_done {
            break;
        }
        if !signals.take().is_empty() {
            job.end_step(Some(number), GRACE, &outlast_job::session::current())?;
        }
    }
    let failed = || Failure::system("the wait failed", std::io::Error::other("its thread ended"));
    let waited = waiter.join().map_err(|_| failed())??;
    if let Some(shown) = shown {
        shown.finish(job, waited.step.as_deref())?;
    }
    Ok(waited)
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
    if !step.background.is_empty() {
        let pids: Vec<String> = step.background.iter().map(ToString::to_string).collect();
        out.aside(&format!("outlast: runs on in the background: pid {}", pids.join(", ")));
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
                "outlast: shell {name}, step {number} waits for input{}; answer it: outlast send {handle} TEXT",
                answer::at_prompt(prompt)
            ));
        }
        reason => out.talk(&format!(
            "{}: shell {name}, step {number} runs; read it: outlast read {handle} --step {number}   end it: outlast kill {handle} --step {number}",
            reason.name()
        )),
    }
    let is_left = matches!(waited.reason, Reason::Deadline | Reason::AwaitingInput);
    Ok(if is_left { DEADLINE } else { 0 })
}
