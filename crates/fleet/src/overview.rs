//! The whole fleet at a glance: who is there, how many jobs there are, and the first of them. Nobody is asked but the broker.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull};
use outlast_job::client::Told;
use outlast_protocol::Failure;

use crate::broker::{Broker, REPLY_TIMEOUT, broken, gather};
use crate::directory::{self, Beat, Card, Need};
use crate::names;

/// A reader of changes that has gone is forgotten after this.
const FORGET_READER: Duration = Duration::from_secs(60);
/// How many changes are passed over at once.
const MAX_CHANGES: usize = 5000;

/// Which jobs are looked for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The classes, in the order in which they are shown.
    pub needs: Vec<Need>,
    /// Of one host only.
    pub host: Option<String>,
    /// At most so many.
    pub most: usize,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    /// The hosts that are there.
    pub beats: BTreeMap<String, Beat>,
    /// Those that are not, and when they were seen last.
    pub gone: BTreeMap<String, u64>,
    /// Jobs, each with its host.
    pub cards: Vec<(String, Card)>,
}

/// Looks at all hosts and at the jobs that are wanted.
///
/// # Errors
/// When the broker does not answer.
pub async fn look(broker: &Broker, wanted: &Wanted) -> Result<Overview, Failure> {
    let (beats, members, cards) =
        tokio::join!(directory::hosts(broker), directory::members(broker), cards(broker, wanted));
    let (beats, members, cards) = (beats?, members?, cards?);
    let gone = members.into_iter().filter(|member| !beats.contains_key(&member.host));
    let gone = gone.map(|member| (member.host, member.seen)).collect();
    Ok(Overview { beats, gone, cards })
}

async fn cards(broker: &Broker, wanted: &Wanted) -> Result<Vec<(String, Card)>, Failure> {
    let mut cards = Vec::new();
    for need in &wanted.needs {
        let left = wanted.most.saturating_sub(cards.len());
        if left > 0 {
            cards.extend(directory::jobs(broker, *need, wanted.host.as_deref(), left).await?);
        }
    }
    Ok(cards)
}

impl Overview {
    /// How many jobs there are, by what they need.
    #[must_use]
    pub fn totals(&self) -> Vec<(&'static str, u64)> {
        let count = |at: usize| self.beats.values().map(|beat| u64::from(beat.jobs[at])).sum();
        Need::ALL.iter().enumerate().map(|(at, need)| (need.word(), count(at))).collect()
    }

    /// The same as doors show it.
    #[must_use]
    pub fn told(self, now_ms: u64) -> Told {
        let totals = self.totals();
        let away = self.gone.iter().filter_map(|(host, seen)| {
            let host = host.parse().ok()?;
            Some((host, now_ms.saturating_sub(*seen)))
        });
        Told {
            hosts: self.beats.len(),
            away: away.collect(),
            totals,
            jobs: self
                .cards
                .into_iter()
                .filter_map(|(host, card)| Some(card.listed(host.parse().ok()?)))
                .collect(),
        }
    }
}

/// Tells that jobs have changed, without what they are.
#[derive(Debug)]
pub struct Changes {
    consumer: PullConsumer,
}

impl Changes {
    /// From now on.
    ///
    /// # Errors
    /// When the broker does not answer.
    pub async fn begin(broker: &Broker) -> Result<Self, Failure> {
        let fail = |error: &dyn std::fmt::Display| broken("cannot watch jobs", error);
        let stream = broker.streams.get_stream_no_info(format!("KV_{}", names::JOBS)).await;
        let config = pull::Config {
            deliver_policy: DeliverPolicy::New,
            ack_policy: AckPolicy::None,
            headers_only: true,
            memory_storage: true,
            num_replicas: 1,
            inactive_threshold: FORGET_READER,
            ..Default::default()
        };
        let consumer = stream.map_err(|error| fail(&error))?.create_consumer(config).await;
        Ok(Self { consumer: consumer.map_err(|error| fail(&error))? })
    }

    /// Returns when something has changed, and after that time at the latest.
    ///
    /// # Errors
    /// When the broker does not answer: then begin again.
    pub async fn wait(&self, at_most: Duration) -> Result<(), Failure> {
        let fail = |error: &dyn std::fmt::Display| broken("cannot watch jobs", error);
        let first = self.consumer.batch().max_messages(1).expires(at_most).messages().await;
        if gather(first.map_err(|error| fail(&error))?, at_most + REPLY_TIMEOUT).await?.is_empty() {
            return Ok(());
        }
        // The rest is seen with the same look.
        let rest = self.consumer.fetch().max_messages(MAX_CHANGES).messages().await;
        gather(rest.map_err(|error| fail(&error))?, REPLY_TIMEOUT).await.map(drop)
    }
}
