//! Jobs that were started from inside a job. Their keepers become our descendants (we are a subreaper), but
//! they are jobs of their own: they are not ours to end, and they do not hold us up.

use std::collections::HashSet;
use std::path::Path;

use outlast_pty::procfs::{self, Proc};
use outlast_pty::reap::{self, Peeked};
use rustix::process::{Pid, getpid};

use super::{Keeper, Net};
use crate::registry::Home;

impl Keeper {
    /// Whether nothing is left of the job but, maybe, other jobs.
    ///
    /// A walk can miss a process that is just being handed over from a parent that ended; only the kernel's
    /// word that we have no child is proof. With other jobs or a helper below us it can't give that word: then two walks
    /// must agree.
    pub(super) fn nothing_left(&self) -> bool {
        let is_parent = self.watched.is_none();
        if self.childless && is_parent {
            return true;
        }
        let seen = self.walk();
        let has_own = self.helper.is_some() || matches!(self.net, Net::Child(_));
        if is_parent && !has_own && !seen.iter().any(is_a_keeper) {
            return reap::peek(None) == Peeked::NoChildren;
        }
        let ours = |seen| without_nested_jobs(self.without_our_own(seen));
        ours(seen).is_empty() && ours(self.walk()).is_empty()
    }
}

/// Leaves out the keepers of other jobs, and all below them, the init of a sandbox, and the dead.
pub(crate) fn without_nested_jobs(mut processes: Vec<Proc>) -> Vec<Proc> {
    let mut theirs: HashSet<Pid> = processes.iter().filter(|p| is_a_keeper(p)).map(|p| p.pid).collect();
    if !theirs.is_empty() {
        // Descendants come after their parents only mostly: repeat until nothing is added.
        loop {
            let before = theirs.len();
            for process in &processes {
                if process.ppid.is_some_and(|parent| theirs.contains(&parent)) {
                    theirs.insert(process.pid);
                }
            }
            if theirs.len() == before {
                break;
            }
        }
    }
    processes.retain(|process| {
        process.is_alive() && !theirs.contains(&process.pid) && !outlast_pty::procfs::is_init(process)
    });
    processes
}

/// Whether a process is the heir or keeper of a job, by the record of that job and not by its own word.
fn is_a_keeper(process: &Proc) -> bool {
    let Some(home) = procfs::arguments(process.pid).and_then(|arguments| keepers_home(&arguments)) else {
        return false;
    };
    let Ok(home) = Home::open(Path::new(&home)) else { return false };
    let me = getpid();
    // In a sandbox it knows itself by another number than we do.
    let numbers = procfs::numbers(process.pid);
    process.pid != me
        && home.handles().into_iter().filter_map(|handle| home.job(handle).ok()?.info().ok()).any(|info| {
            let is = |known: &Option<crate::lifecycle::Process>| {
                let is_it = |known: &crate::lifecycle::Process| {
                    known.started == process.start_time && numbers.contains(&known.pid)
                };
                known.as_ref().is_some_and(is_it)
            };
            is(&info.heir) || is(&info.keeper)
        })
}

/// The home in a keeper's command line: `outlast keep HOME`.
fn keepers_home(arguments: &[Vec<u8>]) -> Option<String> {
    match arguments {
        [_, verb, home] | [_, verb, home, _] if verb == crate::local::start::KEEP.as_bytes() => {
            String::from_utf8(home.clone()).ok()
        }
        _ => None,
    }
}
