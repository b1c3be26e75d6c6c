//! Sits between an editor and an agent: the agent gets our tools, the editor sees its jobs, and an idle agent
//! is prompted with what happened.
//!
//! ```text
//! editor ⇄ reader, queue ⇄ ┌──────────────┐ ⇄ reader, queue ⇄ agent ── outlast mcp (its own child)
//!                           │ one thread:  │
//! jobs' lines ─▶ editor     │ Sidecar      │◀── outboxes of its sessions, new jobs
//!                           └──────────────┘
//! ```
//!
//! One thread owns all conversations; the others only bring it lines and events. It never blocks on either
//! side: output is queued, and the threads that bring more wait while a queue is full. Lines that need no
//! change pass as the same bytes.

mod agent_streams;
mod around;
pub mod budget;
mod calls;
mod conversation;
mod jobs;
mod queue;
mod state;
mod event_text;
mod wire;

use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use around::{Around, Sides};
use budget::Limits;
use calls::{Calls, Recognised, without_tag};
use conversation::Conversation;
use jobs::Begin;
use outlast_job::outbox::follow::Changes;
use outlast_job::outbox::{Entry, Outbox};
use outlast_job::registry::Home;
use outlast_job::{EntryKind, Failure, Handle, Outlast, process_tree};
use queue::Queue;
use serde_json::json;
use state::{Saved, States};
use wire::{Message, OfSession, Update, add_to_list, first_text};

use crate::lines::{LineReader, exit_code, start_agent};
use crate::showing::{GEMINI_STREAM_MARK, NEW_LINES, STREAM_MARK};
use crate::shown::Shown;

/// How many lines and events may wait for the one thread.
const MAX_QUEUED_INPUTS: usize = 256;
/// How long an agent may take to exit after the editor has.
const AGENT_EXIT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the agent's own processes may take after that.
const DESCENDANT_EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// Filters a session's events to those that its agent has not seen yet in an answer of our tools.
pub type Unknown = dyn Fn(&Home, &str, Vec<Entry>) -> Vec<Entry> + Send + Sync;

/// A call of our tools that tells more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoreCall {
    /// Reads a job's output from an offset.
    ReadFrom(Handle, u64),
    /// Reads what is new of a job's output.
    ReadNew(Handle),
    /// Types into a job.
    Type(Handle),
    /// Reads a job's screen.
    Screen(Handle),
}

/// Writes a call in the words of the tools that the agent has.
pub type CallWords = dyn Fn(MoreCall) -> String + Send + Sync;

/// When and how to wake the agent.
pub struct Options {
    /// How often it may be woken.
    pub limits: Limits,
    /// The most bytes of text in one prompt.
    pub prompt_bytes: usize,
    /// How long events are gathered before a prompt.
    pub window: Duration,
    /// Which events wake it; empty means all.
    pub events: Vec<EntryKind>,
    /// Never wake.
    pub no_wake: bool,
    /// Do not show jobs.
    pub no_jobs: bool,
    /// The command of our MCP server, without its session.
    pub server: Vec<String>,
    /// Filters events to those that are new to the agent.
    pub unknown: Arc<Unknown>,
    /// How the agent's tools are called.
    pub words: Arc<CallWords>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Options {
    fn wakes(&self, event: EntryKind) -> bool {
        // An agent knows how it is itself.
        if event == EntryKind::Agent {
            return false;
        }
        // It only withdraws another event.
        if event == EntryKind::WentOn {
            return self.wakes(EntryKind::AwaitingInput);
        }
        self.events.is_empty() || self.events.contains(&event)
    }
}

/// The inputs of the one thread.
enum Input {
    Editor(Vec<u8>),
    EditorGone,
    Agent(Vec<u8>),
    AgentGone,
    /// The outbox of a session may have changed.
    Events(String),
    /// A job was started.
    Job(Handle),
}

/// A session that the editor has requested and the agent has not confirmed yet.
struct Opening {
    /// Its id, if the editor knows it.
    id: Option<String>,
    saved: Saved,
    /// The highest event in what the agent has replayed so far; `None` if it has replayed nothing.
    told: Option<u64>,
    /// The end of the last text, for a mark that is split over two updates.
    last_text: String,
    /// The agent's tool calls that it has replayed.
    calls: Calls,
    /// The editor knows what it was shown.
    resumed: bool,
}

/// A tool call of the agent that has ended.
struct EndedCall {
    session: String,
    recognised: Recognised,
    /// What the editor sees instead of the agent's own line.
    line: Option<Vec<u8>>,
}

struct Sidecar {
    outlast: Outlast,
    options: Options,
    sides: Sides,
    states: States,
    inputs: SyncSender<Input>,
    conversations: HashMap<String, Conversation>,
    /// By request id.
    opening: HashMap<String, Opening>,
    /// The editor shows terminals that it does not own.
    terminals: bool,
}

/// Runs an agent until it ends or the editor disconnects. Returns the agent's exit code.
///
/// # Errors
/// If the home cannot be used or the agent cannot be started.
pub fn run(outlast: Outlast, options: Options, command: &[String]) -> Result<i32, Failure> {
    let outlast = outlast.masked();
    let states = States::open(outlast.home(), command.first().map_or("", String::as_str))?;
    process_tree::adopt_orphans()?;
    let mut agent = start_agent(command, Stdio::inherit())?;
    process_tree::reap_orphans(agent.id());
    let sides = Sides { editor: Queue::default(), agent: Queue::default() };
    let (inputs, incoming) = sync_channel(MAX_QUEUED_INPUTS);
    if let (Some(stdin), Some(stdout)) = (agent.stdin.take(), agent.stdout.take()) {
        let to_agent = sides.agent.clone();
        std::thread::spawn(move || to_agent.write_to(stdin));
        read_lines(stdout, sides.editor.clone(), inputs.clone(), Input::Agent, Input::AgentGone);
    }
    read_lines(std::io::stdin(), sides.agent.clone(), inputs.clone(), Input::Editor, Input::EditorGone);
    let asked = inputs.clone();
    process_tree::on_end_signal(move || drop(asked.send(Input::EditorGone)))?;
    let to_editor = sides.editor.clone();
    let writer = std::thread::spawn(move || to_editor.write_to(std::io::stdout()));
    if !options.no_jobs {
        let tell = inputs.clone();
        jobs::watch(outlast.home(), move |handle| tell.send(Input::Job(handle)).is_ok())?;
    }
    let mut sidecar = Sidecar {
        outlast,
        options,
        sides,
        states,
        inputs,
        conversations: HashMap::new(),
        opening: HashMap::new(),
        terminals: false,
    };
    let editor_left = sidecar.serve(&incoming);
    if editor_left {
        sidecar.sides.agent.close();
        wait_for_agent(&incoming);
    }
    // An agent may have started processes, which are no longer needed.
    process_tree::end_all(if editor_left { DESCENDANT_EXIT_TIMEOUT } else { AGENT_EXIT_TIMEOUT });
    sidecar.sides.editor.close();
    if !editor_left {
        let _ = writer.join();
    }
    let status = agent.wait().map_err(|error| Failure::system("the agent's end can't be seen", error))?;
    Ok(exit_code(status))
}

/// Reads the lines of one side, while the queue to the other side has room.
fn read_lines(
    from: impl Read + Send + 'static,
    other_side: Queue,
    inputs: SyncSender<Input>,
    line: fn(Vec<u8>) -> Input,
    gone: Input,
) {
    std::thread::spawn(move || {
        let mut lines = LineReader::new(from);
        while let Some(bytes) = lines.next() {
            other_side.wait_for_room();
            if inputs.send(line(bytes)).is_err() {
                return;
            }
        }
        let _ = inputs.send(gone);
    });
}

/// After the editor has disconnected: gives the agent some time to finish.
fn wait_for_agent(incoming: &Receiver<Input>) {
    let until = Instant::now() + AGENT_EXIT_TIMEOUT;
    while let Ok(input) = incoming.recv_timeout(until.saturating_duration_since(Instant::now())) {
        if matches!(input, Input::AgentGone) {
            return;
        }
    }
}

impl Sidecar {
    /// Serves until one side disconnects. Returns true if that is the editor.
    fn serve(&mut self, incoming: &Receiver<Input>) -> bool {
        let mut wait = None;
        loop {
            let input = match wait {
                None => incoming.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(wait) => incoming.recv_timeout(wait),
            };
            match input {
                Ok(Input::Editor(line)) => self.on_editor_line(line),
                Ok(Input::Agent(line)) => self.on_agent_line(line),
                Ok(Input::Events(session)) => self.outbox_changed(&session),
                Ok(Input::Job(handle)) => self.job_started(handle),
                Ok(Input::EditorGone) => return true,
                Ok(Input::AgentGone) | Err(RecvTimeoutError::Disconnected) => return false,
                Err(RecvTimeoutError::Timeout) => {}
            }
            wait = self.wake();
        }
    }

    /// Wakes agents that may be woken. Returns when to try again.
    fn wake(&mut self) -> Option<Duration> {
        let around = Around::of(&self.outlast, &self.sides, &self.states, &self.options);
        self.conversations.values_mut().filter_map(|conversation| conversation.wake(&around)).min()
    }

    fn with(&mut self, session: &str, act: impl FnOnce(&mut Conversation, &Around<'_>)) {
        let around = Around::of(&self.outlast, &self.sides, &self.states, &self.options);
        if let Some(conversation) = self.conversations.get_mut(session) {
            act(conversation, &around);
        }
    }

    fn on_editor_line(&mut self, line: Vec<u8>) {
        let Ok(text) = std::str::from_utf8(&line) else { return self.sides.agent.push(line) };
        let Some(message) = Message::peek(text) else { return self.sides.agent.push(line) };
        let session = || message.params::<OfSession<'_>>().map(|of| of.session_id.into_owned());
        match (message.method.as_deref(), message.id()) {
            (Some("initialize"), _) => {
                let params = message.params::<serde_json::Value>().unwrap_or_default();
                self.terminals = params["clientCapabilities"]["_meta"]["terminal_output"] == true;
            }
            (Some("session/new" | "session/fork"), Some(id)) => return self.open(id, None, text, false),
            (Some("session/load"), Some(id)) => return self.open(id, session(), text, false),
            (Some("session/resume"), Some(id)) => return self.open(id, session(), text, true),
            (Some("session/prompt"), Some(id)) => {
                if let Some(session) = session().filter(|session| self.conversations.contains_key(session)) {
                    return self.prompted(&session, id, text);
                }
            }
            (Some("session/cancel"), _) => {
                let session = session().unwrap_or_default();
                self.with(&session, Conversation::cancel);
            }
            (Some("$/cancel_request"), _) if self.cancel_queued(&message) => return,
            (Some("session/close" | "session/delete"), _) => {
                if let Some(conversation) = self.conversations.remove(&session().unwrap_or_default()) {
                    conversation.close();
                }
            }
            _ => {}
        }
        self.sides.agent.push(line);
    }

    fn prompted(&mut self, session: &str, id: &str, text: &str) {
        let first = first_text(text).unwrap_or_default();
        match first.trim().strip_prefix("/outlast").filter(|words| words.is_empty() || words.starts_with(' '))
        {
            Some(words) => self.with(session, |conversation, around| conversation.command(id, words, around)),
            None => {
                self.with(session, |conversation, around| conversation.user_prompt(text.to_owned(), around))
            }
        }
    }

    /// Cancels a request that is still queued here.
    fn cancel_queued(&mut self, message: &Message<'_>) -> bool {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Back<'a> {
            #[serde(borrow)]
            request_id: &'a serde_json::value::RawValue,
        }
        let Some(back) = message.params::<Back<'_>>() else { return false };
        let around = Around::of(&self.outlast, &self.sides, &self.states, &self.options);
        self.conversations
            .values_mut()
            .any(|conversation| conversation.cancel_queued(back.request_id.get(), &around))
    }

    /// The editor opens a session: adds our tools to the request.
    fn open(&mut self, request: &str, id: Option<String>, text: &str, resumed: bool) {
        let saved = id.as_ref().and_then(|id| self.states.load(id)).filter(|saved| !saved.owner.is_empty());
        let fresh = || Saved { owner: format!("acp-sidecar-{:016x}", crate::random()), ..Saved::default() };
        let mut saved = saved.unwrap_or_else(fresh);
        if saved.key.is_empty() && !self.options.no_jobs {
            saved.key = format!("{:016x}{:016x}", crate::random(), crate::random());
        }
        let params =
            Message::peek(text).and_then(|message| message.params::<serde_json::Value>()).unwrap_or_default();
        let servers = params["mcpServers"].as_array();
        // The user may have configured our server already. That one does not know this conversation.
        let taken = servers.is_some_and(|servers| servers.iter().any(|server| server["name"] == "outlast"));
        let name = if taken { "outlast-sidecar" } else { "outlast" };
        let (program, arguments) =
            self.options.server.split_first().map_or(("outlast", &[][..]), |(p, a)| (p, a));
        let mut arguments: Vec<&str> =
            arguments.iter().map(String::as_str).chain(["--session", &saved.owner]).collect();
        if !self.options.no_jobs {
            arguments.extend(["--call-key", &saved.key]);
        }
        let server = json!({ "name": name, "command": program, "args": arguments, "env": [] });
        // If it cannot be added, the request passes unchanged: the session works without our tools.
        let line = add_to_list(text, "mcpServers", &server.to_string()).unwrap_or_else(|| text.to_owned());
        let calls = Calls::new(if self.options.no_jobs { "" } else { &saved.key });
        let opening = Opening { id, saved, told: None, last_text: String::new(), calls, resumed };
        self.opening.insert(request.to_owned(), opening);
        self.sides.agent.push(line.into_bytes());
    }

    fn on_agent_line(&mut self, line: Vec<u8>) {
        let Ok(text) = std::str::from_utf8(&line) else { return self.sides.editor.push(line) };
        let Some(message) = Message::peek(text) else { return self.sides.editor.push(line) };
        if message.method.as_deref() == Some("session/update") {
            self.updated(text, &message);
            let ended = self.tool_call_ended(text, &message);
            let changed = ended.as_ref().and_then(|ended| ended.line.clone());
            self.sides.editor.push(changed.unwrap_or(line));
            if let Some(ended) = ended
                && let Some(calls) = self.calls(&ended.session)
            {
                calls.told(&ended.recognised);
            }
            return;
        }
        if !message.is_response() {
            return self.sides.editor.push(line);
        }
        let around = Around::of(&self.outlast, &self.sides, &self.states, &self.options);
        let mut answered = None;
        for conversation in self.conversations.values_mut() {
            if let Some(ours) = conversation.answered(&message, &around) {
                answered = Some((conversation.id.clone(), ours));
                break;
            }
        }
        let opening = message.id().and_then(|id| self.opening.remove(id));
        let of = message.result::<OfSession<'_>>().map(|of| of.session_id.into_owned());
        let opened = opening.filter(|_| !message.is_error());
        if !matches!(answered, Some((_, true))) {
            self.sides.editor.push(line);
        }
        // This comes after the answer that caused it.
        if let Some(opening) = opened {
            self.opened(opening, of);
        }
        if let Some((session, _)) = answered {
            self.with(&session, |conversation, around| {
                conversation.next_prompt(around);
                conversation.look(around);
            });
        }
    }

    /// The agent has opened a session.
    fn opened(&mut self, opening: Opening, of: Option<String>) {
        let Some(id) = of.or(opening.id) else { return };
        let (owner, resumed) = (opening.saved.owner.clone(), opening.resumed);
        if let Some(conversation) = self.conversations.get_mut(&id).filter(|open| open.saved.owner == owner) {
            // It was open already, and continues to wait.
            conversation.show_again();
        } else {
            let Ok(outbox) = Outbox::open(self.outlast.home(), &owner) else { return };
            let shown = Shown::open(Arc::clone(&self.states.dir), &owner);
            let Opening { saved, told, calls, .. } = opening;
            let conversation = Conversation::open(id.clone(), saved, outbox, told, calls, shown);
            // Save at once: jobs may run before anything else is saved.
            self.states.save(&id, &conversation.saved);
            self.conversations.insert(id.clone(), conversation);
            self.watch_outbox(&id, &owner);
        }
        if resumed {
            self.go_on(&id);
        }
        let running =
            self.outlast.jobs().into_iter().filter(|info| info.session == owner && info.state.is_live());
        for info in running.collect::<Vec<_>>() {
            self.job_started(info.handle);
        }
    }

    /// Watches an outbox in a thread of its own, while the outbox exists.
    fn watch_outbox(&self, session: &str, owner: &str) {
        let home = self.outlast.home();
        let (Ok(outbox), Ok(changes)) = (Outbox::open(home, owner), Changes::new(home)) else { return };
        if changes.add(&outbox).is_err() {
            return;
        }
        let (session, tell) = (session.to_owned(), self.inputs.clone());
        std::thread::spawn(move || {
            while tell.send(Input::Events(session.clone())).is_ok() {
                changes.wait(None);
            }
        });
    }

    /// An outbox was changed or removed.
    fn outbox_changed(&mut self, session: &str) {
        let Some(conversation) = self.conversations.get_mut(session) else { return };
        let owner = conversation.saved.owner.clone();
        let home = self.outlast.home();
        if Outbox::existing(home, &owner).is_none()
            && let Ok(outbox) = Outbox::open(home, &owner)
        {
            conversation.reopen(outbox);
            self.watch_outbox(session, &owner);
        }
        self.with(session, Conversation::look);
    }

    /// Inspects an update of the agent. It passes in any case.
    fn updated(&mut self, text: &str, message: &Message<'_>) {
        let streams = text.contains("stream_output\"");
        let loading = self.opening.values().any(|opening| opening.id.is_some());
        let reacts = self.conversations.values().any(Conversation::awaits_reaction);
        if !streams && !loading && !reacts {
            return;
        }
        let Some(update) = message.params::<Update<'_>>() else { return };
        let session = update.session_id.as_ref();
        if let Some(opening) =
            self.opening.values_mut().find(|opening| opening.id.as_deref() == Some(session))
        {
            return opening.retold(&update);
        }
        let works =
            matches!(update.kind(), "agent_message_chunk" | "agent_thought_chunk" | "tool_call" | "plan");
        let meta = &update.update["_meta"];
        let stream = (meta[GEMINI_STREAM_MARK] == true || meta[STREAM_MARK] == true)
            .then(|| meta[NEW_LINES].as_str().map_or_else(|| update.text(), ToOwned::to_owned));
        let call = update.update["toolCallId"].as_str().unwrap_or_default().to_owned();
        self.with(session, |conversation, _| {
            if works {
                conversation.heard();
            }
            if let Some(lines) = stream.filter(|lines| !lines.trim().is_empty()) {
                conversation.note_stream(&call, &lines);
            }
        });
    }

    /// The tool calls of a session, also of one that is being opened.
    fn calls(&mut self, session: &str) -> Option<&mut Calls> {
        if let Some(conversation) = self.conversations.get_mut(session) {
            return Some(&mut conversation.calls);
        }
        let opening = self.opening.values_mut().find(|opening| opening.id.as_deref() == Some(session));
        opening.map(|opening| &mut opening.calls)
    }

    /// A tool call of the agent has ended. While the job that it has started goes on, the editor does not see that.
    fn tool_call_ended(&mut self, text: &str, message: &Message<'_>) -> Option<EndedCall> {
        if self.options.no_jobs || !text.contains("\"toolCallId\"") || text.contains("/stream_output\"") {
            return None;
        }
        let update = message.params::<Update<'_>>()?;
        if !matches!(update.update["status"].as_str(), Some("completed" | "failed")) {
            return None;
        }
        let session = update.session_id.into_owned();
        let outlast = self.outlast.clone();
        let lives = |job: Handle| {
            outlast.job(&job.to_string()).and_then(|job| job.info()).is_ok_and(|info| info.state.is_live())
        };
        let recognised = self.calls(&session)?.ended(&update.update, lives);
        let line = (recognised.hold || recognised.started.is_some()).then(|| {
            let mut message: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
            let update = &mut message["params"]["update"];
            if recognised.hold {
                update["status"] = "in_progress".into();
            }
            if let Some((_, tag)) = &recognised.started {
                without_tag(update, tag);
            }
            format!("{message}\n").into_bytes()
        });
        Some(EndedCall { session, recognised, line })
    }

    /// A job was started. If it belongs to one of our sessions, the editor sees it.
    fn job_started(&mut self, handle: Handle) {
        let Ok(job) = self.outlast.job(&handle.to_string()) else { return };
        let Ok(info) = job.info() else { return };
        let owned = |conversation: &&mut Conversation| conversation.saved.owner == info.session;
        let Some(conversation) = self.conversations.values_mut().find(owned) else { return };
        if self.options.no_jobs || conversation.followed.contains(&handle) {
            return;
        }
        conversation.followed.push(handle);
        let decision = conversation.calls.place(handle);
        jobs::follow(job, conversation.to_editor(&self.sides, self.terminals), Begin::Anew(decision));
    }

    /// The editor knows the calls of jobs that it has seen begin: they go on from where it was.
    fn go_on(&mut self, session: &str) {
        let Some(conversation) = self.conversations.get_mut(session).filter(|_| !self.options.no_jobs) else {
            return;
        };
        for (handle, place) in conversation.shown.open_calls() {
            if let Ok(job) = self.outlast.job(&handle.to_string()) {
                conversation.followed.push(handle);
                conversation.calls.held.hold(&place.call);
                jobs::follow(job, conversation.to_editor(&self.sides, self.terminals), Begin::GoOn(place));
            }
        }
    }
}

impl Opening {
    /// The agent replays a conversation: looks for the events that an earlier sidecar put into it.
    fn retold(&mut self, update: &Update<'_>) {
        if !matches!(update.kind(), "user_message_chunk" | "agent_message_chunk" | "tool_call") {
            return;
        }
        let before = self.told.unwrap_or(0);
        let mut text = std::mem::take(&mut self.last_text);
        if update.kind() == "user_message_chunk" {
            text.push_str(&update.text());
        }
        self.told = Some(event_text::told_in(&text, &self.saved.owner).unwrap_or(0).max(before));
        let from = text.floor_char_boundary(text.len().saturating_sub(200));
        self.last_text = text.split_off(from);
    }
}
