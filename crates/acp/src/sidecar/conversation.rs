//! One session between an editor and its agent: which prompt is in flight, which wait, and what the agent has not
//! been told yet.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outlast_job::clock::now_ms;
use outlast_job::outbox::reader::{Reader, acknowledge};
use outlast_job::outbox::{Entry, Outbox};
use outlast_job::registry::Home;
use outlast_job::{Handle, Outlast};
use serde_json::json;

use super::Options;
use super::budget;
use super::queue::Queue;
use super::state::{Saved, States};
use super::telling;
use super::wire::{Message, add_to_list};

/// The name under which we read outboxes.
const READER: &str = "acp-sidecar";
/// The name under which our MCP server reads them.
const TOOLS: &str = "mcp";
/// How many events are looked at for one prompt; more wait for the next.
const MOST_EVENTS: usize = 20_000;

/// The two sides.
#[derive(Clone, Debug)]
pub(crate) struct Sides {
    pub(crate) editor: Queue,
    pub(crate) agent: Queue,
}

/// A prompt that the agent works on.
#[derive(Debug)]
struct Flight {
    /// Its id as it is on the wire.
    id: String,
    ours: bool,
    /// It tells everything up to this number.
    telling: Option<u64>,
}

/// Why nobody is woken until the user says something.
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
    /// Held as long as it is ours to tell; none while another sidecar reads for the same session.
    reader: Option<Reader>,
    /// Everything up to this number is told, or needs no telling.
    done: u64,
    flight: Option<Flight>,
    waiting: VecDeque<String>,
    /// When the first event came that the agent has not been told.
    since: Option<Instant>,
    paused: Option<Paused>,
    /// The user knows that the budget is spent.
    user_knows: bool,
    /// An earlier sidecar may have told everything up to this number.
    doubtful: Option<u64>,
    /// Threads that stream for it look here.
    pub(crate) closed: Arc<AtomicBool>,
    pub(crate) followed: Vec<Handle>,
}

impl Conversation {
    /// Takes up a session. `told` is what the agent itself told again of an earlier one: none if it told nothing.
    pub(crate) fn open(id: String, mut saved: Saved, outbox: Outbox, told: Option<u64>) -> Self {
        let reader = Reader::open(&outbox, READER, true).ok();
        let done = reader.as_ref().map_or(0, Reader::seen);
        let telling = saved.telling.take().filter(|telling| *telling > done);
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
        match (telling, told) {
            // The prompt is in the conversation: it got through.
            (Some(telling), Some(told)) if told >= telling => conversation.acknowledge(telling),
            // The conversation was told again without it, so it did not; or nobody can say.
            (Some(_), Some(_)) | (None, _) => {}
            (Some(telling), None) => conversation.doubtful = Some(telling),
        }
        conversation
    }

    /// The outbox was removed, as one is that nobody needs, and made again.
    pub(crate) fn reopen(&mut self, outbox: Outbox) {
        self.reader = None;
        self.reader = Reader::open(&outbox, READER, true).ok();
        self.outbox = outbox;
    }

    /// Everything up to a number is told.
    fn acknowledge(&mut self, number: u64) {
        self.pass_over(number);
        // Our tools need not mention it either.
        let _ = acknowledge(&self.outbox, TOOLS, number);
    }

    /// Nothing up to a number needs to be told any more.
    fn pass_over(&mut self, number: u64) {
        if number > self.done {
            self.done = number;
            // What can't be written is told again after a restart, which is better than not at all.
            let _ = acknowledge(&self.outbox, READER, number);
        }
    }

    /// A prompt of the user: goes first, alone, and takes along what the agent does not know yet.
    pub(crate) fn user_prompt(&mut self, line: String, around: &Around<'_>) {
        if self.flight.is_some() {
            self.waiting.push_back(line);
            return;
        }
        self.saved.spent.user_spoke();
        (self.paused, self.user_knows) = (None, false);
        let id = Message::peek(&line).and_then(|message| message.id()).unwrap_or("null").to_owned();
        let mut flight = Flight { id, ours: false, telling: None };
        let entries = if begins_with_command(&line) { Vec::new() } else { self.news(around) };
        let mut line = line;
        if !entries.is_empty() {
            let text = self.compose(&entries, around);
            let block = json!({ "type": "text", "text": text }).to_string();
            if let Some(with_events) = add_to_list(&line, "prompt", &block) {
                line = with_events;
                flight.telling = entries.last().map(|entry| entry.n);
                self.show_injected(&text, around);
            }
        }
        self.send(line, flight, around);
    }

    fn send(&mut self, mut line: String, flight: Flight, around: &Around<'_>) {
        if flight.telling.is_some() {
            self.since = None;
            self.doubtful = None;
        }
        self.saved.telling = flight.telling;
        // Before the prompt: if we die in between, the next one asks the conversation whether it got through.
        around.states.save(&self.id, &self.saved);
        self.flight = Some(flight);
        if !line.ends_with('\n') {
            line.push('\n');
        }
        around.sides.agent.push(line.into_bytes());
    }

    /// The agent answered a prompt; true when the answer is ours and the editor must not see it.
    pub(crate) fn answered(&mut self, message: &Message<'_>, around: &Around<'_>) -> Option<bool> {
        let ours = match &self.flight {
            Some(flight) if message.id() == Some(flight.id.as_str()) => flight.ours,
            _ => return None,
        };
        if message.is_error() {
            // Nobody can say what the agent keeps of a prompt that it refused: it is told again with the next.
            self.saved.telling = None;
            self.since = self.since.or(Some(Instant::now()));
            around.states.save(&self.id, &self.saved);
            if ours {
                self.paused = Some(Paused::Refused);
                let why = message.error_text();
                self.tell_user(&format!("The agent did not take what Outlast had to tell ({why}). It goes along with your next prompt."), around);
            }
        } else {
            self.heard(around);
        }
        self.flight = None;
        Some(ours)
    }

    /// The agent works on what it was told: it has it.
    pub(crate) fn heard(&mut self, around: &Around<'_>) {
        let Some(telling) = self.flight.as_mut().and_then(|flight| flight.telling.take()) else { return };
        self.acknowledge(telling);
        self.saved.telling = None;
        around.states.save(&self.id, &self.saved);
    }

    /// Whether the agent is being told something that it has not shown to have heard.
    pub(crate) fn is_telling(&self) -> bool {
        self.flight.as_ref().is_some_and(|flight| flight.telling.is_some())
    }

    /// The next prompt of the user, if one waits and nothing is in flight.
    pub(crate) fn next_prompt(&mut self, around: &Around<'_>) {
        if self.flight.is_none()
            && let Some(line) = self.waiting.pop_front()
        {
            self.user_prompt(line, around);
        }
    }

    /// The user cancels: what waits is answered, and a turn of ours is not followed by another.
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

    /// The editor takes back one request; true if it was one that still waits here.
    pub(crate) fn take_back(&mut self, id: &str, around: &Around<'_>) -> bool {
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
        if self.since.is_none() && !self.is_telling() && !self.news(around).is_empty() {
            self.since = Some(Instant::now());
        }
    }

    /// What the agent has not been told, is to be told, and does not know yet. What needs no telling is passed over.
    fn news(&mut self, around: &Around<'_>) -> Vec<Entry> {
        if self.reader.is_none() {
            return Vec::new();
        }
        let all = self.outbox.entries(self.done);
        let last = all.last().map(|entry| entry.n);
        let wanted = all.into_iter().filter(|entry| around.options.wakes(&entry.event)).collect();
        let mut entries = (around.options.unknown)(around.home, &self.saved.owner, wanted);
        if let Some(passed) = entries.first().map_or(last, |entry| Some(entry.n - 1)) {
            self.pass_over(passed);
        }
        withdraw(&mut entries);
        entries.truncate(MOST_EVENTS);
        entries
    }

    fn compose(&self, entries: &[Entry], around: &Around<'_>) -> String {
        let again =
            self.doubtful.is_some_and(|number| entries.first().is_some_and(|entry| entry.n <= number));
        telling::compose(entries, &self.saved.owner, around.options.prompt_bytes, again)
    }

    /// Wakes the agent if it is idle, there is something to tell, and it may be told. Returns how long to wait for a
    /// better moment.
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
        let urgent = entries.iter().any(|entry| matches!(entry.event.as_str(), "ended" | "awaiting_input"));
        if let Err(exhausted) = self.saved.spent.check(&around.options.limits, urgent, clock) {
            if !std::mem::replace(&mut self.user_knows, true) {
                let (why, count) = (exhausted.why, entries.len());
                self.tell_user(
                    &format!("Outlast does not wake the agent any more: {why}. Events that wait: {count}. They go along with your next prompt."),
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
        let flight = Flight { id, ours: true, telling: entries.last().map(|entry| entry.n) };
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

    /// The user sees what goes into the conversation.
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
        self.update(&json!({
            "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": format!("[outlast] {text}\n") },
            "_meta": { "outlast.dev/notice": true },
        }), around);
    }

    fn update(&self, update: &serde_json::Value, around: &Around<'_>) {
        let params = json!({ "sessionId": self.id, "update": update });
        around.sides.editor.push(
            format!("{}\n", json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
                .into_bytes(),
        );
    }

    /// An update of the agent's own that carries a stream of output: an event like any other, safe on the disk.
    pub(crate) fn note_stream(&mut self, call: &str, text: &str) {
        let mut entry = Entry::about(Handle(0), Some(call), "stream", text);
        entry.more = String::new();
        let _ = self.outbox.append(&mut [entry]);
    }

    /// The editor opens it anew: its jobs are shown from the start, by other threads.
    pub(crate) fn show_again(&mut self) {
        self.close();
        self.closed = Arc::default();
        self.followed.clear();
    }

    /// The editor is done with it.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

/// What a conversation needs from outside.
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

    /// Answers a request of the editor in the agent's place.
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

/// A job that asked, and went on or ended since, does not ask any more.
fn withdraw(entries: &mut Vec<Entry>) {
    let later = entries.iter().filter(|entry| matches!(entry.event.as_str(), "went_on" | "ended"));
    let later: Vec<(Handle, u64)> = later.map(|entry| (entry.job, entry.n)).collect();
    entries.retain(|entry| {
        let over = || later.iter().any(|(job, n)| *job == entry.job && *n > entry.n);
        entry.event != "went_on" && !(entry.event == "awaiting_input" && over())
    });
}

/// A prompt that is a command of the agent's own must stay alone.
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
