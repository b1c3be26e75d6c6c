//! Gemini CLI's own names: processes go by pid there.

use std::time::Duration;

use outlast_job::{Failure, Job, Send};
use outlast_policy::TypedInput;

use super::plain;
use crate::arguments::{Arguments, missing};
use crate::calls::{Call, CallOrder};
use crate::engine::Engine;
use crate::engine::read::ReadOrder;
use crate::engine::send::SendOrder;
use crate::printed::budget;
use crate::tools::{Answers, Definition, Effect, Field};

/// How long the screen may take to show what was typed.
const AFTER_INPUT: Duration = Duration::from_millis(150);
/// The keys that Gemini CLI's own tool knows. More are taken.
const KEYS: [&str; 15] = [
    "Enter",
    "Tab",
    "Up",
    "Down",
    "Left",
    "Right",
    "Escape",
    "Backspace",
    "Ctrl-C",
    "Ctrl-D",
    "Ctrl-Z",
    "Space",
    "Delete",
    "Home",
    "End",
];
/// What `read_background_output` returns.
const LINES: u64 = 100;
const READ_LIMIT: usize = 64 << 10;

fn pid() -> Field {
    Field::integer("pid", "The process's pid, as run_shell_command returned it").required()
}

/// The seven, and four more ways in.
pub(crate) fn extend(mut seven: Vec<Definition>) -> Vec<Definition> {
    if let Some(screen) = seven.iter_mut().find(|tool| tool.name == "read_shell") {
        screen.fields = vec![
            Field::integer("pid", "The process's pid, as run_shell_command returned it"),
            Field::text("handle", "Or the job's number or name"),
            Field::integer("lines", "Also this many lines above the screen"),
        ];
    }
    seven.extend([
        Definition {
            name: "write_to_shell",
            parse: parse_write,
            title: "Type into a process",
            description: "Sends input to a running process and returns its screen. Use it with TUI \
                applications, REPLs and interactive commands. Give input, special_keys, or both; no Enter \
                is added.",
            effect: Effect::Acts,
            answers: Answers::Job,
            fields: vec![
                pid(),
                Field::text("input", "Text to type, as it is"),
                Field::texts("special_keys", "Keys to press after it").each_of(KEYS.to_vec()),
            ],
            also: &[],
        },
        Definition {
            name: "read_background_output",
            parse: parse_read,
            title: "Read a process's output",
            description: "Reads the last lines that a background process printed.",
            effect: Effect::Reads,
            answers: Answers::Job,
            fields: vec![
                pid(),
                Field::integer("lines", "Default 100"),
                Field::integer("delay_ms", "Wait so long first"),
            ],
            also: &[],
        },
        Definition {
            name: "list_background_processes",
            parse: plain::jobs,
            title: "List processes",
            description: "Lists the background processes of this session.",
            effect: Effect::Reads,
            answers: Answers::List,
            fields: Vec::new(),
            also: &["all", "running", "before", "adopt"],
        },
    ]);
    seven
}

fn parse_write(engine: &Engine, arguments: &Arguments) -> Result<Call, Failure> {
    let job = job(engine, arguments)?;
    let send = Send {
        text: arguments.text("input")?.unwrap_or_default(),
        keys: arguments.texts("special_keys")?,
        ..Send::default()
    };
    if send.text.is_empty() && send.keys.is_empty() {
        return Err(Failure::usage("there is nothing to type").hint("give input, special_keys, or both"));
    }
    let input = TypedInput::new(send)?;
    let order = SendOrder { input, delay: AFTER_INPUT, pattern: None, budget: budget(None) };
    Ok(CallOrder::Send { job, order: Box::new(order), show_screen: true }.into())
}

fn parse_read(engine: &Engine, arguments: &Arguments) -> Result<Call, Failure> {
    let job = job(engine, arguments)?;
    let delay = arguments.millis("delay_ms")?.filter(|delay| !delay.is_zero());
    let tail = Some(arguments.count("lines")?.unwrap_or(LINES));
    let order = ReadOrder { tail, budget: READ_LIMIT, ..ReadOrder::default() };
    Ok(CallOrder::Read { job, order, delay }.into())
}

/// By pid, or by handle.
pub(crate) fn job(engine: &Engine, arguments: &Arguments) -> Result<Job, Failure> {
    match arguments.count("pid")? {
        Some(pid) => engine.job_of_pid(pid),
        None => match arguments.filled("handle")? {
            Some(handle) => engine.job(&handle),
            None => Err(missing("pid", "pid=4242")),
        },
    }
}
