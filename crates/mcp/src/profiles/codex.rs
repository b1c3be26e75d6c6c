//! Codex's own names: `exec_command` and `write_stdin`.

use std::time::Duration;

use outlast_job::{Failure, Reason, Send};
use outlast_policy::TypedInput;

use crate::answer::Answer;
use crate::arguments::Arguments;
use crate::calls::{Call, CallOrder, Wording};
use crate::engine::Engine;
use crate::engine::run::RunOrder;
use crate::engine::send::SendOrder;
use crate::engine::wait::WaitOrder;
use crate::printed::budget;
use crate::profiles::plain;
use crate::tools::{Answers, Definition, Effect, Field};

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
        parse: parse_exec,
        title: "Run a command",
        description: "Runs a command in a PTY, returning output or a session ID for ongoing interaction. A \
            session outlasts this server; its ID is also the handle for @wait_for, @read_output, \
            @read_shell and @kill.",
        effect: Effect::Acts,
        answers: Answers::Job,
        fields: vec![
            Field::text("cmd", "Shell command to execute").required(),
            Field::text("workdir", "Folder to run in"),
            Field::flag("tty", "Default true; false: pipes"),
            Field::text(
                "shell",
                "Run it as a step in this lasting shell, e.g. main: cd, export, source stay",
            ),
            Field::number("yield_time_ms", "How long to wait for output before yielding, default 10000"),
            Field::integer("max_output_tokens", "Default 10000"),
        ],
        also: &[],
    }
}

fn write_stdin() -> Definition {
    Definition {
        name: "write_stdin",
        parse: parse_write,
        title: "Type into a session",
        description: "Writes characters to an existing exec session and returns recent output. Empty chars \
            only wait.",
        effect: Effect::Acts,
        answers: Answers::Job,
        fields: vec![
            Field::integer("session_id", "As exec_command returned it").required(),
            Field::text("chars", "Characters to write, e.g. \"y\\n\" or \"\\u0003\""),
            Field::number("yield_time_ms", "Default 250; 5000 when chars is empty"),
            Field::integer("max_output_tokens", "Default 10000"),
        ],
        also: &[],
    }
}

fn bytes(arguments: &Arguments) -> Result<usize, Failure> {
    let tokens = arguments.count("max_output_tokens")?.unwrap_or(DEFAULT_TOKENS);
    Ok(budget(Some(tokens.saturating_mul(BYTES_A_TOKEN))))
}

fn codex(order: CallOrder) -> Call {
    Call { order, wording: Wording::Codex }
}

fn parse_exec(_: &Engine, arguments: &Arguments) -> Result<Call, Failure> {
    let command = arguments.required("cmd", "cmd=\"ls -l\"")?;
    let order = RunOrder {
        description: arguments.filled("justification")?,
        pty: arguments.flag("tty")?.unwrap_or(true),
        delay: arguments.millis("yield_time_ms")?.unwrap_or(EXEC_YIELD),
        budget: bytes(arguments)?,
        shell: plain::shell(arguments)?,
        ..RunOrder::new(command, arguments.filled("workdir")?)?
    };
    Ok(codex(CallOrder::Run(Box::new(order))))
}

/// Types; without characters it only waits.
fn parse_write(engine: &Engine, arguments: &Arguments) -> Result<Call, Failure> {
    let job = engine.job(&arguments.required("session_id", "session_id=3")?)?;
    let asked = arguments.millis("yield_time_ms")?;
    let (text, budget) = (arguments.text("chars")?.unwrap_or_default(), bytes(arguments)?);
    if text.is_empty() {
        let order = WaitOrder {
            until: vec!["exit".into(), "awaiting_input".into()],
            timeout: Some(asked.unwrap_or(POLL_YIELD)),
            budget,
            ..WaitOrder::default()
        };
        return Ok(codex(CallOrder::Wait { jobs: vec![job], order }));
    }
    let input = TypedInput::new(Send { text, ..Send::default() })?;
    let order = SendOrder { input, delay: asked.unwrap_or(WRITE_YIELD), pattern: None, budget };
    Ok(codex(CallOrder::Send { job, order: Box::new(order), show_screen: false }))
}

/// How the process is, in the words that these models know.
pub(crate) fn status(answer: &Answer) -> String {
    let job = &answer.facts.report.job;
    let state = match (job.exit_code, &job.signal) {
        (Some(code), _) => format!("Process exited with code {code}"),
        (None, Some(signal)) => format!("Process ended by {signal}"),
        (None, None) => format!("Process running with session ID {}", job.handle),
    };
    // What these models expect to find out by polling.
    match answer.facts.report.reason {
        Some(reason) if answer.is_live() && reason != Reason::Deadline => {
            format!("{state} · {}", answer.why())
        }
        _ => state,
    }
}
