//! One session between an editor and its agent: which prompt is in flight, which prompts wait, and which
//! events the agent does not know yet.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outlast_job::clock::now_ms;
use outlast_job::outbox::reader::{Reader, acknowledge};
use outlast_job::outbox::{Entry, Outbox};
use outlast_job::registry::Home;
use outlast_job::{EntryKind, Handle, Outlast};
use serde_json::json;

use super::Options;
use super::budget;
use super::event_text;
use super::queue::Queue;
use super::state::{Saved, States};
use super::wire::{Message, add_to_list};

/// Our reader's name in an outbox.
const READER: &str = "acp-sidecar";
/// The name of our MCP server's reader.
const TOOLS: &str = "mcp";
/// The most events that are read for one prompt; more wait for the next.
const MAX_EVENTS_PER_PROMPT: usize = 20_000;

/// The queues to both sides.
#[derive(Clone, Debug)]
pub(crate) struct Sides {
    pub(crate) editor: Queue,
    pub(crate) agent: Queue,
}

/// A prompt that the agent is working on.
#[derive(Debug)]
struct Flight {
    /// Its id as it is on the wire.
    id: String,
    ours: bool,
    /// It contains all events up to this number.
    delivering: Option<u64>,
}

/// Why the agent is not woken until the user's next prompt.
#[derive(Debug, PartialEq, Eq)]
enum Paused {
    /// The user cancelled a turn of ours.
    Cancelled,
    /// The agent refused a prompt of ours.
    Refused,
}

/// A session.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) id: String,
    pub(crate) saved: Saved,
    outbox: Outbox,
    /// Our reader of the outbox; `None` while another sidecar reads for the same session.
    reader: Option<Reader>,
    /// All events up to this number are delivered, or need no delivery.
    done: u64,
    flight: Option<Flight>,
    waiting: VecDeque<String>,
    /// When the first event came that is not delivered yet.
    since: Option<Instant>,
    paused: Option<Paused>,
    /// The user was told that the budget is used up.
    user_knows: bool,
    /// An earlier sidecar may have delivered all events up to this number.
    doubtful: Option<u64>,
    /// Tells the threads that stream jobs to stop.
    pub(crate) closed: Arc<AtomicBool>,
    pub(crate) followed: Vec<Handle>,
}

impl Conversation {
    /// Opens a session. `told` is the highest event in what the agent replayed; `None` if it replayed
    /// nothing.
    pub(crate) fn open(id: String, mut saved: Saved, outbox: Outbox, told: Option<u64>) -> Self {
        let reader = Reader::open(&outbox, READER, true).ok();
        let done = reader.as_ref().map_or(0, Reader::seen);
        let delivering = saved.delivering.take().filter(|delivering| *delivering > done);
        let mut conversation = Self {
            id,
            saved,
            outbox,
            reader,
            done,
            flight: None,
            waiting: VecDeque::new(),
            since: None,
            paused: None,
            user_knows: false,
            doubtful: None,
            closed: Arc::default(),
            followed: Vec::new(),
        };
        match (delivering, told) {
            // The prompt is in the conversation: it was delivered.
            (Some(delivering), Some(told)) if told >= delivering => conversation.acknowledge(delivering),
            // The replayed conversation does not have it, so it was not delivered; or it is unknown.
            (Some(_), Some(_)) | (None, _) => {}
            (Some(delivering), None) => conversation.doubtful = Some(delivering),
        }
        conversation
    }

    /// The outbox was removed because it was unused, and was created again.
    pub(crate) fn reopen(&mut self, outbox: Outbox) {
        self.reader = None;
        self.reader = Reader::open(&outbox, READER, true).ok();
        self.outbox = outbox;
    }

    /// All events up to a number are delivered.
    fn acknowledge(&mut self, number: u64) {
        self.skip_to(number);
        // Our tools need not mention them either.
        let _ = acknowledge(&self.outbox, TOOLS, number);
    }

    /// No event up to a number needs delivery any more.
    fn skip_to(&mut self, number: u64) {
        if number > self.done {
            self.done = number;
            // If this cannot be written, events are delivered again after a restart, which is better than not
            // at all.
            let _ = acknowledge(&self.outbox, READER, number);
        }
    }

    /// A prompt of the user. It goes first, alone, and takes along the events that the agent does not know
    /// yet.
    pub(crate) fn user_prompt(&mut self, line: String, around: &Around<'_>) {
        if self.flight.is_some() {
            self.waiting.push_back(line);
            return;
        }
        self.saved.spent.user_spoke();
        (self.paused, self.user_knows) = (None, false);
        let id = Message::peek(&line).and_then(|message| message.id()).unwrap_or("null").to_owned();
        let mut flight = Flight { id, ours: false, delivering: None };
        let entries = if begins_with_command(&line) { Vec::new() } else { self.news(around) };
        let mut line = line;
        if !entries.is_empty() {
            let text = self.compose(&entries, around);
            let block = json!({ "type": "text", "text": text }).to_string();
            if let Some(with_events) = add_to_list(&line, "prompt", &block) {
                line = with_events;
                flight.delivering = entries.last().map(|entry| entry.n);
                self.show_injected(&text, around);
            }
        }
        self.send(line, flight, around);
    }

    fn send(&mut self, mut line: String, flight: Flight, around: &Around<'_>) {
        if flight.delivering.is_some() {
            self.since = None;
            self.doubtful = None;
        }
        self.saved.delivering = flight.delivering;
        // Save before the prompt is sent: if we die in between, the next sidecar checks the conversation for
        // it.
        around.states.save(&self.id, &self.saved);
        self.flight = Some(flight);
        if !line.ends_with('\n') {
            line.push('\n');
        }
        around.sides.agent.push(line.into_bytes());
    }

    /// The agent answered a prompt. Returns true if the prompt was ours, so that the editor must not see the
    /// answer.
    pub(crate) fn answered(&mut self, message: &Message<'_>, around: &Around<'_>) -> Option<bool> {
        let ours = match &self.flight {
            Some(flight) if message.id() == Some(flight.id.as_str()) => flight.ours,
            _ => return None,
        };
        if message.is_error() {
            // It is unknown what the agent keeps of a prompt that it refused: the events go along with the
            // next one.
            self.saved.delivering = None;
            self.since = self.since.or(Some(Instant::now()));
            around.states.save(&self.id, &self.saved);
            if ours {
                self.paused = Some(Paused::Refused);
                let why = message.error_text();
                let text = format!(
                    "The agent did not take what Outlast had to tell ({why}). It goes along with your next prompt."
                );
                self.tell_user(&text, around);
            }
        } else {
            self.heard(around);
        }
        self.flight = None;
        Some(ours)
    }

    /// The agent works on the prompt: its events are delivered.
    pub(crate) fn heard(&mut self, around: &Around<'_>) {
        let Some(delivering) = self.flight.as_mut().and_then(|flight| flight.delivering.take()) else {
            return;
        };
        self.acknowledge(delivering);
        self.saved.delivering = None;
        around.states.save(&self.id, &self.saved);
    }

    /// Whether events are in flight that the agent has not reacted to.
    pub(crate) fn is_delivering(&self) -> bool {
        self.flight.as_ref().is_some_and(|flight| flight.delivering.is_some())
    }

    /// Sends the next prompt of the user, if one waits and nothing is in flight.
    pub(crate) fn next_prompt(&mut self, around: &Around<'_>) {
        if self.flight.is_none()
            && let Some(line) = self.waiting.pop_front()
        {
            self.user_prompt(line, around);
        }
    }

    /// The user cancels: waiting prompts are answered, and no turn of ours follows.
    pub(crate) fn cancel(&mut self, around: &Around<'_>) {
        for line in self.waiting.drain(..) {
            if let Some(id) = Message::peek(&line).and_then(|message| message.id()) {
                around.answer(id, "{\"stopReason\":\"cancelled\"}");
            }
        }
        if self.flight.as_ref().is_some_and(|flight| flight.ours) {
            self.paused = Some(Paused::Cancelled);
        }
    }

    /// The editor cancels one request. Returns true if it was still waiting here.
    pub(crate) fn cancel_queued(&mut self, id: &str, around: &Around<'_>) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|line| Message::peek(line).and_then(|message| message.id()) != Some(id));
        let taken = self.waiting.len() < before;
        if taken {
            around.refuse(id, -32800, "the request was cancelled");
        }
        taken
    }

    /// The outbox may have changed.
    pub(crate) fn look(&mut self, around: &Around<'_>) {
        if self.since.is_none() && !self.is_delivering() && !self.news(around).is_empty() {
            self.since = Some(Instant::now());
        }
    }

    /// The events to deliver: not delivered yet, wanted, and unknown to the agent. Others are skipped.
    fn news(&mut self, around: &Around<'_>) -> Vec<Entry> {
        if self.reader.is_none() {
            return Vec::new();
        }
        let all = self.outbox.entries(self.done);
        let last = all.last().map(|entry| entry.n);
        let wanted = all.into_iter().filter(|entry| around.options.wakes(entry.event)).collect();
        let mut entries = (around.options.unknown)(around.home, &self.saved.owner, wanted);
        if let Some(passed) = entries.first().map_or(last, |entry| Some(entry.n - 1)) {
            self.skip_to(passed);
        }
        withdraw(&mut entries);
        entries.truncate(MAX_EVENTS_PER_PROMPT);
        entries
    }

    fn compose(&self, entries: &[Entry], around: &Around<'_>) -> String {
        let again =
            self.doubtful.is_some_and(|number| entries.first().is_some_and(|entry| entry.n <= number));
        event_text::compose(entries, &self.saved.owner, around.options.prompt_bytes, again)
    }

    /// Wakes the agent if it is idle, there are events to deliver, and the budget allows it. Returns when to
    /// try again.
    pub(crate) fn wake(&mut self, around: &Around<'_>) -> Option<Duration> {
        let since = self.since?;
        if self.flight.is_some() || self.off(around) || self.paused.is_some() {
            return None;
        }
        let due = since + around.options.window;
        let now = Instant::now();
        if now < due {
            return Some(due - now);
        }
        let entries = self.news(around);
        if entries.is_empty() {
            self.since = None;
            return None;
        }
        let clock = now_ms();
        let urgent =
            entries.iter().any(|entry| matches!(entry.event, EntryKind::Exit | EntryKind::AwaitingInput));
        if let Err(exhausted) = self.saved.spent.check(&around.options.limits, urgent, clock) {
            if !std::mem::replace(&mut self.user_knows, true) {
                let (why, count) = (exhausted.why, entries.len());
                self.tell_user(
                    &format!(
                        "Outlast does not wake the agent any more: {why}. Events that wait: {count}. \
                         They go along with your next prompt."
                    ),
                    around,
                );
            }
            return exhausted.until_ms.map(|at| budget::until(at, clock));
        }
        let text = self.compose(&entries, around);
        let id = format!("\"outlast-{:016x}\"", crate::random());
        let params = json!({ "sessionId": self.id, "prompt": [{ "type": "text", "text": text }] });
        let line =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"session/prompt\",\"params\":{params}}}");
        self.saved.spent.spend(urgent, clock, text.len());
        self.show_injected(&text, around);
        let flight = Flight { id, ours: true, delivering: entries.last().map(|entry| entry.n) };
        self.send(line, flight, around);
        None
    }

    fn off(&self, around: &Around<'_>) -> bool {
        around.options.no_wake || self.saved.off
    }

    /// `/outlast …` in a prompt is for us.
    pub(crate) fn command(&mut self, id: &str, words: &str, around: &Around<'_>) {
        let answer = match words.trim() {
            "off" => {
                self.saved.off = true;
                "Outlast does not wake the agent in this session. On again: /outlast on".to_owned()
            }
            "on" => {
                self.saved.off = false;
                self.saved.spent.user_spoke();
                (self.paused, self.user_knows) = (None, false);
                "Outlast wakes the agent in this session. Off: /outlast off".to_owned()
            }
            _ => self.status(around),
        };
        around.states.save(&self.id, &self.saved);
        self.tell_user(&answer, around);
        around.answer(id, "{\"stopReason\":\"end_turn\"}");
        self.look(around);
    }

    fn status(&mut self, around: &Around<'_>) -> String {
        let waking = match (self.off(around), &self.paused, &self.reader) {
            (true, ..) => "off",
            (_, _, None) => "off here: another sidecar looks after this session",
            (_, Some(Paused::Cancelled), _) => "paused until your next prompt, because you cancelled",
            (_, Some(Paused::Refused), _) => "paused until your next prompt, because the agent refused",
            _ => "on",
        };
        let (spent, count) = (self.saved.spent.describe(&around.options.limits), self.news(around).len());
        format!(
            "Waking is {waking}; {spent}; {count} events wait. Jobs belong to {}. /outlast on, /outlast off",
            self.saved.owner
        )
    }

    /// Shows the user what was put into the conversation.
    fn show_injected(&self, text: &str, around: &Around<'_>) {
        self.update(
            &json!({
                "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text },
                "_meta": { "outlast.dev/injected": true },
            }),
            around,
        );
    }

    fn tell_user(&self, text: &str, around: &Around<'_>) {
        self.update(
            &json!({
                "sessionUpdate": "agent_message_chunk",
                "content": { "type": "text", "text": format!("[outlast] {text}\n") },
                "_meta": { "outlast.dev/notice": true },
            }),
            around,
        );
    }

    fn update(&self, update: &serde_json::Value, around: &Around<'_>) {
        let params = json!({ "sessionId": self.id, "update": update });
        around.sides.editor.push(
            format!("{}\n", json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
                .into_bytes(),
        );
    }

    /// The agent's own update has streamed output: it becomes an event in the outbox.
    pub(crate) fn note_stream(&mut self, call: &str, text: &str) {
        let mut entry = Entry::about(Handle::new(0), Some(call), EntryKind::Stream, text);
        entry.more = String::new();
        let _ = self.outbox.append(&mut [entry]);
    }

    /// The editor opens it again: its jobs are shown from the start, by new threads.
    pub(crate) fn show_again(&mut self) {
        self.close();
        self.closed = Arc::default();
        self.followed.clear();
    }

    /// The editor has closed it.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

/// What a conversation uses of the sidecar.
#[derive(Debug)]
pub(crate) struct Around<'a> {
    pub(crate) home: &'a Home,
    pub(crate) sides: &'a Sides,
    pub(crate) states: &'a States,
    pub(crate) options: &'a Options,
}

impl<'a> Around<'a> {
    pub(crate) fn of(
        outlast: &'a Outlast,
        sides: &'a Sides,
        states: &'a States,
        options: &'a Options,
    ) -> Self {
        Self { home: outlast.home(), sides, states, options }
    }

    /// Answers a request of the editor instead of the agent.
    pub(crate) fn answer(&self, id: &str, result: &str) {
        self.sides
            .editor
            .push(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n").into_bytes());
    }

    fn refuse(&self, id: &str, code: i32, message: &str) {
        let error = json!({ "code": code, "message": message });
        self.sides
            .editor
            .push(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n").into_bytes());
    }
}

/// Drops questions of jobs that have continued or ended since.
fn withdraw(entries: &mut Vec<Entry>) {
    let later = entries.iter().filter(|entry| entry.event.withdraws_question());
    let later: Vec<(Handle, u64)> = later.map(|entry| (entry.job, entry.n)).collect();
    entries.retain(|entry| {
        let over = || later.iter().any(|(job, n)| *job == entry.job && *n > entry.n);
        entry.event != EntryKind::WentOn && !(entry.event == EntryKind::AwaitingInput && over())
    });
}

/// Whether a prompt is one of the agent's own commands, which must stay alone.
fn begins_with_command(line: &str) -> bool {
    first_text(line).is_some_and(|text| text.trim_start().starts_with('/'))
}

/// The first text of a prompt.
pub(crate) fn first_text(line: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Prompt {
        prompt: Vec<serde_json::Value>,
    }
    let prompt = Message::peek(line)?.params::<Prompt>()?;
    prompt.prompt.first()?["text"].as_str().map(ToOwned::to_owned)
}
