//! What `certain` means, as a type: a claim of that level needs a [`NothingElse`], and only a look at every thread of the
//! job makes one.

use std::collections::HashSet;

use rustix::process::Pid;

use super::fds::Link;
use super::threads::{Continues, Sample, ThreadScanner};

/// Proof that no thread of the job, but the one that reads the terminal, can continue without input.
///
/// Each other thread was seen, and waits for a lock or a signal without a timeout, for a child, for the terminal, or for
/// a pipe or socket whose other end another process of the job holds. What has a timeout, however long, what runs, waits
/// for a disk, for the network or for somebody outside the job, and what could not be seen or read, proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NothingElse(());

/// More processes than this are not looked into for the other ends of pipes.
const MAX_PROCESSES: usize = 64;

impl NothingElse {
    /// Looks at every thread of the job; `None` if one may continue by itself.
    pub(super) fn prove(scanner: &mut ThreadScanner, samples: &[Sample], reader: Pid) -> Option<Self> {
        // Where processes of other users are hidden, some of the job's may be among them.
        if scanner.hides_processes() {
            return None;
        }
        let mut wanted = Vec::new();
        for sample in samples.iter().filter(|sample| sample.process.is_alive()) {
            if sample.threads.is_empty() || scanner.has_posix_timers(sample.process.pid) {
                return None;
            }
            for thread in sample.threads.iter().filter(|thread| thread.tid != reader) {
                for continues in thread.doing.continues() {
                    match continues {
                        Continues::WithOthers => {}
                        Continues::With(link) => wanted.push((sample.process.pid, link)),
                        Continues::ByItself => return None,
                    }
                }
            }
        }
        lead_into_job(scanner, samples, &wanted).then_some(Self(()))
    }
}

/// Whether the other end of each of these is held by another process of the job.
fn lead_into_job(scanner: &mut ThreadScanner, samples: &[Sample], wanted: &[(Pid, Link)]) -> bool {
    if wanted.is_empty() {
        return true;
    }
    if samples.len() > MAX_PROCESSES {
        return false;
    }
    let mut held: HashSet<(Pid, Link)> = HashSet::new();
    for sample in samples {
        let pid = sample.process.pid;
        held.extend(scanner.links(pid).iter().map(|(_, link)| (pid, *link)));
    }
    wanted.iter().all(|(pid, link)| {
        samples.iter().any(|other| other.process.pid != *pid && held.contains(&(other.process.pid, *link)))
    })
}
