//! One session between an editor and its agent: which prompt is in flight, which prompts wait, and which
//! events the agent does not know yet.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outlast_job::clock::now_ms;
use outlast_job::outbox::reader::{Reader, acknowledge};
use outlast_job::outbox::tail::{Looked, Tail};
use outlast_job::outbox::{Entry, Outbox};
use outlast_job::{EntryKind, Handle};
use serde_json::json;

use super::agent_streams::AgentStreams;
use super::around::{Around, Sides};
use super::budget::{self, Exhausted};
use super::calls::Calls;
use super::event_text;
use super::jobs::ToEditor;
use super::state::Saved;
use super::wire::{Message, add_to_list, begins_with_command};
use crate::shown::Shown;

/// Our reader's name in an outbox.
const READER: &str = "acp-sidecar";
/// The name of our MCP server's reader.
const TOOLS: &str = "mcp";
/// The most events that are read for one prompt; more wait for the next.
const MAX_EVENTS_PER_PROMPT: usize = 20_000;
/// A pause between wakes that is shorter is not worth a word to the user.
const WORTH_SAYING: Duration = Duration::from_secs(60);

/// A prompt that the agent is working on.
#[derive(Debug)]
struct Flight {
    /// Its id as it is on the wire.
    id: String,
    ours: bool,
    /// It contains all events up to this number.
    delivering: Option<u64>,
    /// The agent has reacted to it.
    heard: bool,
}

/// Why the agent is not woken until the user's next prompt.
#[derive(Debug, PartialEq, Eq)]
enum Paused {
    /// The user cancelled a turn of ours.
    Cancelled,
    /// The agent refused a prompt of ours.
    Refused,
}

/// Why the budget keeps the agent from being woken.
#[derive(Debug, PartialEq, Eq)]
enum Blocked {
    Until(Instant),
    ByRow,
}

/// A session.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) id: String,
    pub(crate) saved: Saved,
    outbox: Outbox,
    /// Our reader of the outbox; `None` while another sidecar reads for the same session.
    reader: Option<Reader>,
    /// How far the outbox was read, and what in it is not done.
    tail: Tail,
    entries: Vec<Entry>,
    /// All events up to this number are delivered, or need no delivery.
    done: u64,
    /// Output that the agent streams by itself.
    streams: AgentStreams,
    /// The agent's tool calls.
    pub(crate) calls: Calls,
    pub(crate) shown: Arc<Shown>,
    flight: Option<Flight>,
    waiting: VecDeque<String>,
    /// When the first event came that is not delivered yet.
    since: Option<Instant>,
    paused: Option<Paused>,
    /// The budget is used up until then, or until the user speaks; something urgent is looked at before.
    blocked: Option<Blocked>,
    /// The user was told that the budget is used up.
    user_knows: bool,
    /// An earlier sidecar may have delivered all events up to this number.
    doubtful: Option<u64>,
    /// An earlier sidecar has sent all events up to this number to an agent that died over them: whatever our tools say they
    /// have told, the agent does not know it.
    lost: u64,
    /// Tells the threads that stream jobs to stop.
    pub(crate) closed: Arc<AtomicBool>,
    pub(crate) followed: Vec<Handle>,
}

impl Conversation {
    /// Opens a session. `told` is the highest event in what the agent replayed; `None` if it replayed
    /// nothing.
    pub(crate) fn open(
        id: String,
        mut saved: Saved,
        outbox: Outbox,
        told: Option<u64>,
        calls: Calls,
        shown: Shown,
    ) -> Self {
        let reader = Reader::open(&outbox, READER, true).ok();
        let done = reader.as_ref().map_or(0, Reader::seen);
        let delivering = saved.delivering.take().filter(|delivering| *delivering > done);
        let mut conversation = Self {
            id,
            saved,
            outbox,
            reader,
            tail: Tail::default(),
            entries: Vec::new(),
            done,
            streams: AgentStreams::default(),
            calls,
            shown: Arc::new(shown),
            flight: None,
            waiting: VecDeque::new(),
            since: None,
            paused: None,
            blocked: None,
            user_knows: false,
            doubtful: None,
            lost: delivering.unwrap_or(0),
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
        self.tail = Tail::default();
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
            self.entries.retain(|entry| entry.n > number);
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
        (self.paused, self.blocked, self.user_knows) = (None, None, false);
        let id = Message::peek(&line).and_then(|message| message.id()).unwrap_or("null").to_owned();
        let mut flight = Flight { id, ours: false, delivering: None, heard: false };
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
        self.calls.turn_began();
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
        self.calls.turn_ended();
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
        } else if let Some(delivering) = self.flight.as_ref().and_then(|flight| flight.delivering) {
            // Not before: an agent that dies over its turn may have forgotten the prompt.
            self.acknowledge(delivering);
            self.saved.delivering = None;
            around.states.save(&self.id, &self.saved);
        }
        self.flight = None;
        Some(ours)
    }

    /// The agent works on the prompt: our tools need not mention its events.
    pub(crate) fn heard(&mut self) {
        if let Some(flight) = &mut self.flight
            && let Some(delivering) = flight.delivering
            && !std::mem::replace(&mut flight.heard, true)
        {
            let _ = acknowledge(&self.outbox, TOOLS, delivering);
        }
    }

    fn is_delivering(&self) -> bool {
        self.flight.as_ref().is_some_and(|flight| flight.delivering.is_some())
    }

    /// Whether events are in flight that the agent has not reacted to.
    pub(crate) fn awaits_reaction(&self) -> bool {
        self.flight.as_ref().is_some_and(|flight| flight.delivering.is_some() && !flight.heard)
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
        self.read_outbox(around);
        if self.since.is_none() && !self.is_delivering() && !self.news(around).is_empty() {
            self.since = Some(Instant::now());
        }
    }

    /// Reads what is new in the outbox, at the cost of only that.
    fn read_outbox(&mut self, around: &Around<'_>) {
        let (anew, mut more) = match self.tail.look(&self.outbox) {
            Looked::More(more) => (false, more),
            Looked::Anew(all) => (true, all),
        };
        more.retain(|entry| entry.n > self.done);
        if more.iter().any(|entry| is_urgent(entry) && around.options.wakes(entry.event)) {
            self.blocked = None;
        }
        if anew {
            self.entries = more;
        } else {
            self.entries.extend(more);
        }
    }

    /// The events to deliver: not delivered yet, wanted, and unknown to the agent. Others are skipped.
    fn news(&mut self, around: &Around<'_>) -> Vec<Entry> {
        if self.reader.is_none() {
            return Vec::new();
        }
        self.keep_streams();
        self.read_outbox(around);
        let last = self.entries.last().map(|entry| entry.n);
        let wanted = self.entries.iter().filter(|entry| around.options.wakes(entry.event));
        let (mut entries, wanted): (Vec<Entry>, Vec<Entry>) =
            wanted.cloned().partition(|entry| entry.n <= self.lost);
        entries.extend((around.options.unknown)(around.home, &self.saved.owner, wanted));
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
        event_text::compose(entries, &self.saved.owner, around.options, again)
    }

    /// Wakes the agent if it is idle, there are events to deliver, and the budget allows it. Returns when to
    /// try again.
    pub(crate) fn wake(&mut self, around: &Around<'_>) -> Option<Duration> {
        let now = Instant::now();
        let gathered = match self.streams.due() {
            Some(due) if now < due => Some(due - now),
            Some(_) => {
                self.keep_streams();
                None
            }
            None => None,
        };
        let woken = self.wake_with(now, around);
        [gathered, woken].into_iter().flatten().min()
    }

    fn wake_with(&mut self, now: Instant, around: &Around<'_>) -> Option<Duration> {
        let since = self.since?;
        if self.flight.is_some() || self.off(around) || self.paused.is_some() {
            return None;
        }
        let due = match self.blocked {
            Some(Blocked::ByRow) => return None,
            Some(Blocked::Until(until)) => until.max(since + around.options.window),
            None => since + around.options.window,
        };
        if now < due {
            return Some(due - now);
        }
        let entries = self.news(around);
        if entries.is_empty() {
            self.since = None;
            return None;
        }
        let (clock, limits) = (now_ms(), &around.options.limits);
        let urgent = entries.iter().any(is_urgent);
        if let Err(exhausted) = self.saved.spent.check(limits, urgent, clock) {
            return self.block(&exhausted, entries.len(), clock, around);
        }
        self.blocked = None;
        let text = self.compose(&entries, around);
        let id = format!("\"outlast-{:016x}\"", crate::random());
        let params = json!({ "sessionId": self.id, "prompt": [{ "type": "text", "text": text }] });
        let line =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"session/prompt\",\"params\":{params}}}");
        self.saved.spent.spend(limits, urgent, clock, text.len());
        self.show_injected(&text, around);
        let delivering = entries.last().map(|entry| entry.n);
        let flight = Flight { id, ours: true, delivering, heard: false };
        self.send(line, flight, around);
        None
    }

    /// The budget is used up: says so to the user, once, unless it is only for a moment.
    fn block(
        &mut self,
        exhausted: &Exhausted,
        count: usize,
        clock: u64,
        around: &Around<'_>,
    ) -> Option<Duration> {
        let wait = exhausted.until_ms.map(|at| budget::until(at, clock));
        self.blocked = Some(wait.map_or(Blocked::ByRow, |wait| Blocked::Until(Instant::now() + wait)));
        let why = &exhausted.why;
        let text = match wait {
            None => format!(
                "Outlast does not wake the agent any more: {why}. Events that wait: {count}. They go along with your \
                 next prompt."
            ),
            Some(wait) => format!(
                "Outlast wakes the agent less often now: {why}. Events that wait: {count}. They are told in {} s, or go \
                 along with your next prompt. Ends of jobs and questions are told before.",
                wait.as_secs()
            ),
        };
        let worth_saying = wait.is_none_or(|wait| wait > WORTH_SAYING);
        if worth_saying && !std::mem::replace(&mut self.user_knows, true) {
            self.tell_user(&text, around);
        }
        wait
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
                (self.paused, self.blocked, self.user_knows) = (None, None, false);
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

    /// The agent's own update has streamed output.
    pub(crate) fn note_stream(&mut self, call: &str, text: &str) {
        self.streams.add(call, text);
    }

    /// What the agent has streamed becomes events in the outbox.
    fn keep_streams(&mut self) {
        let mut entries = self.streams.take();
        if !entries.is_empty() {
            let _ = self.outbox.append(&mut entries);
        }
    }

    /// The editor's side, for a thread that shows a job there.
    pub(crate) fn to_editor(&self, sides: &Sides, terminals: bool) -> ToEditor {
        ToEditor {
            session: self.id.clone(),
            queue: sides.editor.clone(),
            closed: Arc::clone(&self.closed),
            terminals,
            shown: Arc::clone(&self.shown),
            held: self.calls.held.clone(),
        }
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

fn is_urgent(entry: &Entry) -> bool {
    matches!(entry.event, EntryKind::Exit | EntryKind::AwaitingInput)
}

/// Drops questions of jobs that have continued or ended since.
fn withdraw(entries: &mut Vec<Entry>) {
    let withdrawn = entries.iter().filter(|entry| entry.event.withdraws_question());
    // The last of each job.
    let later: HashMap<Handle, u64> = withdrawn.map(|entry| (entry.job, entry.n)).collect();
    entries.retain(|entry| {
        let over = || later.get(&entry.job).is_some_and(|n| *n > entry.n);
        entry.event != EntryKind::WentOn && !(entry.event == EntryKind::AwaitingInput && over())
    });
}
