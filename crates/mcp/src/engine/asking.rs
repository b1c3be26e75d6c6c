//! Which jobs of a session stand still until a person has agreed to what they want to execute.
//!
//! The outbox of the session tells, so that a call that nobody has to be asked before costs a look at a file.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use outlast_job::outbox::tail::{Looked, Tail};
use outlast_job::outbox::{Entry, Outbox};
use outlast_job::{EntryKind, Handle, Job};
use outlast_protocol::event::ExecQuestion;

use super::Engine;

/// More sessions than this at one server are not remembered.
const MOST_SESSIONS: usize = 64;

/// What each session's outbox has told.
#[derive(Debug, Default)]
pub(crate) struct Asking(Mutex<HashMap<String, Followed>>);

#[derive(Debug, Default)]
struct Followed {
    tail: Tail,
    /// Jobs that have asked, and may still.
    jobs: BTreeSet<Handle>,
}

impl Followed {
    fn look(&mut self, outbox: &Outbox) {
        let entries = match self.tail.look(outbox) {
            Looked::More(more) => more,
            // Jobs that do not ask any more are left out when they are asked about.
            Looked::Anew(all) => all,
        };
        entries.iter().for_each(|entry| self.note(entry));
    }

    fn note(&mut self, entry: &Entry) {
        if matches!(entry.event, EntryKind::Asking | EntryKind::HostRefused) {
            self.jobs.insert(entry.job);
        } else if entry.event == EntryKind::Exit {
            self.jobs.remove(&entry.job);
        }
    }
}

impl Engine {
    /// Whether jobs of the session may stand still.
    pub(crate) fn may_ask_for_jobs(&self, session: &str) -> bool {
        !self.asking_jobs(session).is_empty()
    }

    /// A caller was told that a job asks: the next call knows it, even if the outbox does not say so yet.
    pub(super) fn note_asking(&self, session: &str, job: Handle) {
        let mut all = self.asking.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MOST_SESSIONS || all.contains_key(session) {
            all.entry(session.to_owned()).or_default().jobs.insert(job);
        }
    }

    fn asking_jobs(&self, session: &str) -> BTreeSet<Handle> {
        let Some(outbox) = Outbox::existing(self.outlast.home(), session) else { return BTreeSet::new() };
        let mut all = self.asking.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST_SESSIONS && !all.contains_key(session) {
            all.clear();
        }
        let followed = all.entry(session.to_owned()).or_default();
        followed.look(&outbox);
        followed.jobs.clone()
    }

    /// What a person must be asked.
    pub(crate) fn exec_questions(&self, session: &str) -> Vec<(Job, ExecQuestion)> {
        let mut questions = Vec::new();
        for handle in self.asking_jobs(session) {
            let Ok(job) = self.job(&handle.to_string()) else { continue };
            let asked = job.status().ok().flatten().map(|status| status.questions).unwrap_or_default();
            if asked.is_empty() {
                let mut all = self.asking.0.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(followed) = all.get_mut(session) {
                    followed.jobs.remove(&handle);
                }
            }
            questions.extend(asked.into_iter().map(|question| (job.clone(), question)));
        }
        questions
    }
}
