//! Claude Code's own names: `Bash`, `BashOutput` and `KillShell`.

use std::time::Duration;

use outlast_job::{Failure, Job};

use crate::arguments::Arguments;
use crate::calls::{Call, CallOrder};
use crate::engine::Engine;
use crate::engine::kill::KillOrder;
use crate::engine::read::ReadOrder;
use crate::engine::run::RunOrder;
use crate::printed::budget;
use crate::profiles::plain;
use crate::tools::{Answers, Definition, Effect, Field};

/// What these models expect when they say nothing.
const TIMEOUT: Duration = Duration::from_secs(120);
/// As much as its own tool shows.
const OUTPUT: u64 = 30_000;

/// Its three names; the rest of the seven stays.
pub(crate) fn replace(seven: Vec<Definition>) -> Vec<Definition> {
    let mut tools = vec![bash(), bash_output(), kill_shell()];
    let replaced = ["run_shell_command", "read_output", "kill"];
    tools.extend(seven.into_iter().filter(|tool| !replaced.contains(&tool.name)));
    tools
}

fn bash() -> Definition {
    Definition {
        name: "Bash",
        parse: parse_bash,
        title: "Run a command",
        description: "Executes a bash command in a terminal. One that runs longer than the timeout, waits \
            for input or opens a port goes on in the background as a shell: its id is the handle for \
            @read_output, @send_input, @wait_for, @read_shell and @kill. It outlasts this server.",
        effect: Effect::Acts,
        answers: Answers::Job,
        fields: vec![
            Field::text("command", "The command to execute").required(),
            Field::number(
                "timeout",
                "Milliseconds to stay with it, default 120000; a call is cut at 50 s, the command is not",
            ),
            Field::text("description", "What this command does in 5-10 words"),
            Field::flag("run_in_background", "Return at once"),
            Field::text(
                "shell",
                "Run it as a step in this lasting shell, e.g. main: cd, export, source stay",
            ),
        ],
        also: &[],
    }
}

fn bash_output() -> Definition {
    Definition {
        name: "BashOutput",
        parse: parse_output,
        title: "Read a shell's output",
        description: "Returns what a background shell printed since the last look, or from byte offset to \
            byte until, and its state.",
        effect: Effect::Reads,
        answers: Answers::Job,
        fields: vec![
            Field::text("bash_id", "The shell's id").required(),
            Field::text("filter", "Regex: only lines that match"),
            Field::integer("offset", "From this byte of the output; 0 for all"),
            Field::integer("until", "Up to this byte"),
            Field::flag("stderr", "What came on stderr, of a job on pipes"),
        ],
        also: &[],
    }
}

fn kill_shell() -> Definition {
    Definition {
        name: "KillShell",
        parse: parse_kill,
        title: "End a shell",
        description: "Ends a background shell and everything it started.",
        effect: Effect::Ends,
        answers: Answers::Job,
        fields: vec![Field::text("shell_id", "The shell's id").required()],
        also: &[],
    }
}

fn parse_bash(_: &Engine, arguments: &Arguments) -> Result<Call, Failure> {
    let command = arguments.required("command", "command=\"ls -l\"")?;
    let order = RunOrder {
        description: arguments.filled("description")?,
        background: arguments.flag("run_in_background")?.unwrap_or(false),
        delay: arguments.millis("timeout")?.unwrap_or(TIMEOUT),
        budget: budget(Some(OUTPUT)),
        shell: plain::shell(arguments)?,
        ..RunOrder::new(command, None)?
    };
    Ok(CallOrder::Run(Box::new(order)).into())
}

/// A shell by its id.
fn job(engine: &Engine, arguments: &Arguments, name: &str) -> Result<Job, Failure> {
    engine.job(&arguments.required(name, &format!("{name}=\"3\""))?)
}

fn parse_output(engine: &Engine, arguments: &Arguments) -> Result<Call, Failure> {
    let job = job(engine, arguments, "bash_id")?;
    let order = ReadOrder {
        pattern: arguments.filled("filter")?,
        offset: arguments.count("offset")?,
        until: arguments.count("until")?,
        stderr: arguments.flag("stderr")?.unwrap_or(false),
        budget: budget(Some(OUTPUT)),
        ..ReadOrder::default()
    };
    Ok(CallOrder::Read { job, order, delay: None }.into())
}

fn parse_kill(engine: &Engine, arguments: &Arguments) -> Result<Call, Failure> {
    let job = job(engine, arguments, "shell_id")?;
    let grace = engine.outlast.settings().kill.grace;
    let order = KillOrder { signal: None, grace, budget: budget(None) };
    Ok(CallOrder::Kill { job, order }.into())
}
