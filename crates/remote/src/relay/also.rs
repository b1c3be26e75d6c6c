//! What a client will ask next about the same job, answered along with what it asks now: over a long link, each question that need not be
//! waited for saves the time of a way there and back.

use std::sync::Arc;

use outlast_job::request::{Answer, JobRequest, Request};
use outlast_job::{Failure, Handle, Outlast};

use super::{Relay, json, no_job};
use crate::frame::MessageKind;
use crate::message::{Also, AlsoAnswer, Caller};

/// How much is looked up at most: a verb needs a handful.
const MAX_ALSO: usize = 16;

/// What will be asked next, and of whom.
pub(super) struct Along {
    pub(super) also: Vec<JobRequest>,
    pub(super) caller: Caller,
    pub(super) outlast: Outlast,
    /// The jobs that the request names.
    pub(super) jobs: Vec<Handle>,
}

/// The jobs that a request names.
pub(super) fn jobs_of(request: &Request) -> Vec<Handle> {
    match request {
        Request::Job { job, .. } | Request::Remove { job } => vec![*job],
        Request::Wait(wait) => wait.waits.iter().map(|one| one.job).collect(),
        Request::Start(_)
        | Request::PlanWakes(_)
        | Request::Find { .. }
        | Request::FindShell { .. }
        | Request::List(_)
        | Request::Load {}
        | Request::Events(_)
        | Request::Ack(_)
        | Request::Prune { .. } => Vec::new(),
    }
}

impl Along {
    /// The job that it is about: the one that was found or started, the one whose wait is over, or the one that was named.
    fn job(&self, answer: &Answer) -> Option<Handle> {
        if let Answer::Found(job) | Answer::Started(job) = answer {
            return Some(*job);
        }
        let which = if let Answer::Waited { which, .. } = answer { *which } else { 0 };
        self.jobs.get(which).copied()
    }
}

impl Relay {
    /// Says what will be asked next, if what was asked now was carried out.
    pub(super) fn say_also(&self, stream: u32, along: &Along, answer: &Result<Answer, Failure>) {
        if let Ok(answer) = answer
            && let Some(job) = along.job(answer)
        {
            self.say_answers(stream, along, job);
        }
    }

    pub(super) fn say_answers(&self, stream: u32, along: &Along, job: Handle) {
        // What must not be done twice needs a name of its own, and goes alone.
        let asks = along.also.iter().take(MAX_ALSO).take_while(|ask| !ask.is_order());
        let answers: Vec<AlsoAnswer> = asks
            .map(|ask| {
                let mut request = Request::Job { job, ask: ask.clone() };
                let judged = self.judge.judge(&along.caller, &mut request);
                judged.and_then(|()| along.outlast.answer(request)).into()
            })
            .collect();
        if !answers.is_empty() {
            self.out.say(stream, MessageKind::Also, json(&Also { answers }));
        }
    }

    /// A wait is over. The thread that says so waits for others too: it must not be held up.
    pub(super) fn waited(self: Arc<Self>, stream: u32, along: Along, answer: Result<Answer, Failure>) {
        if along.also.is_empty() {
            return self.answered(stream, answer);
        }
        let relay = Arc::clone(&self);
        self.lanes.put(
            no_job(stream),
            Box::new(move || {
                relay.say_also(stream, &along, &answer);
                relay.answered(stream, answer);
            }),
        );
    }
}
