//! The list of jobs, for every page that shows it: made anew when a keeper or the folder of jobs says that something changed, and
//! only while somebody looks.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use outlast_job::client::Waiting;
use outlast_job::clock::now_ms;
use outlast_job::{Failure, Handle, Outlast};
use outlast_protocol::request::{AskKeepers, List, News, Subscription};
use tokio::sync::watch;

use crate::cards::Card;

/// Changes closer together than this are shown together. What was printed is less urgent than what happened.
const AFTER_EVENT: Duration = Duration::from_millis(150);
const AFTER_OUTPUT: Duration = Duration::from_millis(1000);
/// The most jobs that are shown: the newest.
const MAX_CARDS: usize = 500;

/// All cards, newest job first.
pub(crate) type Cards = Arc<Vec<Card>>;

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

    /// Sleeps until something has changed and it is time to show it.
    fn wait(&self, since: Instant) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let due = match (told.event, told.output) {
                (true, _) => Some(since + AFTER_EVENT),
                (false, true) => Some(since + AFTER_OUTPUT),
                (false, false) => None,
            };
            let now = Instant::now();
            told = match due {
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

/// The list, and the thread that keeps it.
#[derive(Clone, Debug)]
pub(crate) struct Feed {
    cards: watch::Sender<Cards>,
    bell: Arc<Bell>,
}

impl Feed {
    pub(crate) fn start(outlast: Outlast) -> Result<Self, Failure> {
        let (cards, _) = watch::channel(Cards::default());
        let feed = Self { cards, bell: Arc::new(Bell::default()) };
        let own = feed.clone();
        std::thread::Builder::new()
            .name("jobs".into())
            .spawn(move || own.keep(&outlast))
            .map_err(|error| Failure::system("cannot start a thread", error))?;
        Ok(feed)
    }

    /// The list from now on.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Cards> {
        let receiver = self.cards.subscribe();
        self.bell.ring(Told { event: true, output: false });
        receiver
    }

    fn keep(&self, outlast: &Outlast) {
        let mut followed: BTreeMap<Handle, Waiting> = BTreeMap::new();
        let mut list: Option<Waiting> = None;
        let mut since = Instant::now();
        loop {
            self.bell.wait(since);
            since = Instant::now();
            if self.cards.receiver_count() == 0 {
                // Whoever comes rings the bell.
                (list, _) = (None, followed.clear());
                continue;
            }
            if list.is_none() {
                list = tell(outlast, &Subscription::JobList, &self.bell);
            }
            let asked = List { keepers: AskKeepers::All, last_lines: true, pins: true, ..List::default() };
            let mut listed = outlast.list(asked);
            followed.retain(|handle, _| listed.iter().any(|one| one.job.handle == *handle && one.is_live()));
            for one in listed.iter().filter(|one| one.is_live()) {
                let handle = one.job.handle;
                if !followed.contains_key(&handle)
                    && let Some(told) = tell(outlast, &Subscription::Job { job: handle }, &self.bell)
                {
                    followed.insert(handle, told);
                }
            }
            listed.reverse();
            listed.truncate(MAX_CARDS);
            let now = now_ms();
            let cards: Vec<Card> = listed.into_iter().map(|one| Card::new(one, now)).collect();
            self.cards.send_if_modified(|before| {
                let changed = **before != cards;
                if changed {
                    *before = Arc::new(cards);
                }
                changed
            });
        }
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
