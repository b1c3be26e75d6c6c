//! Orders that no keeper delivers any more: the next process of the home goes on with them.

use std::collections::{BTreeMap, BTreeSet};

use super::deliver::{self, Scope};
use super::spool::{OrderId, Progress, Spool};
use crate::failure::Failure;
use crate::registry::Home;
use crate::registry::claim::Lock;
use crate::spec::Handle;

/// Whether a job has nobody who delivers its orders.
pub(super) fn is_left(home: &Home, job: Handle) -> bool {
    // A job that is gone has no keeper.
    home.job(job).map_or(true, |job| Lock::is_free(&job))
}

/// Starts a helper for orders that dead keepers have left, if there are any and none is at work. Costs next to nothing
/// if there is no spool.
pub fn go_on(home: &Home) {
    let Some(spool) = Spool::existing(home) else { return };
    let ids = spool.ids();
    if ids.is_empty() || spool.take_left().is_none() {
        return;
    }
    let jobs: BTreeSet<Handle> = ids.iter().map(|id| id.job).collect();
    if jobs.into_iter().any(|job| is_left(home, job) && spool.has_pending(job)) {
        begin(home, Scope::Left, &small_environment());
    }
}

/// Tries an order again that was given up, with the caller's environment.
///
/// # Errors
/// When there is no such order.
pub fn retry(home: &Home, id: OrderId) -> Result<(), Failure> {
    let none = || Failure::usage(format!("there is no wake {id}")).hint("see them: outlast wakes list");
    let spool = Spool::existing(home).ok_or_else(none)?;
    let filed = spool.get(id).ok_or_else(none)?;
    let Some(held) = spool.hold(id, false) else {
        return Err(Failure::usage(format!("the wake {id} is being delivered right now")));
    };
    spool.note(id, &Progress { done: filed.progress.done, ..Progress::default() });
    drop(held);
    begin(home, Scope::All, &std::env::vars().collect());
    Ok(())
}

fn begin(home: &Home, scope: Scope, env: &BTreeMap<String, String>) {
    if let Ok(mut child) = deliver::begin(scope, home, env, None) {
        // A server that goes on is its parent.
        let _ = std::thread::Builder::new().stack_size(64 << 10).spawn(move || child.wait());
    }
}

/// What is left to work with when the client that configured a wake is gone: nothing that a job could have set.
fn small_environment() -> BTreeMap<String, String> {
    let mut env = BTreeMap::from([
        ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
    ]);
    let uid = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    if let Some(fields) = fields.into_iter().find(|fields| fields.get(2) == Some(&uid.as_str())) {
        let set = [("USER", 0), ("LOGNAME", 0), ("HOME", 5)];
        env.extend(
            set.iter().filter_map(|(name, at)| Some(((*name).to_owned(), (*fields.get(*at)?).to_owned()))),
        );
    }
    env
}

/// Removes an order that is not being delivered right now.
///
/// # Errors
/// When there is no such order, or it is being delivered.
pub fn cancel(home: &Home, id: OrderId) -> Result<(), Failure> {
    let spool = Spool::existing(home).filter(|spool| spool.is_there(id));
    let spool = spool.ok_or_else(|| {
        Failure::usage(format!("there is no wake {id}")).hint("see them: outlast wakes list")
    })?;
    let Some(_held) = spool.hold(id, false) else {
        return Err(Failure::usage(format!("the wake {id} is being delivered right now")));
    };
    spool.remove(id);
    Ok(())
}
