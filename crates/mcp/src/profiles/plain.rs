//! How the arguments of the seven tools become calls.

use std::time::Duration;

use outlast_job::notify::Notify;
use outlast_job::shell::ShellKind;
use outlast_job::{Failure, Job, Send};
use outlast_policy::TypedInput;

use super::gemini;
use crate::arguments::{Arguments, missing};
use crate::calls::{Call, CallOrder};
use crate::engine::Engine;
use crate::engine::in_shell::ShellOrder;
use crate::engine::jobs::ListOrder;
use crate::engine::kill::KillOrder;
use crate::engine::read::ReadOrder;
use crate::engine::run::{RunOrder, SecondStart};
use crate::engine::send::SendOrder;
use crate::engine::wait::{WaitOrder, WaitOutput};
use crate::printed::budget;

/// How long a call stays when it does not say so.
const RUN_DELAY: Duration = Duration::from_secs(5);
const SEND_DELAY: Duration = Duration::from_secs(3);
const PATTERN_TIMEOUT: Duration = Duration::from_secs(30);
/// How many lines above the screen can be asked for.
const MAX_SCROLLBACK: u64 = 10_000;

fn handle(engine: &Engine, arguments: &Arguments) -> Result<Job, Failure> {
    match arguments.count("pid")? {
        Some(pid) => engine.job_of_pid(pid),
        None => engine.job(&arguments.required("handle", "handle=\"3\" (jobs() lists them)")?),
    }
}

fn bound(arguments: &Arguments) -> Result<usize, Failure> {
    Ok(budget(arguments.count("max_output_size")?))
}

/// How long to stay: with a pattern as long as that may take, else for the delay.
fn stay(arguments: &Arguments, pattern: bool, default: Duration) -> Result<Duration, Failure> {
    if pattern {
        return Ok(arguments.seconds("pattern_timeout")?.unwrap_or(PATTERN_TIMEOUT));
    }
    // `timeout` is how long a call waits, in every tool: what ends a job is called `kill_after`.
    for name in ["ai_callback_delay", "wait_for_output_seconds", "timeout"] {
        if let Some(delay) = arguments.seconds(name)? {
            return Ok(delay);
        }
    }
    Ok(default)
}

pub(crate) fn run(_: &Engine, arguments: &Arguments) -> Result<Call, Failure> {
    let pattern = arguments.filled("ai_callback_pattern")?;
    let chosen = arguments.texts("notify")?;
    let mut notify = if chosen.is_empty() { None } else { Some(Notify::parse(&chosen)?) };
    if arguments.flag("stream_output")?.unwrap_or(false) {
        notify.get_or_insert_with(Notify::in_background).stream_lines();
    }
    let command = arguments.required("command", "command=\"ls -l\"")?;
    let order = RunOrder {
        description: arguments.filled("description")?,
        env: arguments.pairs("env")?,
        name: arguments.filled("name")?,
        pty: arguments.flag("pty")?.unwrap_or(true),
        background: arguments.flag("is_background")?.unwrap_or(false),
        delay: stay(arguments, pattern.is_some(), RUN_DELAY)?,
        pattern,
        timeout: arguments.seconds("kill_after")?.filter(|limit| !limit.is_zero()),
        inactivity_timeout: quiet_limit(arguments)?.filter(|limit| !limit.is_zero()),
        second: if arguments.flag("again")?.unwrap_or(false) {
            SecondStart::Wanted
        } else {
            SecondStart::Refused
        },
        budget: bound(arguments)?,
        notify,
        shell: shell(arguments)?,
        slot: arguments.filled("slot")?,
        after: arguments.texts("after")?,
        ..RunOrder::new(command, arguments.filled("dir_path")?)?
    };
    let order = order.on_host(arguments.filled("host")?, arguments.filled("dir_path")?)?;
    Ok(CallOrder::Run(Box::new(order)).into())
}

/// The shell that a command is for.
pub(crate) fn shell(arguments: &Arguments) -> Result<Option<ShellOrder>, Failure> {
    let rc = arguments.flag("rc")?.unwrap_or(false);
    let if_idle = arguments.flag("if_idle")?.unwrap_or(false);
    let with = arguments.filled("with")?.map(|kind| kind.parse()).transpose()?;
    let kind = with.unwrap_or(ShellKind::Bash);
    Ok(arguments.filled("shell")?.map(|name| ShellOrder { name, rc, with, kind, begins_in: None, if_idle }))
}

/// How long it may print nothing, by either name.
fn quiet_limit(arguments: &Arguments) -> Result<Option<Duration>, Failure> {
    let limit = arguments.seconds("kill_after_quiet")?;
    if limit.is_some() { Ok(limit) } else { arguments.seconds("inactivity_timeout") }
}

pub(crate) fn send(engine: &Engine, arguments: &Arguments) -> Result<Call, Failure> {
    let job = handle(engine, arguments)?;
    let (text, keys) = (arguments.text("input")?, arguments.texts("special_keys")?);
    let eof = arguments.flag("eof")?.unwrap_or(false);
    let newline = arguments.flag("append_newline")?;
    if text.is_none() && keys.is_empty() && !eof && newline != Some(true) {
        return Err(missing("input", "input=\"y\", or special_keys=[\"Enter\"]"));
    }
    let newline = newline.unwrap_or(text.is_some() && keys.is_empty());
    let paste = arguments.flag("paste")?;
    let send = Send { text: text.unwrap_or_default(), newline, keys, eof, paste, ..Send::default() };
    let pattern = arguments.filled("ai_callback_pattern")?;
    let order = SendOrder {
        input: TypedInput::new(send)?,
        delay: stay(arguments, pattern.is_some(), SEND_DELAY)?,
        pattern,
        budget: bound(arguments)?,
    };
    Ok(CallOrder::Send { job, order: Box::new(order), show_screen: false }.into())
}

pub(crate) fn read_shell(engine: &Engine, arguments: &Arguments) -> Result<Call, Failure> {
    let job = gemini::job(engine, arguments)?;
    let above = arguments.count("scrollback")?.or(arguments.count("lines")?).unwrap_or(0);
    let scrollback = usize::try_from(above.min(MAX_SCROLLBACK)).unwrap_or(0);
    Ok(CallOrder::Screen { job, scrollback, budget: bound(arguments)? }.into())
}

pub(crate) fn read_output(engine: &Engine, arguments: &Arguments) -> Result<Call, Failure> {
    let job = handle(engine, arguments)?;
    let order = ReadOrder {
        offset: arguments.count("offset")?,
        until: arguments.count("until")?,
        head: arguments.count("head")?,
        tail: arguments.count("tail")?,
        pattern: arguments.filled("pattern")?,
        raw: arguments.flag("raw")?.unwrap_or(false),
        stderr: arguments.flag("stderr")?.unwrap_or(false),
        budget: bound(arguments)?,
    };
    Ok(CallOrder::Read { job, order, delay: None }.into())
}

pub(crate) fn wait_for(engine: &Engine, arguments: &Arguments) -> Result<Call, Failure> {
    let mut names = arguments.texts("handles")?;
    if let Some(one) = arguments.filled("handle")?
        && !names.contains(&one)
    {
        names.insert(0, one);
    }
    let jobs = names.iter().map(|name| engine.job(name)).collect::<Result<Vec<_>, _>>()?;
    let order = WaitOrder {
        until: arguments.texts("until")?,
        pattern: arguments.filled("pattern")?,
        quiet: arguments.seconds("quiet_seconds")?,
        stable_checks: arguments.count("stable_checks")?,
        port: arguments.port("port")?,
        offset: arguments.count("offset")?,
        timeout: arguments.seconds("timeout")?,
        output: arguments.choice("output", &WaitOutput::NAMED)?.unwrap_or_default(),
        budget: bound(arguments)?,
    };
    Ok(CallOrder::Wait { jobs, order }.into())
}

pub(crate) fn jobs(_: &Engine, arguments: &Arguments) -> Result<Call, Failure> {
    let order = ListOrder {
        all: arguments.flag("all")?.unwrap_or(false),
        running: arguments.flag("running")?.unwrap_or(false),
        before: arguments.count("before")?,
        adopt: arguments.flag("adopt")?.unwrap_or(false),
    };
    Ok(CallOrder::List(order).into())
}

pub(crate) fn kill(engine: &Engine, arguments: &Arguments) -> Result<Call, Failure> {
    let job = handle(engine, arguments)?;
    let order = KillOrder {
        signal: arguments.filled("signal")?,
        grace: arguments.seconds("grace_seconds")?.unwrap_or(engine.outlast.settings().kill.grace),
        budget: bound(arguments)?,
    };
    Ok(CallOrder::Kill { job, order }.into())
}
