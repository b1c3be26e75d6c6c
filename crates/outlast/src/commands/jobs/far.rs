//! Jobs of other machines in a list. All are asked at once; one that cannot be reached holds nobody up for long, and its jobs are shown as they were last known.

use outlast_job::request::{List as ListRequest, ListedJob};
use outlast_job::{Failure, Kind, Outlast};
use outlast_protocol::HostName;
use outlast_remote::fleet::LastKnown;

use super::rows::Row;

/// How many hosts are asked at a time.
const MAX_AT_ONCE: usize = 32;

/// What the other machines say.
#[derive(Default)]
pub(super) struct Far {
    pub(super) rows: Vec<Row>,
    /// What could not be had, in words.
    pub(super) troubles: Vec<String>,
}

/// Asks machines for their jobs.
pub(super) fn ask(outlast: &Outlast, hosts: &[HostName], request: &ListRequest, mine: &str, now: u64) -> Far {
    let home = outlast.home().path();
    let mut far = Far::default();
    for some in hosts.chunks(MAX_AT_ONCE) {
        let answers: Vec<(HostName, Result<Vec<ListedJob>, Failure>)> = std::thread::scope(|scope| {
            let asked: Vec<_> = some
                .iter()
                .map(|host| (*host, scope.spawn(|| outlast.list_on(*host, request.clone()))))
                .collect();
            let gone = |_| Err(Failure::new(Kind::Unreachable, "the request was lost"));
            asked.into_iter().map(|(host, thread)| (host, thread.join().unwrap_or_else(gone))).collect()
        });
        for (host, answer) in answers {
            match answer {
                Ok(jobs) => {
                    // Only a whole list is worth noting.
                    if !request.running && request.session.is_none() {
                        LastKnown::note(home, host, &jobs);
                    }
                    far.rows.extend(jobs.into_iter().map(|job| Row::new(job, mine, now)));
                }
                Err(failure) => far.unreachable(LastKnown::load(home, host), &failure, mine, now),
            }
        }
    }
    far
}

impl Far {
    fn unreachable(&mut self, last: Option<LastKnown>, failure: &Failure, mine: &str, now: u64) {
        self.troubles.push(failure.message.clone());
        if let (Some(last), Kind::Unreachable) = (last, failure.kind) {
            let age = u64::try_from(last.age().as_millis()).unwrap_or(u64::MAX);
            self.rows.extend(last.jobs.into_iter().map(|job| Row::new(job, mine, now).unreachable(age)));
        }
    }
}
