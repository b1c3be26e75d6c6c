//! The buckets and streams of a fleet. Whoever needs one first makes it, if it may.

use std::time::Duration;

use async_nats::jetstream::kv::{self, Store};
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy, StorageType, Stream};
use outlast_protocol::Failure;

use crate::broker::{Broker, broken};
use crate::names;

/// A host that has said nothing for as long is gone.
pub const HOST_TTL: Duration = Duration::from_secs(15);
/// How long the mark of a removed key stays.
const MARKER_TTL: Duration = Duration::from_secs(60);
/// For how long the broker itself recognises a message that is sent twice.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
const DAY: u64 = 86400;
/// How long events are kept, unless the settings say otherwise.
const EVENTS_DAYS: u64 = 7;
const EVENTS_BYTES: i64 = 1 << 30;

impl Broker {
    pub(crate) fn replicas(&self) -> usize {
        self.file.replicas.unwrap_or(1)
    }

    async fn bucket(&self, config: kv::Config) -> Result<Store, Failure> {
        if let Ok(bucket) = self.streams.get_key_value(&config.bucket).await {
            return Ok(bucket);
        }
        let name = config.bucket.clone();
        let made = self.streams.create_key_value(config).await;
        made.map_err(|error| broken(&format!("cannot make the bucket {name}"), error))
    }

    /// Who is there.
    ///
    /// # Errors
    /// When the broker does not answer, or refuses.
    pub async fn hosts(&self) -> Result<Store, Failure> {
        self.bucket(kv::Config {
            bucket: names::HOSTS.into(),
            max_age: HOST_TTL,
            storage: StorageType::Memory,
            num_replicas: self.replicas(),
            history: 1,
            ..Default::default()
        })
        .await
    }

    /// Who has ever joined.
    ///
    /// # Errors
    /// As [`hosts`](Self::hosts).
    pub async fn members(&self) -> Result<Store, Failure> {
        self.bucket(self.kept(names::MEMBERS)).await
    }

    /// Jobs in short.
    ///
    /// # Errors
    /// As [`hosts`](Self::hosts).
    pub async fn jobs(&self) -> Result<Store, Failure> {
        self.bucket(self.kept(names::JOBS)).await
    }

    /// What became of orders.
    ///
    /// # Errors
    /// As [`hosts`](Self::hosts).
    pub async fn orders(&self) -> Result<Store, Failure> {
        self.bucket(self.kept(names::ORDERS)).await
    }

    fn kept(&self, bucket: &str) -> kv::Config {
        kv::Config {
            bucket: bucket.into(),
            storage: StorageType::File,
            num_replicas: self.replicas(),
            history: 1,
            limit_markers: Some(MARKER_TTL),
            ..Default::default()
        }
    }

    async fn stream(&self, config: stream::Config) -> Result<Stream, Failure> {
        if let Ok(stream) = self.streams.get_stream(&config.name).await {
            return Ok(stream);
        }
        let name = config.name.clone();
        let made = self.streams.get_or_create_stream(config).await;
        made.map_err(|error| broken(&format!("cannot make the stream {name}"), error))
    }

    /// Events of all hosts.
    ///
    /// # Errors
    /// As [`hosts`](Self::hosts).
    pub async fn events(&self) -> Result<Stream, Failure> {
        let days = self.file.events_days.unwrap_or(EVENTS_DAYS);
        self.stream(stream::Config {
            name: names::EVENTS.into(),
            subjects: vec![names::ALL_EVENTS.into()],
            max_age: Duration::from_secs(days * DAY),
            max_bytes: self.file.events_bytes.unwrap_or(EVENTS_BYTES),
            duplicate_window: DUPLICATE_WINDOW,
            num_replicas: self.replicas(),
            ..Default::default()
        })
        .await
    }

    /// How orders ended.
    ///
    /// # Errors
    /// As [`hosts`](Self::hosts).
    pub async fn results(&self) -> Result<Stream, Failure> {
        self.stream(stream::Config {
            name: names::RESULTS.into(),
            subjects: vec![names::ALL_RESULTS.into()],
            max_age: Duration::from_secs(EVENTS_DAYS * DAY),
            max_bytes: EVENTS_BYTES,
            duplicate_window: DUPLICATE_WINDOW,
            num_replicas: self.replicas(),
            ..Default::default()
        })
        .await
    }

    /// The orders of a label.
    ///
    /// # Errors
    /// As [`hosts`](Self::hosts).
    pub async fn queue(&self, label: &str) -> Result<Stream, Failure> {
        self.stream(stream::Config {
            name: names::queue_stream(label),
            subjects: vec![names::queue_subjects(label)],
            retention: RetentionPolicy::WorkQueue,
            // Without a limit of its own nothing is ever discarded; the server's own limits refuse what does not fit. A stream with
            // schedules cannot refuse by itself.
            discard: DiscardPolicy::Old,
            duplicate_window: DUPLICATE_WINDOW,
            num_replicas: self.replicas(),
            allow_message_schedules: true,
            allow_message_ttl: true,
            allow_rollup: true,
            ..Default::default()
        })
        .await
    }
}
