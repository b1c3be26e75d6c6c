//! From a call of a tool to an order for the engine, and back to a reply.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_job::notify::Notify;
use outlast_job::{Failure, Job, Send};
use serde_json::Value;

use crate::answer::Answer;
use crate::arguments::{Arguments, missing};
use crate::engine::kill::KillOrder;
use crate::engine::news::plural;
use crate::engine::read::ReadOrder;
use crate::engine::run::RunOrder;
use crate::engine::send::SendOrder;
use crate::engine::wait::WaitOrder;
use crate::engine::{Caller, Engine};
use crate::printed::budget;
use crate::profiles::{claude, codex, gemini};
use crate::tasks::Pending;
use crate::tools::LISTS;

/// The seeds' defaults.
const RUN_DELAY: Duration = Duration::from_secs(5);
const SEND_DELAY: Duration = Duration::from_secs(3);
const PATTERN_TIMEOUT: Duration = Duration::from_secs(30);
const GRACE: Duration = Duration::from_millis(200);

/// What goes back: words first, and the same as facts.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) facts: Value,
    /// What is still waited for, if the answer is to be asked for later.
    pub(crate) pending: Option<Pending>,
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        let facts = serde_json::to_value(&answer.facts).unwrap_or_default();
        Self { text: answer.text(), facts, pending: answer.pending }
    }
}

/// Does what a call asks for. It blocks, for as long as the engine lets it.
pub(crate) fn call(
    engine: &Engine,
    caller: &Caller,
    (tool, arguments): (&str, &Arguments),
) -> Result<Reply, Failure> {
    let reply = act(engine, caller, (tool, arguments))?;
    Ok(with_news(engine, caller, tool, reply))
}

/// The answer of a task, if it is known by now.
pub(crate) fn resume(engine: &Engine, caller: &Caller, pending: &Pending) -> Result<Option<Reply>, Failure> {
    let answer = engine.resume(caller, pending)?;
    Ok(answer.map(|answer| with_news(engine, caller, "tasks/get", answer.into())))
}

/// Adds that something happened elsewhere.
fn with_news(engine: &Engine, caller: &Caller, tool: &str, mut reply: Reply) -> Reply {
    let waiting = engine.news(caller).count();
    if waiting > 0 && !LISTS.contains(&tool) {
        reply.text.push_str(&format!("\nnote: {} waiting, jobs() shows what happened", plural(waiting)));
        reply.facts["events_waiting"] = waiting.into();
    }
    reply
}

fn act(engine: &Engine, caller: &Caller, (tool, arguments): (&str, &Arguments)) -> Result<Reply, Failure> {
    match tool {
        "run_shell_command" => run(engine, caller, arguments),
        "send_input" => send(engine, caller, arguments),
        "read_shell" => read_shell(engine, arguments),
        "read_output" => read_output(engine, caller, arguments),
        "wait_for" => wait_for(engine, caller, arguments),
        tool if LISTS.contains(&tool) => jobs(engine, caller, arguments),
        "kill" => kill(engine, caller, arguments),
        "write_to_shell" => gemini::write_to_shell(engine, caller, arguments),
        "read_background_output" => gemini::read_background_output(engine, caller, arguments),
        "exec_command" => codex::exec(engine, caller, arguments),
        "write_stdin" => codex::write(engine, caller, arguments),
        "Bash" => claude::run(engine, caller, arguments),
        "BashOutput" => claude::output(engine, caller, arguments),
        "KillShell" => claude::kill(engine, caller, arguments),
        other => Err(Failure::usage(format!("there is no tool {other:?}"))),
    }
}

/// What a call wants to do, for those who decide whether it may.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// Run a command in a folder, with variables of its own.
    Run { command: String, folder: Option<String>, env: BTreeMap<String, String> },
    /// Type into a job.
    Type { job: Job, send: Send },
    /// End a job, or send it a signal.
    End { job: Job },
    /// Only look.
    Look,
}

impl From<RunOrder> for Wanted {
    fn from(order: RunOrder) -> Self {
        Self::Run { command: order.command, folder: order.folder, env: order.env }
    }
}

/// What a call wants to do.
pub(crate) fn wanted(engine: &Engine, tool: &str, arguments: &Arguments) -> Result<Wanted, Failure> {
    let typed = |(job, send): (Job, Send)| Wanted::Type { job, send };
    match tool {
        "run_shell_command" => run_order(arguments).map(Wanted::from),
        "exec_command" => codex::exec_order(arguments).map(Wanted::from),
        "Bash" => claude::run_order(arguments).map(Wanted::from),
        "send_input" => input(engine, arguments).map(typed),
        "write_to_shell" => gemini::input(engine, arguments).map(typed),
        "write_stdin" => codex::input(engine, arguments).map(|input| input.map_or(Wanted::Look, typed)),
        "kill" => Ok(Wanted::End { job: handle(engine, arguments)? }),
        "KillShell" => Ok(Wanted::End { job: claude::job(engine, arguments, "shell_id")? }),
        _ => Ok(Wanted::Look),
    }
}

fn handle(engine: &Engine, arguments: &Arguments) -> Result<Job, Failure> {
    engine.job(&arguments.required("handle", "handle=\"3\" (jobs() lists them)")?)
}

fn bound(arguments: &Arguments) -> Result<usize, Failure> {
    Ok(budget(arguments.count("max_output_size")?))
}

/// How long to stay: with a pattern as long as that may take, else for the delay.
fn stay(arguments: &Arguments, pattern: bool, default: Duration) -> Result<Duration, Failure> {
    if pattern {
        return Ok(arguments.seconds("pattern_timeout")?.unwrap_or(PATTERN_TIMEOUT));
    }
    let delay = match arguments.seconds("wait_for_output_seconds")? {
        Some(wait) => Some(wait),
        None => arguments.seconds("ai_callback_delay")?,
    };
    Ok(delay.unwrap_or(default))
}

fn run(engine: &Engine, caller: &Caller, arguments: &Arguments) -> Result<Reply, Failure> {
    Ok(engine.run(caller, run_order(arguments)?)?.into())
}

fn run_order(arguments: &Arguments) -> Result<RunOrder, Failure> {
    let pattern = arguments.filled("ai_callback_pattern")?;
    let chosen = arguments.texts("notify")?;
    let mut notify = if chosen.is_empty() { None } else { Some(Notify::parse(&chosen)?) };
    if arguments.flag("stream_output")?.unwrap_or(false) {
        notify.get_or_insert_with(Notify::in_background).stream_lines();
    }
    Ok(RunOrder {
        command: arguments.required("command", "command=\"ls -l\"")?,
        description: arguments.filled("description")?,
        folder: arguments.filled("dir_path")?,
        env: arguments.pairs("env")?,
        name: arguments.filled("name")?,
        pty: arguments.flag("pty")?.unwrap_or(true),
        background: arguments.flag("is_background")?.unwrap_or(false),
        delay: stay(arguments, pattern.is_some(), RUN_DELAY)?,
        pattern,
        timeout: arguments.seconds("timeout")?.filter(|limit| !limit.is_zero()),
        inactivity_timeout: arguments.seconds("inactivity_timeout")?.filter(|limit| !limit.is_zero()),
        budget: bound(arguments)?,
        notify,
    })
}

fn send(engine: &Engine, caller: &Caller, arguments: &Arguments) -> Result<Reply, Failure> {
    let (job, send) = input(engine, arguments)?;
    let pattern = arguments.filled("ai_callback_pattern")?;
    let order = SendOrder {
        send,
        delay: stay(arguments, pattern.is_some(), SEND_DELAY)?,
        pattern,
        budget: bound(arguments)?,
    };
    Ok(engine.send(caller, &job, &order)?.into())
}

fn input(engine: &Engine, arguments: &Arguments) -> Result<(Job, Send), Failure> {
    let job = handle(engine, arguments)?;
    let (text, keys) = (arguments.text("input")?, arguments.texts("special_keys")?);
    let eof = arguments.flag("eof")?.unwrap_or(false);
    let newline = arguments.flag("append_newline")?;
    if text.is_none() && keys.is_empty() && !eof && newline != Some(true) {
        return Err(missing("input", "input=\"y\", or special_keys=[\"Enter\"]"));
    }
    let newline = newline.unwrap_or(text.is_some() && keys.is_empty());
    let paste = arguments.flag("paste")?;
    Ok((job, Send { text: text.unwrap_or_default(), newline, keys, eof, paste, ..Send::default() }))
}

fn read_shell(engine: &Engine, arguments: &Arguments) -> Result<Reply, Failure> {
    let job = gemini::job(engine, arguments)?;
    let above = arguments.count("scrollback")?.or(arguments.count("lines")?).unwrap_or(0);
    let above = usize::try_from(above).unwrap_or(usize::MAX).min(10_000);
    Ok(engine.screen(&job, above, bound(arguments)?)?.into())
}

fn read_output(engine: &Engine, caller: &Caller, arguments: &Arguments) -> Result<Reply, Failure> {
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
    Ok(engine.read(caller, &job, &order)?.into())
}

fn wait_for(engine: &Engine, caller: &Caller, arguments: &Arguments) -> Result<Reply, Failure> {
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
        budget: bound(arguments)?,
    };
    Ok(engine.wait_for(caller, &jobs, &order)?.into())
}

fn jobs(engine: &Engine, caller: &Caller, arguments: &Arguments) -> Result<Reply, Failure> {
    let list = engine.jobs(caller, arguments.flag("all")?.unwrap_or(false));
    let text = list.text(budget(None));
    Ok(Reply { text, facts: serde_json::to_value(&list).unwrap_or_default(), pending: None })
}

fn kill(engine: &Engine, caller: &Caller, arguments: &Arguments) -> Result<Reply, Failure> {
    let job = handle(engine, arguments)?;
    let order = KillOrder {
        signal: arguments.filled("signal")?,
        grace: arguments.seconds("grace_seconds")?.unwrap_or(GRACE),
        budget: bound(arguments)?,
    };
    Ok(engine.kill(caller, &job, &order)?.into())
}
