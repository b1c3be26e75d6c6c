//! Codex's own names: `exec_command` and `write_stdin`.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_job::{Failure, Job, Send};

use crate::answer::Answer;
use crate::arguments::Arguments;
use crate::calls::Reply;
use crate::engine::run::RunOrder;
use crate::engine::send::SendOrder;
use crate::engine::wait::WaitOrder;
use crate::engine::{Caller, Engine};
use crate::printed::budget;
use crate::tools::{Definition, Effect, Field};

/// Codex counts tokens; four bytes each are what it assumes itself.
const BYTES_A_TOKEN: u64 = 4;
const DEFAULT_TOKENS: u64 = 10_000;
/// What these models expect when they say nothing.
const EXEC_YIELD: Duration = Duration::from_secs(10);
const WRITE_YIELD: Duration = Duration::from_millis(250);
const POLL_YIELD: Duration = Duration::from_secs(5);

/// Its two names for running and typing; the rest of the seven stays.
pub(crate) fn replace(seven: Vec<Definition>) -> Vec<Definition> {
    let mut tools = vec![exec_command(), write_stdin()];
    tools.extend(seven.into_iter().filter(|tool| !["run_shell_command", "send_input"].contains(&tool.name)));
    tools
}

fn exec_command() -> Definition {
    Definition {
        name: "exec_command",
        title: "Run a command",
        description: "Runs a command in a PTY, returning output or a session ID for ongoing interaction. A session outlasts \
            this server; its ID is also the handle for wait_for, read_output, read_shell and kill.",
        effect: Effect::Acts,
        fields: vec![
            Field::text("cmd", "Shell command to execute").required(),
            Field::text("workdir", "Folder to run in"),
            Field::flag("tty", "Default true; false: pipes"),
            Field::number("yield_time_ms", "How long to wait for output before yielding, default 10000"),
            Field::integer("max_output_tokens", "Default 10000"),
        ],
    }
}

fn write_stdin() -> Definition {
    Definition {
        name: "write_stdin",
        title: "Type into a session",
        description: "Writes characters to an existing exec session and returns recent output. Empty chars only wait.",
        effect: Effect::Acts,
        fields: vec![
            Field::integer("session_id", "As exec_command returned it").required(),
            Field::text("chars", "Characters to write, e.g. \"y\\n\" or \"\\u0003\""),
            Field::number("yield_time_ms", "Default 250; 5000 when chars is empty"),
            Field::integer("max_output_tokens", "Default 10000"),
        ],
    }
}

fn bytes(arguments: &Arguments) -> Result<usize, Failure> {
    let tokens = arguments.count("max_output_tokens")?.unwrap_or(DEFAULT_TOKENS);
    Ok(budget(Some(tokens.saturating_mul(BYTES_A_TOKEN))))
}

pub(crate) fn exec(engine: &Engine, caller: &Caller, arguments: &Arguments) -> Result<Reply, Failure> {
    Ok(reply(engine.run(caller, exec_order(arguments)?)?))
}

pub(crate) fn exec_order(arguments: &Arguments) -> Result<RunOrder, Failure> {
    Ok(RunOrder {
        command: arguments.required("cmd", "cmd=\"ls -l\"")?,
        description: arguments.filled("justification")?,
        folder: arguments.filled("workdir")?,
        env: BTreeMap::new(),
        name: None,
        pty: arguments.flag("tty")?.unwrap_or(true),
        background: false,
        delay: arguments.millis("yield_time_ms")?.unwrap_or(EXEC_YIELD),
        pattern: None,
        timeout: None,
        inactivity_timeout: None,
        budget: bytes(arguments)?,
        notify: None,
    })
}

/// What is typed, and into which job; nothing when the call only waits.
pub(crate) fn input(engine: &Engine, arguments: &Arguments) -> Result<Option<(Job, Send)>, Failure> {
    let job = engine.job(&arguments.required("session_id", "session_id=3")?)?;
    let text = arguments.text("chars")?.unwrap_or_default();
    Ok((!text.is_empty()).then(|| (job, Send { text, ..Send::default() })))
}

pub(crate) fn write(engine: &Engine, caller: &Caller, arguments: &Arguments) -> Result<Reply, Failure> {
    let asked = arguments.millis("yield_time_ms")?;
    let budget = bytes(arguments)?;
    let Some((job, send)) = input(engine, arguments)? else {
        let job = engine.job(&arguments.required("session_id", "session_id=3")?)?;
        let timeout = Some(asked.unwrap_or(POLL_YIELD));
        let order = WaitOrder {
            until: vec!["exit".into(), "awaiting_input".into()],
            timeout,
            budget,
            ..WaitOrder::default()
        };
        return Ok(reply(engine.wait_for(caller, &[job], &order)?));
    };
    let order = SendOrder { send, delay: asked.unwrap_or(WRITE_YIELD), pattern: None, budget };
    Ok(reply(engine.send(caller, &job, &order)?))
}

/// In the words that these models know.
fn reply(answer: Answer) -> Reply {
    let facts = &answer.facts;
    let wall = answer.elapsed_ms.unwrap_or(0);
    let state = match (facts.job.exit_code, &facts.job.signal) {
        (Some(code), _) => format!("Process exited with code {code}"),
        (None, Some(signal)) => format!("Process ended by {signal}"),
        (None, None) => format!("Process running with session ID {}", facts.job.handle),
    };
    let mut text = format!(
        "Wall time: {}.{:04} seconds\n{state}\nOutput:\n{}",
        wall / 1000,
        wall % 1000 * 10,
        facts.output
    );
    if let Some(screen) = &facts.screen {
        text.push_str(&screen.text);
    }
    // What these models expect to find out by polling.
    if facts.reason != Some("deadline")
        && let Some(why) = answer.why()
    {
        text.push_str(&format!("\n{why}"));
    }
    for note in &answer.notes {
        text.push_str(&format!("\nnote: {note}"));
    }
    if facts.awaiting_input.as_ref().is_some_and(|awaiting| awaiting.kind == "password")
        && let Some(next) = answer.next()
    {
        text.push_str(&format!("\nnext: {next}"));
    }
    let facts = serde_json::to_value(&answer.facts).unwrap_or_default();
    Reply { text, facts, pending: answer.pending }
}
