//! Jobs of conversations that are over, taken over by a later one: whose they are now.
//!
//! A job's record keeps the session that started it. That another one has adopted it is a line in a file of the home, so every
//! server knows it, and what a job tells still goes to the outbox of the session that started it.

use std::collections::HashMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use outlast_job::registry::Home;
use outlast_job::{Failure, Job};
use serde::{Deserialize, Serialize};

use super::{Caller, Engine};
use crate::calls::CallOrder;
use crate::session::is_predecessor;

const FILE: &str = "adopted.jsonl";
/// More than this is not read: the newest lines count.
const MAX_FILE: u64 = 1 << 20;

/// One session was adopted by another.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    session: String,
    by: String,
}

/// Who has adopted whom.
#[derive(Debug)]
pub(crate) struct Adopted {
    path: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The size of the file when it was read.
    size: u64,
    by: HashMap<String, String>,
}

impl Adopted {
    pub(super) fn of(home: &Home) -> Self {
        Self { path: home.path().join(FILE), known: Mutex::default() }
    }

    /// The sessions that one has adopted, also those that these had adopted before.
    pub(super) fn by(&self, session: &str) -> Vec<String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let size = std::fs::metadata(&self.path).map_or(0, |file| file.len());
        if size == 0 {
            return Vec::new();
        }
        if size != known.size {
            let text = if size > MAX_FILE {
                String::new()
            } else {
                std::fs::read_to_string(&self.path).unwrap_or_default()
            };
            let entries = text.lines().filter_map(|line| serde_json::from_str::<Entry>(line).ok());
            *known = Known { size, by: entries.map(|entry| (entry.session, entry.by)).collect() };
        }
        let mut all = vec![session.to_owned()];
        let mut next = 0;
        while let Some(owner) = all.get(next).cloned() {
            let more = known.by.iter().filter(|(one, by)| **by == owner && !all.contains(one));
            let more: Vec<String> = more.map(|(one, _)| one.clone()).collect();
            all.extend(more);
            next += 1;
        }
        all.split_off(1)
    }

    fn add(&self, session: &str, by: &str) -> std::io::Result<()> {
        let entry = Entry { session: session.to_owned(), by: by.to_owned() };
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        let mut file = std::fs::File::options();
        file.append(true).create(true).mode(0o600).open(&self.path)?.write_all(&line)
    }
}

impl Engine {
    /// The sessions that the caller has adopted.
    pub(crate) fn adopted_by(&self, caller: &Caller) -> Vec<String> {
        self.adopted.by(&caller.session)
    }

    /// Makes the jobs of earlier conversations of the same client in the same folder, whose agents are gone, the caller's own;
    /// says of how many sessions.
    pub(super) fn adopt<'a>(
        &self,
        caller: &Caller,
        sessions: impl Iterator<Item = &'a str>,
    ) -> Result<usize, Failure> {
        let mut left: Vec<&str> =
            sessions.filter(|session| is_predecessor(session, &caller.session)).collect();
        left.sort_unstable();
        left.dedup();
        let already = self.adopted_by(caller);
        left.retain(|session| !already.iter().any(|known| known == session));
        for session in &left {
            let noted = self.adopted.add(session, &caller.session);
            noted.map_err(|error| Failure::system("cannot note that jobs were adopted", error))?;
        }
        Ok(left.len())
    }

    /// As which session the caller acts: for a job that it has adopted, as the one that started it.
    pub(crate) fn acting_as(&self, caller: &Caller, order: &CallOrder) -> String {
        let owner = |job: &Job| job.info().ok().map(|info| info.session);
        let owner = match order {
            CallOrder::Send { job, .. } | CallOrder::View { job, .. } | CallOrder::Kill { job, .. } => {
                owner(job)
            }
            CallOrder::Run(_)
            | CallOrder::Screen { .. }
            | CallOrder::Read { .. }
            | CallOrder::Wait { .. }
            | CallOrder::List(_) => None,
        };
        let adopted = || self.adopted_by(caller);
        owner.filter(|owner| adopted().contains(owner)).unwrap_or_else(|| caller.session.clone())
    }
}
