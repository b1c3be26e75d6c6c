//! What will be asked next of a job on another machine, and the answers that came along with another one.
//!
//! A caller who knows its next questions says so ([`Job::expect`](crate::client::Job::expect)). They go along with the next request, and each
//! answer is given out once, to the question that it belongs to. A host that does not know this answers only what it was asked, and the rest is
//! asked for as ever.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use outlast_protocol::HostName;
use outlast_protocol::request::{Answer, JobRequest, News};

use crate::failure::Failure;
use crate::wire::event::EventKind;

/// How long an answer that came along is true. Whoever expected it asks at once; a person may have been asked in between.
const FRESH: Duration = Duration::from_secs(1);

/// How the answers that came along are told.
type Told = Box<dyn FnOnce(Vec<Result<Answer, Failure>>) + Send>;

/// Questions that go along with a request.
#[derive(Default)]
pub struct Also {
    asks: Vec<JobRequest>,
    told: Option<Told>,
}

impl Also {
    /// What to answer besides, in this order.
    #[must_use]
    pub fn asks(&self) -> &[JobRequest] {
        &self.asks
    }

    /// Takes the answers, in the same order: all, or only the first ones.
    pub fn tell(self, answers: Vec<Result<Answer, Failure>>) {
        if let Some(told) = self.told
            && !answers.is_empty()
        {
            told(answers);
        }
    }
}

impl fmt::Debug for Also {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Also").field("asks", &self.asks).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    /// What goes along with the next request.
    expected: Vec<JobRequest>,
    /// What came, with the question that it answers.
    answers: Vec<(String, Result<Answer, Failure>)>,
    came_at: Option<Instant>,
}

/// Of one job; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ahead {
    state: Arc<Mutex<State>>,
}

/// Questions are compared as they would be sent.
fn as_sent(ask: &JobRequest) -> String {
    serde_json::to_string(ask).unwrap_or_default()
}

impl Ahead {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn expect(&self, asks: Vec<JobRequest>) {
        self.lock().expected.extend(asks);
    }

    /// The answer to a question, if it came along with an earlier one.
    pub(super) fn take(&self, ask: &JobRequest) -> Option<Result<Answer, Failure>> {
        let mut state = self.lock();
        if state.answers.is_empty() {
            return None;
        }
        if state.came_at.is_none_or(|at| at.elapsed() > FRESH) {
            state.answers.clear();
            return None;
        }
        let sent = as_sent(ask);
        let at = state.answers.iter().position(|(one, _)| *one == sent)?;
        Some(state.answers.remove(at).1)
    }

    /// What goes along with a request that is sent now, but for the request itself. Answers that were not used are forgotten: none may be older than
    /// what is asked now.
    pub(crate) fn go_along(&self, host: HostName, request: Option<&JobRequest>) -> Also {
        let mut state = self.lock();
        state.answers.clear();
        let mut asks = std::mem::take(&mut state.expected);
        drop(state);
        if asks.is_empty() {
            return Also::default();
        }
        let mut sent: Vec<String> = asks.iter().map(as_sent).collect();
        let request = request.map(as_sent);
        if let Some(at) = sent.iter().position(|one| Some(one) == request.as_ref()) {
            asks.remove(at);
            sent.remove(at);
        }
        let ahead = self.clone();
        let told = move |answers: Vec<Result<Answer, Failure>>| {
            let seen = |answer: Result<Answer, Failure>| {
                let answer = answer.map(|answer| answer.seen_from_here(host));
                answer.map_err(|failure| failure.seen_from_here(host))
            };
            let mut state = ahead.lock();
            state.answers = sent.into_iter().zip(answers.into_iter().map(seen)).collect();
            state.came_at = Some(Instant::now());
        };
        Also { asks, told: Some(Box::new(told)) }
    }

    /// Something was told of the job: what it makes untrue is forgotten.
    pub(super) fn heard(&self, news: &News) {
        let mut state = self.lock();
        if state.answers.is_empty() {
            return;
        }
        // Answers are in the order of their questions: what comes after an end that is on record is final.
        if let Some((_, Ok(Answer::Info(info)))) = state.answers.first()
            && !info.state.is_live()
        {
            return;
        }
        match news {
            News::Grown(grown) => state.answers.retain(|(sent, answer)| {
                let of_errors = sent.contains("\"stream\":\"stderr\"");
                let end = if of_errors { grown.errors } else { grown.offset };
                !matches!(answer, Ok(Answer::Bytes(bytes)) if bytes.end < end)
            }),
            News::Event(event) if matches!(event.what, EventKind::Exit { .. }) => state.answers.clear(),
            News::Event(_) | News::Changed | News::Attached(_) => {}
            News::Over => state.answers.clear(),
        }
    }
}
