//! The agent's tool calls that started our jobs: each is held open for the editor until its job has ended.
//!
//! A call is recognised by the tag that our MCP server puts into its answer: a signature under a key that only this sidecar
//! and that server have. What a job prints never counts. Agents tell of a call late, some only when it is over; so a job that
//! was started during a turn is shown when its call is recognised, at the latest when the turn ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use outlast_job::Handle;
use outlast_job::call_tag::{call_note, find_call_tag};
use serde_json::Value;

/// How long a job may wait for the call that started it to be recognised; then it is shown as a call of its own.
const RECOGNITION_TIMEOUT: Duration = Duration::from_secs(6);
/// How many jobs are remembered in a session.
const MAX_JOBS: usize = 1000;

/// Where a job is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShownAs {
    /// As a tool call of its own.
    Own,
    /// In the agent's call that started it.
    AgentsCall(String),
    /// Nowhere: the agent's call has shown all of it.
    Nothing,
}

/// Decides where a job is shown, once.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    made: Mutex<Option<ShownAs>>,
    changed: Condvar,
    /// No call of the agent waits for the job.
    background: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Decision {
    /// Decides, unless it is decided; returns what is decided.
    fn make(&self, shown: ShownAs) -> ShownAs {
        lock(&self.made).get_or_insert(shown).clone()
    }

    /// Lets the thread that shows the job go on.
    fn announce(&self) {
        self.background.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Waits for the decision; without one in time, the job is shown as a call of its own.
    pub(crate) fn wait(&self) -> ShownAs {
        let until = Instant::now() + RECOGNITION_TIMEOUT;
        let mut made = lock(&self.made);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if made.is_some() || left.is_zero() {
                return made.get_or_insert(ShownAs::Own).clone();
            }
            made = self.changed.wait_timeout(made, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether no call of the agent waits for the job.
    pub(crate) fn is_background(&self) -> bool {
        self.background.load(Ordering::Relaxed)
    }
}

/// Calls that the agent has finished and the editor has not seen finished.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held(Arc<Mutex<BTreeSet<String>>>);

impl Held {
    pub(crate) fn hold(&self, call: &str) {
        lock(&self.0).insert(call.to_owned());
    }

    /// The editor has seen its end.
    pub(crate) fn release(&self, call: &str) {
        lock(&self.0).remove(call);
    }

    fn contains(&self, call: &str) -> bool {
        lock(&self.0).contains(call)
    }
}

/// The tool calls of a session.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    key: String,
    in_turn: bool,
    jobs: BTreeMap<Handle, Arc<Decision>>,
    pub(crate) held: Held,
}

/// What the end of a tool call says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Recognised {
    /// The job that the call has started, with its tag.
    pub(crate) started: Option<(Handle, String)>,
    /// The editor must not see the call end yet.
    pub(crate) hold: bool,
}

impl Calls {
    pub(crate) fn new(key: &str) -> Self {
        Self { key: key.to_owned(), ..Self::default() }
    }

    /// Where a job that was just started is shown.
    pub(crate) fn place(&mut self, job: Handle) -> Arc<Decision> {
        let decision = self.decision(job);
        if !self.in_turn || self.key.is_empty() {
            decision.make(ShownAs::Own);
            decision.announce();
        }
        decision
    }

    fn decision(&mut self, job: Handle) -> Arc<Decision> {
        if self.jobs.len() >= MAX_JOBS && !self.jobs.contains_key(&job) {
            self.jobs.pop_first();
        }
        Arc::clone(self.jobs.entry(job).or_default())
    }

    /// A call has ended. `lives` tells whether a job still runs.
    pub(crate) fn ended(&mut self, update: &Value, lives: impl FnOnce(Handle) -> bool) -> Recognised {
        let call = update["toolCallId"].as_str().unwrap_or_default();
        let started = tag_in(&self.key, update);
        let mut hold = self.held.contains(call);
        if let Some((job, _)) = &started {
            let as_call = ShownAs::AgentsCall(call.to_owned());
            let wanted = if lives(*job) { as_call.clone() } else { ShownAs::Nothing };
            if self.decision(*job).make(wanted) == as_call && !hold {
                self.held.hold(call);
                hold = true;
            }
        }
        Recognised { started, hold }
    }

    /// The update that a call has ended is on its way to the editor: what its job prints comes after it.
    pub(crate) fn told(&mut self, recognised: &Recognised) {
        if let Some((job, _)) = &recognised.started {
            self.decision(*job).announce();
        }
    }

    pub(crate) fn turn_began(&mut self) {
        self.in_turn = true;
    }

    /// What was not recognised by now is shown as a call of its own.
    pub(crate) fn turn_ended(&mut self) {
        self.in_turn = false;
        for decision in self.jobs.values() {
            decision.make(ShownAs::Own);
            decision.announce();
        }
    }
}

/// The tag in any text of an update.
fn tag_in(key: &str, update: &Value) -> Option<(Handle, String)> {
    match update {
        Value::String(text) => find_call_tag(key, text),
        Value::Array(values) => values.iter().find_map(|value| tag_in(key, value)),
        Value::Object(fields) => fields.values().find_map(|value| tag_in(key, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Removes the note with the tag from every text of an update, also where the text is itself JSON.
pub(crate) fn without_tag(value: &mut Value, tag: &str) {
    match value {
        Value::String(text) if text.contains(tag) => {
            let note = call_note(tag);
            *text = text
                .replace(&format!("\n{note}"), "")
                .replace(&format!("\\n{note}"), "")
                .replace(&note, "")
                .replace(tag, "");
        }
        Value::Array(values) => values.iter_mut().for_each(|value| without_tag(value, tag)),
        Value::Object(fields) => fields.values_mut().for_each(|value| without_tag(value, tag)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use outlast_job::call_tag::call_tag;
    use serde_json::json;

    use super::*;

    fn end(calls: &mut Calls, call: &str, text: &str, lives: bool) -> Recognised {
        let update = json!({
            "sessionUpdate": "tool_call_update", "toolCallId": call, "status": "completed",
            "content": [{ "type": "content", "content": { "type": "text", "text": text } }],
        });
        let recognised = calls.ended(&update, |_| lives);
        calls.told(&recognised);
        recognised
    }

    /// Two jobs were started in a turn.
    fn two() -> (Calls, Arc<Decision>, Arc<Decision>) {
        let mut calls = Calls::new("key");
        calls.turn_began();
        let (first, second) = (calls.place(Handle::new(1)), calls.place(Handle::new(2)));
        (calls, first, second)
    }

    fn note(key: &str, job: u64) -> String {
        call_note(&call_tag(key, Handle::new(job)))
    }

    #[test]
    fn each_job_is_shown_in_the_call_that_started_it() {
        let (mut calls, first, second) = two();
        assert!(!first.is_background());
        assert!(end(&mut calls, "b", &note("key", 1), true).hold);
        assert!(first.is_background() && !second.is_background());
        assert!(!end(&mut calls, "a", &note("key", 2), false).hold);
        assert_eq!((first.wait(), second.wait()), (ShownAs::AgentsCall("b".into()), ShownAs::Nothing));
        assert!(end(&mut calls, "b", "", true).hold, "it stays held until its job has ended");
        calls.held.release("b");
        assert!(!end(&mut calls, "b", "", true).hold);
    }

    #[test]
    fn a_tag_of_another_key_or_a_second_time_or_too_late_counts_for_nothing() {
        let (mut calls, first, second) = two();
        assert_eq!(end(&mut calls, "a", &note("other", 1), true), Recognised::default());
        end(&mut calls, "b", &note("key", 1), true);
        assert!(!end(&mut calls, "c", &note("key", 1), true).hold, "another call that quotes it");
        calls.turn_ended();
        assert_eq!((first.wait(), second.wait()), (ShownAs::AgentsCall("b".into()), ShownAs::Own));
        assert!(!end(&mut calls, "d", &note("key", 2), true).hold, "it is shown elsewhere already");
    }

    #[test]
    fn outside_of_a_turn_a_job_is_shown_at_once() {
        assert_eq!(Calls::new("key").place(Handle::new(1)).wait(), ShownAs::Own);
    }

    #[test]
    fn a_call_may_be_recognised_before_its_job_is_seen() {
        let mut calls = Calls::new("key");
        assert!(end(&mut calls, "a", &note("key", 1), true).hold);
        assert_eq!(calls.place(Handle::new(1)).wait(), ShownAs::AgentsCall("a".into()));
    }

    #[test]
    fn the_note_is_taken_out_of_what_the_editor_sees() {
        let tag = call_tag("key", Handle::new(3));
        let text = format!("job 3 is running\n{}\nnext: wait", call_note(&tag));
        let inner = json!({ "output": text }).to_string();
        let mut update = json!({ "content": [{ "text": text }], "rawOutput": { "json": inner } });
        without_tag(&mut update, &tag);
        assert_eq!(update["content"][0]["text"], "job 3 is running\nnext: wait");
        assert!(!update.to_string().contains("outlast:"), "{update}");
    }
}
