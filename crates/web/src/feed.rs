//! The list of jobs, of this machine and of its hosts, for every page that shows it: made anew when a keeper or a folder of jobs says
//! that something changed, and only while somebody looks.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use outlast_job::client::Waiting;
use outlast_job::clock::now_ms;
use outlast_job::{Failure, Handle, Outlast};
use outlast_protocol::HostName;
use outlast_protocol::request::{AskKeepers, List, ListedJob, News, Subscription};
use tokio::sync::watch;

use crate::cards::Card;

/// Changes closer together than this are shown together. What was printed is less urgent than what happened.
const AFTER_EVENT: Duration = Duration::from_millis(150);
const AFTER_OUTPUT: Duration = Duration::from_millis(1000);
/// The most jobs that are shown: the newest.
const MAX_CARDS: usize = 500;

/// What a fleet tells is looked at this often even if nothing changes, for hosts that are not heard of any more.
const FLEET_EVERY: Duration = Duration::from_secs(5);

/// A host that did not answer is asked again after this long, and then after longer times up to the second.
const FIRST_RETRY: Duration = Duration::from_secs(5);
const LAST_RETRY: Duration = Duration::from_secs(60);

/// What is listed: the cards of each place, newest job first, and the hosts that can't be asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Listed {
    pub(crate) cards: Vec<Card>,
    pub(crate) troubles: BTreeMap<String, String>,
    /// The fleet in a few words, if it is shown.
    pub(crate) fleet: Option<String>,
}

pub(crate) type Cards = Arc<Listed>;

/// What is known to have changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    event: bool,
    output: bool,
}

#[derive(Debug, Default)]
struct Bell {
    told: Mutex<Told>,
    rung: Condvar,
}

impl Bell {
    fn ring(&self, told: Told) {
        let mut now = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        (now.event, now.output) = (now.event || told.event, now.output || told.output);
        self.rung.notify_all();
    }

    /// Sleeps until something has changed and it is time to show it, or until it is time to try again.
    fn wait(&self, since: Instant, retry: Option<Instant>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let due = match (told.event, told.output) {
                (true, _) => Some(since + AFTER_EVENT),
                (false, true) => Some(since + AFTER_OUTPUT),
                (false, false) => None,
            };
            let now = Instant::now();
            told = match due.into_iter().chain(retry).min() {
                Some(at) if at <= now => {
                    *told = Told::default();
                    return;
                }
                Some(at) => self.rung.wait_timeout(told, at - now).unwrap_or_else(PoisonError::into_inner).0,
                None => self.rung.wait(told).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

/// Where jobs are that are listed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// This machine.
    Here,
    /// Another, which is asked.
    There(HostName),
    /// The hosts of a fleet, as they tell it.
    Fleet,
}

impl Place {
    /// As whose trouble it is shown.
    fn name(self) -> String {
        match self {
            Self::Here => String::new(),
            Self::There(host) => host.to_string(),
            Self::Fleet => "fleet".into(),
        }
    }
}

/// What each place said last.
type Parts = BTreeMap<Place, Vec<Card>>;

/// The list, and the threads that keep it: one for this machine, and one for each host, so that a slow one holds nobody up.
#[derive(Clone, Debug)]
pub(crate) struct Feed {
    cards: watch::Sender<Cards>,
    bells: Arc<Mutex<BTreeMap<Place, Arc<Bell>>>>,
    parts: Arc<Mutex<Parts>>,
}

impl Feed {
    pub(crate) fn start(outlast: Outlast) -> Result<Self, Failure> {
        let (cards, _) = watch::channel(Cards::default());
        let feed = Self { cards, bells: Arc::default(), parts: Arc::default() };
        feed.keep_in_thread(outlast, Place::Here)?;
        Ok(feed)
    }

    /// The list from now on.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Cards> {
        let receiver = self.cards.subscribe();
        let bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        bells.values().for_each(|bell| bell.ring(Told { event: true, output: false }));
        receiver
    }

    fn keep_in_thread(&self, outlast: Outlast, place: Place) -> Result<(), Failure> {
        let bell = Arc::new(Bell::default());
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        if bells.contains_key(&place) {
            return Ok(());
        }
        bells.insert(place, Arc::clone(&bell));
        drop(bells);
        if place != Place::Here {
            bell.ring(Told { event: true, output: false });
        }
        let feed = self.clone();
        std::thread::Builder::new()
            .name("jobs".into())
            .spawn(move || feed.keep(&outlast, place, &bell))
            .map(|_| ())
            .map_err(|error| Failure::system("cannot start a thread", error))
    }

    fn keep(&self, outlast: &Outlast, place: Place, bell: &Arc<Bell>) {
        let mut followed: BTreeMap<Handle, Waiting> = BTreeMap::new();
        let mut list: Option<Waiting> = None;
        let (mut since, mut retry, mut patience) = (Instant::now(), None, FIRST_RETRY);
        loop {
            bell.wait(since, retry.take());
            since = Instant::now();
            if self.cards.receiver_count() == 0 {
                // A new arrival rings the bell.
                (list, _) = (None, followed.clear());
                continue;
            }
            match self.look(outlast, place, bell, &mut list, &mut followed) {
                Ok(cards) => {
                    patience = FIRST_RETRY;
                    self.publish(place, Ok(cards));
                    if place == Place::Fleet {
                        std::thread::sleep(AFTER_OUTPUT);
                        outlast.wait_for_change(FLEET_EVERY);
                        bell.ring(Told { event: true, output: false });
                    }
                }
                Err(failure) => {
                    (list, _) = (None, followed.clear());
                    retry = Some(Instant::now() + patience);
                    patience = (patience * 2).min(LAST_RETRY);
                    self.publish(place, Err(failure.message));
                }
            }
        }
    }

    /// The jobs of a place; their keepers tell the bell from now on.
    fn look(
        &self,
        outlast: &Outlast,
        place: Place,
        bell: &Arc<Bell>,
        list: &mut Option<Waiting>,
        followed: &mut BTreeMap<Handle, Waiting>,
    ) -> Result<Vec<Card>, Failure> {
        let asked = List { keepers: AskKeepers::All, last_lines: true, pins: true, ..List::default() };
        let (outlast, mut listed) = match place {
            Place::Fleet => return self.look_at_fleet(outlast),
            Place::There(host) => {
                let there = outlast.on(host)?;
                if list.is_none() {
                    *list = tell(&there, &Subscription::JobList, bell);
                }
                let listed = outlast.list_on(host, asked)?;
                (there, listed)
            }
            Place::Here => {
                if list.is_none() {
                    *list = tell(outlast, &Subscription::JobList, bell);
                    if outlast.shows_fleet() {
                        let _ = self.keep_in_thread(outlast.clone(), Place::Fleet);
                    }
                }
                for host in outlast.known_hosts() {
                    let _ = self.keep_in_thread(outlast.clone(), Place::There(host));
                }
                (outlast.clone(), outlast.list(asked))
            }
        };
        followed.retain(|handle, _| listed.iter().any(|one| one.job.handle == *handle && one.is_live()));
        for one in listed.iter().filter(|one| one.is_live()) {
            let handle = one.job.handle;
            if !followed.contains_key(&handle)
                && let Some(told) = tell(&outlast, &Subscription::Job { job: handle }, bell)
            {
                followed.insert(handle, told);
            }
        }
        listed.reverse();
        listed.truncate(MAX_CARDS);
        let now = now_ms();
        Ok(listed.into_iter().map(|one| Card::new(one, now)).collect())
    }

    /// The first jobs of the fleet. A host that is not heard of is told of; its jobs are shown as they were.
    fn look_at_fleet(&self, outlast: &Outlast) -> Result<Vec<Card>, Failure> {
        let told = outlast.told(MAX_CARDS).unwrap_or_else(|| Ok(Default::default()))?;
        let (now, words) = (now_ms(), told.words());
        let asked: Vec<HostName> = outlast.known_hosts();
        let is_new = |job: &&ListedJob| job.job.handle.host().is_none_or(|host| !asked.contains(&host));
        let cards = told.jobs.iter().filter(is_new).map(|job| Card::new(job.clone(), now)).collect();
        self.cards.send_if_modified(|before| {
            let mut now = Listed::clone(before);
            now.fleet = Some(words);
            let changed = now != **before;
            if changed {
                *before = Arc::new(now);
            }
            changed
        });
        Ok(cards)
    }

    /// Puts what a place says beside what the others say. What a host said last is shown while it cannot be asked.
    fn publish(&self, place: Place, said: Result<Vec<Card>, String>) {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut now = Listed::clone(&self.cards.borrow());
        let name = place.name();
        match &said {
            Ok(_) => now.troubles.remove(&name),
            Err(trouble) => now.troubles.insert(name, trouble.clone()),
        };
        if let Ok(cards) = said {
            parts.insert(place, cards);
        }
        now.cards = parts.values().flatten().cloned().collect();
        self.cards.send_if_modified(|before| {
            let changed = **before != now;
            if changed {
                *before = Arc::new(now);
            }
            changed
        });
    }
}

fn tell(outlast: &Outlast, to: &Subscription, bell: &Arc<Bell>) -> Option<Waiting> {
    let bell = Arc::clone(bell);
    let tell = move |news| {
        let is_output = matches!(news, News::Grown(_));
        bell.ring(Told { event: !is_output, output: is_output });
        true
    };
    outlast.subscribe(to, tell).ok()
}
