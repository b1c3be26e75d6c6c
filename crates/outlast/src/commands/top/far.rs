//! Jobs of other machines. Each host has a thread of its own: one that is slow or gone holds up no key and no other list. A host is asked
//! when it says that something has changed, and one that cannot be reached after a while again.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use outlast_cli::TopArgs;
use outlast_job::client::{News, Waiting};
use outlast_job::clock::now_ms;
use outlast_job::request::{AskKeepers, List, Subscription};
use outlast_job::{Failure, Handle, Outlast, session};
use outlast_protocol::HostName;

use super::looker::Found;
use super::mailbox::Sender;
use crate::commands::jobs::fleet::rows_of;
use crate::commands::jobs::rows::Row;

/// How long is waited before a host that did not answer is tried again, at first and at last.
const FIRST_RETRY: Duration = Duration::from_secs(5);
const LAST_RETRY: Duration = Duration::from_secs(60);
/// Changes of a host closer together than this are listed together.
const DEBOUNCE: Duration = Duration::from_millis(300);

/// How many jobs of a fleet are shown.
const MAX_TOLD: usize = 100;
/// What a fleet tells is looked at no more often than this.
const TOLD_DEBOUNCE: Duration = Duration::from_secs(1);
/// It is looked at this often even if nothing changes, for hosts that are not heard of any more.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// What the hosts said last.
#[derive(Debug, Default)]
pub(super) struct Far {
    rows: BTreeMap<HostName, (Instant, Vec<Row>)>,
    troubles: BTreeMap<HostName, String>,
    /// What the hosts of the fleet told last.
    fleet: Option<(Instant, Vec<Row>)>,
    /// The fleet in a few words, if it is shown.
    pub(super) fleet_words: Option<String>,
}

impl Far {
    /// What the hosts of the fleet tell. Should the broker be gone, what was told last stays.
    pub(super) fn take_in_fleet(&mut self, said: Result<(Vec<Row>, String), String>) {
        match said {
            Ok((rows, words)) => {
                self.fleet = Some((Instant::now(), rows));
                self.fleet_words = Some(words);
            }
            Err(trouble) => self.fleet_words = Some(trouble),
        }
    }

    /// Whether a job is only known from what its host tells: nobody says when it prints.
    pub(super) fn is_only_told(&self, job: Handle) -> bool {
        job.host().is_some_and(|host| !self.rows.contains_key(&host))
    }

    pub(super) fn take_in(&mut self, host: HostName, said: Result<Vec<Row>, String>) {
        match said {
            Ok(rows) => {
                self.troubles.remove(&host);
                self.rows.insert(host, (Instant::now(), rows));
            }
            Err(trouble) => {
                self.troubles.insert(host, trouble);
            }
        }
    }

    /// All their jobs, as of now.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row> {
        // One that is asked directly need not be told of.
        let told = self.fleet.iter().map(|(since, rows)| (since, rows, true));
        let asked = self.rows.values().map(|(since, rows)| (since, rows, false));
        asked.chain(told).flat_map(move |(since, rows, is_told)| {
            let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            let is_shown = move |row: &&Row| !is_told || self.is_only_told(row.handle);
            rows.iter().filter(is_shown).map(move |row| row.later(ms))
        })
    }

    /// The hosts that do not answer.
    pub(super) fn silent(&self) -> impl Iterator<Item = &HostName> {
        self.troubles.keys()
    }
}

/// Starts to tell of the jobs of all known hosts, for as long as anybody listens.
pub(super) fn tell_of_all(outlast: &Outlast, args: &TopArgs, to: &Sender) -> Result<(), Failure> {
    for host in outlast.known_hosts() {
        let teller = Teller {
            outlast: outlast.clone(),
            host,
            list: List {
                session: args.session.clone(),
                unfinished: false,
                running: args.running,
                keepers: AskKeepers::All,
                last_lines: false,
                left_behind: false,
                pins: true,
            },
            to: to.clone(),
            followed: BTreeMap::new(),
        };
        std::thread::Builder::new()
            .name("host".into())
            .spawn(move || teller.run())
            .map_err(|error| Failure::system("cannot start a thread", error))?;
    }
    Ok(())
}

/// Starts to tell of what the hosts of the fleet tell, if they are to be shown.
pub(super) fn tell_of_fleet(outlast: &Outlast, args: &TopArgs, to: &Sender) -> Result<(), Failure> {
    let (outlast, to, running) = (outlast.clone(), to.clone(), args.running);
    if args.session.is_some() {
        // Sessions are not told.
        return Ok(());
    }
    let tell = move || {
        while let Some(said) = outlast.told(MAX_TOLD) {
            let said = said.map_err(|failure| failure.message).map(|told| {
                let words = told.words();
                let mut rows = rows_of(told, &session::current(), now_ms());
                rows.retain(|row| !running || row.is_live());
                (rows, words)
            });
            to.found(Found::Fleet(said));
            std::thread::sleep(TOLD_DEBOUNCE);
            outlast.wait_for_change(TOLD_EVERY);
        }
    };
    std::thread::Builder::new()
        .name("fleet".into())
        .spawn(tell)
        .map(drop)
        .map_err(|error| Failure::system("cannot start a thread", error))
}

struct Teller {
    outlast: Outlast,
    host: HostName,
    list: List,
    to: Sender,
    followed: BTreeMap<Handle, Waiting>,
}

impl Teller {
    fn run(mut self) {
        // One message is enough: that something has changed.
        let (bell, rung) = sync_channel::<()>(1);
        let (mut retry, mut new_jobs) = (FIRST_RETRY, None);
        loop {
            let wait = match self.look(&bell, &mut new_jobs) {
                Ok(rows) => {
                    self.to.found(Found::Far(self.host, Ok(rows)));
                    retry = FIRST_RETRY;
                    None
                }
                Err(failure) => {
                    (new_jobs, _) = (None, self.followed.clear());
                    self.to.found(Found::Far(self.host, Err(failure.message)));
                    let wait = retry;
                    retry = (retry * 2).min(LAST_RETRY);
                    Some(wait)
                }
            };
            match wait {
                Some(wait) => match rung.recv_timeout(wait) {
                    Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                },
                None => {
                    if rung.recv().is_err() {
                        return;
                    }
                }
            }
            std::thread::sleep(DEBOUNCE);
        }
    }

    fn look(&mut self, bell: &SyncSender<()>, new_jobs: &mut Option<Waiting>) -> Result<Vec<Row>, Failure> {
        if new_jobs.is_none() {
            let bell = bell.clone();
            let there = self.outlast.on(self.host)?;
            *new_jobs = Some(there.subscribe(&Subscription::JobList, move |_| ring(&bell))?);
        }
        let listed = self.outlast.list_on(self.host, self.list.clone())?;
        let is_there = |handle: &Handle| listed.iter().any(|one| one.job.handle == *handle && one.is_live());
        self.followed.retain(|handle, _| is_there(handle));
        for one in listed.iter().filter(|one| one.is_live()) {
            let job = one.job.handle;
            if self.followed.contains_key(&job) {
                continue;
            }
            let (bell, to) = (bell.clone(), self.to.clone());
            let told = self.outlast.subscribe(&Subscription::Job { job }, move |news| {
                to.grown(job);
                match news {
                    News::Grown(_) => true,
                    News::Event(_) | News::Over | News::Changed | News::Attached(_) => ring(&bell),
                }
            });
            // One that is gone by now is not in the next list.
            if let Ok(told) = told {
                self.followed.insert(job, told);
            }
        }
        let (mine, now) = (session::current(), now_ms());
        Ok(listed.into_iter().map(|job| Row::new(job, &mine, now)).collect())
    }
}

/// Says whether anybody still listens.
fn ring(bell: &SyncSender<()>) -> bool {
    !matches!(bell.try_send(()), Err(TrySendError::Disconnected(())))
}
