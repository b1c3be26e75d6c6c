//! Jobs of other machines: those that the user lets agents use.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use outlast_job::client::Waiting;
use outlast_job::outbox::Entry;
use outlast_job::request::{
    Ack, Answer, JobRequest, List as ListRequest, ListedJob, Request, SessionEvents, Stream, Subscription,
};
use outlast_job::{Failure, Kind, Outlast};
use outlast_protocol::HostName;
use outlast_remote::fleet::LastKnown;

use super::news::{Event, is_known, is_over};
use super::{Caller, Engine};

/// What every answer about a job asks of it: for [`outlast_job::Job::expect`].
pub(super) fn asks() -> Vec<JobRequest> {
    let end = JobRequest::End { stream: Stream::Output };
    let record = |shown| JobRequest::Info { shown };
    let (left, outcome) = (JobRequest::LeftBehind, JobRequest::Outcome);
    vec![record(true), JobRequest::Files, end.clone(), left, outcome, end, record(false)]
}

impl Engine {
    /// Where a job is to be started.
    pub(super) fn on(&self, host: Option<HostName>) -> Result<Outlast, Failure> {
        match host {
            Some(host) => self.outlast.on(host),
            None => Ok(self.outlast.clone()),
        }
    }

    /// Adds the jobs of all other machines to a list, asked at once; says which could not be reached.
    pub(super) fn add_far(&self, listed: &mut Vec<ListedJob>, request: &ListRequest) -> String {
        let hosts = self.outlast.known_hosts();
        let answers: Vec<(HostName, Result<Vec<ListedJob>, Failure>)> = std::thread::scope(|scope| {
            let asked: Vec<_> = hosts
                .iter()
                .map(|host| (*host, scope.spawn(|| self.outlast.list_on(*host, request.clone()))))
                .collect();
            let gone = |_| Err(Failure::new(Kind::Unreachable, "the request was lost"));
            asked.into_iter().map(|(host, thread)| (host, thread.join().unwrap_or_else(gone))).collect()
        });
        let home = self.outlast.home().path();
        let mut away = String::new();
        for (host, answer) in answers {
            match answer {
                Ok(jobs) => {
                    LastKnown::note(home, host, &jobs);
                    listed.extend(jobs);
                }
                Err(failure) => {
                    let last = LastKnown::load(home, host);
                    let known = last.map_or_else(String::new, |last| {
                        let running = last.jobs.iter().filter(|one| one.is_live()).count();
                        format!("; {running} jobs ran there {} s ago, and go on", last.age().as_secs())
                    });
                    away.push_str(&format!("{}{known}\n", failure.message));
                }
            }
        }
        away
    }
}

/// What jobs on other machines had to tell, as far as it has come here: each session listens on the hosts where it has jobs.
#[derive(Debug, Default)]
pub(crate) struct FarNews(Mutex<BTreeMap<(HostName, String), Listening>>);

#[derive(Debug)]
struct Listening {
    heard: Arc<Mutex<Heard>>,
    _subscribed: Waiting,
}

#[derive(Debug, Default)]
struct Heard {
    entries: Vec<Entry>,
    /// The number of the last one.
    last: Option<u64>,
}

impl Engine {
    /// Listens to what a session's jobs on another machine have to tell, from now on.
    pub(super) fn listen(&self, caller: &Caller, host: HostName) {
        let key = (host, caller.session.clone());
        let listening = || self.far_news.0.lock().unwrap_or_else(PoisonError::into_inner);
        if listening().contains_key(&key) {
            return;
        }
        let Ok(outlast) = self.outlast.on(host) else { return };
        let heard = Arc::<Mutex<Heard>>::default();
        fetch(&outlast, &caller.session, &heard);
        let (asked, session, into) = (outlast.clone(), caller.session.clone(), Arc::clone(&heard));
        let to = Subscription::Session { session: caller.session.clone() };
        // Should it fail, the next job that is started there tries again.
        let tell = move |_| {
            fetch(&asked, &session, &into);
            true
        };
        if let Ok(subscribed) = outlast.subscribe(&to, tell) {
            listening().insert(key, Listening { heard, _subscribed: subscribed });
        }
    }

    /// What the session's jobs on other machines had to tell. It is told now.
    pub(super) fn take_far_news(&self, caller: &Caller) -> Vec<Event> {
        if caller.call.is_cancelled() {
            return Vec::new();
        }
        let listening = self.far_news.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut events = Vec::new();
        for ((host, session), one) in listening.iter().filter(|((_, session), _)| *session == caller.session)
        {
            let mut heard = one.heard.lock().unwrap_or_else(PoisonError::into_inner);
            let entries = std::mem::take(&mut heard.entries);
            drop(heard);
            let Some(last) = entries.last().map(|entry| entry.n) else { continue };
            let is_new = |entry: &&Entry| {
                !is_over(entry, &entries) && !is_known(entry, self.cursors.get(session, entry.job))
            };
            events.extend(entries.iter().filter(is_new).map(Event::from));
            let ack = Request::Ack(Ack { session: session.clone(), up_to: Some(last), reader: None });
            // What cannot be noted is told twice after a restart, which is better than not at all.
            if let Ok(acked) = self.outlast.on(*host).and_then(|outlast| outlast.begin(ack, Box::new(|_| {})))
            {
                acked.detach();
            }
        }
        events
    }
}

/// Asks for what is new. It does not wait for the answer: it may be called where nobody may wait.
fn fetch(outlast: &Outlast, session: &str, heard: &Arc<Mutex<Heard>>) {
    let after = heard.lock().unwrap_or_else(PoisonError::into_inner).last;
    let request = Request::Events(SessionEvents { session: session.to_owned(), after });
    let heard = Arc::clone(heard);
    let answered = move |answer| {
        let Ok(Answer::Events(values)) = answer else { return };
        let entries = values.into_iter().filter_map(|value| serde_json::from_value::<Entry>(value).ok());
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in entries {
            // Two questions may have been on the way at once.
            if heard.last.is_none_or(|last| entry.n > last) {
                heard.last = Some(entry.n);
                heard.entries.push(entry);
            }
        }
    };
    if let Ok(asked) = outlast.begin(request, Box::new(answered)) {
        asked.detach();
    }
}
