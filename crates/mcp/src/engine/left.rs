//! What an earlier conversation of the same client in the same folder left: its running jobs, and what it was not told.
//!
//! Only of conversations whose agent is gone; and once, to the next one that looks.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};

use outlast_job::request::ListedJob;

use super::news::plural;
use super::{Caller, Engine};
use crate::session::is_predecessor;

/// More running jobs than this are counted and not named.
const NAMED: usize = 12;

/// The sessions whose leavings this server has told.
#[derive(Debug, Default)]
pub(crate) struct Told(Mutex<HashSet<String>>);

impl Engine {
    /// What earlier conversations left, in words; empty if nothing, or if it has been told.
    pub(super) fn left_behind(&self, caller: &Caller, all: &[ListedJob], adopted: &[String]) -> String {
        let is_adopted = |session: &str| adopted.iter().any(|one| one == session);
        let left = all
            .iter()
            .filter(|one| is_predecessor(&one.job.session, &caller.session) && !is_adopted(&one.job.session));
        let mut sessions: BTreeMap<&str, Vec<&ListedJob>> = BTreeMap::new();
        for one in left {
            sessions.entry(&one.job.session).or_default().push(one);
        }
        let mut told = self.left.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        for (session, jobs) in sessions {
            if !told.insert(session.to_owned()) {
                continue;
            }
            let running: Vec<String> =
                jobs.iter().filter(|one| one.is_live()).map(|one| one.job.handle.to_string()).collect();
            if !running.is_empty() {
                let named = running[..running.len().min(NAMED)].join(", ");
                let more = running.len().saturating_sub(NAMED);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                text.push_str(&format!(
                    "still running from an earlier conversation here: job {named}{more}; jobs(adopt=true) makes them yours\n"
                ));
            }
            let earlier = Caller { session: session.to_owned(), ..caller.clone() };
            let news = self.claim_news(&earlier, usize::MAX);
            if let Some((_, events)) = news.text().split_once('\n') {
                let count = plural(news.count());
                text.push_str(&format!(
                    "{count} that an earlier conversation here was not told of:\n{events}"
                ));
            }
        }
        text
    }
}
