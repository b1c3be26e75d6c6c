//! One turn: what a prompt asks for is done, and the client is told when there is nothing more to wait for.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{ContentBlock, EmbeddedResourceResource, PromptResponse, StopReason};
use outlast_job::request::{Lines, ReadText, Text};
use outlast_job::system::Bell;
use outlast_job::{Condition, Failure, Job, JobSpec, Reason, Send, Wait, Waited, wait_any};
use outlast_policy::{OrderKind, Start, TypedInput};

use super::commands::{self, Part, Prompt};
use super::permission::pass;
use super::{Client, lock, streams};
use crate::showing::{ending, visible};

/// How long an answer to typed input is waited for.
const REPLY: Duration = Duration::from_secs(3);
/// How much output goes into a message.
const OUTPUT: usize = 8 << 10;

/// A turn that runs.
#[derive(Debug)]
pub(super) struct Turn {
    cancelled: AtomicBool,
    /// Becomes readable when the turn is cancelled.
    bell: Option<Bell>,
}

impl Turn {
    fn new() -> Self {
        let bell = Bell::new().ok();
        Self { cancelled: AtomicBool::new(false), bell }
    }

    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }

    fn wait(&self, job: &Job, wait: &Wait, limit: Option<Duration>) -> Result<Waited, Failure> {
        let cancel = self.bell.as_ref().map(AsFd::as_fd);
        wait_any(&[(job, wait.clone())], limit, cancel).map(|(_, waited)| waited)
    }
}

/// Begins a turn in a thread of its own.
pub(super) fn begin(client: Client, prompt: &[ContentBlock], responder: Responder<PromptResponse>) {
    let text = text_of(prompt);
    let told = prompt
        .iter()
        .any(|block| matches!(block, ContentBlock::Text(text) if text.text.starts_with(crate::EVENTS_MARK)));
    let turn = Arc::new(Turn::new());
    lock(&client.session.turns).push(Arc::clone(&turn));
    std::thread::spawn(move || {
        // A prompt of nothing but news is taken note of.
        let only_news = text.is_empty() && told;
        if !only_news
            && let Err(failure) = Prompt::parse(&text).and_then(|prompt| obey(&client, &turn, prompt))
        {
            client.say(commands::failure_text(&failure));
        }
        lock(&client.session.turns).retain(|other| !Arc::ptr_eq(other, &turn));
        let cancelled = turn.cancelled.load(Ordering::SeqCst);
        let reason = if cancelled { StopReason::Cancelled } else { StopReason::EndTurn };
        let _ = responder.respond(PromptResponse::new(reason));
    });
}

/// The words of a prompt; what an editor attaches to them comes in its own place. What a sidecar has to tell
/// is not a command.
fn text_of(prompt: &[ContentBlock]) -> String {
    let words = prompt.iter().filter_map(|block| match block {
        ContentBlock::Text(text) if text.text.starts_with(crate::EVENTS_MARK) => None,
        ContentBlock::Text(text) => Some(text.text.clone()),
        ContentBlock::ResourceLink(link) => {
            Some(link.uri.strip_prefix("file://").unwrap_or(&link.uri).to_owned())
        }
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::TextResourceContents(text) => Some(text.text.clone()),
            _ => None,
        },
        _ => None,
    });
    words.collect::<Vec<_>>().join("")
}

/// Has what a prompt asks for judged, and does it.
fn obey(client: &Client, turn: &Turn, prompt: Prompt) -> Result<(), Failure> {
    let find = |job: &str| client.shared.outlast.job(job);
    match prompt {
        Prompt::Run { line, background } => run(client, turn, &line, background),
        Prompt::Send { job, text } => {
            reply(client, turn, &find(&job)?, Send { text, newline: true, ..Send::default() })
        }
        Prompt::Keys { job, keys } => reply(client, turn, &find(&job)?, Send { keys, ..Send::default() }),
        Prompt::Jobs { all } => {
            let _pass = pass(client, OrderKind::List)?;
            client.say(list(client, all));
            Ok(())
        }
        Prompt::Read { job, part } => {
            let job = find(&job)?;
            let _pass = pass(client, OrderKind::Read)?;
            let mut order = ReadText { max: OUTPUT, ..ReadText::default() };
            match part {
                Part::All => {}
                Part::Last(lines) => order.lines = Some(Lines::Last(lines)),
                Part::Bytes(from, to) => (order.from, order.to) = (from, Some(to)),
            }
            let text = job.read(order)?;
            client.say(fenced(&joined(&job, &text)));
            Ok(())
        }
        Prompt::Wait { job, limit } => wait(client, turn, &find(&job)?, limit),
        Prompt::Kill { job } => {
            let job = find(&job)?;
            let _pass = pass(client, OrderKind::Kill { job: &job, force: false })?;
            let killed = job.kill(client.shared.outlast.settings().kill.grace, &client.owner)?;
            let how = if killed.already_ended { "had already ended" } else { "has ended" };
            client.say(format!("Job {} {how}: {}\n", job.handle(), ending(&job.info_to_show()?.state)));
            Ok(())
        }
    }
}

/// Runs a command: the turn lasts until it has ended, asks for input or listens on a port; the job lasts on.
fn run(client: &Client, turn: &Turn, line: &str, background: bool) -> Result<(), Failure> {
    let mut spec = JobSpec::shell(line);
    let folder = client.session.folder.clone();
    spec.cwd = Some(folder.to_string_lossy().into_owned());
    spec.session.clone_from(&client.owner);
    spec.for_agent = true;
    let env = BTreeMap::new();
    let start = Start { run: &spec.run, folder: &folder, env: &env, fed: false };
    spec.guard = pass(client, OrderKind::Start(start))?.guard_request();
    let job = client.shared.outlast.start(spec)?;
    let handle = job.handle();
    let info = job.info()?;
    let streaming = streams::show(client, client.shared.outlast.job(&handle.to_string())?, &info, background);
    if background {
        client.say(format!("Job {handle} runs in the background. End it: /kill {handle}\n"));
        return Ok(());
    }
    let until = Wait::for_exit().or(Condition::AwaitingInput).or(Condition::Port(None)).from(0);
    let waited = turn.wait(&job, &until, None).inspect_err(|_| streaming.to_background())?;
    if waited.reason == Reason::Exit {
        // Its last line and its end come before the end of the turn.
        streaming.join();
    } else {
        streaming.to_background();
    }
    report(client, &job, &waited)
}

/// Says how a wait on a job came out.
fn report(client: &Client, job: &Job, waited: &Waited) -> Result<(), Failure> {
    let handle = job.handle();
    client.say(match (waited.reason, &waited.awaiting_input, waited.port) {
        (Reason::Exit, ..) => format!("Job {handle} has ended: {}\n", ending(&job.info_to_show()?.state)),
        (Reason::AwaitingInput, Some(awaiting), _) => format!(
            "Job {handle} waits for input ({}) at {:?}. Answer it: /send {handle} TEXT\n",
            awaiting.kind,
            visible(&awaiting.prompt)
        ),
        (Reason::Port, _, Some(port)) => {
            format!("Job {handle} listens on port {port} and runs on. End it: /kill {handle}\n")
        }
        (
            Reason::Pattern
            | Reason::AwaitingInput
            | Reason::Quiet
            | Reason::Stable
            | Reason::Port
            | Reason::Http
            | Reason::Output
            | Reason::Gone
            | Reason::Lines
            | Reason::Deadline
            | Reason::Started,
            ..,
        ) => format!("Job {handle} runs on. Wait for it: /wait {handle}   End it: /kill {handle}\n"),
    });
    Ok(())
}

/// Types, and shows what the program says to it.
fn reply(client: &Client, turn: &Turn, job: &Job, send: Send) -> Result<(), Failure> {
    let input = TypedInput::new(send)?;
    let pass = pass(client, OrderKind::Send { job, input: &input })?;
    let sent =
        job.send(&Send { session: Some(client.owner.clone()), ..input.passed(&pass).into_owned() }, None)?;
    let until = Wait::for_exit().or(Condition::AwaitingInput).from(sent.offset);
    let waited = turn.wait(job, &until, Some(REPLY))?;
    let text = joined(job, &job.read_text(sent.offset, OUTPUT)?);
    if !text.trim().is_empty() {
        client.say(fenced(&text));
    }
    if waited.reason == Reason::Exit { report(client, job, &waited) } else { Ok(()) }
}

fn wait(client: &Client, turn: &Turn, job: &Job, limit: Option<Duration>) -> Result<(), Failure> {
    let _pass = pass(client, OrderKind::Wait)?;
    let until = Wait::for_exit().or(Condition::AwaitingInput);
    let waited = turn.wait(job, &until, limit)?;
    report(client, job, &waited)
}

fn list(client: &Client, all: bool) -> String {
    let mut jobs = client.shared.outlast.jobs();
    jobs.retain(|info| all || info.session == client.owner);
    if jobs.is_empty() {
        return "No jobs.\n".into();
    }
    let line = |info: &outlast_job::registry::format::Info| {
        let name = info.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        let state = if info.state.is_live() { "running".into() } else { ending(&info.state) };
        format!("{}{name}: {state}: {}", info.handle, crate::showing::one_line(&info.command))
    };
    fenced(&jobs.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Text of a job, marked as such.
fn fenced(text: &str) -> String {
    let text = visible(text);
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}\n{}\n{fence}\n", text.trim_end())
}

/// Text with the call that reads what is left out of it.
pub(super) fn joined(job: &Job, text: &Text) -> String {
    let handle = job.handle();
    text.joined(|from, to| format!("/read {handle} {from}-{to}"))
}
