//! Jobs in short, told when they change, and at most once a second.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_nats::jetstream::kv::Store;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use outlast_protocol::lifecycle::State;

use super::{Counts, Node, RETRY};
use crate::directory::{Card, Need, entries};
use crate::names;

/// No job is told of more often.
const AT_MOST_EVERY: Duration = Duration::from_secs(1);
/// How many messages are on their way at once.
const AT_ONCE: usize = 64;
/// How long the mark of a job that was removed stays.
const MARKER_TTL: Duration = Duration::from_secs(60);

/// How many jobs there are in each class of need.
#[derive(Debug, Default)]
pub struct Totals([AtomicU32; Need::COUNT]);

impl Totals {
    /// How many there are now.
    #[must_use]
    pub fn now(&self) -> [u32; Need::COUNT] {
        std::array::from_fn(|at| self.0[at].load(Ordering::Relaxed))
    }

    fn count<'a>(&self, cards: impl Iterator<Item = &'a Card>) {
        let mut counts = [0; Need::COUNT];
        for card in cards {
            counts[card.need() as usize] += 1;
        }
        for (place, count) in self.0.iter().zip(counts) {
            place.store(count, Ordering::Relaxed);
        }
    }
}

/// What is to be done with a key.
enum Change {
    Put(String, Box<Card>),
    Remove(String),
}

/// Tells of jobs until the task is ended.
pub(super) async fn tell(node: Arc<Node>) {
    let (bucket, mut told) = loop {
        match begin(&node).await {
            Some(begun) => break begun,
            None => tokio::time::sleep(RETRY).await,
        }
    };
    loop {
        node.jobs_changed.notified().await;
        let machine = Arc::clone(&node.machine);
        let jobs = tokio::task::spawn_blocking(move || machine.jobs()).await.unwrap_or_default();
        let cards: BTreeMap<String, Card> =
            jobs.iter().map(Card::of).map(|card| (card.key(&node.host), card)).collect();
        node.totals.count(cards.values());
        // Nobody tells when a command begins to run.
        let is_starting = cards.values().any(|card| matches!(card.state, State::Starting));
        let gone = told.keys().filter(|key| !cards.contains_key(*key)).cloned().map(Change::Remove);
        let mut changes: Vec<Change> = gone.collect();
        let fresh = cards.into_iter().filter(|(key, card)| told.get(key) != Some(card));
        changes.extend(fresh.map(|(key, card)| Change::Put(key, Box::new(card))));
        let taken: Vec<(Change, bool)> = stream::iter(changes)
            .map(|change| async {
                let is_taken = carry_out(&bucket, &change).await;
                (change, is_taken)
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let mut all = true;
        for (change, is_taken) in taken {
            all &= is_taken;
            match change {
                Change::Put(key, card) if is_taken => {
                    Counts::add(&node.counts.summaries);
                    told.insert(key, *card);
                }
                Change::Remove(key) if is_taken => drop(told.remove(&key)),
                Change::Put(..) | Change::Remove(_) => {}
            }
        }
        tokio::time::sleep(AT_MOST_EVERY).await;
        if !all || is_starting {
            node.jobs_changed.notify_one();
        }
    }
}

/// What the broker has of this host, perhaps from long ago.
async fn begin(node: &Node) -> Option<(Store, BTreeMap<String, Card>)> {
    let bucket = node.broker.jobs().await.ok()?;
    let filter = format!("*.{}.*", node.host);
    let told = entries(&node.broker, names::JOBS, &filter, usize::MAX).await.ok()?;
    Some((bucket, told.into_iter().collect()))
}

async fn carry_out(bucket: &Store, change: &Change) -> bool {
    match change {
        Change::Put(key, card) => {
            let value = Bytes::from(serde_json::to_vec(card).unwrap_or_default());
            bucket.put(key, value).await.is_ok()
        }
        Change::Remove(key) => bucket.purge_with_ttl(key, MARKER_TTL).await.is_ok(),
    }
}
