//! `outlast run`.

pub(super) mod in_shell;
mod mistakes;
mod place;

use std::io::IsTerminal;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use outlast_cli::{BoundsArgs, NetworkArg, RunArgs, SandboxBy};
use outlast_job::client::MAX_OUTPUT;
use outlast_job::lifecycle::{EndedBy, Receipt};
use outlast_job::limits::Limits;
use outlast_job::notify::Notify;
use outlast_job::request::JobRequest;
use outlast_job::sandbox::{By, Network, Sandbox};
use outlast_job::spec::deleted_folder;
use outlast_job::units::parse_processors;
use outlast_job::wakes::{Wake, WakePlan};
use outlast_job::wire::Attach;
use outlast_job::{
    Condition, Failure, Input, Job, JobSpec, Outlast, Reason, Run, Streams, Wait, Waited, check_wait, session,
};
use outlast_policy::{OrderKind, Pass, Start};
use outlast_protocol::wake::WakeEffect;
use outlast_protocol::{After, DetachKey, JobReport, Slot};

use crate::answer;
use crate::ask::CliGate;
use crate::choices;
use crate::last_job::reference;
use crate::live::{self, Left};
use crate::output::{DEADLINE, Output};
use crate::terminal;
use crate::viewer::{self, OwnTerminal, Seat, ShowFrom};

/// What a shell says of a command that Ctrl-Z has stopped: 128 + SIGTSTP.
pub(super) const STOPPED: i32 = 148;
/// How long `run` waits for what it was told to wait for, unless told otherwise.
const DEADLINE_OF_RUN: Duration = Duration::from_secs(30);

pub(super) fn run(outlast: &Outlast, args: RunArgs, out: &mut Output) -> Result<i32, Failure> {
    mistakes::check_options(&args)?;
    let places = match args.on.as_deref() {
        Some(on) => place::choose(outlast, on, args.slot.as_deref())?,
        None => Vec::new(),
    };
    let outlast = places.first().map_or(outlast, |place| &place.outlast);
    if let Some(name) = &args.shell {
        return in_shell::run(outlast, &args, name, out);
    }
    let wait = Wait::of(conditions(&args)).from(0);
    // A bad pattern is told before anything runs.
    check_wait(&wait)?;
    let mut spec = spec(&args)?;
    if let Some(run) = line_for_interpreter(outlast, &args, out)? {
        spec.run = run;
    }
    spec.check()?;
    if args.on.is_none()
        && args.after.is_empty()
        && args.after_any.is_empty()
        && let Some(mistake) = mistakes::of_program(&spec, &args)
    {
        out.failure(&mistake.failure);
        return Ok(mistake.code);
    }
    spec.guard = may_run(outlast, &args, &spec)?.guard_request();
    let wakes = outlast.wakes_of(&spec)?;
    let below = start_below_prompt(&mut spec, !args.background && !goes_on(&args) && !out.json);
    let job = place::start(outlast, &places, spec, &expected(&args, out))?;
    if !out.json
        && !args.quiet
        && args.on.is_none()
        && let Some(trouble) = outlast.unit_trouble_once()
    {
        out.talk(&format!("outlast: {trouble} (said once)"));
    }
    if args.background {
        return started(&job, wakes, out);
    }
    if goes_on(&args) {
        job.expect(answer::waited_asks(0, MAX_OUTPUT));
        let waited = job.wait(&wait, Some(args.deadline.unwrap_or(DEADLINE_OF_RUN)))?;
        let info = job.info_to_show()?;
        let code = match waited.reason {
            Reason::Exit => exit_code(&info.state),
            Reason::Deadline => DEADLINE,
            Reason::Pattern
            | Reason::AwaitingInput
            | Reason::Quiet
            | Reason::Stable
            | Reason::Port
            | Reason::Http
            | Reason::Output
            | Reason::Gone
            | Reason::Lines
            | Reason::Started => 0,
        };
        let mut answer = answer::waited((&job, &info), &waited, (0, MAX_OUTPUT))?;
        answer.wakes = wakes;
        if out.json {
            out.value(&answer);
        } else {
            out.data(answer.output.unwrap_or_default().as_bytes());
            out.talk(&summary(&job, &info, &waited));
        }
        return Ok(code);
    }
    if out.json {
        return answer_at_end(&job, out);
    }
    if !args.quiet
        && let Some(queued) = job.info()?.state.queued()
    {
        out.talk(&format!("outlast: job {} is queued: {}", job.handle(), queued.words()));
    }
    let front = Foreground {
        reads: !args.no_stdin,
        has_terminal: !args.pipe,
        quiet: args.quiet,
        started: below,
        detach_key: choices::detach_key(outlast, args.detach_key, out),
    };
    foreground(&job, &front, out)
}

/// What is asked of the job when it runs.
fn expected(args: &RunArgs, out: &Output) -> Vec<JobRequest> {
    match (args.background, out.json) {
        (true, true) => [vec![answer::RECORD], answer::report_asks()].concat(),
        (true, false) => vec![answer::RECORD],
        // Whether it is queued, and how to show it.
        (false, false) if !goes_on(args) => vec![answer::RECORD, answer::RECORD],
        (false, _) => Vec::new(),
    }
}

/// A line that another program than bash is to read. One plain word is a program, unless it was asked for with `--with`.
fn line_for_interpreter(outlast: &Outlast, args: &RunArgs, out: &mut Output) -> Result<Option<Run>, Failure> {
    let is_line = args.command.iter().all(|word| !word.chars().all(is_plain));
    if args.with.is_none() && (!is_line || args.on.is_some()) {
        return Ok(None);
    }
    choices::interpreter(outlast, args.with.as_deref(), &args.command, out)
}

/// What ends the wait.
fn conditions(args: &RunArgs) -> Vec<Condition> {
    [&[Condition::Exit], args.until.conditions()].concat()
}

/// Asks the policy, about the command and whatever else would be run for it.
fn may_run(outlast: &Outlast, args: &RunArgs, spec: &JobSpec) -> Result<Pass, Failure> {
    let gate = CliGate::open(outlast.home())?;
    let set = args.env.iter().filter_map(|setting| setting.split_once('='));
    let env = set.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let folder = match &spec.cwd {
        // A folder of another machine is judged there.
        Some(cwd) if args.on.is_none() => PathBuf::from(cwd),
        _ => std::env::current_dir().map_err(|_| deleted_folder())?,
    };
    let start =
        Start { run: &spec.run, folder: &folder, env: &env, fed: input(args) == Input::Given && is_fed() };
    let pass = gate.pass(OrderKind::Start(start))?;
    for wake in &args.wake {
        let Some(run) = WakeEffect::of(wake)?.as_command() else { continue };
        let _pass = gate.pass(OrderKind::Start(Start { run: &run, fed: false, ..start }))?;
    }
    Ok(pass)
}

/// Whether standard input is something that could feed a shell with commands.
pub(super) fn is_fed() -> bool {
    let null = std::fs::metadata("/dev/null").map(|null| null.rdev()).ok();
    let ours = rustix::fs::fstat(rustix::stdio::stdin()).ok();
    !std::io::stdin().is_terminal() && ours.is_some_and(|ours| Some(ours.st_rdev) != null)
}

/// What the job reads: in the foreground whatever we were given, to its end. A terminal is typed on.
fn input(args: &RunArgs) -> Input {
    if args.no_stdin || args.on.is_some() && !std::io::stdin().is_terminal() && !args.background && !is_fed()
    {
        Input::Nothing
    } else if args.tty || args.background || goes_on(args) || std::io::stdin().is_terminal() {
        Input::Typed
    } else {
        Input::Given
    }
}

/// Whether the caller comes back before the job has ended.
fn goes_on(args: &RunArgs) -> bool {
    !args.until.conditions().is_empty()
}

fn spec(args: &RunArgs) -> Result<JobSpec, Failure> {
    let run = match args.command.as_slice() {
        // One word is a program, and if there is none of that name the error says so; a line is for the
        // shell.
        [one] if !one.chars().all(is_plain) => Run::Shell(one.clone()),
        argv => Run::Program(argv.to_vec()),
    };
    let mut spec = JobSpec::new(run);
    if let (Some(cwd), Some(_)) = (&args.cwd, &args.on) {
        spec.cwd = Some(cwd.to_string_lossy().into_owned());
    } else if let Some(cwd) = &args.cwd {
        let cwd = std::path::absolute(cwd).map_err(|error| Failure::usage(format!("--cwd: {error}")))?;
        spec.cwd = Some(cwd.to_string_lossy().into_owned());
    }
    for setting in &args.env {
        match setting.split_once('=') {
            Some((name, value)) => spec.set_env(name, value),
            None => spec.unset_env(setting),
        }
    }
    spec.streams = if args.pipe {
        Streams::Pipes
    } else {
        let ours = terminal::size().filter(|_| std::io::stdout().is_terminal());
        Streams::Terminal(args.size.or(ours).unwrap_or_default())
    };
    spec.input = input(args);
    spec.name.clone_from(&args.name);
    spec.description.clone_from(&args.description);
    spec.timeout = args.timeout;
    spec.inactivity_timeout = args.inactivity_timeout;
    let foreground = !args.background && !goes_on(args);
    spec.notify = match args.notify.as_slice() {
        [] if foreground && args.wake.is_empty() => Some(Vec::new()),
        [] => None,
        chosen => Some(Notify::parse(chosen)?.into_conditions()),
    };
    let wakes = args.wake.iter().map(|wake| Ok(Wake::parse(wake)?.to_request()));
    spec.wakes = wakes.collect::<Result<_, Failure>>()?;
    spec.log_cap = args.log_cap;
    spec.slot = args.slot.as_ref().map(|name| Slot { or_refuse: args.if_free, ..Slot::new(name) });
    let after = |any_end| move |job: &String| After { job: job.clone(), any_end };
    spec.after = args.after.iter().map(after(false)).chain(args.after_any.iter().map(after(true))).collect();
    spec.sandbox = sandbox(&args.bounds)?;
    spec.limits = Limits {
        memory: args.bounds.memory,
        processes: args.bounds.processes,
        cpu_milli: args.bounds.cpu.map(parse_processors).transpose()?,
        cpu_time: args.bounds.cpu_time,
    };
    Ok(spec)
}

fn sandbox(args: &BoundsArgs) -> Result<Option<Sandbox>, Failure> {
    let Some(by) = args.sandbox else { return Ok(None) };
    // Named from where the caller is, which need not be where the job starts.
    let full = |paths: &[std::path::PathBuf]| -> Result<Vec<String>, Failure> {
        let full = |path: &std::path::PathBuf| {
            std::path::absolute(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
        };
        paths.iter().map(|path| Ok(full(path)?.to_string_lossy().into_owned())).collect()
    };
    Ok(Some(Sandbox {
        by: match by {
            SandboxBy::Kernel => By::Kernel,
            SandboxBy::Bwrap => By::Bwrap,
        },
        writable: full(&args.writable)?,
        readable: full(&args.readable)?,
        network: match args.network {
            None | Some(NetworkArg::Off) => Network::Off,
            Some(NetworkArg::Loopback) => Network::Loopback,
            Some(NetworkArg::Hosts) => Network::Hosts,
            Some(NetworkArg::On) => Network::On,
        },
        hosts: args.allow_host.clone(),
        unix_sockets: args.unix_sockets,
        roots: Vec::new(),
        protect: None,
        git: None,
    }))
}

/// What a shell would take for a single plain word.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "-_./+@%,:".contains(c)
}

pub(super) fn started(job: &Job, wakes: Vec<WakePlan>, out: &mut Output) -> Result<i32, Failure> {
    let info = job.info()?;
    if out.json {
        out.value(&JobReport { reason: Some(Reason::Started), wakes, ..answer::report(job, &info) });
    } else {
        let handle = job.handle();
        let name = reference(handle, info.name.as_deref());
        out.line_for_scripts(&handle.to_string());
        for wake in &wakes {
            let will = if wake.fires { "will wake" } else { "will NOT wake" };
            out.talk(&format!("{will} {} {}: {}", wake.kind, wake.target, wake.why));
        }
        let how = match info.state.queued() {
            Some(queued) => format!("is queued: {}", queued.words()),
            None => "runs".into(),
        };
        out.talk(&format!(
            "job {handle} {how}; follow it: outlast logs -f {name}   end it: outlast kill {name}"
        ));
    }
    Ok(0)
}

/// Waits for the end, or for a question that nobody here can answer; then says all that came.
pub(super) fn answer_at_end(job: &Job, out: &mut Output) -> Result<i32, Failure> {
    job.expect(answer::waited_asks(0, MAX_OUTPUT));
    let waited = job.wait(&Wait::for_exit().or(Condition::AwaitingInput), None)?;
    let info = job.info_to_show()?;
    let answer = answer::waited((job, &info), &waited, (0, MAX_OUTPUT))?;
    out.value(&answer);
    Ok(if waited.reason == Reason::Exit { exit_code(&info.state) } else { DEADLINE })
}

/// How a job is shown in the foreground.
#[derive(Debug)]
pub(super) struct Foreground {
    /// What comes on our standard input is for the job.
    pub(super) reads: bool,
    /// It runs on a terminal, not on pipes.
    pub(super) has_terminal: bool,
    /// Say nothing of our own.
    pub(super) quiet: bool,
    /// What is known of our terminal at the start.
    pub(super) started: OwnTerminal,
    /// The key that leaves it.
    pub(super) detach_key: DetachKey,
}

/// Where the cursor is, for a job that will write below it.
pub(super) fn start_below_prompt(spec: &mut JobSpec, in_front: bool) -> OwnTerminal {
    let own = terminal::size();
    let is_ours = in_front
        && spec.input == Input::Typed
        && std::io::stdin().is_terminal()
        && std::io::stdout().is_terminal()
        && matches!(spec.streams, Streams::Terminal(size) if Some(size) == own)
        && terminal::is_in_front();
    if !is_ours {
        return OwnTerminal::default();
    }
    let answer = terminal::ask_for_cursor();
    let inside = |size: outlast_job::Size, (row, col): (u16, u16)| row < size.rows && col < size.cols;
    let cursor = answer.cursor.filter(|cursor| own.is_some_and(|own| inside(own, *cursor)));
    spec.cursor_at_start = cursor.unwrap_or_default();
    OwnTerminal { cursor, answer_is_late: answer.asked && answer.cursor.is_none(), typed: answer.typed }
}

/// Shows a job until it ends or we have to leave; returns the exit code.
pub(super) fn foreground(job: &Job, front: &Foreground, out: &mut Output) -> Result<i32, Failure> {
    let handle = job.handle();
    let talkative = !front.quiet && std::io::stderr().is_terminal();
    let interactive = front.reads
        && front.has_terminal
        && std::io::stdin().is_terminal()
        && std::io::stdout().is_terminal()
        && terminal::is_in_front();
    let detach_key = front.detach_key;
    let greeting = (talkative && detach_key.is_some()).then(|| {
        format!("[job {handle}; {detach_key} leaves it running; back to it: outlast attach {handle}]")
    });
    let seat = Seat { attach: Attach { shared: true, ..Attach::default() }, detach_key, greeting };
    let left = if interactive {
        viewer::view(job, seat, ShowFrom::Start(front.started.clone()), out)?
    } else {
        let reads = front.reads && (!std::io::stdin().is_terminal() || terminal::is_in_front());
        match live::follow(job, reads, out)? {
            // It asks on its terminal, whatever its input is: as `sudo` does, and a pager.
            Left::Asked { shown, .. } if front.has_terminal && can_type_into_it() => {
                viewer::view(job, Seat { greeting: None, ..seat }, ShowFrom::Seen(shown), out)?
            }
            left @ (Left::Ended | Left::Asked { .. } | Left::Stopped | Left::Detached) => left,
        }
    };
    match left {
        Left::Ended => {
            let info = job.info_to_show()?;
            if let Some(receipt) = info.state.receipt()
                && (!receipt.left_behind.is_empty() || info.state.signal().is_some())
                && !is_known(receipt)
                && !front.quiet
            {
                out.talk(&format!("outlast: job {handle}: {}", answer::ending(receipt)));
            }
            if info.state.receipt().is_none() {
                out.talk(&format!("outlast: {}", answer::unseen_end(&info)));
            }
            Ok(exit_code(&info.state))
        }
        Left::Stopped => {
            out.talk(&format!(
                "outlast: job {handle} is stopped; go on with it: outlast attach {handle}   \
                 end it: outlast kill {handle}"
            ));
            Ok(STOPPED)
        }
        Left::Asked { prompt, .. } => {
            let at = answer::at_prompt(&prompt);
            out.talk(&format!(
                "outlast: job {handle} waits for input{at}; answer it: outlast send {handle} TEXT"
            ));
            Ok(DEADLINE)
        }
        Left::Detached => {
            out.talk(&format!(
                "outlast: job {handle} runs on; back to it: outlast attach {handle}   \
                 end it: outlast kill {handle}"
            ));
            // Nobody knows yet how it ends: what a script does next after a success must not begin.
            Ok(DEADLINE)
        }
    }
}

/// Whether a person sits at a terminal that shows what the job prints.
fn can_type_into_it() -> bool {
    std::io::stdout().is_terminal() && terminal::is_in_front()
}

/// What shells say nothing about either: a person who pressed Ctrl-C knows why it ended, and who left a pager does not want to know.
fn is_known(receipt: &Receipt) -> bool {
    let own = session::current();
    let ended_by_person =
        matches!(&receipt.ended_by, EndedBy::Key { session: Some(session), .. } if **session == *own);
    receipt.left_behind.is_empty() && (ended_by_person || matches!(receipt.ended_by, EndedBy::BrokenPipe))
}

/// The exit code that stands for how a job ended.
pub(super) fn exit_code(state: &outlast_job::lifecycle::State) -> i32 {
    if let Some(code) = state.exit_code() {
        return code;
    }
    match state.signal() {
        Some(name) => 128 + outlast_job::signal_number(name).unwrap_or(0),
        None => 1,
    }
}

fn summary(job: &Job, info: &outlast_job::registry::format::Info, waited: &Waited) -> String {
    let handle = job.handle();
    match (waited.reason, info.state.receipt()) {
        (_, Some(receipt)) => format!("job {handle} has ended: {}", answer::ending(receipt)),
        (_, None) if info.state.queued().is_some() => {
            let words = info.state.queued().map(outlast_protocol::Queued::words).unwrap_or_default();
            format!("the time is up; job {handle} is queued: {words}   wait on: outlast wait {handle}")
        }
        (Reason::Deadline, None) => {
            format!("the time is up; job {handle} runs on   wait on: outlast wait {handle} --pattern ...")
        }
        (Reason::AwaitingInput, None) => {
            format!("awaiting_input: job {handle} runs on; answer it: outlast send {handle} TEXT")
        }
        (reason, None) => {
            let which = waited.port.map(|port| format!(" {port}")).unwrap_or_default();
            format!(
                "{}{which}: job {handle} runs on; follow it: outlast logs -f {handle}   end it: outlast kill {handle}",
                reason.name()
            )
        }
    }
}
